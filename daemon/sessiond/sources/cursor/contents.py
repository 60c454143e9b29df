"""Reads what an edit changed from the texts of the file before and after it.

Older versions keep these texts, or a diff, in the call. Since April 2026 the call has only their
ids, and each text is a row of its own (`composer.content.<hash>`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sess_schema import edits
from sess_schema.edits import Edit
from sessiond.sourcekit.changes import as_hunk
from sessiond.sourcekit.patches import edits_of_patch
from sessiond.sourcekit.values import as_dict, as_text
from sessiond.sources.cursor.richtext import structured

if TYPE_CHECKING:
    from sessiond.sourcekit.foreign import Foreign

_PREFIX = "composer.content."
_LARGEST = 8 << 20
_OF_NOTHING = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # SHA-256
# In JSON, or in JSON inside a string.
_ID = re.compile(rb'(?:before|after)ContentId\\*"\s*:\s*\\*"([^"\\]{1,200})')


def fetch(foreign: Foreign, raw: bytes) -> dict[str, str]:
    """The texts that a bubble names, by their ids, as far as the database has them."""
    if b"ContentId" not in raw:
        return {}
    found: dict[str, str] = {}
    names = dict.fromkeys(name.decode("utf-8", "replace") for name in _ID.findall(raw))
    for name in names:
        if name.endswith(_OF_NOTHING):
            found[name] = ""
    keys = {_PREFIX + name.removeprefix(_PREFIX): name for name in names if name not in found}
    for key, value in foreign.many(
        f"SELECT key, value FROM cursorDiskKV WHERE key = ? AND length(value) <= {_LARGEST}",
        list(keys),
    ):
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        if isinstance(text, str):
            found[keys[key]] = text
    return found


def changes(
    path: str, data: dict[str, Any], result: Any, contents: Mapping[str, str]
) -> tuple[Edit, ...]:
    """What a call changed in its file, as exactly as it is known."""
    facts = as_dict(result)
    before, after = (_text(facts, when, contents) for when in ("before", "after"))
    new = not facts.get("beforeContentId") and before is None
    if after is not None and (new or before is not None):
        return (Edit(path, old=before or None, new=after),)
    computed = as_dict(data.get("additionalData")).get("precomputedDiff")
    found = (_of_diff(path, structured(diff)) for diff in (computed, facts.get("diff")))
    return next(filter(None, found), ())


def changed_lines(changed: Iterable[Edit], shown: str) -> list[str]:
    """The lines that edits remove and add, without those that `shown` has."""
    known = set(shown.split("\n"))
    unseen = (edit for edit in changed if not _is_in(edit, shown))
    lines = (line for edit in unseen for line in edits.lines(edit, context=0))
    texts = (line.text for line in lines if line.sign in "+-")
    return [*dict.fromkeys(text for text in texts if text.strip() and text not in known)]


def _is_in(edit: Edit, shown: str) -> bool:
    texts = (edit.old, edit.new, edit.patch)
    return not edit.hunks and all(text in shown for text in texts if text)


def _text(facts: dict[str, Any], when: str, contents: Mapping[str, str]) -> str | None:
    name = as_text(facts.get(f"{when}ContentId"))
    if name is not None and name in contents:
        return contents[name]
    text = facts.get(f"contents{when.capitalize()}Edit")
    return text if isinstance(text, str) else None


def _of_diff(path: str, diff: Any) -> tuple[Edit, ...]:
    if isinstance(diff, str):
        return edits_of_patch(diff, path)
    if isinstance(diff, dict):
        diff = diff.get("chunks") or diff.get("hunks")
    chunks = diff if isinstance(diff, list) else []
    hunks = tuple(filter(None, map(_hunk, chunks)))
    return (Edit(path, hunks=hunks),) if hunks else ()


def _hunk(chunk: Any) -> dict[str, Any] | None:
    facts = as_dict(chunk)
    signed = as_text(facts.get("diffString"))
    return as_hunk(facts if signed is None else facts | {"lines": signed.rstrip("\n").split("\n")})
