"""`sess stats files`, and with a path the sessions that touched it."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

import apsw

from sess_cli.render import amounts, layout
from sess_cli.render.stats.links import Links
from sess_cli.render.stats.report import (
    Column,
    Later,
    Report,
    Section,
    ViewOptions,
    clock,
    number,
)
from sess_common import times
from sess_schema.queries.sessions import one_line
from sess_schema.queries.stats import Stats
from sess_schema.queries.views import files
from sess_schema.queries.views.files import File, Touched

_COUNTS = (
    Column("edits", "edits", number),
    Column("writes", "writes", number),
    Column("reads", "reads", number),
)


def report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
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
                        **_facts(one, asked.zone),
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
            **_facts(one, asked.zone),
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


def _facts(one: File | Touched, zone: tzinfo | None) -> dict[str, Any]:
    return {
        "edits": one.edits,
        "writes": one.writes,
        "reads": one.reads,
        "first": times.iso(one.first),
        "last": times.iso(one.last),
        "_last": clock(one.last, zone, "%Y-%m-%d"),
    }
