"""Reads what an agent wrote into a record, whatever its type: values, ids, content, titles."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import orjson

from sess_common.decode import decode
from sess_common.times import EARLIEST
from sess_schema import labels

# Opaque to people, or not text at all.
OPAQUE = frozenset({"base64", "data", "encrypted_content", "signature"})

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
LATEST = 1 << 45  # the year 3084
_LARGEST_COUNT = 1 << 53
_HIGHEST_COST = 1e9
LONGEST_DURATION = 30 * 24 * 3600 * 1000


def as_text(value: Any) -> str | None:
    """A non-empty string."""
    return value if isinstance(value, str) and value else None


def as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def as_count(value: Any) -> int:
    """A count; gateways write floats or strings. Anything else is 0."""
    if type(value) is int:
        return value if 0 <= value <= _LARGEST_COUNT else 0
    if isinstance(value, str) and len(value) <= 20 and value.isascii() and value.isdigit():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0
    if isinstance(value, float) and not math.isfinite(value):
        return 0
    return int(value) if 0 <= value <= _LARGEST_COUNT else 0


def as_dollars(value: Any) -> float | None:
    """What something cost; no number of any length is too much for it."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value < _HIGHEST_COST else None


# Hosts that run a model on this machine, at no cost.
LOCAL = frozenset({
    "llama.cpp", "llama-cpp", "llama-server", "llamacpp", "lm-studio", "lm_studio", "lmstudio",
    "local", "mlx", "ollama", "oss", "vllm",
})  # fmt: skip


def cost_at(provider: Any) -> float | None:
    """What a response costs where its provider is this machine; unknown elsewhere."""
    return 0.0 if isinstance(provider, str) and provider.casefold() in LOCAL else None


def as_milliseconds(value: Any) -> int | None:
    """A duration that is plausible for a tool call."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return round(value) if 0 <= value <= LONGEST_DURATION else None


def as_time(value: Any) -> int | None:
    """UTC milliseconds of an ISO time or of a number in seconds, milli-, micro- or nanoseconds.

    None for anything before 2000: a missing time is often written as zero.
    """
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return as_time(int(value)) if 9 < len(value) < 20 and value.isdecimal() else None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        milliseconds = (moment - _EPOCH) // _MILLISECOND
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        if not 0 < value < 1e20:
            return None
        unit = 1e-3 if value < 1e11 else 1 if value < 1e14 else 1e3 if value < 1e17 else 1e6
        milliseconds = round(value / unit)
    else:
        return None
    return milliseconds if EARLIEST <= milliseconds < LATEST else None


def as_local_time(value: Any, zone: tzinfo | None) -> int | None:
    """As `as_time`, but a time without a zone is that of the machine's clock."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
        if moment is None or moment.tzinfo is not None:
            return as_time(value)
        placed = moment.replace(tzinfo=zone) if zone else moment.astimezone()
        return as_time(placed.isoformat())
    except (ValueError, OverflowError, OSError):
        return None


def strings(value: Any, skip: frozenset[str] = frozenset()) -> Iterator[str]:
    """Every string in decoded JSON, in order; a loop, as JSON may nest deeper than the stack."""
    stack = [iter((value,))]
    while stack:
        for item in stack[-1]:
            if isinstance(item, str):
                if item:
                    yield item
            elif isinstance(item, dict):
                if skip:
                    stack.append(iter([v for k, v in item.items() if k not in skip]))
                else:
                    stack.append(iter(item.values()))
                break
            elif isinstance(item, list):
                stack.append(iter(item))
                break
        else:
            stack.pop()


def without_empty(**facts: Any) -> dict[str, Any]:
    """What a parser remembers, without what is empty."""
    return {name: value for name, value in facts.items() if value}


def as_line(value: Any) -> bytes:
    """JSON in one line; also for numbers beyond 64 bits and lone surrogates."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return json.dumps(value).encode()


def decoded(value: Any) -> Any:
    """The JSON in a column of a database; None if it is none."""
    if not isinstance(value, (str, bytes)):
        return None
    try:
        return decode(value if isinstance(value, bytes) else value.encode("utf-8", "replace"))[0]
    except ValueError:
        return None


_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def is_uuid(text: str) -> bool:
    return _UUID.fullmatch(text) is not None


SCOPE = "(?:[^/]*/)?"  # what `scoped` may put before an id


def scoped(session: str, native_id: str | None) -> str | None:
    """An id unique in all sessions: most ids contain a UUID, the others repeat in each."""
    return native_id if native_id is None or _UUID.search(native_id) else f"{session}/{native_id}"


# Keys whose strings mean nothing to people.
NAMELESS = frozenset((*OPAQUE, "type", "id", "tool_use_id"))


_MOST_STRANGE = 10  # blocks that are named


def content_blocks(
    content: Any, place: str, warnings: list[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """(JSON pointer, block) for each block of a message's content, whatever its shape."""
    if isinstance(content, str):
        yield place, {"type": "text", "text": content}
    elif isinstance(content, dict):
        yield place, content
    elif isinstance(content, list):
        for index, block in enumerate(content):
            if isinstance(block, dict):
                yield f"{place}/{index}", block
            elif isinstance(block, str):
                yield f"{place}/{index}", {"type": "text", "text": block}
            elif len(warnings) < _MOST_STRANGE:
                warnings.append(f"block {index} of the content is not an object")
    elif content is not None:
        warnings.append("content is neither text nor a list")


