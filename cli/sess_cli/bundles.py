"""A report about an installation for others to read: versions, checks and counts, no content."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Sequence
from contextlib import closing
from importlib.metadata import version
from typing import Any

import apsw

from sess_cli.checks import Check
from sess_cli.commands.restore import write_new
from sess_common import paths
from sess_common.errors import SessError
from sess_common.program import say
from sess_schema import __version__, connection

_LIBRARIES = ("apsw", "orjson", "zstandard", "watchdog", "typer", "rich", "google-re2", "comrak")
_TABLES = ("sources", "sessions", "records", "events", "usage", "chunks", "warnings")


def write(path: str, checks: Sequence[Check]) -> None:
    report = {
        "sessiond": __version__,
        "python": sys.version,
        "system": platform.platform(),
        "sqlite": apsw.sqlite_lib_version(),
        "libraries": {name: _version(name) for name in _LIBRARIES},
        "checks": [{"check": one.name, "state": one.state, **_message(one)} for one in checks],
        "index": _counts(),
    }
    text = json.dumps(report, indent=1) + "\n"
    write_new(path, iter([text.encode()]), force=False)
    say(f'wrote "{path}"; it has no transcript content, but look at it before you send it')


def _message(check: Check) -> dict[str, Any]:
    """Details name files, so only their number is told."""
    private = check.name in ("home", "roots", "sources", "skipped", "records", "archive")
    return {"details": len(check.details)} if private else {"message": check.message}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except LookupError:
        return None


def _counts() -> dict[str, Any]:
    home = paths.home()
    try:
        with closing(connection.open_reader(home.index)) as db:
            rows = {table: db.execute(f"SELECT count(*) FROM {table}").get for table in _TABLES}
            states = db.execute("SELECT agent, kind, state, count(*) FROM sources GROUP BY 1, 2, 3")
            reasons = db.execute("SELECT reason, sum(times) FROM warnings GROUP BY 1")
            return {
                "bytes": home.index.stat().st_size,
                "rows": rows,
                "sources": [list(row) for row in states],
                "warnings": {str(reason): count for reason, count in reasons},
            }
    except (SessError, apsw.Error, OSError) as error:
        return {"error": str(error)}
