"""`sess stats edits` and `sess stats files`: what was changed."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

import apsw

from sess_cli.render import amounts, layout
from sess_cli.render.stats.report import Column, Later, Links, Report, Section, ViewOptions
from sess_cli.render.tallies import money
from sess_common import times
from sess_schema.queries import known
from sess_schema.queries.sessions import one_line
from sess_schema.queries.stats import Stats
from sess_schema.queries.views import files

_EDIT_COLUMNS = Column.several(
    amounts.number, edits="edits", files="files", lines_added="lines +", lines_removed="lines -"
)
_COUNTS = Column.several(amounts.number, edits="edits", writes="writes", reads="reads")


def edits_report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    found = files.read_edits(db, asked)
    total = found.total
    changed = f"{amounts.plural(total.calls, 'edit')} to {amounts.plural(len(total.files), 'file')}"
    facts = [("edits", f"{changed}: +{total.added:,} -{amounts.plural(total.removed, 'line')}")]
    if found.one_shot_rate is not None:
        turns = f"{amounts.plural(found.turns, 'turn')} with edits"
        rate = f"{amounts.percent(found.one_shot_rate)} of {turns}"
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
    tools = [{"tool": name, **_change_facts(changes)} for name, changes in found.tools.items()]
    suffixes = [
        {"suffix": name, **_change_facts(changes)} for name, changes in found.suffixes.items()
    ]
    sections = [
        Section("total", [whole]),
        Section("tool", tools, (Column("tool", "tool"), *_EDIT_COLUMNS)),
        Section("suffix", suffixes, (Column("suffix", "file type"), *_EDIT_COLUMNS), most=15),
    ]
    return Report("edits", sections, facts=facts)


def _change_facts(changes: files.Changes) -> dict[str, Any]:
    return {
        "edits": changes.calls,
        "files": len(changes.files),
        "lines_added": changes.added,
        "lines_removed": changes.removed,
    }


def files_report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    if options.path is not None:
        return _sessions_report(db, asked, options.path)
    touched = files.most_edited(db, asked)
    changed = sum(file.changes > 0 for file in touched)
    counts = f"{amounts.plural(changed, 'file')} changed, {len(touched) - changed:,} only read"

    def row(file: files.File) -> dict[str, Any]:
        return {"path": file.name, **_file_facts(file, asked.zone), "sessions": file.sessions}

    columns = (
        Column("path", "file", layout.home_short),
        *_COUNTS,
        Column("sessions", "sessions", amounts.number),
        Column("_last", "last"),
    )
    sections = [Section("file", Later(touched, row), columns, most=25, paths=True)]
    notes = ["`sess stats files PATH` lists the sessions that touched a file"] if touched else []
    return Report("files", sections, facts=[("files", counts)], notes=notes)


def _sessions_report(db: apsw.Connection, asked: Stats, path: str) -> Report:
    sessions = files.sessions_of(db, asked, path)
    if not sessions:
        touched = files.most_edited(db, asked)
        raise known.missing("file", path, [file.name for file in touched])
    links = Links(db)
    rows = [
        {
            "session": one.name,
            "title": one.title or "",
            "project": one.project,
            **_file_facts(one, asked.zone),
            "event": links.key(one.event),
            "_link": links.event(one.name, one.event),
            "paths": sorted(one.paths),
        }
        for one in sessions
    ]
    names = {name for one in sessions for name in one.paths}
    what = f"{len(names):,} files with that name" if len(names) > 1 else "it"
    counts = f"{amounts.plural(len(sessions), 'session')} touched {what}"
    columns = (
        Column("title", "session", one_line),
        Column("_link", "last event", left=True),
        *_COUNTS,
        Column("_last", "last"),
    )
    sections = [Section("session", rows, columns)]
    return Report("files", sections, facts=[(path, counts)])


def _file_facts(touched: files.File | files.Touched, zone: tzinfo | None) -> dict[str, Any]:
    return {
        "edits": touched.edits,
        "writes": touched.writes,
        "reads": touched.reads,
        "first": times.iso(touched.first),
        "last": times.iso(touched.last),
        "_last": amounts.clock_in(zone, touched.last, "%Y-%m-%d"),
    }
