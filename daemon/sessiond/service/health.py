"""Whether the daemon and its index are well: in one line, as an exit code, and for Prometheus."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from sess_common.errors import Exit, SessError
from sess_common.program import counted

STUCK_SECONDS = 120.0  # as long as systemd's watchdog waits
TROUBLED = "parked", "unreadable"  # states of sources that are not read

Facts = dict[str, Any]


def is_stuck(daemon: Facts) -> bool:
    """Whether the loop gave no sign of life for long: it writes one every half minute."""
    return bool(daemon["running"]) and daemon.get("beat_seconds", 0.0) > STUCK_SECONDS


def exit_code(daemon: Facts, sources: list[Facts]) -> int:
    if not daemon["running"] or is_stuck(daemon):
        return Exit.NO_DAEMON
    if daemon.get("error"):
        return Exit.INDEX_UNUSABLE
    return Exit.SKIPPED_SOME if _troubled(sources) or daemon.get("skipped") else Exit.OK


def summary(daemon: Facts, sources: list[Facts]) -> str:
    """One line that says what the exit code means."""
    if not daemon["running"]:
        return "the daemon is not running"
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


def by_reason(sources: list[Facts]) -> dict[str, int]:
    reasons: dict[str, int] = {}
    for source in sources:
        for reason, count in source["warnings"].items():
            reasons[reason] = reasons.get(reason, 0) + count
    return reasons


def prometheus(daemon: Facts, index: Facts, sources: list[Facts]) -> str:
    """All figures as metrics; they contain no path and no text of a transcript."""
    return "".join(f"{line}\n" for line in _metrics(daemon, index, sources))


def _metrics(daemon: Facts, index: Facts, sources: list[Facts]) -> Iterator[str]:
    lag_bytes, lag_seconds = lag(sources)
    yield from _metric("up", "Whether the daemon runs and responds.",
                       int(daemon["running"] and not is_stuck(daemon)))  # fmt: skip
    yield from _metric("healthy", "Whether `sessiond status --health` exits with 0.",
                       int(exit_code(daemon, sources) == Exit.OK))  # fmt: skip
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
    for source in sources:
        states[source["state"]] = states.get(source["state"], 0) + 1
    yield from _labelled("sources", "Transcripts by state.", "state", states)
    yield from _labelled("warnings", "Records that are indexed only in part, by reason.",
                         "reason", by_reason(sources))  # fmt: skip


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


def write(path: str, text: str) -> None:
    """Replace the file at once: a collector may read it at any moment, as another user."""
    beside = f"{path}.{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(beside, flags, 0o644), "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), 0o644)
            file.write(text)
        os.replace(beside, path)
    except OSError as error:
        raise SessError(f'cannot write "{path}": {error.strerror}') from error