def result_text(content: Any) -> tuple[str, int]:
    """The text of a result, whatever its shape, and how many images it has."""
    if isinstance(content, str):
        return content, 0
    if content is None:
        return "", 0
    if isinstance(content, list):
        texts: list[str] = []
        images = 0
        for item in content:
            if isinstance(item, str):
                texts.append(item)
            elif item not in (None, {}, []):
                text, more = _item_text(item) if isinstance(item, dict) else (None, 0)
                images += more
                if text is not None:
                    texts.append(text)
                elif not more:
                    texts.append(_as_json(item))
        return "\n".join(texts), images
    if isinstance(content, dict):
        text, images = _item_text(content)
        if text is None:
            known = images or not content
            text = "" if known else "\n".join(strings(content, NAMELESS)) or _as_json(content)
        return text, images
    if isinstance(content, bool):
        return ("true" if content else "false"), 0
    return str(content), 0


def _item_text(item: dict[str, Any]) -> tuple[str | None, int]:
    text = item.get("text")
    if isinstance(text, str):
        return text, 0
    kind = item.get("type")
    if kind in ("image", "input_image") or "image_url" in item:
        return None, 1
    if kind == "text":
        return "", 0
    if kind == "web_search_result":
        parts = (as_text(item.get("title")), as_text(item.get("url")))
        return "\n".join(filter(None, parts)), 0
    return None, 0


def _as_json(item: Any) -> str:
    """An item of a kind that nobody knows; without what is no text."""
    try:
        return as_line(_legible(item)).decode("utf-8", "replace")
    except RecursionError:
        return "\n".join(strings(item, NAMELESS))


def _legible(value: Any) -> Any:
    if isinstance(value, list):
        return [_legible(one) for one in value]
    if isinstance(value, dict):
        hidden = {name for name, one in value.items() if name in OPAQUE and isinstance(one, str)}
        return {name: _legible(one) for name, one in value.items() if name not in hidden}
    return value


def searchable_input(given: Any) -> str:
    """The values of an input, one per line, without their names."""
    if not isinstance(given, dict):
        return "\n".join(strings(given))
    lines: list[str] = []
    for value in given.values():
        if isinstance(value, str):
            if value:
                lines.append(value)
        elif isinstance(value, (dict, list)):
            lines.extend(strings(value))
        elif value is not None:
            lines.append(json.dumps(value))
    return "\n".join(lines)


# Commands about the session itself, which do not describe its subject.
_HOUSEKEEPING = frozenset({
    "add", "add-dir", "agents", "clear", "compact", "config", "context", "cost", "doctor", "drop",
    "effort", "exit", "export", "fast", "help", "hooks", "ide", "init", "login", "logout", "ls",
    "mcp", "memory", "model", "permissions", "plugin", "quit", "read-only", "rename", "reset",
    "resume", "rewind", "status", "tokens", "undo", "usage", "vim",
})  # fmt: skip
_TITLE_LENGTH = 200
_MOST_READ = 10 * _TITLE_LENGTH  # characters of a prompt
_PLAN = re.compile(r"implement the following plan:\s*", re.IGNORECASE)
_UNTITLED = frozenset({labels.BASH, labels.MEMORY})


def prompt_title(text: str, label: str | None = None) -> str | None:
    """A prompt in one line; None if it says nothing about the subject of its session."""
    text = text.strip()
    plan = _PLAN.match(text)
    if plan is not None:
        text = _first_words(text[plan.end() : _MOST_READ]) or text
    title = title_line(text)
    if label in _UNTITLED or title in ("", "[image]") or title.casefold() == "warmup":
        return None
    return title


def title_line(text: str) -> str:
    """A text on one line, with an ellipsis where it is cut."""
    line = " ".join(text[:_MOST_READ].split())
    if len(line) <= _TITLE_LENGTH and len(text) <= _MOST_READ:
        return line
    return line[: _TITLE_LENGTH - 1].rstrip() + "…"


def _first_words(plan: str) -> str:
    lines = (line.strip("#*_- \t") for line in plan.splitlines())
    return next((line for line in lines if _has_words(line)), "")


def _has_words(text: str) -> bool:
    return sum(map(str.isalnum, text)) > 1


def is_weak(title: str) -> bool:
    """Whether the title of any other prompt is better."""
    if title.startswith("/"):
        name, _, rest = title[1:].partition(" ")
        return not rest or name in _HOUSEKEEPING
    return not _has_words(title) or _PLAN.fullmatch(title) is not None
