"""A place in a session: what was said there, what followed, and how it ended."""

from __future__ import annotations

import re
from functools import cached_property

import apsw

from sess_common.classes import TYPE_CHECKING, dataclass
from sess_schema import labels, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sess_schema.ids import EventId, SessionId

QUOTED = 700  # characters of what was said
ANSWERED = 1300  # of what followed
_READ = 100_000  # characters of a text that are looked through
_TURN = 400  # events after a place that are looked at
_ACTS = 6  # calls after a failed one that are told
_LEAST = 40  # characters of a passage
_WITHOUT_PROMPT = frozenset({labels.MEMORY})

_AFTER = (
    "SELECT e.id, e.type, e.label, e.status, e.tool, e.summary, e.ts, e.kind"
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


@dataclass(frozen=True, slots=True)
class _Next:
    event: EventId
    type: str
    label: str | None
    status: str | None
    tool: str | None
    summary: str | None
    ts: int | None
    kind: str | None

    @property
    def prompts(self) -> bool:
        return self.type == "user" and self.label not in _WITHOUT_PROMPT


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
        failed = status in ("error", "denied")
        if type_ == "tool_use":
            quote = self._call(tool, summary, texts, quoted)
        else:
            _, quote = self._passages.best(texts[0], quoted)
        answer = self._answer(after, answered, acts=failed)
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

    def _after(self, event: EventId, session: SessionId) -> list[_Next]:
        """What follows in the same turn."""
        place = self._db.execute(_PLACE, (session, event)).fetchone()
        if place is None:
            return []
        following: list[_Next] = []
        for row in self._db.execute(_AFTER, (session, *place)):
            following.append(one := _Next(*row))
            if one.prompts:
                break
        return following

    def _answer(self, after: Sequence[_Next], width: int, *, acts: bool) -> str:
        """What was said next that tells most, what was said last, and after an error the acts."""
        said = [one.event for one in after if one.type == "assistant"]
        lines: list[str] = []
        if acts:
            done = [one for one in after if one.type == "tool_use"][:_ACTS]
            lines = [f"{one.tool}: {one.summary or ''}"[:120].strip() for one in done]
        left = width - sum(map(len, lines))
        told = [
            (self._passages.best(text, max(_LEAST, left // 2)), at)
            for at, text in enumerate(self._texts(said))
            if text.strip()
        ]
        if told:
            (_, best), at = max(told, key=lambda one: (one[0][0], one[1]))
            chosen = {at: best, told[-1][1]: told[-1][0][1]}
            if len(chosen) == 1 and len(told) > 1:
                first = told[0]
                chosen = {first[1]: first[0][1], **chosen}
            lines += [chosen[at] for at in sorted(chosen)]
        return "\n".join(lines)[:width].strip()

    def _texts(self, events: Sequence[EventId]) -> list[str]:
        listed = f"[{','.join(map(str, events))}]"
        return [
            text
            for (text,) in self._db.execute(
                f"SELECT substr(x.text, 1, {_READ}) FROM json_each(?) j"
                " JOIN event_texts x ON x.id = j.value ORDER BY j.key",
                (listed,),
            )
        ]


def outcome(type_: str, status: str | None, after: Sequence[_Next]) -> str:
    """How the turn of a place ended, as docs/numbers.md defines it."""
    turn = [one for one in after if not one.prompts]
    acts = [(type_, status), *((one.type, one.status) for one in turn)]
    acts = [act for act in acts if act[0] in ("assistant", "tool_use")]
    stopped = any(one.label == labels.INTERRUPTED for one in turn)
    if stopped or (acts and acts[-1][1] == "denied"):
        return "interrupted"
    if (turn and turn[-1].label in labels.ALARMS) or (acts and acts[-1][1] == "error"):
        return "failed"
    return "done" if acts and acts[-1][0] == "assistant" else "unknown"
