"""Search hits as text: the session, then its matches; and the parsed query as an outline."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property, lru_cache, partial

from sess_cli.render import amounts, layout
from sess_common import times
from sess_common.classes import TYPE_CHECKING, dataclass
from sess_schema.citations import Citations
from sess_schema.queries import sessions
from sess_schema.queries.search.excerpt import Excerpt
from sess_schema.queries.search.groups import Group
from sess_schema.queries.search.language import And, Filter, Not, Or
from sess_schema.queries.search.surroundings import location

if TYPE_CHECKING:
    import apsw

    from sess_cli.terminal import Terminal
    from sess_schema.ids import SessionId
    from sess_schema.queries.search import Hit, Results, Search
    from sess_schema.queries.search.language import Node
    from sess_schema.queries.search.surroundings import Neighbours
    from sess_schema.session import Entry

STATUS_STYLE = {"error": "red", "denied": "yellow", "pending": "yellow", "ok": "dim"}
_RECENT = 1000  # cached sessions


@dataclass(frozen=True, slots=True)
class Around:
    """How many neighbouring events to show, and how much of a hit."""

    before: int = 0
    after: int = 0
    lines: int = 2


class ResultView:
    """Draws one conversation or one hit at a time."""

    def __init__(
        self,
        terminal: Terminal,
        db: apsw.Connection,
        results: Results,
        around: Around,
        *,
        utc: bool,
    ) -> None:
        self._terminal = terminal
        self._db = db
        self._results = results
        self._around = around
        self._utc = utc
        self._ids = sessions.ShortIds(db)
        self._row = lru_cache(_RECENT)(partial(sessions.by_key, db))  # hits jump between sessions
        self._cites = Citations(db)
        self._now = times.now_ms()
        self._several_agents = len(sessions.agents(db)) > 1
        self._session: int | None = None
        self._drawn: set[int] = set()  # events of the current conversation

    def group(self, group: Group) -> Iterator[str]:
        """A session with its hits, and each subagent with its own."""
        yield from self._gap(group.root)
        yield self._session_line(self._row(group.root), group.hits[0].ts)
        self._drawn = {hit.event for hit in group.hits}
        below = group.root
        for hit in sorted(group.hits, key=lambda hit: hit.session_key != group.root):
            if hit.session_key != below:
                below = hit.session_key
                yield self._subagent_line(self._row(below))
            yield from self._hit(hit, "  " if below == group.root else "    ")
        if group.more > 0:
            plus = "" if group.counted else "+"
            yield self._terminal.style(f"  {group.more:,}{plus} more in this session", "dim")

    def flat(self, hit: Hit) -> Iterator[str]:
        """A hit; consecutive hits of a session share its line."""
        if hit.session_key != self._session:
            yield from self._gap(hit.session_key)
            yield self._session_line(self._row(hit.session_key), hit.ts)
            self._drawn = set()
        self._drawn.add(hit.event)
        yield from self._hit(hit, "  ")

    def _gap(self, session: SessionId) -> Iterator[str]:
        if self._session is not None:
            yield ""
        self._session = session

    def _session_line(self, row: sessions.SessionRow, ts: int | None) -> str:
        t = self._terminal
        short = self._name(row)
        when = amounts.ago(ts or row.ended, self._now, utc=self._utc)
        title = t.line(sessions.title_of(self._db, row))
        place = t.line(layout.home_short(row.project))
        if self._several_agents:
            when = f"{t.line(row.agent)} · {when}"
        if t.width is not None:
            room = max(0, t.width - layout.cells(short) - len(when) - 8)
            place = layout.tail_of(t.line(row.project or ""), min(28, room // 3))
            title = layout.cut(title, room - layout.cells(place))
        rest = t.style(f" · {place} · {when}", "dim")
        name = t.link(t.style(short, "cyan"), row.file)
        return f"{name}  {t.style(title, 'bold')}{rest}"

    def _name(self, row: sessions.SessionRow) -> str:
        t = self._terminal
        short = t.line(self._ids.of(row))
        return short if t.width is None else layout.cut(short, t.width // 2)

    def _subagent_line(self, row: sessions.SessionRow) -> str:
        t = self._terminal
        short = self._name(row)
        title = t.line(sessions.title_of(self._db, row))
        if t.width is not None:
            title = layout.cut(title, max(4, t.width - layout.cells(short) - 6))
        return f"  ↳ {t.link(t.style(short, 'cyan'), row.file)}  {title}"

    def _hit(self, hit: Hit, indent: str) -> Iterator[str]:
        around = self._around
        before: list[Entry] = []
        after: list[Entry] = []
        if around.before or around.after:
            before, after = self._neighbours.around(
                hit.session_key, hit.event, around.before, around.after
            )
        yield from self._beside(hit, before, indent)
        yield from self._event_lines(hit, indent)
        yield from self._beside(hit, after, indent)

    @cached_property
    def _neighbours(self) -> Neighbours:
        from sess_schema.queries.search.surroundings import Neighbours  # only with -A or -B

        return Neighbours(self._db)

    def _event_lines(self, hit: Hit, indent: str) -> Iterator[str]:
        t = self._terminal
        snippet = self._cleaned(hit.snippet)
        what = t.line(hit.tool) if hit.type == "tool_use" and hit.tool else hit.type
        if t.width is not None:
            what = layout.cut(what, t.width // 2)
        head = f"{indent}{t.style(what, 'magenta')}"
        used = len(indent) + layout.cells(what)
        if hit.status and hit.status != "ok":
            head += " " + t.style(hit.status, STATUS_STYLE.get(hit.status, "dim"))
            used += 1 + len(hit.status)
        number = f"#{self._cites.short(hit.event, hit.session_key)}"
        head += f"  {t.style(number, 'dim')}  "
        used += 4 + len(number)
        place = self._place(hit)
        if t.width is None:
            yield head + (f"{place}  " if place else "") + self._marked(snippet)
            return
        if place:
            place = layout.tail_of(place, max(12, (t.width - used) // 2))
            head += t.style(place, "blue") + "  "
            used += layout.cells(place) + 2
        first, rest = _split(snippet, t.width - used)
        yield head + self._marked(first)
        room = t.width - len(indent) - 2
        for number_of_line in range(2, self._around.lines + 1):
            if not rest.text:
                return
            line, rest = _split(rest, room)
            if rest.text and number_of_line == self._around.lines:
                line = _shortened(line, room)
            yield f"{indent}  {self._marked(line)}"

    def _place(self, hit: Hit) -> str:
        path, line = location(self._db, hit, self._results.texts(hit.event))
        if path is None:
            return ""
        if hit.project and path.startswith(hit.project.rstrip(os.sep) + os.sep):
            path = path[len(hit.project.rstrip(os.sep)) + 1 :]
        return self._terminal.line(f"{path}:{line}" if line else path)

    def _beside(self, hit: Hit, around: list[Entry], indent: str) -> Iterator[str]:
        """Neighbours, each once, with a mark that distinguishes them from hits."""
        t = self._terminal
        for one in around:
            if one.id in self._drawn:
                continue
            self._drawn.add(one.id)
            what = t.line(one.tool) if one.type == "tool_use" and one.tool else one.type
            status = f" {one.status}" if one.status and one.status != "ok" else ""
            cite = self._cites.short(one.id, hit.session_key)
            line = f"{indent}· {what}{status}  #{cite}  {t.line(self._neighbours.words(one))}"
            yield t.style(line if t.width is None else layout.cut(line, t.width), "dim")

    def _cleaned(self, snippet: Excerpt) -> Excerpt:
        """The excerpt made safe for the terminal, before it is measured."""
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
    """What fits on a line, and the rest."""
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


def query_outline(search: Search, results: Results) -> Iterator[str]:
    """How a query is understood, and how it is answered."""
    yield from _outline(results.query.tree, 0)
    for note in results.query.notes:
        yield f"note: {note}"
    by_time = "oldest" if search.sort == "oldest" else "newest"
    yield f"order: {'best' if results.ranks else by_time} first"
    if results.plan.match:
        yield f"index: {results.plan.match}"
    elif results.plan.where.texts or results.plan.residual is not None:
        yield "index: none; every text is read"
    if results.plan.residual is not None:
        yield "compared: candidates are compared with the text"


def _outline(node: Node, depth: int) -> Iterator[str]:
    lead = "  " * depth
    if isinstance(node, And | Or):
        yield f"{lead}{'all of' if isinstance(node, And) else 'any of'}"
        for child in node.nodes:
            yield from _outline(child, depth + 1)
    elif isinstance(node, Not):
        yield f"{lead}not"
        yield from _outline(node.node, depth + 1)
    elif isinstance(node, Filter):
        yield f"{lead}filter: {node.field} is {node.value}"
    else:
        yield f"{lead}{node.explained()}"
