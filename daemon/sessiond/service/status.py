"""`sessiond status`: what is watched, indexed, behind and skipped, and whether all is well."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import apsw

from sess_common import lock, paths, upkeep
from sess_common.errors import Exit, SessError
from sess_common.escape import safe
from sess_common.program import counted
from sess_schema import outputs
from sess_schema.connection import open_reader
from sess_schema.queries.sources import skipped_places
from sessiond.service import install, manager

STUCK_SECONDS = 120.0  # as long as systemd's watchdog waits
TROUBLED = "parked", "unreadable"  # states of sources that are not read

Facts = dict[str, Any]


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
        passed_over = [{"path": p, "reason": why} for p, why in skipped_places(db)]
    if metrics:
        text = prometheus(daemon, index, sources)
        sys.stdout.write(text) if metrics == "-" else _put(metrics, text)
    if metrics or only_health:
        if only_health:
            print(health_in_words(daemon, sources))
        return health_code(daemon, sources) if only_health else Exit.OK
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
    return Exit.OK if daemon["running"] and not is_stuck(daemon) else Exit.NO_DAEMON


def daemon_facts(home: paths.Home, holder: dict[str, Any] | None) -> dict[str, Any]:
    running = holder is not None and holder.get("mode") == "daemon"
    facts: dict[str, Any] = {"running": running}
    if running and holder is not None:
        facts |= {key: holder.get(key) for key in ("pid", "version", "started_at", "service")}
        beat = upkeep.writer_status(home.status)
        if beat.get("pid") == holder.get("pid"):
            facts |= beat
            facts["stopped"] = _is_stopped(holder.get("pid"))
            facts["beat_seconds"] = max(0.0, round(time.time() - beat.get("at", 0) / 1000, 1))
    facts["unit"] = manager.facts(holder, install.is_current)
    return facts


def _is_stopped(pid: Any) -> bool:
    """Whether a signal has stopped the process: then no sign of life will come."""
    try:
        with open(f"/proc/{int(pid)}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[:1] == ["T"]
    except (OSError, ValueError, TypeError):
        return False


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
            file = os.stat(path)
            seen: int | None = file.st_size
            written = file.st_mtime
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


# -- for people


def _print_daemon(daemon: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"kind": "daemon", **daemon}))
        return
    if not daemon["running"]:
        start = "restart" if daemon.get("unit") else "start --detach"
        print(f"daemon   not running (start it with `sessiond {start}`)")
        holder = lock.holder(paths.home().lock) or {}
        if holder.get("background"):
            print(f"         pid {holder['pid']} reads in its place, until all is read")
        _print_service(daemon)
        return
    print(f"daemon   running, pid {daemon.get('pid')}, version {daemon.get('version')}")
    if is_stuck(daemon):
        print(
            f"         NOT RESPONDING for {daemon['beat_seconds']:.0f} s:"
            f" `kill -9 {daemon.get('pid')}` is safe, then start it again"
        )
    _print_service(daemon)
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


def _print_service(daemon: dict[str, Any]) -> None:
    if daemon.get("unit") and (wrong := manager.in_words(daemon["unit"])):
        print(f"service  {wrong[0]}: {wrong[1]}")


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
    behind, seconds = lag(sources)
    print(f"lag      {f'{_size(behind)}, {seconds:.0f} s' if behind else 'none'}")
    states = Counter(source["state"] for source in sources)
    reasons = warnings_by_reason(sources)
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


# -- whether the daemon and its index are well


def is_stuck(daemon: Facts) -> bool:
    """Whether the loop gave no sign of life for long: it writes one every half minute."""
    silent = daemon.get("beat_seconds", 0.0)
    return bool(daemon["running"]) and (silent > STUCK_SECONDS or bool(daemon.get("stopped")))


def health_code(daemon: Facts, sources: list[Facts]) -> int:
    if not daemon["running"] or is_stuck(daemon) or not manager.is_healthy(daemon.get("unit")):
        return Exit.NO_DAEMON
    if daemon.get("error"):
        return Exit.INDEX_UNUSABLE
    return Exit.SKIPPED_SOME if _troubled(sources) or daemon.get("skipped") else Exit.OK


def health_in_words(daemon: Facts, sources: list[Facts]) -> str:
    """One line that says what the exit code means."""
    wrong = None if manager.is_healthy(unit := daemon.get("unit")) else manager.in_words(unit or {})
    if wrong:
        return f"{wrong[0]}; {wrong[1]}"
    if not daemon["running"]:
        return "the daemon is not running"
    if daemon.get("stopped"):
        return f"a signal has stopped the daemon; `kill -CONT {daemon.get('pid')}` lets it go on"
    if is_stuck(daemon):
        return f"the daemon has not responded for {daemon['beat_seconds']:.0f} s"
    if daemon.get("error"):
        return f"the index cannot be written: {daemon['error']}"
    skipped = {source["path"] for source in _troubled(sources)}
    skipped |= {entry["path"] for entry in daemon.get("skipped", ())}
    if skipped:
        return f"{counted(len(skipped), 'file')} cannot be read; `sessiond status` names them"
    return "healthy"


def _troubled(sources: list[Facts]) -> list[Facts]:
    return [source for source in sources if source["state"] in TROUBLED]


def lag(sources: list[Facts]) -> tuple[int, float]:
    """Bytes that are not indexed yet, and for how many seconds the longest of them wait."""
    behind = [source for source in sources if source["state"] == "live" and source["lag_bytes"]]
    return (
        sum(source["lag_bytes"] for source in behind),
        max((source["lag_seconds"] for source in behind), default=0.0),
    )


def warnings_by_reason(sources: list[Facts]) -> dict[str, int]:
    reasons = Counter[str]()
    for source in sources:
        reasons.update(source["warnings"])
    return reasons


def prometheus(daemon: Facts, index: Facts, sources: list[Facts]) -> str:
    """All figures as metrics; they contain no path and no text of a transcript."""
    return "".join(f"{line}\n" for line in _metrics(daemon, index, sources))


def _metrics(daemon: Facts, index: Facts, sources: list[Facts]) -> Iterator[str]:
    lag_bytes, lag_seconds = lag(sources)
    yield from _metric("up", "Whether the daemon runs and responds.",
                       int(daemon["running"] and not is_stuck(daemon)))  # fmt: skip
    yield from _metric("healthy", "Whether `sessiond status --health` exits with 0.",
                       int(health_code(daemon, sources) == Exit.OK))  # fmt: skip
    yield from _metric("index_writable", "Whether the last attempt to write succeeded.",
                       int(not daemon.get("error")))  # fmt: skip
    yield from _metric("heartbeat_age_seconds", "Since the daemon's last sign of life.",
                       daemon.get("beat_seconds"))  # fmt: skip
    yield from _metric("lag_bytes", "Written by agents, not indexed yet.", lag_bytes)
    yield from _metric("lag_seconds", "How long the oldest of them waits.", lag_seconds)
    yield from _metric("directories", "Directories with transcripts.", daemon.get("directories"))
    yield from _metric("directories_watched", "Of these, watched.", daemon.get("watched"))
    yield from _metric("event_overflows_total", "Times that the kernel dropped events.",
                       daemon.get("overflows"), "counter")  # fmt: skip
    yield from _metric("last_walk_timestamp_seconds", "When everything was looked at last.",
                       _seconds(daemon.get("walked_at")))  # fmt: skip
    yield from _metric("index_bytes", "Size of the index.", index.get("bytes"))
    yield from _metric("wal_bytes", "Size of its write-ahead log.", index.get("wal_bytes"))
    yield from _metric("wal_pinned", "Whether a reader keeps the log from shrinking.",
                       int(bool(daemon.get("wal_pinned"))))  # fmt: skip
    for what in ("check", "backup"):
        last = index.get(f"last_{what}") or {}
        yield from _metric(f"last_{what}_timestamp_seconds", f"When the last {what} ended.",
                           _seconds(last.get("at")))  # fmt: skip
        yield from _metric(f"last_{what}_ok", f"Whether the last {what} found nothing wrong.",
                           int(bool(last["ok"])) if "ok" in last else None)  # fmt: skip
    states = dict.fromkeys(("live", "gone", *TROUBLED), 0)
    states |= Counter(source["state"] for source in sources)
    yield from _labelled("sources", "Transcripts by state.", "state", states)
    yield from _labelled("warnings", "Records that are indexed only in part, by reason.",
                         "reason", warnings_by_reason(sources))  # fmt: skip


def _metric(name: str, text: str, value: float | None, kind: str = "gauge") -> Iterator[str]:
    if value is not None:
        yield f"# HELP sessiond_{name} {text}"
        yield f"# TYPE sessiond_{name} {kind}"
        yield f"sessiond_{name} {value:.15g}"


def _labelled(name: str, text: str, label: str, values: dict[str, int]) -> Iterator[str]:
    if values:
        yield f"# HELP sessiond_{name} {text}"
        yield f"# TYPE sessiond_{name} gauge"
        for key, value in sorted(values.items()):
            shown = key.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            yield f'sessiond_{name}{{{label}="{shown}"}} {value}'


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _put(path: str, text: str) -> None:
    """Replace earlier figures at once: a collector may read them at any moment, as another user."""
    with outputs.new_file(path, mode=0o644, hint="name another file") as file:
        file.write(text.encode())
