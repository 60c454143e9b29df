"""Extracts text from what Cursor stores as JSON, often as JSON inside a string."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sess_common import decode
from sessiond.sourcekit.values import OPAQUE, as_dict, as_list, as_text

_MOST_WRAPPERS = 3
_JSON_STARTS = ("{", "[", '"')

_DATA_URL = re.compile(r"data:[\w.+-]{1,80}/[\w.+-]{1,80};base64,[A-Za-z0-9+/=]*")
# The first bytes of PNG, JPEG, GIF and WebP, as base64.
_FIRST_BYTES = ("iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR")
_BARE_IMAGE = re.compile(
    rf"(?<![A-Za-z0-9+/])(?:{'|'.join(_FIRST_BYTES)})[A-Za-z0-9+/]{{40,}}={{0,2}}"
)
_LONGEST_WORD = 1000
_LONG_WORD = re.compile(rf"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{{{_LONGEST_WORD},}}={{0,2}}")
_KINDS_OF_LETTERS = (re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[0-9]"))

_BLOCKS = frozenset({"paragraph", "heading", "listitem", "quote", "blockquote", "tablerow"})
_LISTS = frozenset({"list", "bulletlist", "orderedlist", "tasklist"})
_CODE = frozenset({"code", "codeblock"})
_BREAKS = frozenset({"linebreak", "hardbreak"})


def unwrap(value: Any) -> Any:
    """Decode a TEXT or BLOB of JSON, however often it is quoted; None if it is not JSON."""
    for _ in range(_MOST_WRAPPERS + 1):
        if isinstance(value, str):
            value = value.encode("utf-8", "replace")
        if not isinstance(value, (bytes, bytearray, memoryview)):
            break
        try:
            value, _ = decode.decode(bytes(value))
        except ValueError:
            return None
        if isinstance(value, str) and not value.lstrip().startswith(_JSON_STARTS):
            break
    return value


def structured(value: Any) -> Any:
    """Decode a string of JSON; return anything else unchanged."""
    if not isinstance(value, str) or not value.lstrip().startswith(_JSON_STARTS):
        return value
    inner = unwrap(value)
    return inner if isinstance(inner, (dict, list, str)) else value


def readable(text: str) -> tuple[str, int]:
    """The text without the images and binaries inside it, and how many images there were."""
    if len(text) < 20:
        return text, 0
    images = bare = 0
    # Each search scans the whole text; these tests are many times faster.
    if ";base64," in text:
        text, images = _DATA_URL.subn("[image]", text)
    if any(first in text for first in _FIRST_BYTES):
        text, bare = _BARE_IMAGE.subn("[image]", text)
    # A word this long fills at least one slice of half its length.
    half = _LONGEST_WORD // 2
    if any(" " not in text[at : at + half] for at in range(0, len(text) - half + 1, half)):
        text = _LONG_WORD.sub(_word_or_nothing, text)
    return text, images + bare


def plain(value: Any) -> str:
    """The text of a Lexical or ProseMirror document; other strings unchanged."""
    document = structured(value)
    if isinstance(value, str) and not _is_document(document):
        return value
    return _Writer().write(document)


def _word_or_nothing(match: re.Match[str]) -> str:
    word = match[0]
    return "" if all(kind.search(word) for kind in _KINDS_OF_LETTERS) else word


def _is_document(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return isinstance(value.get("root"), dict) or (
        value.get("type") in ("doc", "root") and isinstance(_children(value), list)
    )


def _children(node: dict[str, Any]) -> Any:
    children = node.get("children")
    return children if children is not None else node.get("content")


class _Mark(str):
    """An instruction to the writer among the texts to write."""

    __slots__ = ()


class _Bullet(_Mark):
    """What precedes an item, on the same line."""

    __slots__ = ()


_BEGIN_LINE, _END_LINE = _Mark("begin"), _Mark("end")


class _Writer:
    """Writes nodes with an explicit stack: documents may nest too deep for recursion."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._stack: list[Any] = []
        self._fresh = True  # the current line is empty or has only a bullet

    def write(self, document: Any) -> str:
        self._stack.append(document)
        while self._stack:
            item = self._stack.pop()
            if isinstance(item, _Mark):
                self._mark(item)
            elif isinstance(item, str):
                self._text(item)
            elif isinstance(item, list):
                self._stack += reversed(item)
            elif isinstance(item, dict):
                self._visit(item)
        return "".join(self._texts).strip()

    def _mark(self, mark: _Mark) -> None:
        if mark is _END_LINE:
            self._fresh = False
        elif isinstance(mark, _Bullet):
            self._texts.append(mark)
        elif not self._fresh:
            self._texts.append("\n")
            self._fresh = True

    def _text(self, text: str) -> None:
        if text:
            self._texts.append(text)
            self._fresh = False

    def _later(self, *items: Any) -> None:
        self._stack += reversed(items)

    def _visit(self, node: dict[str, Any]) -> None:
        kind = (as_text(node.get("type")) or "").lower().replace("-", "").replace("_", "")
        inside = _children(node)
        if isinstance(node.get("root"), dict):
            self._later(node["root"])
        elif kind in _BREAKS:
            self._text("\n")
        elif kind == "tab":
            self._text("\t")
        elif "mention" in kind:
            self._text(_mention(node))
        elif kind in _CODE:
            self._fence(node, inside)
        elif kind in _LISTS:
            self._bullets(node, kind, inside)
        elif kind in _BLOCKS:
            self._later(_BEGIN_LINE, _text_of(node), as_list(inside), _END_LINE)
        else:
            self._later(_text_of(node), as_list(inside))

    def _fence(self, node: dict[str, Any], inside: Any) -> None:
        language = as_text(node.get("language"))
        language = language or as_text(as_dict(node.get("attrs")).get("language")) or ""
        body = [_text_of(node), as_list(inside)]
        self._later(_BEGIN_LINE, f"```{language}\n", *body, "\n```", _END_LINE)

    def _bullets(self, node: dict[str, Any], kind: str, inside: Any) -> None:
        numbered = kind == "orderedlist" or node.get("listType") == "number"
        number = 0
        items: list[Any] = []
        for item in as_list(inside):
            if _holds_only_lists(item):
                items.append(_children(item))
                continue
            number += 1
            items += (_BEGIN_LINE, _Bullet(f"{number}. " if numbered else "- "), item)
        self._stack += reversed(items)


