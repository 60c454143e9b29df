"""Whole sessions as one JSON document. docs/json.md describes it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import orjson

from sess_cli.export.failures import Failures, whole
from sess_cli.export.records import as_json
from sess_cli.export.story import Item, Story
from sess_common import decode, times
from sess_schema import __version__, objects
from sess_schema.archive import Damaged
from sess_schema.records import RecordReader, is_too_deep

FORMAT, SEVERAL, VERSION = "sessiond-session", "sessiond-sessions", 2
_RECORDS = (
    "SELECT t.line, t.kind, t.native_id, t.parent_id, t.ts, p.path,"
    " t.source_id, t.retired, t.offset, t.length FROM records t"
    " JOIN sources p ON p.id = t.source_id"
    " WHERE t.session_id = ? AND t.retired = 0 ORDER BY t.source_id, t.offset, t.id"
)


def write(story: Story, out: BinaryIO) -> None:
    """Written piece by piece: a session may be too large to hold in memory."""
    _begin(out, FORMAT)
    _members(story, out)
    out.write(b"}\n")


def write_all(stories: Sequence[Story], out: BinaryIO, failures: Failures) -> None:
    """Several sessions; of one that cannot be read, its ID and the reason."""
    _begin(out, SEVERAL)
    out.write(b'"sessions":[')
    for number, story in enumerate(stories):
        out.write(b",\n{" if number else b"\n{")
        with failures.noted(story), whole(out) as part:
            _members(story, part)
        if failures.why is not None:
            told = {"session": {"session": story.row.session, "agent": story.row.agent}}
            out.write(
                as_json({**told, "failed": failures.why}).removeprefix(b"{").removesuffix(b"}")
            )
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
    said = objects.session(story.row, story.title, story.numbers)
    return said | {
        "project": story.project or None,
        "git_branch": story.branch or None,
        "models": story.models,
        "source": story.cleaned(story.row.source or "") or None,
    }


def item_object(story: Story, item: Item) -> dict[str, Any]:
    """The object of `sess show --json`, plus what that leaves out."""
    spent = item.spent
    said = objects.event(
        item,
        item.given,
        key=item.key,
        images=item.images,
        files=item.files,
        subagent=item.agent.row.session if item.agent is not None else None,
        copied_from=item.copied_from,
    )
    return said | {
        "key": item.key,
        "number": item.number,
        "image_data": [{"media_type": one.media, "data": one.data} for one in item.pictures],
        "commits": [
            {"sha": one.sha, "branch": one.branch, "subject": one.subject} for one in item.commits
        ],
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
