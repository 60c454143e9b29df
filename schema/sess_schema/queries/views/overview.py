"""The numbers of the dashboard, read in as few passes as possible."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from sess_schema import numbers
from sess_schema.queries.quarters import Reader
from sess_schema.queries.stats import Stats
from sess_schema.queries.tally import NAMES, Sum, Tally
from sess_schema.queries.views import failures, tools
from sess_schema.queries.views.tools import Uses
from sess_schema.queries.worktime import Worktime
from sess_schema.sums import CHARS_PER_TOKEN

_COST = NAMES.index("cost_nano")
SUBSCRIPTIONS = "subscriptions"  # the fact that names agents which nobody pays by token


@dataclass(slots=True)
class Overview:
    total: Tally = field(default_factory=Tally)
    time: Worktime = field(default_factory=Worktime)
    estimated_tokens: int = 0  # output where none was recorded; no other sum includes it
    days: dict[str, Tally] = field(default_factory=dict)
    models: dict[str, Tally] = field(default_factory=dict)
    projects: dict[str, Tally] = field(default_factory=dict)
    uses: Uses = field(default_factory=Uses)
    classes: dict[str, int] = field(default_factory=dict)  # of failed calls, most frequent first
    refused: int = 0  # API errors
    subscriptions: list[str] = field(default_factory=list)  # agents whose cost nobody was billed


def read(db: apsw.Connection, asked: Stats, config: Path) -> Overview:
    groups = ("day", "model", "project")
    reader = Reader(db, asked, groups)
    found = Overview(time=numbers.worktime_of(db, asked, reader))
    labels = [asked.label(reader, by) for by in groups]
    sums: list[defaultdict[str, Sum]] = [defaultdict(Sum) for _ in groups]
    charged = set[str]()
    # First by all three, as most rows share these with others.
    together: defaultdict[tuple[str, ...], Sum] = defaultdict(Sum)
    days, models, projects = dict[int, str](), dict[str | None, str](), dict[int, str]()
    for row in reader.rows():
        at, session, model, _, counts, root = row
        if at not in days:
            days[at] = labels[0](row)
        if model not in models:
            models[model] = labels[1](row)
        if session not in projects:
            projects[session] = labels[2](row)
        together[days[at], models[model], projects[session]].add(counts, root)
        if counts[_COST]:
            charged.add(reader.sessions[session].agent)
    for names, summed in together.items():
        for group, name in zip(sums, names, strict=True):
            group[name].include(summed)
    total = Sum()
    for summed in sums[0].values():
        total.include(summed)
    found.total = total.tally()
    found.days, found.models, found.projects = (
        {name: one.tally() for name, one in group.items()} for group in sums
    )
    stored = db.execute("SELECT value FROM facts WHERE name = ?", (SUBSCRIPTIONS,)).get
    titles = json.loads(stored or "{}")
    found.subscriptions = sorted(titles[agent] for agent in charged if agent in titles)
    unrecorded = reader.unrecorded_chars() + found.total.placeholder_chars
    found.estimated_tokens = unrecorded // CHARS_PER_TOKEN
    found.uses = tools.read(db, asked)
    found.classes, found.refused = failures.counts(db, asked, config)
    return found
