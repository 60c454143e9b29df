"""Plays a plan on a screen of cells: typing, output in bursts, pauses, and a progress line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sess_cli.export.film import rows
from sess_cli.export.film.pacing import FPS, Plan, Shot
from sess_cli.export.film.rows import Caption, Chapter, Film, Frame, Look, Row
from sess_cli.export.film.scenes import Card, Storyboard
from sess_cli.render import amounts, layout
from sess_common import times

MOST_CHAPTERS = 100
_TITLE_ROWS = 3
_CAPTION = 160  # characters: two lines of a player
_CURSOR = ("▌", Look("accent"))
_DONE, _LEFT = Look("accent"), Look("surface")
_MARGIN = "  "
_NARROW, _NARROWEST = 56, 36  # with fewer columns, the progress line is shortened
_NARROWEST_LARGE = 26  # columns of large letters, for the rows of a card
_WIDE = 100  # columns, of which a card leaves a sixth free
_PASSED = 6  # cells: `59m59s`
_RUNNING = rows.row(("  ⋯", Look("yellow")))


def staged(board: Storyboard, plan: Plan, columns: int, lines: int, *, fps: int = FPS) -> Film:
    """The film of a storyboard; frames are made lazily."""
    return Film(
        columns=columns,
        lines=lines,
        duration=plan.length * 1000 // fps,
        title=board.title,
        chapters=_chapters(board, plan, fps),
        captions=_captions(plan, fps),
        frames=lambda: _Stage(board, plan, columns, lines, fps).play(),
    )


def _chapters(board: Storyboard, plan: Plan, fps: int) -> list[Chapter]:
    """The start of each chapter that is shown; the first begins with the film."""
    starts: dict[int, int] = {}
    at = plan.opening
    for shot in plan.shots:
        if shot.chapter and not shot.folded:
            starts.setdefault(shot.chapter, at)
        at += shot.length
    places = sorted(starts.items())
    step = -(-len(places) // MOST_CHAPTERS) or 1
    return [
        Chapter(0 if n == 0 else at * 1000 // fps, board.chapters[chapter - 1])
        for n, (chapter, at) in enumerate(places[::step])
    ]


def _captions(plan: Plan, fps: int) -> list[Caption]:
    """What people and models say, while it is on the screen."""
    captions: list[Caption] = []
    at = plan.opening
    for shot in plan.shots:
        if shot.said:
            begin, end = at * 1000 // fps, (at + shot.length) * 1000 // fps
            captions.append(Caption(begin, end, layout.cut(shot.said, _CAPTION)))
        at += shot.length
    return captions


class _Stage:
    def __init__(self, board: Storyboard, plan: Plan, columns: int, lines: int, fps: int) -> None:
        self._board = board
        self._plan = plan
        self._columns = columns
        self._height = lines - 2  # an empty row and the progress line are below
        self._fps = fps
        self._total = plan.length
        started, ended = board.started, board.ended
        self._span = max(0, ended - started) if started is not None and ended is not None else 0
        self._digits = len(str(len(board.chapters)))
        self._tick = 0
        self._screen: list[Row] = []
        self._shot = Shot()
        self._elapsed = 0
        self._last: tuple[Row, ...] | None = None
        # All cards begin in the same column; large letters take two cells.
        self._lead = (columns // (6 if columns >= _WIDE else 14)) & ~1
        self._half = (columns - self._lead) // 2 - 1

    def play(self) -> Iterator[Frame]:
        yield from self._card(self._board.opening, self._plan.opening)
        self._screen = []
        compact = True
        for shot in self._plan.shots:
            self._enter(shot)
            if self._screen and self._screen[-1] and (shot.spaced or not compact):
                self._put([()])
            compact = not shot.spaced
            yield from self._perform(shot)
        self._elapsed = self._span
        yield from self._card(self._board.closing, self._plan.closing)

    def _enter(self, shot: Shot) -> None:
        self._shot = shot
        if shot.ts is not None and self._board.started is not None:
            passed = min(max(0, shot.ts - self._board.started), self._span)
            self._elapsed = max(self._elapsed, passed)

    def _card(self, card: Card, length: int) -> Iterator[Frame]:
        foot = [*rows.wrap(card.foot, self._columns - self._lead - 2)] if card.foot else []
        room = self._height - (2 * len(foot) if foot else 0)
        # What happened is more important than all of a title.
        most = max(0, min(_TITLE_ROWS, (room - len(card.rows) - 1) // 2))
        title, below = self._title(card, most), list[Row]()
        for fewer in range(most, 0, -1):
            shorter = self._title(card, fewer)
            if below := self._large(card, room - len(shorter) - 2):
                title = shorter
                break
        lines = [*title, (), *(below or card.rows)]
        top = max(0, (self._height - len(lines)) // 2)
        self._screen = [()] * top + [rows.led(line, self._lead, self._columns) for line in lines]
        if foot and len(self._screen) + len(foot) < self._height:
            self._screen += [()] * (self._height - len(self._screen) - len(foot))
            self._screen += [rows.led(line, self._lead, self._columns) for line in foot]
        yield from self._stay(length)

    def _title(self, card: Card, most: int) -> list[Row]:
        """In large letters, if so many rows are left for it."""
        title = [*rows.wrap(card.title, max(5, self._half))]
        if len(title) > most > 0:
            title = [*title[: most - 1], (*title[most - 1], ("…", title[0][0][1]))]
        return [*rows.large(title)] if most > 0 else [rows.cut(card.title, self._columns)]

    def _large(self, card: Card, room: int) -> list[Row]:
        """The rows of a card in large letters; nothing if there is no room for them."""
        half = self._half
        if half < _NARROWEST_LARGE:
            return []
        indent = rows.row((" " * card.indent, Look()))
        wrapped = [part for line in card.rows for part in rows.wrap(line, half, indent)]
        return [*rows.large(wrapped)] if 2 * len(wrapped) <= room else []

    def _perform(self, shot: Shot) -> Iterator[Frame]:
        self._put(shot.above)
        if shot.typing:
            yield from self._type(shot)
        self._put(shot.head)
        if shot.wait:
            self._put([_RUNNING])
            yield from self._stay(shot.wait)
            self._screen.pop()
        for step in range(1, shot.unrolling + 1):
            begin, end = (len(shot.body) * n // shot.unrolling for n in (step - 1, step))
            self._put(shot.body[begin:end])
            if step == shot.unrolling:
                self._end(shot)
            yield from self._stay(1)
        if not shot.body:
            self._end(shot)
        yield from self._stay(shot.hold)

    def _end(self, shot: Shot) -> None:
        if shot.tail:
            self._put([shot.tail])

    def _type(self, shot: Shot) -> Iterator[Frame]:
        letters = sum(len(rows.plain(line)) for line in shot.head)
        before = len(self._screen)
        for step in range(1, shot.typing + 1):
            self._put(_begun(shot.head, letters * step // shot.typing))
            yield from self._stay(1)
            del self._screen[before:]

    def _put(self, lines: Iterable[Row]) -> None:
        self._screen += [
            rows.cut(rows.row((_MARGIN, Look()), *line), self._columns) if line else line
            for line in lines
        ]

    def _stay(self, length: int) -> Iterator[Frame]:
        """The unchanged screen; only the progress line moves."""
        if len(self._screen) > 20 * self._height:
            # Keep more than one screen: typing removes rows and puts them again.
            del self._screen[: -2 * self._height]
        end = self._tick + length
        shown = self._screen[-self._height :]
        shown += [()] * (self._height - len(shown))
        while self._tick < end:
            now = (*shown, (), self._progress())
            if now != self._last:
                self._last = now
                yield Frame(self._tick * 1000 // self._fps, now)
            self._tick = min(end, self._done * self._total // self._bar + 1)  # when the bar moves

    # -- progress

    @property
    def _bar(self) -> int:
        """Cells of the bar: constant, or it would jump."""
        return max(4, self._columns - len(self._counted()) - len(self._clock()) - 8)

    @property
    def _done(self) -> int:
        return -(-self._bar * self._tick // self._total)

    def _progress(self) -> Row:
        done = self._done
        line = rows.row(
            (f"{_MARGIN}{self._counted()}  ", rows.DIM),
            ("━" * done, _DONE),
            ("─" * (self._bar - done), _LEFT),
            (f"  {self._clock()}", rows.DIM),
        )
        return rows.cut(line, self._columns)

    def _counted(self) -> str:
        prompts = len(self._board.chapters)
        words = f"prompt {self._shot.chapter:>{self._digits}} of {prompts}"
        if self._columns < _NARROWEST:
            return ""
        return words if self._shot.chapter else " " * len(words)

    def _clock(self) -> str:
        total = _passed(self._span)
        width = len(total) if self._span < times.MINUTE else max(_PASSED, len(total))
        passed = f"{_passed(self._elapsed):>{width}}"
        return passed if self._columns < _NARROW else f"{passed} of {total}"


def _begun(lines: list[Row], letters: int) -> list[Row]:
    """The first letters of the rows, followed by the cursor."""
    shown: list[Row] = []
    for line in lines:
        kept: list[tuple[str, Look]] = []
        for text, look in line:
            kept.append((text[:letters], look))
            letters -= len(kept[-1][0])
        shown.append(rows.row(*kept))
        if letters <= 0:
            break
    shown[-1] = (*shown[-1], _CURSOR)
    return shown


def _passed(milliseconds: int) -> str:
    """Not like `10:05:00`, which would be read as a time of day."""
    if milliseconds < times.MINUTE:
        return f"{milliseconds // times.SECOND}s"
    return amounts.duration(milliseconds)
