"""Which recorded edit wrote each line of a file.

The edits of a file are replayed in the order in which they happened, so that each line of what
they make knows its writer. The file as it is now is then compared with that: line by line, and
where that fails word by word, because formatters break lines anew. An edit of text that no
recorded edit wrote is kept as a piece that says where it belongs by its own lines. An origin that
rests on less than equal lines in their place says why it may be wrong.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from sess_common import differ
from sess_schema import edits, shown
from sess_schema.archive import Damaged
from sess_schema.citations import Citations
from sess_schema.edits import Edit
from sess_schema.ids import EventId, SessionId, short_key
from sess_schema.queries import sessions
from sess_schema.queries.sessions import SessionRow, bindable

if TYPE_CHECKING:
    import apsw

_WORDS = re.compile(r"\w+|[^\w\s]")
_SIGNS = re.compile(r"\W*")
_LAST_COMMA = re.compile(r",(?=[)\]}])")
_TELLING = 12  # characters of a line, without white space, that seldom stand elsewhere by chance
_SAME, _ALIKE = 0.95, 0.6  # share of a line's words that an edit wrote
_AROUND = 3  # lines of the same edit on both sides that make a short one sure
_NEAR = 20  # lines that others may have added inside what an edit replaces
_DEEPEST = 20  # subagents of subagents
_LARGEST_GAP = 400_000  # words that are compared; in a larger gap nobody knows

# How sure it is that an edit wrote a line.
EXACT = "exact"  # the line stands where the edit put it, as it wrote it
REFORMATTED = "reformatted"  # the same words, broken into lines or spaced otherwise
MOVED = "moved"  # the same line, in another place than the edit put it
CHANGED = "changed"  # most of its words; somebody changed the line later


class Change(NamedTuple):
    """One edit of a file, by a call that did not fail."""

    event: EventId
    session: SessionId
    ts: int | None
    tool: str | None
    edit: Edit


class Origin(NamedTuple):
    change: Change
    certainty: str
    doubt: str | None = None  # why it may be another


@dataclass(slots=True)
class _Text:
    """Lines, each with the edit that wrote it; None for those that nobody recorded."""

    lines: list[str] = field(default_factory=list)
    writers: list[Change | None] = field(default_factory=list)
    drifted: bool = False  # others changed the file between two edits

    def replace(self, start: int, end: int, lines: Sequence[str], change: Change) -> None:
        """Lines that stay keep their writers."""
        kept = {b: start + a for a, b in differ.common_pairs(self.lines[start:end], lines)}
        self.writers[start:end] = [
            self.writers[kept[n]] if n in kept else change for n in range(len(lines))
        ]
        self.lines[start:end] = lines

    def replace_part(self, old: str, new: str, change: Change) -> bool:
        """Lines of the edit that stay keep their writers, although others may be part of a line."""
        whole = "\n".join(self.lines)
        at = whole.find(old)
        if at < 0:
            return False
        begin = whole.rfind("\n", 0, at) + 1
        stop = whole.find("\n", at + len(old))
        stop = len(whole) if stop < 0 else stop
        start = whole.count("\n", 0, begin)
        end = start + whole.count("\n", begin, stop) + 1
        replaced = whole[begin:at] + new + whole[at + len(old) : stop]
        pairs = differ.common_pairs(old.split("\n"), new.split("\n"))
        kept = [(b, self.writers[start + a]) for a, b in pairs]
        self.replace(start, end, replaced.split("\n") if replaced else [], change)
        for line, writer in kept:
            self.writers[start + line] = writer
        return True

    def place(self, wanted: Sequence[str]) -> int | None:
        """Where these lines begin, after the text was made to have them as an edit saw them.

        In between, a formatter may have spaced and broken lines anew, and a person changed some.
        """
        if not any(line.strip() for line in wanted):
            return None
        for start in _starts(self.lines, wanted):
            return start
        span = self._reformatted(wanted) or self._similar(wanted)
        if span is None:
            return None
        self.drifted = True
        start, end = span
        # What it saw may begin and end inside a line that a formatter has broken.
        first = max(0, start - 1)
        self.writers[start:end] = [
            self.writers[first + kin.line] if kin and kin.share >= _SAME else None
            for kin in _kin(self.lines[first : end + 1], wanted)
        ]
        self.lines[start:end] = wanted
        return start

    def _reformatted(self, wanted: Sequence[str]) -> tuple[int, int] | None:
        """The lines that have the same signs but for white space, quotes and last commas."""
        mine, lines = _squeezed(self.lines)
        theirs, _ = _squeezed(wanted)
        at = mine.find(theirs)
        if at < 0 or len(theirs) < _TELLING:
            return None
        start, end = lines[at], lines[at + len(theirs) - 1] + 1
        begins = at == 0 or lines[at - 1] != start
        ends = at + len(theirs) == len(mine) or lines[at + len(theirs)] != end - 1
        return (start, end) if begins and ends else None

    def _similar(self, wanted: Sequence[str]) -> tuple[int, int] | None:
        """The lines among which most of these stand, in order and near each other."""
        pairs = differ.common_pairs([*map(_packed, self.lines)], [*map(_packed, wanted)])
        while pairs and len(_packed(wanted[pairs[0][1]])) < _TELLING:
            del pairs[0]
        while pairs and len(_packed(wanted[pairs[-1][1]])) < _TELLING:
            del pairs[-1]
        telling = sum(len(_packed(wanted[b])) for _, b in pairs)
        if 2 * telling < sum(len(_packed(line)) for line in wanted) or telling < _TELLING:
            return None
        (first, before), (last, after) = pairs[0], pairs[-1]
        if last - first > 2 * len(wanted) + _NEAR:
            return None
        above = _leading(self.lines[:first][::-1], wanted[:before])
        below = _leading(self.lines[last + 1 :], wanted[after + 1 :])
        return first - above, last + 1 + below


def _leading(lines: Sequence[str], wanted: Sequence[str]) -> int:
    """How many of the first lines are among the wanted ones, however these are broken."""
    signs, _ = _squeezed(wanted)
    count = 0
    for number, line in enumerate(lines, 1):
        packed, _ = _squeezed([line])
        if packed not in signs:
            break
        if packed:
            count = number
    return count


@dataclass(slots=True)
class Replay:
    """What the recorded edits of a file made of it."""

    file: _Text = field(default_factory=_Text)
    pieces: list[_Text] = field(default_factory=list)  # whose place in the file is unknown
    written: list[tuple[str, Change]] = field(default_factory=list)  # every line ever

    def apply(self, change: Change) -> None:
        edit = change.edit
        raw = [
            *(
                differ.lines_of_patch(edit.patch)
                if edit.patch is not None and not edit.hunks
                else differ.lines_of_hunks(edit.hunks)
            )
        ]
        if not edit.old and edit.new is not None:
            self._write_whole(edit.new, change, raw)
        elif raw:
            for old, new, added in _hunks(raw):
                self._replace(old, new, added, change)
        elif edit.old:
            self._replace_part(edit.old, edit.new or "", change)

    def _write_whole(self, content: str, change: Change, hunks: list[differ.Raw]) -> None:
        """The file was written anew; what its hunks do not add was there before."""
        lines = differ.split_both("", content)[1]
        added = {new - 1 for sign, _, new, _ in hunks if sign == "+" and new is not None}
        if added and not self.file.lines:
            self.file = _Text(lines, [change if n in added else None for n in range(len(lines))])
        else:
            self.file.replace(0, len(self.file.lines), lines, change)
        self._note(self.file, change)

    def _replace_part(self, old: str, new: str, change: Change) -> None:
        """Any part of lines may be replaced, and whole lines are what is compared."""
        texts = [self.file, *reversed(self.pieces)]
        old_lines, new_lines = old.split("\n"), new.split("\n")
        for text in texts:
            # Part of a line may also stand where it never stood, once others changed the file.
            whole = text.drifted and text.place(old_lines) is not None
            if whole or text.replace_part(old, new, change):
                if whole:
                    start = next(_starts(text.lines, old_lines))
                    text.replace(start, start + len(old_lines), new_lines, change)
                self._note(text, change)
                return
        drawn = [line for line in differ.between(old, new, context=None) if line.sign != "@"]
        after = [line for line in drawn if line.sign != "-"]
        self._replace(
            [line.text for line in drawn if line.sign != "+"],
            [line.text for line in after],
            [line.sign == "+" for line in after],
            change,
        )

    def _replace(self, old: list[str], new: list[str], added: list[bool], change: Change) -> None:
        for text in (self.file, *reversed(self.pieces)):
            start = text.place(old)
            if start is not None:
                text.replace(start, start + len(old), new, change)
                self._note(text, change)
                return
        piece = _Text(new, [change if is_new else None for is_new in added])
        self.pieces.append(piece)
        self._note(piece, change)

    def _note(self, text: _Text, change: Change) -> None:
        self.written += [
            (line, change)
            for line, writer in zip(text.lines, text.writers, strict=True)
            if writer is change
        ]


def _hunks(raw: Iterable[differ.Raw]) -> Iterator[tuple[list[str], list[str], list[bool]]]:
    """Of each hunk the lines before and after, and which of these are added."""
    for starts_hunk, lines in groupby(raw, lambda line: line[0] == "@"):
        if starts_hunk:
            continue
        hunk = [*lines]
        after = [line for line in hunk if line[0] != "-"]
        yield (
            [text for sign, _, _, text in hunk if sign != "+"],
            [text for *_, text in after],
            [sign == "+" for sign, *_ in after],
        )


def _starts(lines: Sequence[str], wanted: Sequence[str]) -> Iterator[int]:
    for start in range(len(lines) - len(wanted) + 1):
        if lines[start] == wanted[0] and lines[start : start + len(wanted)] == [*wanted]:
            yield start


def _packed(line: str) -> str:
    return "".join(line.split())


def _squeezed(lines: Sequence[str]) -> tuple[str, list[int]]:
    """The signs that formatters leave alone, and the line that each is in."""
    packed = [_packed(line).replace("'", '"') for line in lines]
    whole = "".join(packed)
    dropped = {match.start() for match in _LAST_COMMA.finditer(whole)}
    places = [n for n, line in enumerate(packed) for _ in line]
    if not dropped:
        return whole, places
    signs = [
        (sign, n)
        for at, (sign, n) in enumerate(zip(whole, places, strict=True))
        if at not in dropped
    ]
    return "".join(sign for sign, _ in signs), [n for _, n in signs]


class _Kin(NamedTuple):
    line: int
    share: float  # of its words that come from that line and those around it


def _kin(old: Sequence[str], new: Sequence[str]) -> list[_Kin | None]:
    """For each new line the old one that most of its words come from, in order."""
    kin: list[_Kin | None] = [None] * len(new)
    i = j = 0
    pairs = differ.common_pairs([*map(_packed, old)], [*map(_packed, new)])
    for a, b in [*pairs, (len(old), len(new))]:
        if i < a and j < b:
            _compare_gap(old, range(i, a), new, range(j, b), kin)
        if b < len(new):
            kin[b] = _Kin(a, 1.0)
        i, j = a + 1, b + 1
    return kin


def _compare_gap(
    old: Sequence[str], before: range, new: Sequence[str], after: range, kin: list[_Kin | None]
) -> None:
    old_words = [(word, n) for n in before for word in _WORDS.findall(old[n])]
    new_words = [(word, n) for n in after for word in _WORDS.findall(new[n])]
    if len(old_words) + len(new_words) > _LARGEST_GAP:
        return
    shares: dict[int, Counter[int]] = {}
    for a, b in differ.common_pairs(
        [word for word, _ in old_words], [word for word, _ in new_words]
    ):
        word, line = new_words[b]
        shares.setdefault(line, Counter())[old_words[a][1]] += _weight(word)
    sizes: Counter[int] = Counter()
    for word, line in new_words:
        sizes[line] += _weight(word)
    for line, share in shares.items():
        kin[line] = _Kin(share.most_common(1)[0][0], share.total() / sizes[line])


def _weight(word: str) -> int:
    """Formatters add commas and brackets."""
    return 20 * len(word) if word[0].isalnum() or word[0] == "_" else 1


# -- comparing a file with what the edits made of it


class Tracing:
    """Finds the origins of a file's lines in replays, the first of which knows best."""

    def __init__(self, replays: Sequence[Replay], lines: Sequence[str]) -> None:
        self._replays = replays
        self._lines = lines
        self._known = [False] * len(lines)  # also what was there before any edit
        self.origins: list[Origin | None] = [None] * len(lines)
        for replay in replays:
            self._compare(replay.file)
        for replay in replays:
            for piece in reversed(replay.pieces):
                self._compare_piece(piece)
        for replay in replays:
            self._compare_words(replay.file)
        for replay in replays:
            self._look_anywhere(replay)
        self._fill_gaps()
        self._doubt_common_lines()

    def _settle(
        self, line: int, writer: Change | None, certainty: str, doubt: str | None = None
    ) -> None:
        if not self._known[line]:
            self._known[line] = True
            self.origins[line] = Origin(writer, certainty, doubt) if writer else None

    def _compare(self, text: _Text) -> None:
        for a, b in differ.common_pairs(text.lines, self._lines):
            self._settle(b, text.writers[a], EXACT)

    def _compare_piece(self, piece: _Text) -> None:
        """Runs of its lines tell where a piece stands; a short line alone does not."""
        runs: list[list[tuple[int, int]]] = []
        for a, b in differ.common_pairs(piece.lines, self._lines):
            if runs and runs[-1][-1] == (a - 1, b - 1):
                runs[-1].append((a, b))
            else:
                runs.append([(a, b)])
        for run in runs:
            if sum(len(_packed(piece.lines[a])) for a, _ in run) < _TELLING:
                continue
            doubt = None
            if len(run) == 1 and self._lines.count(piece.lines[run[0][0]]) > 1:
                doubt = "the line stands in several places"
            for a, b in run:
                self._settle(b, piece.writers[a], MOVED if doubt else EXACT, doubt)

    def _compare_words(self, text: _Text) -> None:
        """Whose words does a line consist of?"""
        for n, kin in enumerate(_kin(text.lines, self._lines)):
            if kin is not None and kin.share >= _SAME:
                self._settle(n, text.writers[kin.line], REFORMATTED)
            elif kin is not None and kin.share >= _ALIKE:
                doubt = "somebody changed the line after this edit"
                self._settle(n, text.writers[kin.line], CHANGED, doubt)

    def _look_anywhere(self, replay: Replay) -> None:
        """Lines that an edit wrote somewhere: moved, or removed and brought back."""
        if None not in self.origins:
            return
        writers: dict[str, list[Change]] = {}
        for line, change in replay.written:
            writers.setdefault(_packed(line), []).append(change)
        for n, line in enumerate(self._lines):
            packed = _packed(line)
            if self.origins[n] is None and packed in writers and len(packed) >= _TELLING:
                several = len({change.event for change in writers[packed]}) > 1
                doubt = "several edits wrote this line" if several else "it was moved here"
                self.origins[n] = Origin(writers[packed][0], MOVED, doubt)

    def _fill_gaps(self) -> None:
        """Brackets and empty lines, such as formatters add, belong to what stands above them."""
        above: Origin | None = None
        for n, line in enumerate(self._lines):
            if self.origins[n] is not None or _SIGNS.fullmatch(line) is None:
                above = self.origins[n]
            elif above is not None:
                doubt = "it stands below a line of this edit"
                self.origins[n] = Origin(above.change, REFORMATTED, doubt)

    def _doubt_common_lines(self) -> None:
        """What several edits wrote, or what is short, belongs for sure only among its own."""
        writers: dict[str, set[EventId]] = {}
        for replay in self._replays:
            for line, change in replay.written:
                writers.setdefault(_packed(line), set()).add(change.event)
        drifted = any(replay.file.drifted for replay in self._replays)
        for n, origin in enumerate(self.origins):
            packed = _packed(self._lines[n])
            if origin is None or origin.doubt:
                continue
            short = len(packed) < _TELLING
            if short and drifted:
                doubt = "a short line, and the file was changed between edits"
            elif len(writers.get(packed, ())) > 1 and not (short and self._stands_among_its_own(n)):
                doubt = "other edits wrote lines like it"
            else:
                continue
            self.origins[n] = origin._replace(doubt=doubt)

    def _stands_among_its_own(self, line: int) -> bool:
        near = self.origins[max(0, line - _AROUND) : line + _AROUND + 1]
        return len({origin and origin.change.event for origin in near}) == 1

    def limit(self, line: int, until: int) -> None:
        """The line stood in a commit of this time: what wrote it did so before."""
        origin = self.origins[line]
        if origin is None or origin.change.ts is None or origin.change.ts <= until:
            return
        packed = _packed(self._lines[line])
        for replay in self._replays:
            for written, change in reversed(replay.written):
                if change.ts is not None and change.ts <= until and _packed(written) == packed:
                    doubt = "a later edit wrote the same line again"
                    self.origins[line] = Origin(change, MOVED, doubt)
                    return
        self.origins[line] = None


