"""How long each scene lasts and how much of it is shown, to give a film the wanted length.

A scene has four levels of detail: folded with its neighbours into one line, glimpse, short, and
full. If everything takes too long, all scenes begin folded, and the most important ones are raised
level by level while there is time: of the prompts with the most work, what was asked and what came
of it. The remaining time goes into the pauses. Nothing passes faster than it can be read.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import ceil, log2

from sess_cli.export.film import rows
from sess_cli.export.film.rows import Look, Row
from sess_cli.export.film.scenes import Scene, Storyboard
from sess_common import times

FPS = 15
SHORTEST = 5 * times.SECOND
LONGEST = 4 * times.HOUR
USUAL_LONGEST = 5 * times.MINUTE  # without --duration
FOLDED, GLIMPSE, SHORT, FULL = range(4)

_TYPED_PER_SECOND = 38  # two or three characters per frame
_LONGEST_TYPING = {GLIMPSE: 0, SHORT: 900, FULL: 2600}
_LONGEST_WAIT = {GLIMPSE: 0, SHORT: 200, FULL: 900}
_HOLD_SHARES = {GLIMPSE: 0.3, SHORT: 0.55, FULL: 1.0}
_ROWS_PER_SECOND = {GLIMPSE: 1500, SHORT: 45, FULL: 15}
_LOOK_AT = 350  # milliseconds to notice something new
_READ = 15  # milliseconds per character, for text that moves
_FOLD = 400
# Words that people can follow in a second: said to them, and in outputs, which they skim.
_SAID_PER_SECOND, _SHOWN_PER_SECOND = 8, 16
_ALIKE_IN_A_ROW = 3
_ALIKE = (frozenset({"read", "search"}), frozenset({"notice"}))

# The longest pause after a scene at full level, and its rows at each level.
_HOLDS = {
    "prompt": 3000, "answer": 2600, "thought": 900, "shell": 1500, "edit": 2000, "write": 1500,
    "todo": 1400, "agent": 2600, "read": 250, "search": 250, "tool": 700, "notice": 700,
    "commit": 1800,
}  # fmt: skip
_HEADS = {GLIMPSE: 3, SHORT: 5, FULL: 99}
_PROMPTS = {GLIMPSE: 6, SHORT: 12, FULL: 99}
_BODIES = {
    "answer": (2, 6, 14), "thought": (1, 2, 4), "edit": (4, 8, 99), "write": (3, 6, 99),
    "todo": (3, 7, 99), "agent": (3, 6, 99), "shell": (2, 5, 99),
}  # fmt: skip
_FINAL_BODIES = (3, 9, 99)
_FINAL_HOLD = 5000
_WORTH = {
    "prompt": 90, "commit": 84, "agent": 62, "edit": 60, "write": 58, "shell": 46, "todo": 40,
    "answer": 36, "notice": 30, "tool": 28, "search": 20, "read": 20, "thought": 8,
}  # fmt: skip
_FINAL_WORTH, _ERROR_WORTH = 82, 74
_END_WORTH = 12  # extra, for the first prompt and the outcome of the last
_CHAPTER = 6000  # milliseconds needed to follow a prompt and its outcome
_OTHER_CHAPTERS = 0.25
_DEEDS = {"commit": 6, "edit": 2, "write": 2, "agent": 2, "error": 1, "shell": 1, "answer": 1}
_LEVEL_WORTH = {GLIMPSE: 1.0, SHORT: 0.62, FULL: 0.3}
_NAMES = {
    "prompt": ("prompt", "prompts"), "answer": ("message", "messages"),
    "shell": ("command", "commands"), "read": ("read", "reads"), "search": ("search", "searches"),
    "edit": ("edit", "edits"), "write": ("file", "files"), "todo": ("todo list", "todo lists"),
    "agent": ("agent", "agents"), "tool": ("tool call", "tool calls"),
    "commit": ("commit", "commits"), "notice": ("notice", "notices"),
}  # fmt: skip

_WORDS = {GLIMPSE: 24, SHORT: 90, FULL: 400}
_WORDS_OF_PROMPT = 32
_NO_LIMIT = 1 << 30
_UNROLLED = 0.5  # of the time that it takes to read something, it appears
_READ_WHOLE = {"prompt", "answer", "thought", "agent", "commit"}
_UNCOUNTED = {"answer", "todo", "notice"}  # not worth a line on their own


@dataclass(slots=True)
class Shot:
    """A scene as it is played; times in frames."""

    above: list[Row] = field(default_factory=list)
    head: list[Row] = field(default_factory=list)
    typing: int = 0
    wait: int = 0
    body: list[Row] = field(default_factory=list)
    unrolling: int = 0  # until the whole body is shown
    tail: Row = ()
    hold: int = 1
    spaced: bool = False
    chapter: int = 0
    ts: int | None = None
    folded: bool = False  # several scenes in one line
    said: str = ""  # by a person or a model, for captions

    @property
    def moving(self) -> int:
        return self.typing + self.wait + self.unrolling

    @property
    def length(self) -> int:
        return self.moving + self.hold


@dataclass(slots=True)
class Plan:
    opening: int
    shots: list[Shot]
    closing: int
    natural: int  # milliseconds to show everything in full

    @property
    def length(self) -> int:
        return self.opening + sum(shot.length for shot in self.shots) + self.closing


class Pacing:
    """Frame rate, speed, and target length."""

    def __init__(self, *, fps: int = FPS, speed: float = 1.0, duration: int | None = None) -> None:
        self._fps = fps
        self._speed = speed
        self._duration = duration

    def plan(self, board: Storyboard) -> Plan:
        levels = [FULL] * len(board.scenes)
        _fold_repeated(board.scenes, levels)
        shots = [*self._shots(board.scenes, levels)]
        plan = Plan(self._frames(2500), shots, self._frames(4000), 0)
        plan.natural = plan.length * 1000 // self._fps
        target = self._duration or (USUAL_LONGEST if plan.natural > USUAL_LONGEST else None)
        if target is None:
            return plan
        frames = round(target * self._fps / 1000)
        if plan.length > frames:
            plan.opening = _within(round(frames * 0.04), 1 * self._fps, plan.opening)
            plan.closing = _within(round(frames * 0.07), 3 * self._fps // 2, plan.closing)
            room = frames - plan.opening - plan.closing
            plan.shots = [*self._shots(board.scenes, self._levels(board.scenes, room))]
        _fill(plan, frames)
        return plan

    # -- one scene

    def _frames(self, milliseconds: float) -> int:
        return max(1, round(milliseconds * self._fps / 1000 / self._speed))

    def _shot(self, scene: Scene, level: int) -> Shot:
        most_words = _WORDS[level] if scene.kind in _READ_WHOLE else _NO_LIMIT
        if scene.kind == "prompt":
            most_words = max(most_words, _WORDS_OF_PROMPT)
        most_rows = (_PROMPTS if scene.kind == "prompt" else _HEADS)[level]
        head = scene.head.shown(_rows_of(scene.head.rows, most_rows, most_words))
        most_rows = _body_rows(scene, level)
        body = scene.body.shown(_rows_of(scene.body.rows, most_rows, most_words))
        letters = sum(len(rows.plain(line)) for line in head)
        words = letters + sum(len(rows.plain(line)) for line in body)
        typing = wait = 0
        if scene.typed and level > GLIMPSE:
            longest = _LONGEST_TYPING[level]
            typing = self._frames(min(longest, letters * 1000 / _TYPED_PER_SECOND))
        if scene.wait and level > GLIMPSE:
            wait = self._frames(min(_LONGEST_WAIT[level], scene.wait))
        most = _FINAL_HOLD if scene.final else _HOLDS[scene.kind] * (1.4 if scene.failed else 1)
        hold = self._frames(min(most, _LOOK_AT + _READ * words) * _HOLD_SHARES[level])
        unrolling = max(
            ceil(len(body) * self._fps / _ROWS_PER_SECOND[level] / self._speed),
            self._frames(_reading(scene, [], body) * _UNROLLED) if body else 0,
        )
        least = self._frames(_reading(scene, head, body)) - typing - wait - unrolling
        return Shot(
            above=scene.above,
            head=head,
            typing=typing,
            wait=wait,
            body=body,
            unrolling=unrolling,
            tail=scene.tail,
            hold=max(hold, least),
            spaced=scene.spaced,
            chapter=scene.chapter,
            ts=scene.ts,
            said=scene.said,
        )

    def _shots(self, scenes: list[Scene], levels: list[int]) -> Iterator[Shot]:
        folded: list[Scene] = []
        for scene, level in zip(scenes, levels, strict=True):
            if level == FOLDED:
                folded.append(scene)
                continue
            yield from self._fold(folded)
            folded = []
            yield self._shot(scene, level)
        yield from self._fold(folded)

    def _fold(self, scenes: list[Scene]) -> Iterator[Shot]:
        """Scenes there is no time for, in one line."""
        counts = Counter(scene.kind for scene in scenes if scene.kind in _NAMES)
        failed = sum(scene.failed for scene in scenes)
        if not failed and not counts.keys() - _UNCOUNTED:
            return
        words = [
            f"{count:,} {'more ' if n == 0 else ''}{_NAMES[kind][count > 1]}"
            for n, (kind, count) in enumerate(counts.most_common())
        ]
        line = rows.row((f"  … {', '.join(words)}", rows.DIM))
        if failed:
            line = rows.row(*line, (f", {failed:,} failed", Look("red")))
        last = scenes[-1]
        yield Shot(
            head=[line],
            hold=self._frames(_FOLD),
            chapter=last.chapter,
            ts=last.ts,
            folded=True,
        )

    # -- which scenes

    def _levels(self, scenes: list[Scene], room: int) -> list[int]:
        """The levels of the best selection that fits into `room` frames."""
        levels = [FOLDED] * len(scenes)
        fold = self._frames(_FOLD)
        left = room - fold
        # Of the chapters that are told, no prompt is folded while there is a tool call to fold.
        chapters = _chosen_chapters(scenes, room // self._frames(_CHAPTER))
        steps = [
            (
                level > GLIMPSE or scenes[n].kind != "prompt" or scenes[n].chapter not in chapters,
                -worth * _LEVEL_WORTH[level],
                level,
                n,
            )
            for n, worth in enumerate(worths(scenes, chapters))
            for level in (GLIMPSE, SHORT, FULL)
        ]
        lengths = [0] * len(scenes)
        for _, _, level, n in sorted(steps):
            if levels[n] != level - 1:  # its lower level did not fit
                continue
            length = self._shot(scenes[n], level).length
            # A scene between folded ones splits their line in two.
            cost = length - lengths[n] + (fold if level == GLIMPSE else 0)
            if cost <= left:
                left -= cost
                levels[n], lengths[n] = level, length
        asked = [n for n, scene in enumerate(scenes) if scene.kind == "prompt"]
        if asked and not any(levels[n] for n in asked):
            levels[asked[0]] = GLIMPSE  # in a film that is too short to read anything
        return levels


def _body_rows(scene: Scene, level: int) -> int:
    if scene.final:
        return _FINAL_BODIES[level - 1]
    return _BODIES.get(scene.kind, (1, 3, 99))[level - 1]


def _fold_repeated(scenes: list[Scene], levels: list[int]) -> None:
    """Of many reads or notices in a row, show only a few."""
    run: list[int] = []
    alike: frozenset[str] = frozenset()
    for n, scene in enumerate([*scenes, None]):
        if scene is not None and (scene.kind == "thought" or (run and scene.kind in alike)):
            if scene.kind in alike:
                run.append(n)
            continue
        if len(run) > _ALIKE_IN_A_ROW + 1:
            for folded in run[_ALIKE_IN_A_ROW:]:
                levels[folded] = FOLDED
        alike = next((kinds for kinds in _ALIKE if scene and scene.kind in kinds), frozenset())
        run = [n] if alike else []


def worths(scenes: list[Scene], chosen: set[int] | None = None) -> list[float]:
    """The importance of each scene: less if there are many of its kind around it.

    If chapters were chosen, scenes of all others count for little.
    """
    alike: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    worth_of = [0.0] * len(scenes)
    for n, scene in enumerate(scenes):
        kind = "final" if scene.final else "error" if scene.failed else scene.kind
        alike[scene.chapter, kind].append(n)
    ends = {scene.chapter for scene in (scenes[:1] + scenes[-1:])}
    for (chapter, kind), places in alike.items():
        for rank, place in enumerate(_spread(len(places))):
            scene = scenes[places[place]]
            worth = _base(scene) / (1 + 0.22 * log2(1 + rank))
            if kind in ("prompt", "final") and chapter in ends:
                worth += _END_WORTH
            worth_of[places[place]] = (
                worth if chosen is None or chapter in chosen else worth * _OTHER_CHAPTERS
            )
    return worth_of


def _rows_of(lines: list[Row], most: int, words: int) -> int:
    """How many rows have no more words than that; at least one."""
    for number, line in enumerate(lines[:most]):
        words -= len(rows.plain(line).split())
        if words < 0:
            return max(1, number)
    return most


def _reading(scene: Scene, head: list[Row], body: list[Row]) -> float:
    """Milliseconds to follow what is said and shown."""
    said = scene.kind in _READ_WHOLE
    words = sum(len(rows.plain(line).split()) for line in (*head, *body, scene.tail))
    return words * times.SECOND / (_SAID_PER_SECOND if said else _SHOWN_PER_SECOND)


def _chosen_chapters(scenes: list[Scene], most: int) -> set[int]:
    """The chapters with the most work, spread over the session, and the first and last."""
    numbers = [*dict.fromkeys(scene.chapter for scene in scenes)]
    if len(numbers) <= most:
        return {*numbers}
    done: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for scene in scenes:
        done[scene.chapter]["error" if scene.failed else scene.kind] += 1
    weights = {
        number: sum(weight * min(done[number][kind], 3) for kind, weight in _DEEDS.items())
        for number in numbers
    }
    spread = {numbers[place]: rank for rank, place in enumerate(_spread(len(numbers)))}
    ranked = sorted(numbers, key=lambda number: (-weights[number], spread[number]))
    return {numbers[0], numbers[-1], *ranked[: max(0, most - 2)]}


def _base(scene: Scene) -> float:
    if scene.final:
        return _FINAL_WORTH
    worth = _WORTH[scene.kind]
    return max(worth, _ERROR_WORTH) if scene.failed else worth


def _spread(count: int) -> Iterable[int]:
    """0 .. count-1, ordered so that any prefix is spread over the whole."""
    if count < 3:
        return range(count)
    order = [0, count - 1]
    spans = [(0, count - 1)]
    for begin, end in spans:  # grows while it is read
        if end - begin > 1:
            middle = (begin + end) // 2
            order.append(middle)
            spans += [(begin, middle), (middle, end)]
    return order


def _fill(plan: Plan, frames: int) -> None:
    """Stretch or shrink pauses to reach exactly this length."""
    holds = [plan.opening, *(shot.hold for shot in plan.shots), plan.closing]
    moving = sum(shot.moving for shot in plan.shots)
    wanted = max(len(holds), frames - moving)
    total = sum(holds)
    used = before = 0
    new = []
    for hold in holds:
        used += hold
        upto = max(before + 1, round(used * wanted / total))
        new.append(upto - before)
        before = upto
    plan.opening, plan.closing = new[0], new[-1]
    for shot, hold in zip(plan.shots, new[1:-1], strict=True):
        shot.hold = hold


def _within(value: int, least: int, most: int) -> int:
    return max(min(value, most), min(least, most))
