"""A readable transcript: prompts stand out, tool calls take a line, outputs are folded."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from sess_cli.export.notice_names import NAMES
from sess_cli.render import amounts, layout
from sess_cli.search.output_text import STATUS_STYLE
from sess_common import times
from sess_common.classes import later
from sess_schema import citations, edits, kinds, labels, numbers
from sess_schema.queries import sessions, sources

if TYPE_CHECKING:
    import apsw

    from sess_cli.terminal import Terminal
    from sess_schema.numbers import Numbers
    from sess_schema.queries.sessions import SessionRow
    from sess_schema.session import Entry, Reader


# How many lines and characters of each are shown; --full shows everything.
PROMPT_LINES, THINKING_LINES, OUTPUT_LINES, ERROR_LINES, DIFF_LINES = 40, 3, 5, 16, 6
MOST_CHARACTERS = 4000
BEFORE_EVENT = 3
PIPE_RULE = 40
_ALWAYS = labels.MESSAGES | labels.UNREADABLE
_MARKUP = later(r"[`*_#>|\[~]|^\s*(?:[-+]|\d+[.)])\s", re.MULTILINE)
_SIGNS = {"-": "red", "+": "green"}
_MOST_SUBAGENTS = 6
_PROJECT_FROM = {
    "folder": " (from the name of its folder)",
    "name": " (the name of its folder)",
    "files": " (where its files are)",
}


class TranscriptView:
    """Draws one session."""

    def __init__(
        self, db: apsw.Connection, terminal: Terminal, row: SessionRow, *, full: bool, utc: bool
    ) -> None:
        self._db = db
        self._terminal = terminal
        self._row = row
        self._full = full
        self._utc = utc
        self._children = {
            child.call_id: child for child in sessions.children(db, row.key) if child.call_id
        }
        self._ids = sessions.ShortIds(db)
        self._keys = citations.of_session(db, row.key)
        self._day = ""
        self._owner = row.key
        self._hidden = 0

    def lines(self, reader: Reader, *, at: int | None = None) -> Iterator[str]:
        """The whole session, or from a few events before `at`; never two empty lines in a row."""
        empty = True
        for line in self._all_lines(reader, at=at):
            if line or not empty:
                yield line
            empty = not line

    def _all_lines(self, reader: Reader, *, at: int | None) -> Iterator[str]:
        yield from header_lines(self._db, self._terminal, self._row, self._ids, utc=self._utc)
        yield ""
        waiting: deque[list[str]] = deque(maxlen=BEFORE_EVENT)
        skipped, reached = 0, at is None
        for entry in reader.entries():
            if entry.id == at:
                reached = True
                yield from self._skipped_lines(skipped - len(waiting))
                for block in waiting:
                    yield from block
                yield self._terminal.style(f"▶ event #{self._cite(entry)}", "match")
            block = [*self._entry(reader, entry, chosen=entry.id == at)]
            if reached:
                yield from block
            elif block:
                skipped += 1
                waiting.append(block)
        yield from self._hidden_lines()

    def _skipped_lines(self, count: int) -> Iterator[str]:
        if count > 0:
            name = self._terminal.line(self._ids.of(self._row))
            words = f"… {amounts.plural(count, 'event')} before: `sess show {name}`"
            yield self._terminal.style(words, "dim")

    def _hidden_lines(self) -> Iterator[str]:
        if self._hidden:
            them = "it" if self._hidden == 1 else "them"
            words = f"{amounts.plural(self._hidden, 'system event')} hidden; --full shows {them}"
            yield ""
            yield self._terminal.style(words, "dim")

    def _entry(self, reader: Reader, entry: Entry, *, chosen: bool) -> Iterator[str]:
        compaction = entry.label == labels.COMPACT
        if not self._full and not chosen:
            if entry.type == "summary" and entry.label in labels.TITLES:  # shown in the header
                return
            if entry.type == "system" and not compaction and entry.label not in _ALWAYS:
                self._hidden += 1
                return
        yield from self._origin(entry)
        if entry.retired:
            yield self._terminal.style("(superseded)", "dim")
        if entry.type == "user":
            yield from self._prompt(entry)
        elif entry.type == "assistant":
            yield from self._answer(entry)
        elif entry.type == "thinking":
            yield from self._thought(entry)
        elif entry.type == "tool_use":
            yield from self._call(reader, entry)
        elif compaction and entry.type == "system":
            yield ""
            yield self._rule(self._terminal.line(entry.text), "yellow")
        else:
            yield from self._notice(entry)

    def _origin(self, entry: Entry) -> Iterator[str]:
        """Say once where copied events come from, and where the session's own events start."""
        if entry.session_id == self._owner:
            return
        self._owner = entry.session_id
        yield ""
        if entry.session_id == self._row.key:
            yield self._rule("the fork starts here", "dim")
            return
        original = sessions.by_key(self._db, entry.session_id)
        name = self._terminal.line(self._ids.of(original))
        yield self._rule(f"copied from {name}", "dim")

    def _prompt(self, entry: Entry) -> Iterator[str]:
        yield ""
        yield self._rule(f"{self._clock(entry)}#{self._cite(entry)}", "dim", right=True)
        lead = "❯ "
        for line in self._folded(entry.text, PROMPT_LINES, wrap=True, indent=2):
            yield self._terminal.style(lead, "cyan", "bold") + self._terminal.style(line, "bold")
            lead = "  "
        if entry.images:
            marker = f"  [{amounts.plural(entry.images, 'image')}]"
            yield self._terminal.style(marker, "dim")
        yield ""

    def _answer(self, entry: Entry) -> Iterator[str]:
        styles = ("red",) if entry.label == labels.API_ERROR else ()
        yield ""
        for line in self._drawn(entry.text) if not styles else self._wrapped(entry.text, indent=2):
            yield f"  {self._terminal.style(line, *styles)}".rstrip()
        yield ""

    def _drawn(self, text: str) -> Iterable[str]:
        """Markdown in colours; where there are none, as it was written."""
        lines = None
        if self._terminal.colour and self._terminal.width is not None and _MARKUP.search(text):
            from sess_cli.render import prose  # on terminals only

            clean = self._terminal.text(text).strip().expandtabs(4)
            lines = prose.lines(clean, self._terminal.width - 2)
        return self._wrapped(text, indent=2) if lines is None else lines

    def _thought(self, entry: Entry) -> Iterator[str]:
        lead = "✻ "
        for line in self._folded(entry.text, THINKING_LINES, wrap=True, indent=2):
            yield self._terminal.style(lead + line, "dim", "italic")
            lead = "  "

    def _notice(self, entry: Entry) -> Iterator[str]:
        label = entry.label or entry.type
        unreadable = label in labels.UNREADABLE
        name = NAMES[label] if unreadable else self._terminal.line(label)
        style = "yellow" if unreadable else "dim"
        yield self._terminal.style(f"· {name}  #{self._cite(entry)}", style)
        for line in self._folded(entry.text, OUTPUT_LINES, wrap=True, indent=4):
            yield "    " + self._terminal.style(line, "dim")

    # -- tool calls

    def _call(self, reader: Reader, entry: Entry) -> Iterator[str]:
        t = self._terminal
        status = entry.status or "pending"
        style = STATUS_STYLE.get(status, "dim")
        bullet = t.style("●", "green" if status == "ok" else style)
        tool = t.line(entry.tool or "result of an unknown call")
        took = f" {amounts.duration(entry.duration_ms)}" if entry.duration_ms is not None else ""
        end = f"{status}{took}  #{self._cite(entry)}"
        summary = t.line(entry.summary or "")
        if t.width is not None:
            tool = layout.cut(tool, t.width // 2)
            room = t.width - layout.cells(tool) - len(end) - 6
            summary = layout.pad(layout.cut(summary, max(4, room)), room)
        shown_end = t.style(f"{status}{took}", style) + t.style(f"  #{self._cite(entry)}", "dim")
        yield f"{bullet} {t.style(tool, 'bold')}  {summary}  {shown_end}"
        if self._full and entry.input:
            for line in self._folded(entry.input, 0, wrap=False, indent=4):
                yield "    " + t.style(line, "blue")
        elif entry.kind == kinds.EDIT:
            yield from self._changes(reader, entry)
        failed = status in ("error", "denied")
        for line in self._folded(
            entry.output, ERROR_LINES if failed else OUTPUT_LINES, wrap=False, indent=4
        ):
            yield "    " + t.style(line, "red" if failed else "dim")
        if entry.images:
            yield "    " + t.style(f"[{amounts.plural(entry.images, 'image')}]", "dim")
        child = self._children.get(entry.call_id or "")
        if child is not None:
            kind = f" ({t.line(child.agent_type)})" if child.agent_type else ""
            name = t.line(self._ids.of(child))
            yield f"    → {t.style(name, 'cyan')}{kind}, {amounts.plural(child.events, 'event')}"

    def _changes(self, reader: Reader, entry: Entry) -> Iterator[str]:
        """The lines an edit removed and added; long runs are folded."""
        for edit in edits.shown(reader.edits(entry.id)):
            lines = edits.lines(edit, context=0)
            for sign, stretch in groupby(lines, key=lambda line: line.sign):
                style = _SIGNS.get(sign)
                if style is None:
                    continue
                text = "\n".join(line.text for line in stretch)
                for line in self._folded(text, DIFF_LINES, wrap=False, indent=6):
                    yield f"    {self._terminal.style(f'{sign} {line}', style)}"

    # -- lines

    def _wrapped(self, text: str, *, indent: int) -> Iterator[str]:
        """Prose is wrapped; fenced code is not."""
        fenced = False
        for line in self._terminal.text(text).strip().expandtabs(4).split("\n"):
            fence = line.lstrip().startswith("```")
            if fence:
                fenced = not fenced
            if self._terminal.width is None or fenced or fence:
                yield line.rstrip()
            else:
                hanging = "  " if line.lstrip()[:2] in ("- ", "* ") else ""
                yield from layout.wrap(line.rstrip(), self._terminal.width - indent, hanging)

    def _folded(self, text: str, most: int, *, wrap: bool, indent: int) -> Iterator[str]:
        """The first lines of a text, and how many more there are."""
        if not text.strip():
            return
        shown = text if self._full else text[:MOST_CHARACTERS]
        if wrap:
            lines = [*self._wrapped(shown, indent=indent)]
        else:
            clean = self._terminal.text(shown).strip("\n").rstrip().expandtabs(4)
            lines = clean.split("\n")
            if self._terminal.width is not None and not self._full:
                lines = [layout.cut(line, self._terminal.width - indent) for line in lines]
        if self._full:
            yield from lines
            return
        cut_off = text[len(shown) :].rstrip()
        keep = most if len(lines) > most + 1 else len(lines)  # one more line is not worth a fold
        yield from lines[:keep]
        more = len(lines) - keep + (cut_off.count("\n") + 1 if cut_off else 0)
        if more:
            yield f"… {amounts.plural(more, 'more line')}"

    def _cite(self, entry: Entry) -> str:
        return self._keys.short(entry.id)

    def _clock(self, entry: Entry) -> str:
        if entry.ts is None:
            return ""
        day, _, _ = amounts.clock(entry.ts, utc=self._utc).partition(" ")
        shown = amounts.clock(entry.ts, utc=self._utc, seconds=True) + "  "
        if day != self._day:
            self._day = day
            return f"{day} {shown}"
        return shown

    def _rule(self, words: str, style: str, *, right: bool = False) -> str:
        width = self._terminal.width or PIPE_RULE
        words = layout.cut(words, width - 8) if self._terminal.width else words
        dashes = max(4, width - layout.cells(words) - (1 if right else 6))
        line = f"{'─' * dashes} {words}" if right else f"──── {words} {'─' * dashes}"
        return self._terminal.style(line, style)


def header_lines(
    db: apsw.Connection, terminal: Terminal, row: SessionRow, ids: sessions.ShortIds, *, utc: bool
) -> Iterator[str]:
    """One or more lines per fact, the title first."""
    for name, value in _header_facts(db, terminal, row, ids, utc=utc):
        if not name:
            yield from (terminal.style(line, "bold") for line in _fitting_lines(terminal, value, 0))
            continue
        first = terminal.style(f"{name:<10}", "dim")
        # Paths are not cut, so that they can be copied.
        for line in [value] if name == "source" else _fitting_lines(terminal, value, 10):
            yield first + line
            first = " " * 10


def _fitting_lines(terminal: Terminal, value: str, indent: int) -> Iterator[str]:
    if terminal.width is None:
        yield value
    else:
        yield from layout.wrap(value, terminal.width - indent)


def _header_facts(
    db: apsw.Connection, terminal: Terminal, row: SessionRow, ids: sessions.ShortIds, *, utc: bool
) -> Iterator[tuple[str, str]]:
    yield "", terminal.line(sessions.title_of(db, row))
    about = f"({row.kind} of {row.agent})" if row.kind != "main" else f"({row.agent})"
    yield "session", f"{terminal.line(row.session)} {terminal.line(about)}"
    place = terminal.line(layout.home_short(row.project))
    branch = f" on {terminal.line(row.git_branch)}" if row.git_branch else ""
    yield "project", place + branch + _PROJECT_FROM.get(row.project_from or "", "")
    models = ", ".join(json.loads(row.models))
    version = f"version {row.version}" if row.version else ""
    mode = f"{row.mode} mode" if row.mode else ""
    if used := " · ".join(filter(None, (models, version, mode))):
        yield "model" if models else "agent", terminal.line(used)
    counts = numbers.of(db, row)
    yield "when", _period_line(row, counts, utc=utc)
    yield "counts", _counts_line(counts)
    for source in sources.of_session(db, row.key):
        gone = ""
        if source.state == "gone":
            day = f"{times.local(source.state_since, utc=utc):%Y-%m-%d}"
            gone = f" (gone since {day}; `sess restore` writes it back)"
        yield "source", terminal.line(layout.home_short(source.path)) + gone
    if row.parent_key is not None:
        parent = sessions.by_key(db, row.parent_key)
        known = sessions.is_read(db, row.parent_key)
        about = sessions.title_of(db, parent) if known else "(its transcript is missing)"
        yield "parent", terminal.line(f"{ids.of(parent)}  {about}")
    children = sessions.children(db, row.key)
    if children:
        shown = ", ".join(ids.of(child) for child in children[:_MOST_SUBAGENTS])
        more = len(children) - _MOST_SUBAGENTS
        yield "subagents", terminal.line(shown) + (f" and {more} more" if more > 0 else "")


def _period_line(row: SessionRow, counts: Numbers, *, utc: bool) -> str:
    if row.started is None or row.ended is None:
        return "no date"
    when = amounts.period(row.started, row.ended, utc=utc)
    about = "the time of its file" if row.time_from else ""
    about = about or amounts.spans(counts.duration_ms, counts.active_ms)
    return f"{when} ({about})" if about else when


def _counts_line(counts: Numbers) -> str:
    outcomes = amounts.outcomes(counts.failed, counts.denied)
    return (
        f"{amounts.plural(counts.prompts, 'prompt')}, {amounts.plural(counts.calls, 'tool call')}"
        f"{f' ({outcomes})' if outcomes else ''}, {amounts.plural(counts.events, 'event')}"
    )