def _holds_only_lists(item: Any) -> bool:
    """Whether an item is Lexical's wrapper around a nested list."""
    inside = _children(item) if isinstance(item, dict) else None
    if not isinstance(inside, list) or not inside:
        return False
    return all(isinstance(node, dict) and node.get("type") == "list" for node in inside)


def _text_of(node: dict[str, Any]) -> str:
    return as_text(node.get("text")) or ""


def _mention(node: dict[str, Any]) -> str:
    attributes = as_dict(node.get("attrs"))
    words = (
        *(node.get(name) for name in ("text", "mentionName", "name", "label")),
        *(attributes.get(name) for name in ("label", "text", "name", "id")),
    )
    name = next((word for word in map(as_text, words) if word), "")
    return name if not name or name.startswith("@") else f"@{name}"


# -- the readable texts of a call's arguments and results

# What Cursor computes about a call or a result; nobody wrote or reads it.
MACHINERY = frozenset({
    "afterContentId", "beforeContentId", "codeblockId", "effectiveSandboxPolicy", "endedReason",
    "modelCallId", "parsingResult", "repositoryInfo", "requestedSandboxPolicy", "toolCallBinary",
    "toolCallId",
})  # fmt: skip
_NAMES_OF_KINDS = frozenset({*MACHINERY, "mimeType", "outputMode", "selectedTool", "type"})
_OPAQUE_MEMBER = re.compile(
    rf'"({"|".join(sorted(OPAQUE))}|toolCallBinary)\\?"\s*:\s*\\?"([^"\\]*)'
)
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_MIXED = re.compile(r"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])[^0-9]*[0-9]")
_SHORTEST_LINE = 60  # of encoded binary data
_LONGEST_READABLE_WORD = 250  # a longer one is binary data, even with letters of one case


def is_empty(value: Any) -> bool:
    """Whether a value says nothing, also as JSON in a string."""
    if isinstance(value, str):
        return not value.strip() or value.strip() in ("{}", "[]", "null", '""')
    return value is None or value is False or (isinstance(value, (dict, list)) and not value)


def loose(text: str) -> tuple[list[str], int]:
    """A text that is not JSON, or is JSON that was cut off."""
    if text.lstrip().startswith(("{", "[", '"')):
        text = _OPAQUE_MEMBER.sub(_member_or_nothing, text)
    visible, images = readable(text)
    return [visible], images


def _member_or_nothing(member: re.Match[str]) -> str:
    return '"' if member[1] not in OPAQUE or is_binary(member[1], member[2]) else member[0]


def is_binary(name: str, value: Any) -> bool:
    """Whether a value is binary data; plain text may have the same name."""
    if name not in OPAQUE:
        return False
    if isinstance(value, list):
        return any(is_binary(name, item) for item in value if isinstance(item, str))
    lines = value.split() if isinstance(value, str) else []
    if not lines or any(len(line) < _SHORTEST_LINE for line in lines[:-1] or lines):
        return False
    word = "".join(lines)
    is_unlike_words = len(word) > _LONGEST_READABLE_WORD or _MIXED.match(word) is not None
    return is_unlike_words and _ENCODED.fullmatch(word) is not None


def gather(value: Any) -> tuple[list[str], int]:
    """Every readable string in decoded JSON, in order, and the number of images."""
    texts: list[str] = []
    images = 0
    stack = [iter((value,))]
    while stack:
        for item in stack[-1]:
            if isinstance(item, str):
                text, more = readable(item)
                images += more
                if text and text != "[image]":
                    texts.append(text)
            elif isinstance(item, dict):
                if _is_image(item):
                    images += 1
                    continue
                stack.append(_members(item))
                break
            elif isinstance(item, list):
                stack.append(iter(item))
                break
        else:
            stack.pop()
    return texts, images


def _members(item: dict[str, Any]) -> Iterator[Any]:
    return iter([v for k, v in item.items() if k not in _NAMES_OF_KINDS and not is_binary(k, v)])


def _is_image(item: dict[str, Any]) -> bool:
    media = as_text(item.get("mimeType")) or as_text(item.get("media_type")) or ""
    return item.get("type") == "image" or media.startswith("image/")


def error_text(value: Any) -> str:
    if is_empty(value):
        return ""
    error = structured(value)
    if isinstance(error, str):
        return loose(error)[0][0].strip()
    if isinstance(error, dict):
        seen = (error.get("clientVisibleErrorMessage"), error.get("modelVisibleErrorMessage"))
        messages = dict.fromkeys(text for text in map(as_text, seen) if text)
        if messages:
            return "\n".join(gather([*messages])[0])
    return "\n".join(gather(error)[0])
