"""How each cost grows with what is stored: one index, loaded step by step.

    python bench/growth.py [--mb 10 100 1000] [--repeat 5]

The steps go back in time, a year each, so that the newest sessions and the last week are the same
at every size; the daemon has rested once after each. Times are processor time beyond
`python -c pass`, the least of several runs, so that a busy machine can measure.
Writes GROWTH.md and plots beside this file.

A cost has a reason to grow: none (it should depend on what changed or is shown), the matches (a
word that is everywhere), or everything (the question is about all that is stored).
"""

import argparse
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from harness import (
    BIN,
    DATA,
    HAS_PROC,
    SESS,
    SESSIOND,
    SYNC_OK,
    Store,
    corpus,
    cpu_seconds,
    run,
    say,
    status_mb,
)
from keeping_up import bytes_written, waits
from plots import bars, curves, number

from sess_schema.connection import open_reader
from sess_schema.queries.views import parts

HERE = Path(__file__).parent
BARE = [str(BIN / "python"), "-c", "pass"]
NEEDLE = "needle4growth"
NOTHING, MATCHES, EVERYTHING = "nothing", "matches", "everything"
SUSPECT = 1.2  # times the cost at the smallest size
NOISE = {"ms": 15.0, "%": 0.5, "MB": 10.0}  # less than this is no growth
VIEWS = (
    "tools", "errors", "files", "edits", "context", "cache", "latency", "interruptions", "windows",
    "calendar",
)  # fmt: skip
WEEK = ("--since", "2026-02-22")
COMMANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "search, a rare word": (NOTHING, ("search", NEEDLE)),
    "search, a common word": (MATCHES, ("search", "error")),
    "search, a phrase": (MATCHES, ("search", '"in the"')),
    "search, the newest of a common word": (MATCHES, ("search", "--sort", "newest", "error")),
    "search, a common word in the last week": (NOTHING, ("search", "error", *WEEK)),
    "search, count of a common word": (MATCHES, ("search", "-c", "error")),
    "search, a rare substring": (EVERYTHING, ("search", "--substring", NEEDLE[2:-2])),
    "search, a common substring": (MATCHES, ("search", "--substring", "rro")),
    "search, a rare regex": (EVERYTHING, ("search", "--regex", r"needle\dgrow[a-z]+")),
    "search, a regex without a literal": (EVERYTHING, ("search", "--regex", r"[A-Z]{9}\d{9}")),
    "list": (NOTHING, ("list",)),
    "show last": (NOTHING, ("show", "last")),
    "statusline": (NOTHING, ("statusline",)),
    "stats, the last week": (NOTHING, ("stats", *WEEK)),
    "stats, the last week as JSON": (NOTHING, ("stats", *WEEK, "--json")),
    "stats, everything by day": (EVERYTHING, ("stats", "--by", "day")),
    "stats, the dashboard": (EVERYTHING, ("stats",)),
    **{f"stats {view}": (EVERYTHING, ("stats", view)) for view in VIEWS},
    **{f"stats {view}, the last week": (NOTHING, ("stats", view, *WEEK)) for view in VIEWS},
}
CURVES = (
    "search, a rare word",
    "search, a common word",
    "search, a phrase",
    "search, a rare substring",
    "search, a regex without a literal",
    "beside it: ripgrep, the rare word",
    "sync of a file with one line more",
    "stats, the dashboard",
)


@dataclass
class Cost:
    grows_with: str
    unit: str
    found: list[float] = field(default_factory=list)

    @property
    def ratios(self) -> list[float]:
        first = self.found[0]
        return [value / first if first > 0 else 0.0 for value in self.found]

    @property
    def more(self) -> float:
        return self.found[-1] - self.found[0]

    @property
    def suspect(self) -> bool:
        grew = self.ratios[-1] > SUSPECT and self.more > NOISE.get(self.unit, 0.0)
        return self.grows_with == NOTHING and grew


