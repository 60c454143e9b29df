"""`sess stats edits` and `sess stats files`: what was changed."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

import apsw

from sess_cli.render import amounts, layout
from sess_cli.render.stats.report import (
    Column,
    Later,
    Links,
    Report,
    Section,
    ViewOptions,
    clock,
    number,
    percent,
)
from sess_cli.render.tallies import money
from sess_common import times
from sess_schema.queries.sessions import one_line
from sess_schema.queries.stats import Stats
from sess_schema.queries.views import files
from sess_schema.queries.views.files import Changes, File, Touched

_EDIT_COLUMNS = (
    Column("edits", "edits", number),
    Column("files", "files", number),
    Column("lines_added", "lines +", number),
    Column("lines_removed", "lines -", number),
)


def edits_report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    found = files.read_edits(db, asked)
    total = found.total
    changed = f"{amounts.plural(total.calls, 'edit')} to {amounts.plural(len(total.files), 'file')}"
    facts = [("edits", f"{changed}: +{total.added:,} -{amounts.plural(total.removed, 'line')}")]
    if found.one_shot_rate is not None:
        rate = f"{percent(found.one_shot_rate)} of {amounts.plural(found.turns, 'turn')} with edits"
        facts.append(("one shot", f"{rate} did not edit a file again after a command"))
        facts.append(("cost", f"{money(round(found.cost_nano / found.turns))} per turn with edits"))
    whole = {
        "total": "total",
        **_change_facts(total),
        "edit_turns": found.turns,
        "one_shot_turns": found.one_shot,
        "one_shot_rate": found.one_shot_rate,
        "cost_per_edit_turn_usd": found.cost_per_turn,
    }
    return Report(
        "edits",
        [
            Section("total", [whole], ()),
            Section(
                "tool",
                [{"tool": name, **_change_facts(one)} for name, one in found.tools.items()],
                (Column("tool", "tool"), *_EDIT_COLUMNS),
            ),
            Section(
                "suffix",
                [{"suffix": name, **_change_facts(one)} for name, one in found.suffixes.items()],
                (Column("suffix", "file type"), *_EDIT_COLUMNS),
                most=15,
            ),
        ],
        facts=facts,
    )


def _change_facts(changes: Changes) -> dict[str, Any]:
    return {
        "edits": changes.calls,
        "files": len(changes.files),
        "lines_added": changes.added,
        "lines_removed": changes.removed,
    }


_COUNTS = (
    Column("edits", "edits", number),
    Column("writes", "writes", number),
    Column("reads", "reads", number),
)


def files_report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    if options.path is not None:
        return _sessions(db, asked, options)
    found = files.most_edited(db, asked)
    changed = sum(one.changes > 0 for one in found)
    counts = f"{amounts.plural(changed, 'file')} changed, {len(found) - changed:,} only read"
    return Report(
        "files",
        [
            Section(
                "file",
                Later(
                    found,
                    lambda one: {
                        "path": one.name,
                        **_file_facts(one, asked.zone),
                        "sessions": one.sessions,
                    },
                ),
                (
                    Column("path", "file", layout.home_short),
                    *_COUNTS,
                    Column("sessions", "sessions", number),
                    Column("_last", "last"),
                ),
                most=25,
                paths=True,
            )
        ],
        facts=[("files", counts)],
        notes=["`sess stats files PATH` lists the sessions that touched a file"] if found else [],
    )


def _sessions(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    found = files.sessions_of(db, asked, options.path or "")
    links = Links(db)
    touched = sorted({path for one in found for path in one.paths})
    rows = [
        {
            "session": one.name,
            "title": one.title or "",
            "project": one.project,
            **_file_facts(one, asked.zone),
            "event": links.key(one.event),
            "_link": links.event(one.session, one.event),
            "paths": sorted(one.paths),
        }
        for one in found
    ]
    counts = f"{amounts.plural(len(found), 'session')} touched it"
    if len(touched) > 1:
        sessions = amounts.plural(len(found), "session")
        counts = f"{sessions} touched {len(touched):,} files with that name"
    return Report(
        "files",
        [
            Section(
                "session",
                rows,
                (
                    Column("title", "session", one_line),
                    Column("_link", "last event", left=True),
                    *_COUNTS,
                    Column("_last", "last"),
                ),
            )
        ],
        facts=[(options.path or "", counts)],
        code=0 if rows else 1,
    )


def _file_facts(one: File | Touched, zone: tzinfo | None) -> dict[str, Any]:
    return {
        "edits": one.edits,
        "writes": one.writes,
        "reads": one.reads,
        "first": times.iso(one.first),
        "last": times.iso(one.last),
        "_last": clock(one.last, zone, "%Y-%m-%d"),
    }