# -- from the index


def paths_ending(db: apsw.Connection, name: str) -> list[str]:
    """The paths of edited files that end like this: the same file in other clones, perhaps."""
    rows = db.execute(
        "SELECT DISTINCT path FROM edits"
        " WHERE path = ?1 OR substr(path, -length(?1) - 1) = '/' || ?1 ORDER BY 1",
        (bindable(name),),
    )
    return [path for (path,) in rows]


def changes(db: apsw.Connection, paths: Iterable[str]) -> list[Change]:
    """The edits of files in the order in which they happened, without those that failed."""
    rows = db.execute(
        "SELECT e.id, e.session_id, coalesce(e.ts, e.answered), e.tool, d.path, d.data FROM edits d"
        " JOIN events e ON e.id = d.event_id"
        " WHERE d.path IN (SELECT value FROM json_each(?))"
        " AND coalesce(e.status, '') NOT IN ('error', 'denied')"
        " ORDER BY coalesce(e.ts, e.answered, 0), e.id, d.number",
        (json.dumps([*dict.fromkeys(map(bindable, paths))]),),
    )
    of_events: dict[EventId, list[Change]] = {}
    for event, session, ts, tool, name, data in rows:
        try:
            edit = edits.unpack(name, data)
        except Damaged:
            continue
        of_events.setdefault(event, []).append(Change(event, session, ts, tool, edit))
    kept: list[Change] = []
    for of_event in of_events.values():
        shown = edits.shown([change.edit for change in of_event])
        kept += [change for change in of_event if any(change.edit is edit for edit in shown)]
    return kept