class Growth:
    def __init__(self, repeat: int) -> None:
        self.repeat = repeat
        self.sizes: list[float] = []
        self.costs: dict[str, Cost] = {}

    def note(self, what: str, grows_with: str, value: float, unit: str) -> None:
        self.costs.setdefault(what, Cost(grows_with, unit)).found.append(value)
        say(f"{what}: {number(value)} {unit}")

    def least(self, once: Callable[[], float]) -> float:
        return min(once() for _ in range(self.repeat))

    def beyond(self, store: Store, command: list[str]) -> float:
        """Milliseconds of processor time beyond the bare interpreter."""
        run(command, store.env, (0, 1))
        bare = self.least(lambda: run(BARE, store.env).cpu)
        return (self.least(lambda: run(command, store.env, (0, 1)).cpu) - bare) * 1000

    def measure(self, store: Store, loaded_mb: float, load_cpu: float, peak_mb: float) -> None:
        self.sizes.append(store.mb)
        self.note("loading, a megabyte more", NOTHING, load_cpu / loaded_mb * 1000, "ms")
        self.note("loading, peak memory", NOTHING, peak_mb, "MB")
        self.note("index for a byte of transcripts", NOTHING, store.index_mb() / store.mb, "bytes")
        self.syncs(store)
        if HAS_PROC:
            rest(store)
        for what, (grows_with, arguments) in COMMANDS.items():
            command = [SESS, *arguments, *(() if what == "statusline" else ("--no-sync",))]
            self.note(what, grows_with, self.beyond(store, command), "ms")
        if rg := shutil.which("rg"):
            command = [rg, "-ci", "--hidden", "--no-ignore", NEEDLE, str(store.home / ".claude")]
            took = self.least(lambda: run(command, None, (0, 1)).cpu)
            self.note("beside it: ripgrep, the rare word", EVERYTHING, took * 1000, "ms")
        if HAS_PROC:
            self.daemon(store)

    def syncs(self, store: Store) -> None:
        store.sync()
        time.sleep(4)  # directories that have just changed are looked at again
        store.sync()
        sync = [SESSIOND, "sync"]
        self.note("sync, nothing new", EVERYTHING, self.beyond(store, sync), "ms")
        search = [SESS, "search", NEEDLE]
        self.note("search that first catches up", EVERYTHING, self.beyond(store, search), "ms")

        def append() -> float:
            store.append("one more line about the parser")
            return run(sync, store.env, SYNC_OK).cpu

        def append_known() -> float:
            store.append("one more line about the parser")
            return run([*sync, str(store.live)], store.env, SYNC_OK).cpu

        append()
        bare = self.least(lambda: run(BARE, store.env).cpu)
        took = self.least(append_known) - bare
        self.note("sync of a file with one line more", NOTHING, took * 1000, "ms")
        took = self.least(append) - bare
        self.note("sync of everything, one line more", EVERYTHING, took * 1000, "ms")

    def daemon(self, store: Store) -> None:
        lines = 20
        with store.daemon() as pid:
            used, written = cpu_seconds(pid), bytes_written(pid)
            delays = waits(store, lines, 0.25)
            used = (cpu_seconds(pid) - used) / lines
            written = bytes_written(pid) - written
            resting = cpu_seconds(pid)
            time.sleep(10)
            resting = (cpu_seconds(pid) - resting) / 10
            self.note("daemon, newline to hit (wall)", NOTHING, median(delays) * 1000, "ms")
            self.note("daemon, processor time for a line", NOTHING, used * 1000, "ms")
            self.note("daemon, written for a line", NOTHING, written / lines / 1e3, "kB")
            self.note("daemon, processor at rest", NOTHING, resting * 100, "%")
            self.note("daemon, memory", NOTHING, status_mb(pid, "VmRSS"), "MB")

    def table(self) -> str:
        heads = [f"{size:,.0f} MB" for size in self.sizes]
        lines = [
            f"| cost | {' | '.join(heads)} | last / first | more | may grow with | |",
            f"|---|{'---:|' * len(heads)}---:|---:|---|---|",
        ]
        for what, cost in self.costs.items():
            found = " | ".join(f"{number(value)} {cost.unit}" for value in cost.found)
            mark = "**should not grow**" if cost.suspect else ""
            ratio = f"{cost.ratios[-1]:.2f}"
            more = f"{number(cost.more)} {cost.unit}"
            lines.append(f"| {what} | {found} | {ratio} | {more} | {cost.grows_with} | {mark} |")
        return "\n".join(lines)

    def write(self) -> None:
        about = (__doc__ or "").partition("\n\n")[2].partition("\n\n")[2].strip()
        about = about.replace("\nWrites GROWTH.md and plots beside this file.", "")
        folder = HERE / "plots"
        folder.mkdir(exist_ok=True)
        flat = [
            (what, cost.ratios[-1])
            for what, cost in self.costs.items()
            if cost.grows_with == NOTHING
        ]
        title = f"what should not grow: {self.sizes[-1]:,.0f} MB / {self.sizes[0]:,.0f} MB"
        (folder / "growth.svg").write_text(bars(title, flat, SUSPECT), "utf-8")
        shown = {what: self.costs[what].found for what in CURVES if what in self.costs}
        unit = "ms of processor time beyond python"
        text = curves("with what is stored", self.sizes, shown, unit)
        (folder / "growth-curves.svg").write_text(text, "utf-8")
        text = f"# Growth\n\nWritten by `make bench-growth`.\n\n{about}\n\n{self.table()}\n\n"
        text += "![what should not grow](plots/growth.svg)\n\n"
        text += "![costs by size](plots/growth-curves.svg)\n"
        (HERE / "GROWTH.md").write_text(text, "utf-8")


def rest(store: Store) -> None:
    """Let the daemon make what it makes while it rests: what each session adds to statistics."""
    with store.daemon(), closing(open_reader(store.index)) as db:
        for _ in range(120):
            if not any(parts.due(db)):
                return
            time.sleep(1)


def steps(sizes: list[float]) -> list[float]:
    return [size - before for before, size in zip([0.0, *sizes], sizes, strict=False)]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mb", type=float, nargs="*", default=[10, 100, 1000])
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    growth, place = Growth(args.repeat), DATA / "growth"
    shutil.rmtree(place, ignore_errors=True)
    store: Store | None = None
    try:
        for year, mb in enumerate(steps(sorted(args.mb))):
            source = corpus(mb, terse=True, years_ago=year)
            before = store.mb if store else 0.0
            if store is None:
                store = Store(place, source)
                loaded = store.loaded
                for n in range(20):
                    store.append(f"a line about {NEEDLE} number {n}")
            else:
                loaded = store.add(source)
            growth.measure(store, store.mb - before, loaded.cpu, loaded.peak_mb)
            growth.write()
    finally:
        shutil.rmtree(place, ignore_errors=True)
    print(growth.table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
