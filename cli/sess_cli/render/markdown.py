"""Markdown for any forge, which foreign text cannot break out of, and one event rendered as it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
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
# What a reader may act on: tags, images, links, mentions, references to issues.
_TELLING = later(r"[<@#]|\]\(|\]:|!\[|(?i:clos|fix|resolv)[a-z]{0,3}:?\s")
_CODE_SPAN = later(r"(`+)(?!`)[^|]*?(?<!`)\1(?!`)")
_TAG = later(r"(?<!\\)((?:\\\\)*)<(?!https?://[^\s<>]*>)(?=[A-Za-z/!?])")
_IMAGE = later(r"(?<!\\)((?:\\\\)*)!\[")
# The target is only looked at: another link may begin in it.
_TARGET = later(r"\](\(|:)(?=([ \t]*<?([^\s)>]*)))")
_MENTION = later(r"(?<![\w/`.\\@-])(@[A-Za-z0-9][\w-]*(?:/[\w.-]+)?)")
_REFERENCE = later(r"(?<![\w&/`#\[-])((?:[\w.-]+/[\w.-]+)?\\?#\d+)\b")
_CLOSES = later(
    r"(?i:(?<!\w)((?:close|fix|resolve)[sd]?|fixes|fixed)(:?\s+)"
    r"(https?://\S+/(?:issues|pull|work_items|merge_requests)/\d+|GH-\d+))"
)
_COMMAND = later(r"^([ >]*)/(?=[a-z_]+(?:\s|\Z))")
# Languages whose blocks some reader draws or runs.
_ACTIVE = later(
    r"(?i)[ \t]*(?:dataview(?:js)?|mermaid|query|tasks|buttons?|meta-bind.*|js-engine|geojson"
    r"|topojson|stl|math|plantuml|puml|kroki|d2"
    r"|graphviz|dot|vega(?:-lite)?|leaflet|charts?(?:view)?|excalidraw|embed|iframe|run-.*)\Z"
)


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
    for line in prose(text, commands=True):
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


def prose(text: str, *, commands: bool = False) -> Iterator[str]:
    """Foreign Markdown inside ours: fences are closed, headings lowered, HTML escaped.

    Fences lose their indentation, because one in a list would end with the list, and keep only the
    language, because a line with bars may be a table header. `commands`: a line that begins with
    one stays, as no forge carries it out inside of a quotation.
    """
    fence = ""
    paragraph: list[str] = []
    for raw in safe(text).strip("\n").rstrip().split("\n"):
        line = _TAB_BEFORE_FENCE.sub("    ", raw)  # inside a quotation it would count for less
        marker = _FENCE.fullmatch(line)
        if fence:
            yield line.lstrip(" ") if marker else line
            if marker and marker[1].startswith(fence) and not (marker[2] + marker[3]).strip():
                fence = ""
            continue
        begins = marker is not None and not (marker[1][0] == "`" and "`" in marker[3])
        if paragraph and (begins or not line.strip()):
            yield from _inert(paragraph)
            paragraph = []
        if begins and marker is not None:
            fence = marker[1]
            yield fence + ("text" if _ACTIVE.match(marker[2]) else marker[2])
        elif line.strip():
            paragraph.append(line if commands else _COMMAND.sub(r"\1\\/", line))
        else:
            yield line
    yield from _inert(paragraph)
    if fence:
        yield fence


def _inert(paragraph: list[str]) -> Iterator[str]:
    """Lines that do nothing where they are read: nothing is loaded, run, closed, and nobody told.

    Code stays as it is, if each line ends the code that it begins: then nothing else can be meant.
    """
    certain = all("`" not in _CODE_SPAN.sub("", line) for line in paragraph if "`" in line)
    for line in paragraph:
        if heading := _HEADING_LINE.match(line):
            level = min(6, len(heading[1]) + _LATER - 1)
            yield "#" * level + _harmless(line[heading.end() :], certain=certain)
        elif _UNDERLINE.fullmatch(line):  # makes a heading of the line above it
            yield "\\" + line.lstrip()
        else:
            yield _harmless(line, certain=certain)


def _harmless(line: str, *, certain: bool) -> str:
    if not _TELLING.search(line):
        return line
    pieces: list[str] = []
    done = 0
    for span in _CODE_SPAN.finditer(line) if certain else ():
        pieces += (_said(line[done : span.start()]), span[0])
        done = span.end()
    return "".join((*pieces, _said(line[done:])))


def _said(text: str) -> str:
    """What is no code, without anything to act on."""
    text = _TAG.sub(r"\1&lt;", text)
    text = _IMAGE.sub(r"\1[image: ", text)
    text = _TARGET.sub(_target, text)
    return _untold(text)


def in_html(text: str) -> str:
    """Foreign text on one line, inside of tags."""
    return _untold(escape(" ".join(safe(text).split())), "<code>", "</code>")


def _untold(text: str, begin: str = "`", end: str = "`") -> str:
    """As code, a mention tells nobody, and a reference neither closes nor marks an issue."""
    if "@" in text:
        text = _MENTION.sub(rf"{begin}\1{end}", text)
    if "#" in text:
        text = _REFERENCE.sub(lambda found: begin + found[1].replace("\\", "") + end, text)
    return _CLOSES.sub(rf"\1\2{begin}\3{end}", text)


def _target(found: re.Match[str]) -> str:
    """A link that leads somewhere else than to the web or a file beside it is shown as text."""
    place = re.split("[/?#]", found[3], maxsplit=1)[0].lower()
    web = place in ("http:", "https:") or place.startswith("mailto:")
    if found[3] and (web or not any(c in place for c in ":&\\")):
        return found[0]
    return f"]\\{found[1]}"


def escaped(text: str) -> str:
    """Foreign text on one line, with Markdown escaped."""
    return _untold(_SPECIAL.sub(r"\\\1", " ".join(safe(text).split())))


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