def replayed(of_file: Iterable[Change]) -> Replay:
    replay = Replay()
    for change in of_file:
        replay.apply(change)
    return replay


# -- what asked for an edit


@dataclass(frozen=True, slots=True)
class Reason:
    """The call that made an edit, the prompt before it, and what the agent said in between."""

    row: SessionRow
    event: str  # the key of the call, as citations have it
    citation: str
    asked_in: str | None = None  # the session of the prompt: a subagent is asked by its parent's
    prompt_event: str | None = None
    prompt: str | None = None
    said: str | None = None


class Reasons:
    """Looks each edit's reason up once."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._citations = Citations(db)
        self._ids = sessions.ShortIds(db)
        self._known: dict[EventId, Reason] = {}

    def of(self, change: Change) -> Reason:
        if change.event not in self._known:
            self._known[change.event] = self._read(change)
        return self._known[change.event]

    def _read(self, change: Change) -> Reason:
        row = sessions.by_key(self._db, change.session)
        event = self._citations.short(change.event)
        citation = f"{self._ids.of(row)}#{event}"
        said = self._before(change.session, change.event, "e.type = 'assistant'")
        asked, asker = None, row
        at = change.event
        for _ in range(_DEEPEST):
            if asker.kind != "subagent":
                asked = self._before(asker.key, at, "e.type = 'user'")
                break
            if asker.parent_key is None or not sessions.is_read(self._db, asker.parent_key):
                break
            at = self._call(asker)
            asker = sessions.by_key(self._db, asker.parent_key)
        if asked is None:
            return Reason(row, event, citation, said=said and said[1])
        # What was said before the prompt does not explain what came after it.
        later = said is not None and (asker is not row or said[2] > asked[2])
        return Reason(
            row,
            event,
            citation,
            self._ids.of(asker),
            self._citations.short(EventId(asked[0]), asker.key),
            asked[1],
            said[1] if said is not None and later else None,
        )

    def _call(self, subagent: SessionRow) -> EventId:
        """The call of the parent that started a subagent; 0 if that is not known."""
        called = self._db.execute(
            "SELECT e.id FROM events e WHERE e.session_id = ? AND e.call_key = ? AND e.call_id = ?",
            (subagent.parent_key, short_key(subagent.call_id or ""), subagent.call_id),
        ).get
        return EventId(called or 0)

    def _before(
        self, session: SessionId, event: EventId, what: str
    ) -> tuple[int, str, tuple[int, int, int]] | None:
        """The last event of a kind before another one, its words, and its place."""
        row = self._db.execute(
            "WITH here AS (SELECT t.source_id AS source, t.offset AS offset, e.block AS block"
            f" FROM {shown.EVENTS} WHERE t.session_id = ?1 AND e.id = ?2 LIMIT 1)"
            " SELECT e.id, x.text, t.source_id, t.offset, e.block FROM here,"
            f" {shown.EVENTS} JOIN event_texts x ON x.id = e.id"
            f" WHERE t.session_id = ?1 AND {what} AND t.source_id = here.source"
            " AND (t.offset, e.block) < (here.offset, here.block) AND trim(x.text) <> ''"
            " ORDER BY t.offset DESC, e.block DESC LIMIT 1",
            (session, event),
        ).fetchone()
        return (row[0], row[1], (row[2], row[3], row[4])) if row else None
