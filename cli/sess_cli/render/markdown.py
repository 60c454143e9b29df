"""Markdown for any forge, which foreign text cannot break out of, and one event rendered as it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sess_cli.export.notice_names import NAMES
from sess_cli.render import amounts, layout
from sess_common.classes import later
from sess_common.escape import safe
from sess_schema import edits, kinds, labels
from sess_schema.queries import sessions
from sess_schema.session import Reader

if TYPE_CHECKING:
    import apsw

    from sess_schema.ids import EventId
    from sess_schema.queries.sessions import SessionRow
    from sess_schema.session import Entry

# How much of a long input or output to show: lines from its start and end, and cells per line.
HEAD, TAIL, WIDEST = 40, 15, 400
_LATER = 3  # levels below the headings of prompts
_SPECIAL = later(r"([\\`*_{}\[\]<>#|~&])")
_BACKTICKS = later("`{3,}")
_FENCE = later(r" {0,3}(`{3,}|~{3,})([ \t]*[\w+#.-]*)(.*)")
_TAB_BEFORE_FENCE = later(r"\A *\t[ \t]*(?=```|~~~)")
_HEADING_LINE = later(r" {0,3}(#{1,6})(?=\s|$)")
_UNDERLINE = later(r" {0,3}(=+|-+)\s*$")
_HTML = later(r"( {0,3})<(?=[A-Za-z/!?])")


def event_text(db: apsw.Connection, row: SessionRow, event: EventId, *, utc: bool = False) -> str:
    """One event and where it is from; empty if the session has no such event."""
    reader = Reader(db, row.key, superseded=True)
    if not reader.holds(event):
        return ""
    (entry,) = reader.some([event])
    lines = [*_entry_lines(reader, row, entry)]
    if entry.type in ("user", "assistant"):
        lines[:0] = [f"**{entry.type}**", ""]
    when = amounts.clock(entry.ts, utc=utc)
    lines += [f"From {code(f'{row.session}#{reader.keys.of[event]}')}, {where(row)}, {when}."]
    return "\n".join(lines) + "\n"


def _entry_lines(reader: Reader, row: SessionRow, entry: Entry) -> Iterator[str]:
    """Blocks, each followed by an empty line."""
    if entry.type == "user":
        yield from quoted(entry.text)
    elif entry.type == "assistant":
        yield from prose(entry.text)
        yield ""
    elif entry.type == "thinking":
        yield from quoted(f"*Thinking*\n\n{shortened(entry.text)}")
    elif entry.type == "tool_use":
        yield from _call_lines(reader, row, entry)
    elif entry.type == "system" and entry.label == labels.COMPACT:
        yield f"*{escaped(sessions.one_line(entry.text))}*"
        yield ""
    elif entry.label in labels.MESSAGES:
        yield from quoted(entry.text)
    elif entry.label in labels.UNREADABLE:
        yield f"*{NAMES[entry.label]}*"
        yield ""
        yield from fenced(shortened(entry.text))
    elif entry.type == "summary" and entry.label not in labels.TITLES:
        yield from quoted(f"*Summary*\n\n{entry.text}")
    if entry.images:
        yield f"*{amounts.plural(entry.images, 'image')}*"
        yield ""


def _call_lines(reader: Reader, row: SessionRow, entry: Entry) -> Iterator[str]:
    key = reader.keys.of[entry.id]
    about = [amounts.outcome(entry.status)]
    if entry.duration_ms is not None:
        about.append(amounts.duration(entry.duration_ms))
    name = escaped(sessions.one_line(entry.tool or "unknown tool"))
    yield f"**{name}** {', '.join(about)} · #{key}"
    yield ""
    changes = _changes(reader, entry)
    yield from fenced(shortened(changes or entry.input), "diff" if changes else "")
    if entry.output.strip():
        yield "Output:"
        yield ""
        shown = shortened(entry.output)
        yield from fenced(shown)
        if len(shown) < len(entry.output.strip("\n").rstrip()):
            full = f"sess show --full {row.session}#{key}"
            yield f"*Shortened; {code(full)} has all of it.*"
            yield ""


def _changes(reader: Reader, entry: Entry) -> str:
    """An edit as the lines removed and added."""
    if entry.kind != kinds.EDIT:
        return ""
    lines: list[str] = []
    path = ""
    for edit in edits.shown(reader.edits(entry.id)):
        if edit.path != path:
            path = edit.path
            lines.append(f"  {path}")
        lines += [f"{line.sign} {line.text}" for line in edits.lines(edit, context=0)]
    return "\n".join(lines)


def where(row: SessionRow) -> str:
    place = f"project {code(layout.home_short(row.project))}" if row.project else "no project"
    return place + (f" on {code(row.git_branch)}" if row.git_branch else "")


def quoted(text: str) -> Iterator[str]:
    for line in prose(text):
        yield f"> {line}".rstrip()
    yield ""


def fenced(text: str, language: str = "") -> Iterator[str]:
    """Verbatim text, in a fence longer than any inside it."""
    clean = safe(text).strip("\n").rstrip()
    if not clean:
        return
    ticks = "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(clean)), default=2))
    yield f"{ticks}{language or 'text'}"
    yield from clean.split("\n")
    yield ticks
    yield ""


def prose(text: str) -> Iterator[str]:
    """Foreign Markdown inside ours: fences are closed, headings lowered, HTML escaped.

    Fences lose their indentation, because one in a list would end with the list, and keep only the
    language, because a line with bars may be a table header.
    """
    fence = ""
    for raw in safe(text).strip("\n").rstrip().split("\n"):
        line = _TAB_BEFORE_FENCE.sub("    ", raw)  # inside a quotation it would count for less
        marker = _FENCE.fullmatch(line)
        if fence:
            yield line.lstrip(" ") if marker else line
            if marker and marker[1].startswith(fence) and not (marker[2] + marker[3]).strip():
                fence = ""
        elif marker and not (marker[1][0] == "`" and "`" in marker[3]):
            fence = marker[1]
            yield fence + marker[2]
        else:
            yield _harmless(line)
    if fence:
        yield fence


def _harmless(line: str) -> str:
    if heading := _HEADING_LINE.match(line):
        level = min(6, len(heading[1]) + _LATER - 1)
        return "#" * level + _HTML.sub(r"\1&lt;", line[heading.end() :])
    if _UNDERLINE.fullmatch(line):  # makes a heading of the line above it
        return "\\" + line.lstrip()
    return _HTML.sub(r"\1&lt;", line)


def escaped(text: str) -> str:
    """Foreign text on one line, with Markdown escaped."""
    return _SPECIAL.sub(r"\\\1", " ".join(safe(text).split()))


def code(text: str) -> str:
    """Foreign text as a code span."""
    clean = " ".join(safe(text).split())
    longest = max((len(run) for run in re.findall("`+", clean)), default=0)
    ticks = "`" * (longest + 1)
    edge = " " if clean.startswith("`") or clean.endswith("`") else ""
    return f"{ticks}{edge}{clean}{edge}{ticks}"


def shortened(text: str) -> str:
    lines = [layout.cut(line, WIDEST) for line in text.strip("\n").rstrip().split("\n")]
    left_out = len(lines) - HEAD - TAIL
    if left_out > 1:
        gap = f"… {amounts.plural(left_out, 'line')} left out …"
        lines = [*lines[:HEAD], gap, *lines[-TAIL:]]
    return "\n".join(lines)
