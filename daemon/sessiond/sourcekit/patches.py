"""Splits the patches that agents write by file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sess_schema.edits import Edit

_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_FILE = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+?)\s*$")
_MOST_FILES = 1000
# A text to find and what replaces it, in the two spellings that agents use; a line number and
# a rule may follow the first line.
_BLOCK = re.compile(
    r"^(?:<{5,}|-{5,}) SEARCH>?[^\n]*\n(?:(?::\w+:[^\n]*\n)+-{5,}\n)?(.*?)^={5,}[^\n]*\n"
    r"(.*?)^(?:>{5,}|\+{5,}) REPLACE",
    re.DOTALL | re.MULTILINE,
)


def is_patch(text: str) -> bool:
    """Whether a text is a patch in `*** Begin Patch` or unified format."""
    return _BEGIN in text or "\n@@ " in text or text.startswith("@@ ")


def edits_of_patch(text: str, path: str = "") -> tuple[Edit, ...]:
    """One edit per file; `path` is the file of a patch that names none."""
    if not is_patch(text):
        return ()
    edits = _begun(text) if _BEGIN in text else _unified(text, path)
    return tuple(edit for edit, _ in zip(edits, range(_MOST_FILES), strict=False))


def edits_of_blocks(text: str, path: str) -> tuple[Edit, ...]:
    """One edit per SEARCH/REPLACE block, all of one file."""
    blocks = zip(_BLOCK.finditer(text), range(_MOST_FILES), strict=False)
    return tuple(Edit(path, block[1], block[2]) for block, _ in blocks)


def _begun(text: str) -> Iterator[Edit]:
    path, lines = "", list[str]()
    for line in [*text.split("\n"), _END]:
        found = _FILE.match(line)
        if found or line.startswith(_END):
            if path:
                yield Edit(path, patch="\n".join((_BEGIN, *lines, _END)))
            path, lines = found[2] if found else "", [line]
        else:
            lines.append(line)


def _unified(text: str, path: str) -> Iterator[Edit]:
    """A file starts with a `--- ` line directly followed by a `+++ ` line."""
    lines = text.split("\n")
    starts = [
        at
        for at, line in enumerate(lines[:-1])
        if line.startswith("--- ") and lines[at + 1].startswith("+++ ")
    ]
    if not starts:
        if path:
            yield Edit(path, patch=text)
        return
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        named = _named(lines[start], lines[start + 1]) or path
        if named:
            yield Edit(named, patch="\n".join(lines[start:end]))


def _named(old: str, new: str) -> str:
    for line, prefix in ((new, "b/"), (old, "a/")):
        name = line[4:].split("\t")[0].strip()
        if name and name != "/dev/null":
            return name.removeprefix(prefix)
    return ""
