"""A place in a session: what was said there, what followed, and how it ended."""

from __future__ import annotations

import re
from functools import cached_property
from itertools import takewhile

import apsw

from sess_common.classes import TYPE_CHECKING, dataclass
from sess_schema import labels, shown
from sess_schema.queries.failures.aftermath import Sessions, Step

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sess_schema.ids import EventId, SessionId

QUOTED = 500  # characters of what was said
ANSWERED = 1500  # of what followed
_READ = 100_000  # characters of a text that are looked through
_TURN = 200  # events after a place that are looked at
_TOLD = 20  # of them told
_PIECE = 70  # characters that one of these takes at least
_LEAST = 40  # characters of a passage
_AFTER = (
    "SELECT e.id, e.type, e.label, e.tool, e.kind, e.status, e.summary, e.ts"
    f" FROM {shown.EVENTS}"
    f" WHERE t.session_id = ?1 AND {shown.CURRENT} AND t.source_id = ?2"
    " AND (t.offset, e.block) > (?3, ?4)"
    f" {shown.IN_ORDER} LIMIT {_TURN}"
)
_PLACE = (
    "SELECT t.source_id, t.offset, e.block FROM records t"
    " JOIN events e ON e.record_id = coalesce(t.copy_of, t.id)"
    " WHERE t.session_id = ? AND e.id = ? AND t.retired = 0 LIMIT 1"
)


@dataclass(frozen=True, slots=True)
class Story:
    """What is told of a place."""

    quote: str
    answer: str
    outcome: str  # of its turn: done, failed, interrupted, unknown


class Passages:
    """Finds the part of a text that says most about a question."""

    def __init__(self, terms: Mapping[str, float]) -> None:
        """`terms`: how much each tells."""
        self._terms = terms

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        ordered = sorted(self._terms, key=len, reverse=True)
        return re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, ordered))})(?![^\W_])")

    def best(self, text: str, width: int) -> tuple[float, str]:
        """How much the best part of about that many characters tells, and the part."""
        text = text[:_READ].strip()
        if not self._terms or len(text) <= width:
            return self._told(text.lower()), text
        marks = [(m.start(), m[0]) for m in self._pattern.finditer(text.lower())]
        if not marks:
            return 0.0, _cut(text, 0, width)
        inside: dict[str, int] = {}
        left, told, best, start = 0, 0.0, -1.0, 0
        for at, term in marks:
            if not inside.get(term):
                told += self._terms.get(term, 0)
            inside[term] = inside.get(term, 0) + 1
            while at - marks[left][0] > width * 3 // 4:
                gone = marks[left][1]
                inside[gone] -= 1
                told -= 0 if inside[gone] else self._terms.get(gone, 0)
                left += 1
            if told > best + 1e-9:
                best, start = told, marks[left][0]
        return best, _cut(text, max(0, start - width // 5), width)

    def _told(self, low: str) -> float:
        if not self._terms:
            return 0.0
        return sum(self._terms.get(term, 0) for term in set(self._pattern.findall(low)))


def _cut(text: str, start: int, width: int) -> str:
    """About `width` characters, whole words, with ellipses where something is left out."""
    if start and (space := re.search(r"\s", text[start : start + 80])):
        start += space.end()
    end = start + width
    if end < len(text) and (space := re.search(r"\s\S*$", text[end - 40 : end])):
        end += space.start() - 40
    return ("…" if start else "") + text[start:end].strip() + ("…" if end < len(text) else "")


class Stories:
    """Tells places of an index."""

    def __init__(self, db: apsw.Connection, passages: Passages) -> None:
        self._db = db
        self._passages = passages
        self._sessions = Sessions(db)

    def of(
        self, event: EventId, session: SessionId, quoted: int = QUOTED, answered: int = ANSWERED
    ) -> Story:
        ((type_, status, tool, summary, *texts),) = self._db.execute(
            f"SELECT e.type, e.status, e.tool, e.summary, substr(x.text, 1, {_READ}),"
            f" substr(x.input, 1, {_READ}), substr(x.output, 1, {_READ})"
            " FROM events e JOIN event_texts x ON x.id = e.id WHERE e.id = ?",
            (event,),
        )
        after = self._after(event, session)
        if type_ == "tool_use":
            quote = self._call(tool, summary, texts, quoted)
        else:
            _, quote = self._passages.best(texts[0], quoted)
        # Telling an edit takes longer than finding the place: no more than what finds room.
        answer = self._sessions.told(after[: min(_TOLD, 1 + answered // _PIECE)], answered)
        return Story(quote, answer, outcome(type_, status, after))

    def _call(self, tool: str, summary: str | None, texts: Sequence[str], width: int) -> str:
        _, text, output = texts
        told_in, part_in = self._passages.best(text, width // 2)
        told_out, part_out = self._passages.best(output, width // 2)
        head = f"{tool}: {summary}"[: width // 3] if summary else tool
        parts = [part_out, part_in] if told_out >= told_in else [part_in, part_out]
        left = width - len(head)
        lines = [head]
        for part in parts:
            if left >= _LEAST and part.strip() and part.strip() not in head:
                lines.append(part[:left])
                left -= len(part)
        return "\n".join(lines)

    def _after(self, event: EventId, session: SessionId) -> list[Step]:
        """What follows in the session."""
        place = self._db.execute(_PLACE, (session, event)).fetchone()
        if place is None:
            return []
        return [Step(*row) for row in self._db.execute(_AFTER, (session, *place))]


def outcome(type_: str, status: str | None, after: Sequence[Step]) -> str:
    """How the turn of a place ended, as docs/numbers.md defines it."""
    turn = [*takewhile(lambda one: not prompts(one), after)]
    acts = [(type_, status), *((one.type, one.status) for one in turn)]
    acts = [act for act in acts if act[0] in ("assistant", "tool_use")]
    stopped = any(one.label == labels.INTERRUPTED for one in turn)
    if stopped or (acts and acts[-1][1] == "denied"):
        return "interrupted"
    if (turn and turn[-1].label in labels.ALARMS) or (acts and acts[-1][1] == "error"):
        return "failed"
    return "done" if acts and acts[-1][0] == "assistant" else "unknown"


def prompts(step: Step) -> bool:
    """Whether a person begins a turn with it."""
    return step.type == "user" and step.label != labels.MEMORY
