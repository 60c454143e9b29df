"""Search hits as lines: whose session, then what matched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sess_cli.render import amounts, layout
from sess_schema import times
from sess_schema.queries import sessions
from sess_schema.queries.excerpt import Excerpt

if TYPE_CHECKING:
    import apsw

    from sess_cli.terminal import Terminal
    from sess_schema.queries.search import Hit

STATUS_STYLE = {"error": "red", "denied": "yellow", "pending": "yellow", "ok": "dim"}


class ResultView:
    """Draws one hit after the other."""

    def __init__(self, terminal: Terminal, db: apsw.Connection, *, utc: bool) -> None:
        self._terminal = terminal
        self._db = db
        self._utc = utc
        self._ids = sessions.ShortIds(db)
        self._now = times.now_ms()
        self._session: int | None = None

    def lines(self, hit: Hit) -> Iterator[str]:
        if hit.session_key != self._session:
            if self._session is not None:
                yield ""
            self._session = hit.session_key
            yield self._session_line(hit)
        yield from self._event_lines(hit)

    def _session_line(self, hit: Hit) -> str:
        t = self._terminal
        row = sessions.by_key(self._db, hit.session_key)
        short = t.line(self._ids.of(row))
        when = amounts.ago(hit.ts or row.ended, self._now, utc=self._utc)
        title = t.line(sessions.title_of(self._db, row))
        place = t.line(layout.home_short(hit.project))
        if t.width is not None:
            room = t.width - layout.cells(short) - len(when) - 8
            place = layout.tail_of(t.line(hit.project or ""), max(6, min(28, room // 3)))
            title = layout.cut(title, max(4, room - layout.cells(place)))
        rest = t.style(f" · {place} · {when}", "dim")
        return f"{t.style(short, 'cyan')}  {t.style(title, 'bold')}{rest}"

    def _event_lines(self, hit: Hit) -> Iterator[str]:
        t = self._terminal
        snippet = self._cleaned(hit.snippet)
        what = t.line(hit.tool) if hit.type == "tool_use" and hit.tool else hit.type
        if t.width is not None:
            what = layout.cut(what, t.width // 2)
        head = f"  {t.style(what, 'magenta')}"
        used = 2 + layout.cells(what)
        if hit.status and hit.status != "ok":
            head += " " + t.style(hit.status, STATUS_STYLE.get(hit.status, "dim"))
            used += 1 + len(hit.status)
        number = f"#{hit.event}"
        head += f"  {t.style(number, 'dim')}  "
        used += 4 + len(number)
        if t.width is None:
            yield head + self._marked(snippet)
            return
        room = t.width - used
        first, rest = _split(snippet, room)
        yield head + self._marked(first)
        if rest.text:
            second, more = _split(rest, t.width - 4)
            if more.text:
                second = _shortened(second, t.width - 4)
            yield "    " + self._marked(second)

    def _cleaned(self, snippet: Excerpt) -> Excerpt:
        """What the terminal may have, measured before it is laid out."""
        text, spans, at = "", [], 0
        for begin, end in snippet.spans:
            text += self._terminal.text(snippet.text[at:begin]).replace("\n", " ")
            start = len(text)
            text += self._terminal.text(snippet.text[begin:end]).replace("\n", " ")
            spans.append((start, len(text)))
            at = end
        text += self._terminal.text(snippet.text[at:]).replace("\n", " ")
        return Excerpt(text, tuple(spans))

    def _marked(self, snippet: Excerpt) -> str:
        line, at = "", 0
        for begin, end in snippet.spans:
            line += snippet.text[at:begin]
            line += self._terminal.style(snippet.text[begin:end], "match")
            at = end
        return line + snippet.text[at:]


def _split(snippet: Excerpt, width: int) -> tuple[Excerpt, Excerpt]:
    """What fits into a line, and the rest."""
    text = snippet.text
    if layout.cells(text) <= width:
        return snippet, Excerpt("")
    fits = len(layout.cut(text, width + 1)) - 1
    space = text.rfind(" ", fits // 2, fits + 1)
    at = space if space > 0 else fits
    rest_at = at + (1 if space > 0 else 0)
    head = tuple((b, min(e, at)) for b, e in snippet.spans if b < at)
    tail = tuple((max(b, rest_at) - rest_at, e - rest_at) for b, e in snippet.spans if e > rest_at)
    return Excerpt(text[:at], head), Excerpt(text[rest_at:], tail)


def _shortened(snippet: Excerpt, width: int) -> Excerpt:
    text = layout.cut(snippet.text + layout.ELLIPSIS, width)
    last = len(text) - 1
    return Excerpt(text, tuple((b, min(e, last)) for b, e in snippet.spans if b < last))
