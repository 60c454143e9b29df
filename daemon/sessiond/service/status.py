"""`sessiond status`: what is watched, indexed, behind and skipped, per source."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import apsw

from sess_common import lock, paths, status_file, upkeep
from sess_common.errors import Exit, SessError
from sess_common.escape import safe
from sess_common.program import counted
from sess_schema import skipped
from sess_schema.connection import open_reader
from sessiond.service import health


def show(*, as_json: bool, every: bool, only_health: bool = False, metrics: str = "") -> int:
    """Print the status; the exit code shows whether the daemon runs, or is well."""
    home = paths.home()
    holder = lock.holder(home.lock)
    daemon = daemon_facts(home, holder)
    try:
        db = open_reader(home.index)
    except SessError as error:
        if holder is None or only_health or metrics:
            raise
        _print_daemon(daemon, as_json=as_json)
        sys.stderr.write(f"sessiond: {error.message}\n")
        return Exit.OK if daemon["running"] else Exit.NO_DAEMON
    with closing(db):
        sources = list(source_facts(db))
        index = index_facts(db, home)
        passed_over = [{"path": p, "reason": why} for p, why in skipped.places(db)]
    if metrics:
        text = health.prometheus(daemon, index, sources)
        sys.stdout.write(text) if metrics == "-" else health.write(metrics, text)
    if metrics or only_health:
        if only_health:
            print(health.summary(daemon, sources))
        return health.exit_code(daemon, sources) if only_health else Exit.OK
    if as_json:
        for facts in (
            {"kind": "daemon", **daemon},
            {"kind": "index", **index, "skipped": passed_over},
        ):
            print(json.dumps(facts))
        for source in sources:
            print(json.dumps({"kind": "source", **source}))
    else:
        _print_daemon(daemon, as_json=False)
        _print_index(index)
        for name, path in (("config", home.config_file), ("log", home.log)):
            print(f"{name:<8} {_shown(str(path))}{'' if path.exists() else ' (not there)'}")
        _print_sources(sources, daemon.get("skipped", passed_over), every=every)
    return Exit.OK if daemon["running"] and not health.is_stuck(daemon) else Exit.NO_DAEMON


def daemon_facts(home: paths.Home, holder: dict[str, Any] | None) -> dict[str, Any]:
    running = holder is not None and holder.get("mode") == "daemon"
    facts: dict[str, Any] = {"running": running}
    if running and holder is not None:
        facts |= {key: holder.get(key) for key in ("pid", "version", "started_at", "service")}
        beat = status_file.read(home.status)
        if beat.get("pid") == holder.get("pid"):
            facts |= beat
            facts["beat_seconds"] = max(0.0, round(time.time() - beat.get("at", 0) / 1000, 1))
    return facts


def index_facts(db: apsw.Connection, home: paths.Home) -> dict[str, Any]:
    def size(suffix: str) -> int:
        try:
            return os.stat(f"{home.index}{suffix}").st_size
        except OSError:
            return 0

    counts = {
        table: db.execute(f"SELECT count(*) FROM {table}").get
        for table in ("sources", "records", "events", "warnings")
    }
    sessions = db.execute("SELECT count(*) FROM sessions WHERE records > 0").get
    return {
        "path": str(home.index),
        "bytes": size(""),
        "wal_bytes": size("-wal"),
        "sqlite": apsw.sqlite_lib_version(),
        "sessions": sessions,
        **counts,
        "last_check": upkeep.last(home.data, upkeep.CHECK),
        "last_backup": upkeep.last(home.data, upkeep.BACKUP),
    }


def source_facts(db: apsw.Connection) -> Iterator[dict[str, Any]]:
    """For each source, the bytes on disk now, the bytes indexed, and its warnings."""
    reasons: dict[int, dict[str, int]] = {}
    for source_id, reason, count in db.execute(
        "SELECT source_id, reason, sum(times) FROM warnings WHERE retired <= 0 GROUP BY 1, 2"
    ):
        reasons.setdefault(source_id, {})[reason] = count
    records: dict[int, int] = dict(
        iter(db.execute("SELECT source_id, count(*) FROM records WHERE retired = 0 GROUP BY 1"))
    )
    for row in db.execute(
        "SELECT id, agent, kind, path, state, error, generation, offset, lines, blank_lines"
        " FROM sources ORDER BY path"
    ):
        source_id, agent, kind, path, state, error, generation, offset, lines, blank = row
        try:
            found = os.stat(path)
            seen: int | None = found.st_size
            written = found.st_mtime
        except OSError:
            seen, written = None, 0.0
        # How much of a database is conversations is unknown until it is read.
        lag = max(0, seen - offset) if seen is not None and kind != "database" else 0
        yield {
            "path": path,
            "agent": agent,
            "type": kind,
            "state": state,
            "error": error,
            "generation": generation,
            "seen_bytes": seen,
            "indexed_bytes": offset,
            "lag_bytes": lag,
            "lag_seconds": max(0.0, round(time.time() - written, 1)) if lag else 0.0,
            "lines": lines,
            "blank_lines": blank,
            "records": records.get(source_id, 0),
            "warnings": reasons.get(source_id, {}),
        }


def _print_daemon(daemon: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"kind": "daemon", **daemon}))
        return
    if not daemon["running"]:
        print("daemon   not running (start it with `sessiond start --detach`)")
        return
    print(f"daemon   running, pid {daemon.get('pid')}, version {daemon.get('version')}")
    if health.is_stuck(daemon):
        print(
            f"         NOT RESPONDING for {daemon['beat_seconds']:.0f} s:"
            f" `kill -9 {daemon.get('pid')}` is safe, then start it again"
        )
    if "directories" in daemon:
        watched, directories = daemon.get("watched"), daemon["directories"]
        seen = "all" if watched is None else f"{min(watched, directories):,} of {directories:,}"
        walked = max(0.0, time.time() - daemon.get("walked_at", 0) / 1000)
        files = counted(daemon.get("seen", 0), "file")
        print(f"watching {seen} directories, {files}; all looked at {walked:.0f} s ago")
    if daemon.get("blind"):
        print(f"         some directories are polled; to watch them all, run: {daemon.get('fix')}")
    if daemon.get("overflows"):
        overflows = counted(daemon["overflows"], "event overflow")
        print(f"         {overflows}, each followed by a full walk")
    if daemon.get("pending_bytes"):
        print(f"         {_size(daemon['pending_bytes'])} still to read")
    if daemon.get("wal_pinned"):
        print("         a reader keeps the WAL from shrinking: is a pager or a backup still open?")
    if daemon.get("error"):
        print(f"         paused: {daemon['error']}")


def _print_index(index: dict[str, Any]) -> None:
    sizes = f"{_size(index['bytes'])} + {_size(index['wal_bytes'])} WAL"
    print(f"index    {_shown(index['path'])}, {sizes}")
    print(
        f"         {counted(index['sessions'], 'session')}, {counted(index['records'], 'record')},"
        f" {counted(index['events'], 'event')} from {counted(index['sources'], 'source')}"
    )
    checked, backed_up = _when(index["last_check"]), _when(index["last_backup"])
    wrong = "" if (index["last_check"] or {}).get("ok", True) else ", with findings"
    print(f"upkeep   checked {checked}{wrong}; backed up {backed_up}")


def _print_sources(
    sources: list[dict[str, Any]], passed_over: list[dict[str, str]], *, every: bool
) -> None:
    behind, seconds = health.lag(sources)
    print(f"lag      {f'{_size(behind)}, {seconds:.0f} s' if behind else 'none'}")
    states: dict[str, int] = {}
    for source in sources:
        states[source["state"]] = states.get(source["state"], 0) + 1
    reasons = health.by_reason(sources)
    print(
        "sources  " + (", ".join(f"{n} {state}" for state, n in sorted(states.items())) or "none")
    )
    for reason, count in sorted(reasons.items(), key=lambda item: -item[1]):
        print(f"warning  {count} × {reason}")
    errors = {source["path"]: source["error"] for source in sources if source["error"]}
    reasons_to_skip = {entry["path"]: entry["reason"] for entry in passed_over} | errors
    for path, reason in reasons_to_skip.items():
        print(f"skipped  {_shown(path)}: {reason}")
    if every:
        for source in sources:
            print(
                f"{source['state']:<10} {_size(source['indexed_bytes']):>9}"
                f" {source['records']:>7} records  {_shown(source['path'])}"
            )


def _when(note: dict[str, Any] | None) -> str:
    if not note:
        return "never"
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(note["at"] / 1000))


def _shown(path: str) -> str:
    home = os.path.expanduser("~")
    return safe("~" + path[len(home) :] if path.startswith(home + os.sep) else path)


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError
