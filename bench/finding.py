"""The finder at full size: how long from a key to the results on the screen.

Textual's own driver for tests presses the keys; only the terminal itself is left out.
"""

import asyncio
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from harness import BenchError
from report import Context, Row

from sess_cli import finder

# Typed letter by letter: words that are everywhere, rare ones, filters, slips.
TYPED = (
    "retry backoff",
    "error the",
    "connection refused",
    "pytest failed",
    "session timeout",
    "tool:Bash error",
    "migration schema -test",
    '"raise ValueError"',
    "import error in handler",
    "src/router.py",
    "qqqnowhere",
)
SIZE = (160, 50)
CADENCE = 0.15  # seconds from key to key: a good typist
LATEST = 5.0


def finding(c: Context) -> None:
    bench, typed = "finding", TYPED[::4] if c.quick else TYPED
    delays = sorted(asyncio.run(keystrokes(c.dense().index, typed)))
    p95 = delays[min(len(delays) - 1, int(len(delays) * 0.95))]
    what = f"key to results, median of {len(delays)}"
    c.wall(bench, what, statistics.median(delays), 50)
    c.wall(bench, "the same, 95th percentile", p95, 50)
    c.add(Row(bench, "the slowest", delays[-1] * 1000, "ms"))


async def keystrokes(index: Path, texts: Iterable[str]) -> list[float]:
    """Seconds from each key to the first frame that shows what it found."""
    app = finder.load()(index)
    from sess_cli.finder.results import ResultList  # slow to import

    painted: dict[str, float] = {}
    draw = ResultList.render_line

    def draw_and_note(self: ResultList, y: int):
        line = draw(self, y)
        if self.answer is not None and y == self.size.height - 1:
            painted.setdefault(self.answer.request.text, time.perf_counter())
        return line

    ResultList.render_line = draw_and_note  # type: ignore[method-assign]
    delays = []
    async with app.run_test(size=SIZE) as pilot:
        await until(lambda: "" in painted)
        for text in texts:
            for end in range(1, len(text) + 1):
                painted.clear()
                began = time.perf_counter()
                await pilot.press(text[end - 1])
                await until(lambda shown=text[:end]: shown in painted)
                delays.append(painted[text[:end]] - began)
                await asyncio.sleep(max(0.0, began + CADENCE - time.perf_counter()))
            await pilot.press("ctrl+u")
            await asyncio.sleep(CADENCE)
    return delays


async def until(happened: Callable[[], bool]) -> None:
    began = time.perf_counter()
    while not happened():
        if time.perf_counter() - began > LATEST:
            raise BenchError(f"no results after {LATEST:g} s")
        await asyncio.sleep(0.001)


BENCHES: dict[str, Callable[[Context], None]] = {"finding": finding}
