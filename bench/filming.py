"""Films: how much faster than they play, how large, and in how much memory."""

import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from harness import BenchError
from report import Context, Row

try:
    import av  # noqa: F401
    import PIL  # noqa: F401
except ImportError:
    AVAILABLE = False
else:
    AVAILABLE = True

from sess_cli.export.film import encode, fonts
from sess_cli.export.film.rows import Chapter, Film, Frame, Look
from sess_cli.export.film.rows import Row as CellRow

COLUMNS, LINES = fonts.grid(1400, 800, 16)
WORDS = Path(__file__).with_name("words.txt").read_text().split()
COLOURS = ("text", "text", "text", "dim", "green", "red", "blue", "peach", 3, 6)
FPS = 15
TARGETS = {"ordinary": 5, "scrolling": 8}


def line(rng: random.Random) -> CellRow:
    words = " ".join(rng.choices(WORDS, k=rng.randint(1, 16)))
    return ((f"{'  ' * rng.randint(0, 3)}{words}"[:COLUMNS], Look(rng.choice(COLOURS))),)


def ordinary(seconds: int) -> Film:
    """Prompts typed, answers and outputs in bursts, pauses to read, and a line of progress."""

    def frames() -> Iterator[Frame]:
        rng = random.Random(1)
        screen: list[CellRow] = []
        at = 0.0

        def frame() -> Frame:
            done = round(at / seconds / 1000 * COLUMNS)
            return Frame(round(at), (*screen[2 - LINES :], (), (("━" * done, Look("accent")),)))

        while at < seconds * 1000:
            typed = " ".join(rng.choices(WORDS, k=8))
            screen.append(())
            for end in range(2, len(typed), 2):
                screen[-1] = (("❯ ", Look("user", bold=True)), (typed[:end], Look()))
                yield frame()
                at += 1000 / FPS
            for _ in range(rng.randint(4, 12)):
                screen.extend(line(rng) for _ in range(rng.randint(1, 4)))
                yield frame()
                at += rng.choice((1, 1, 2)) * 1000 / FPS
            at += rng.randint(1500, 4000)
            yield frame()
            del screen[: -2 * LINES]

    chapters = [Chapter(at * 1000, f"Prompt {at}") for at in range(0, seconds, 30)]
    return Film(COLUMNS, LINES, seconds * 1000, "ordinary", chapters, frames)


def scrolling(seconds: int) -> Film:
    """Every picture differs from the last one in every row."""

    def frames() -> Iterator[Frame]:
        rng = random.Random(2)
        screen = [line(rng) for _ in range(LINES)]
        for number in range(seconds * FPS):
            screen = [*screen, *(line(rng) for _ in range(rng.choice((1, 1, 2, 3))))][-LINES:]
            yield Frame(number * 1000 // FPS, tuple(screen))

    return Film(COLUMNS, LINES, seconds * 1000, "scrolling", [], frames)


FILMS: dict[str, Callable[[int], Film]] = {"ordinary": ordinary, "scrolling": scrolling}


def filming(c: Context) -> None:
    if not AVAILABLE:
        raise BenchError("needs PyAV and Pillow: pip install 'sessiond[video]'")
    seconds = 10 if c.quick else 60
    for name in FILMS:
        for suffix in ("mp4", "webm", "gif"):
            wall, processor, size, peak = filmed(name, seconds, suffix)
            what = f"{name}, {seconds} s as {suffix}"
            limit = TARGETS[name] if suffix == "mp4" else None
            c.add(Row("filming", f"{what}, against playing it", seconds / wall, "x", limit, True))
            c.add(Row("filming", "the same by processor time", seconds / processor, "x"))
            small = 2 if (name, suffix) == ("ordinary", "mp4") else None
            c.add(Row("filming", f"{what}, a minute", size / seconds * 60 / 1e6, "MB", small))
            c.add(Row("filming", f"{what}, peak memory", peak, "MB", 400))
    if not c.quick:
        wall, _, size, peak = filmed("ordinary", 600, "mp4")
        c.add(Row("filming", "ordinary, ten minutes as mp4", 600 / wall, "x", 5, True))
        c.add(Row("filming", "the same, a minute", size / 10 / 1e6, "MB", 2))
        c.add(Row("filming", "the same, peak memory", peak, "MB", 400))


def filmed(name: str, seconds: int, suffix: str) -> tuple[float, float, int, float]:
    """Wall and processor seconds, bytes, and MB at the peak, in a process of its own."""
    command = [sys.executable, __file__, name, str(seconds), suffix]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return float(out[0]), float(out[1]), int(out[2]), float(out[3])


def main() -> None:
    name, seconds, suffix = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"film.{suffix}")
        began = time.perf_counter()
        encode.write(FILMS[name](int(seconds)), path)
        wall = time.perf_counter() - began
        unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
        print(wall, time.process_time(), os.path.getsize(path), peak)


BENCHES: dict[str, Callable[[Context], None]] = {"filming": filming}

if __name__ == "__main__":
    main()
