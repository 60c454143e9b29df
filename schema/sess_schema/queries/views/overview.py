"""The numbers of the dashboard, read in as few passes as possible."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path

import apsw

from sess_schema import numbers
from sess_schema.classes import dataclass, field
from sess_schema.labels import API_ERROR
from sess_schema.queries.quarters import Reader
from sess_schema.queries.stats import Stats
from sess_schema.queries.tally import Tally
from sess_schema.queries.views import scope
from sess_schema.queries.views.failures import HEAD, classifier
from sess_schema.queries.views.tools import Ended, Uses
from sess_schema.queries.worktime import Worktime
from sess_schema.sums import CALLED, CHARS_PER_TOKEN

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
    sums: tuple[dict[str, Tally], ...] = (found.days, found.models, found.projects)
    charged = set[str]()
    for row in reader.rows():
        found.total.add(row.tally)
        if row.tally.cost_nano:
            charged.add(reader.sessions[row.session].agent)
        for label, group in zip(labels, sums, strict=True):
            name = label(row)
            if name not in group:
                group[name] = Tally()
            group[name].add(row.tally)
    stored = db.execute("SELECT value FROM facts WHERE name = ?", (SUBSCRIPTIONS,)).get
    titles = json.loads(stored or "{}")
    found.subscriptions = sorted(titles[agent] for agent in charged if agent in titles)
    unrecorded = reader.unrecorded_chars() + found.total.placeholder_chars
    found.estimated_tokens = unrecorded // CHARS_PER_TOKEN
    failed: dict[int, tuple[str, str | None]] = {}
    ended: Ended = defaultdict(list)
    wanted = scope.events(db, asked)
    for event, label, tool, kind, status, taken in db.execute(
        "SELECT e.id, e.label, coalesce(e.tool, 'unknown'), e.kind, e.status, e.duration_ms"
        f" {wanted.sql} AND (e.type = 'tool_use' OR e.label = '{API_ERROR}') AND {CALLED}",
        wanted.values,
    ):
        if label == API_ERROR:
            found.refused += 1
            continue
        ended[tool, status].append(taken)
        if status == "error":
            failed[event] = tool, kind
    found.uses.add(ended)
    found.uses.sorted()
    found.classes = _classes(db, failed, config)
    return found


def _classes(
    db: apsw.Connection, failed: dict[int, tuple[str, str | None]], config: Path
) -> dict[str, int]:
    if not failed:
        return {}
    classes, _ = classifier(config)
    counts: Counter[str] = Counter()
    for event, text in db.execute(
        f"SELECT id, substr(output, 1, {HEAD}) FROM event_texts"
        " WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(sorted(failed)),),
    ):
        counts[classes.of(*failed[event], text)] += 1
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))
