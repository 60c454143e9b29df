"""The timeline strip: when which kind of tool ran, and where errors are; idle time is cut."""

from __future__ import annotations

from collections.abc import Iterator

from sess_cli.export import shapes
from sess_cli.export.story import Item
from sess_cli.render import amounts

WIDTH = 1000
_LONGEST_PAUSE = 60_000
_LANES = ("prompt", "shell", "edit", "read", "agent", "other", "error")
_NAMES = {
    "prompt": "prompts", "shell": "commands", "edit": "edits", "read": "reads and searches",
    "agent": "agents", "other": "other tools", "error": "errors",
}  # fmt: skip
_LANE_OF = {"shell": "shell", "edit": "edit", "write": "edit", "read": "read", "search": "read",
            "agent": "agent"}  # fmt: skip
_ROW = 6


class Strip:
    """Takes items in order; `places` and `html` need all of them."""

    def __init__(self, *, utc: bool = False) -> None:
        self._utc = utc
        self._spent = 0  # elapsed time, with pauses cut short
        self._last: int | None = None
        self._first: int | None = None
        self._starts: list[int] = []
        self._marks: list[tuple[str, int, int]] = []  # lane, from, to

    def add(self, item: Item) -> None:
        if item.ts is not None:
            if self._last is not None:
                self._spent += min(max(0, item.ts - self._last), _LONGEST_PAUSE)
            self._first = item.ts if self._first is None else self._first
            self._last = max(item.ts, self._last or item.ts)
        self._starts.append(self._spent)
        if item.type == "user":
            self._marks.append(("prompt", self._spent, self._spent))
        elif item.type == "tool_use":
            lane = _LANE_OF.get(shapes.kind_of(item), "other")
            taken = min(item.duration_ms or 0, _LONGEST_PAUSE)
            self._marks.append((lane, self._spent, self._spent + taken))
            if item.failed:
                self._marks.append(("error", self._spent, self._spent))

    def places(self) -> list[int]:
        """The position of each item, from 0 to WIDTH."""
        if not self._spent:  # no timestamps: by order
            count = max(1, len(self._starts) - 1)
            return [number * WIDTH // count for number in range(len(self._starts))]
        return [start * WIDTH // self._spent for start in self._starts]

    def html(self) -> Iterator[str]:
        if not self._spent or self._first is None or self._last is None:
            return
        columns = self._columns()
        said = ", ".join(_NAMES[lane] for lane in _LANES if columns[lane])
        begun = amounts.clock(self._first, utc=self._utc)
        ended = amounts.clock(self._last, utc=self._utc)
        height = _ROW * len(_LANES)
        yield (
            '<div class="strip" id="strip" tabindex="0" role="slider" aria-label="Timeline"'
            f' aria-valuemin="0" aria-valuemax="{WIDTH}" aria-valuenow="0"'
            f' aria-valuetext="{begun}">'
            f'<svg viewBox="0 0 {WIDTH} {height}" preserveAspectRatio="none" role="img"'
            f' aria-label="Timeline of {said}">'
        )
        for row, lane in enumerate(_LANES):
            if columns[lane]:
                middle = row * _ROW + _ROW // 2
                yield f'<path class="l-{lane}" d="{_path(columns[lane], middle)}"/>'
        yield (
            f'<line id="here" x1="0" x2="0" y1="0" y2="{height}"/></svg></div>'
            f'<p class="axis"><time>{begun}</time><span>'
        )
        for lane in _LANES:
            if columns[lane]:
                yield f'<i class="l-{lane}"></i>{_NAMES[lane]} '
        last = ended[11:] if ended[:10] == begun[:10] else ended
        yield f"</span><time>{last}</time></p>\n"

    def _columns(self) -> dict[str, set[int]]:
        """The columns with marks, by lane; at most WIDTH, however long the session."""
        found: dict[str, set[int]] = {lane: set() for lane in _LANES}
        for lane, start, end in self._marks:
            first = min(start * WIDTH // self._spent, WIDTH - 1)
            last = min(
                max(first + 1, end * WIDTH // self._spent), WIDTH - 1
            )  # at least two columns wide
            found[lane].update(range(first, last + 1))
        return found


def _path(columns: set[int], middle: int) -> str:
    """Neighbouring columns as one stroke."""
    pieces = []
    start = end = -2
    for column in [*sorted(columns), WIDTH * 2]:
        if column == end + 1:
            end = column
            continue
        if start >= 0:
            pieces.append(f"M{start} {middle}h{end - start + 1}")
        start = end = column
    return "".join(pieces)
