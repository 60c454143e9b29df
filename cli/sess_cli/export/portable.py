"""Selected sessions as a separate database with full-text search, for Datasette.

It is made with sqlite-utils and the standard library's SQLite; both open only this new file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from sess_cli.export import ansi, files
from sess_cli.export.failures import Failures
from sess_cli.export.lossless import item_object, session_object
from sess_cli.export.records import as_json
from sess_cli.export.story import Story
from sess_schema import objects

if TYPE_CHECKING:
    from sqlite_utils import Database


def write(stories: Iterable[Story], path: str, failures: Failures) -> int:
    """Return the number of sessions, subagents included; the file is complete or absent."""
    from sqlite_utils import Database  # takes longer to import than all else

    with files.new_path(path) as partial:
        db = Database(partial)
        try:
            return _fill(db, stories, failures)
        finally:
            db.close()


def _fill(db: Database, stories: Iterable[Story], failures: Failures) -> int:
    _tables(db)
    count = 0
    for story in stories:
        before = [_last(db, table) for table in _OWNED]
        with failures.noted(story):
            count += _add(db, story, None)
        if failures.why is not None:
            for (table, column), last in zip(_OWNED.items(), before, strict=True):
                db.table(table).delete_where(f"{column} > ?", [last])
    db.table("events").enable_fts(["text", "input", "output"])
    for columns in (["session_id", "number"], ["tool"], ["ts"]):
        db.table("events").create_index(columns)
    db.table("files").create_index(["path"])
    db.table("sessions").create_index(["project"])
    db.analyze()
    return count


def _tables(db: Database) -> None:
    db.execute(f"PRAGMA application_id = {files.DATABASE}")
    text, number = str, int
    db.table("sessions").create(
        {
            "id": number, "session": text, "agent": text, "kind": text, "parent_id": number,
            "agent_type": text, "project": text, "project_from": text, "title": text,
            "git_branch": text, "models": text, "agent_version": text, "mode": text,
            "started": text, "ended": text, "time_from": text, "source": text,
            "source_gone": number, "duration_ms": number, "active_ms": number, "agent_ms": number,
            "user_ms": number, "events": number, "input_tokens": number, "output_tokens": number,
            "cache_write_tokens": number, "cache_write_1h_tokens": number,
            "cache_read_tokens": number, "reasoning_tokens": number, "cost_usd": float,
            "cost_nano_usd": number,
            "unpriced_requests": number, "requests": number, "prompts": number,
            "tool_calls": number, "tool_errors": number, "tool_denied": number,
        },
        pk="id",
        foreign_keys=[("parent_id", "sessions", "id")],
    )  # fmt: skip
    db.table("events").create(
        {
            "id": number, "session_id": number, "number": number, "key": text, "ts": text,
            **objects.EVENT_COLUMNS, "summary": text, "text": text,
            "input": text, "output": text, "images": number,
            "requests": number, "input_tokens": number, "output_tokens": number,
            "cache_write_tokens": number, "cache_read_tokens": number, "cost_usd": float,
        },
        pk="id",
        foreign_keys=[("session_id", "sessions", "id")],
    )  # fmt: skip
    owner = [("event_id", "events", "id")]
    db.table("files").create({"event_id": number, "path": text, "action": text}, foreign_keys=owner)
    db.table("commits").create(
        {"event_id": number, "sha": text, "branch": text, "subject": text}, foreign_keys=owner
    )


_OWNED = {"sessions": "id", "events": "id", "files": "event_id", "commits": "event_id"}


def _last(db: Database, table: str) -> int:
    row = db.execute(f"SELECT coalesce(max({_OWNED[table]}), 0) FROM {table}").fetchone()
    return int(row[0])


def _add(db: Database, story: Story, parent: int | None) -> int:
    row = session_object(story)
    row.pop("parent")
    row["models"] = as_json(row["models"]).decode()
    key = db.table("sessions").insert({**row, "parent_id": parent}).last_pk
    start = _last(db, "events") + 1
    details: dict[str, list[dict[str, Any]]] = {"files": [], "commits": []}
    db.table("events").insert_all(_events(story, key, start, details), batch_size=500)
    for table, rows in details.items():
        db.table(table).insert_all(rows)
    return 1 + sum(_add(db, child, key) for child in story.children)


def _events(
    story: Story, session: Any, start: int, details: dict[str, list[dict[str, Any]]]
) -> Iterator[dict[str, Any]]:
    for event_id, item in enumerate(story.items(), start):
        event = item_object(story, item)
        for table, rows in details.items():
            rows += [{"event_id": event_id, **one} for one in event.pop(table)]
        used = event.pop("usage") or {}
        given = event["input"]
        yield {
            "id": event_id,
            "session_id": session,
            **{name: event[name] for name in _PLAIN},
            "input": given if isinstance(given, str | None) else as_json(given).decode(),
            "output": ansi.plain(event["output"] or "") or None,  # colour codes stick to words
            "images": event["images"],
            **{name: used.get(name) for name in _USED},
        }


_PLAIN = ("number", "key", "ts", *objects.EVENT_COLUMNS, "summary", "text")
_USED = (
    "requests", "input_tokens", "output_tokens", "cache_write_tokens", "cache_read_tokens",
    "cost_usd",
)  # fmt: skip
