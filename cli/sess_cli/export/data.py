"""Whole sessions as data: one JSON document (docs/json.md), or a database for Datasette."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, BinaryIO

import orjson

from sess_cli.export import ansi
from sess_cli.export.files import Failures, all_or_nothing
from sess_cli.export.json_values import as_json
from sess_cli.export.story import Item, Story
from sess_common import decode, times
from sess_schema import __version__, objects, outputs
from sess_schema.archive import Damaged, RecordReader, is_too_deep
from sess_schema.marks import Marks

if TYPE_CHECKING:
    from sqlite_utils import Database

FORMAT, SEVERAL, VERSION = "sessiond-session", "sessiond-sessions", 2
_RECORDS = (
    "SELECT t.line, t.kind, t.native_id, t.parent_id, t.ts, p.path,"
    " t.source_id, t.retired, t.offset, t.length FROM records t"
    " JOIN sources p ON p.id = t.source_id"
    " WHERE t.session_id = ? AND t.retired = 0 ORDER BY t.source_id, t.offset, t.id"
)
_OWNED = {"sessions": "id", "events": "id", "files": "event_id", "commits": "event_id"}
_PLAIN = ("number", "key", "ts", *objects.EVENT_COLUMNS, "summary", "text")
_USED = (
    "requests", "input_tokens", "output_tokens", "cache_write_tokens", "cache_read_tokens",
    "cost_usd",
)  # fmt: skip


def write_json(story: Story, out: BinaryIO) -> None:
    """Written piece by piece: a session may be too large to hold in memory."""
    _begin(out, FORMAT)
    _members(story, out)
    out.write(b"}\n")


def write_several_json(stories: Sequence[Story], out: BinaryIO, failures: Failures) -> None:
    """Several sessions; of one that cannot be read, its ID and the reason."""
    _begin(out, SEVERAL)
    out.write(b'"sessions":[')
    for number, story in enumerate(stories):
        out.write(b",\n{" if number else b"\n{")
        with failures.noted(story), all_or_nothing(out) as part:
            _members(story, part)
        if failures.why is not None:
            session = {"session": story.row.session, "agent": story.row.agent}
            failed = as_json({"session": session, "failed": failures.why})
            out.write(failed.removeprefix(b"{").removesuffix(b"}"))
        out.write(b"}")
    out.write(b"]}\n")


def _begin(out: BinaryIO, form: str) -> None:
    out.write(f'{{"format":"{form}","version":{VERSION},'.encode())
    out.write(b'"made_by":' + orjson.dumps(f"sessiond {__version__}") + b",\n")


def _members(story: Story, out: BinaryIO) -> None:
    out.write(b'"session":' + as_json(session_object(story)) + b',\n"events":')
    _array(out, (as_json(item_object(story, item)) for item in story.items()))
    out.write(b',\n"records":')
    _array(out, (as_json(record) for record in _records(story)))
    out.write(b',\n"subagents":[')
    for number, child in enumerate(story.children):
        out.write(b",\n{" if number else b"\n{")
        _members(child, out)
        out.write(b"}")
    out.write(b"]")


def session_object(story: Story) -> dict[str, Any]:
    """The object of `sess list --json`, without secrets."""
    marks = Marks(story.db)
    return objects.session(story.row, story.title, story.numbers, marks) | {
        "labels": [story.cleaned(label) for label in marks.labels(story.row.key)],
        "project": story.project or None,
        "git_branch": story.branch or None,
        "models": story.models,
        "source": story.cleaned(story.row.source or "") or None,
    }


def item_object(story: Story, item: Item) -> dict[str, Any]:
    """The object of `sess show --json`, plus what that leaves out."""
    spent = item.spent
    event = objects.event(
        item,
        item.given,
        key=item.key,
        images=item.images,
        files=item.files,
        subagent=item.agent.row.session if item.agent is not None else None,
        copied_from=item.copied_from,
    )
    return event | {
        "key": item.key,
        "number": item.number,
        "image_data": [{"media_type": image.media, "data": image.data} for image in item.pictures],
        "commits": [asdict(commit) for commit in item.commits],
        "usage": None
        if spent is None
        else {
            "requests": spent.requests,
            "input_tokens": spent.input_tokens,
            "output_tokens": spent.output_tokens,
            "cache_write_tokens": spent.cache_write_tokens,
            "cache_read_tokens": spent.cache_read_tokens,
            "cost_usd": spent.cost_nano / 1e9 if not spent.unpriced else None,
        },
    }


def _records(story: Story) -> Iterator[dict[str, Any]]:
    """The session's records as the agent wrote them."""
    records = RecordReader(story.db)
    for line, kind, native_id, parent_id, ts, path, *place in story.db.execute(
        _RECORDS, (story.row.key,)
    ):
        record: dict[str, Any] = {
            "source": story.cleaned(path),
            "line": line,
            "kind": story.cleaned(kind),
            "id": story.cleaned(native_id),
            "parent": story.cleaned(parent_id),
            "ts": times.iso(ts),
        }
        try:
            raw = records.bytes_of(place).rstrip(b"\r\n")
        except Damaged:  # the exit code tells of it too
            yield record | {"damaged": True}
        else:
            yield record | _written(story, raw)


def _written(story: Story, raw: bytes) -> dict[str, Any]:
    """A record's value; also, or only, its text where the value loses something."""
    try:
        value, mended = decode.decode(raw)
    except ValueError:
        return _as_text(story, raw)
    if is_too_deep(value):
        return _as_text(story, raw)
    if mended:
        return {**_as_text(story, raw), "value": story.cleaned_value(value)}
    # Not re-encoded: numbers beyond 64 bits and duplicate names would be lost.
    return {"value": story.cleaned_value(value) if story.redacts else orjson.Fragment(raw)}


def _as_text(story: Story, raw: bytes) -> dict[str, str]:
    """Bytes that are not UTF-8 are kept in base64, except when redacting: base64 hides secrets."""
    if story.redacts:
        return {"text": story.cleaned(raw.decode("utf-8", "backslashreplace"))}
    try:
        return {"text": raw.decode()}
    except UnicodeDecodeError:
        return {"base64": b64encode(raw).decode()}


def _array(out: BinaryIO, values: Iterator[bytes]) -> None:
    out.write(b"[")
    for number, value in enumerate(values):
        out.write(b",\n" if number else b"\n")
        out.write(value)
    out.write(b"]")


# -- a database, made with sqlite-utils and the standard library's SQLite
#
# Both open only this new file.


def write_database(
    stories: Iterable[Story], path: str, failures: Failures, *, replace: bool = False
) -> int:
    """Return the number of sessions, subagents included; the file is complete or absent."""
    from sqlite_utils import Database  # takes longer to import than all else

    with outputs.new_path(path, replace=replace) as partial:
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
    db.execute(f"PRAGMA application_id = {outputs.DATABASE}")
    text, number = str, int
    db.table("sessions").create(
        {
            "id": number, "session": text, "agent": text, "kind": text, "parent_id": number,
            "agent_type": text, "project": text, "project_from": text, "title": text,
            "labels": text, "pinned": number,
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


def _last(db: Database, table: str) -> int:
    row = db.execute(f"SELECT coalesce(max({_OWNED[table]}), 0) FROM {table}").fetchone()
    return int(row[0])


def _add(db: Database, story: Story, parent: int | None) -> int:
    row = session_object(story)
    row.pop("parent")
    for name in ("models", "labels"):
        row[name] = as_json(row[name]).decode()
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
            rows += [{"event_id": event_id, **detail} for detail in event.pop(table)]
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
