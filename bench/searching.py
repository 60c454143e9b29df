"""Search at full size: a gigabyte of short events, where common words match a hundred thousand.

Ranked queries and scans are timed inside this process; `sess` is timed and weighed from outside.
"""

import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from apsw import Connection
from harness import (
    SESS,
    SESSIOND,
    SYNC_OK,
    BenchError,
    Finished,
    Store,
    check,
    median,
    run,
    run_watched,
    say,
)
from report import Context, Row
from starting import beyond

from sess_common.times import iso
from sess_schema.connection import open_reader
from sess_schema.queries.search import Filter, Search

NOWHERE = "qqqnowhere"
SCANS = {
    "substring": (
        NOWHERE,
        "v4.17.1-",  # a handful
        "10.0.3.",
        "::test_",
        "ECONNREFUSED",
        "error",  # one event in five
    ),
    "regex": (
        r"qqq\w+nowhere",
        r"[A-Z]{9}\d{9}",  # nothing, and no literal to rule it out
        r"Error: .*timeout",
        r"def \w+_test",
        r"\bv\d+\.\d+\.\d+\b",
        r"[0-9a-f]{40}",
        r"(?:time|read)out",
    ),
}
# Queries that find the most, or have to read the most to find anything.
HEAVY = (
    ("--limit", "0", "--json", "error"),
    ("e*",),
    ("--substring", "error"),
    ("--limit", "0", "--substring", "error"),
    ("--regex", r"[0-9a-f]{40}"),
    ("--limit", "0", "--regex", r"\w+_test"),
)
MODES: dict[str, tuple[str, ...]] = {
    "a rare word": ("ECONNREFUSED",),
    "a common word": ("error",),
    "a phrase": ('"in the"',),
    "the newest": ("--sort", "newest", "error"),
    "only failures": ("--error", "timeout"),
    "one tool": ("--tool", "Bash", "error"),
    "a whole word": ("--whole-word", "error"),
    "in tools only": ("--tools-only", "error"),
    "a count": ("--count", "error"),
    "a substring": ("--substring", "ECONNREF"),
    "a regex": ("--regex", r"Error: .*timeout"),
    "as JSON": ("--json", "error"),
}
SHOWN = 20
CHEAP = "ECONNREFUSED"


def queries() -> list[str]:
    text = Path(__file__).with_name("queries.txt").read_text(encoding="utf-8")
    return text.splitlines()


def timed(work: Callable[[], int]) -> tuple[float, int]:
    began = time.perf_counter()
    found = work()
    return time.perf_counter() - began, found


def percentile(values: Iterable[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def ranked(c: Context) -> None:
    """Twenty hits with their snippets, the best first."""
    bench, took, found = "search-ranked", dict[str, float](), dict[str, int]()
    db = open_reader(c.dense().index)
    for query in queries():

        def once(query: str = query) -> int:
            return len(list(Search(query, limit=20).hits(db)))

        once()
        took[query], found[query] = timed(once)
    db.close()
    some = sum(map(bool, found.values()))
    if not some:
        raise BenchError("found nothing at all, so its times say nothing")
    ms = [seconds * 1000 for seconds in took.values()]
    what = f"median of {len(ms)} queries, {some} with hits"
    c.add(Row(bench, what, statistics.median(ms), "ms", 10))
    c.add(Row(bench, "the same, 95th percentile", percentile(ms, 0.95), "ms", 40))
    for query in sorted(took, key=lambda query: -took[query])[:5]:
        c.add(Row(bench, f"slow: {query} ({found[query]} shown)", took[query] * 1000, "ms"))


def ripgrep(store: Store, mode: str, needle: str, repeat: int) -> float | None:
    """The time to read the transcripts themselves when they are in the page cache."""
    if not shutil.which("rg"):
        return None
    command = ["rg", "-c", "-i", "--hidden", "--no-ignore", "-e", needle]
    command += ["-F"] if mode == "substring" else []
    command.append(str(store.home / ".claude"))
    return median(repeat, lambda: run(command, ok=(0, 1)))


def last_tenth(db: Connection) -> Filter:
    ((first, last),) = db.execute("SELECT min(ts), max(ts) FROM events")
    return Filter("since", str(iso(int(last - (last - first) / 10))))


def scan(c: Context) -> None:
    """Every event that contains a string or matches an expression, in order, and 20 snippets."""
    store, repeat = c.dense(), min(c.repeat, 3)
    db = open_reader(store.index)
    late = last_tenth(db)
    if not shutil.which("rg"):
        say("rg is not on PATH: no comparison with it")

    def measure(mode: str, needle: str, *filters: Filter) -> tuple[float, int]:
        def once() -> int:
            results = Search(needle, filters, mode=mode).results(db)
            found = 0
            for found, ranked in enumerate(results.ranked(), 1):
                if found <= SHOWN:
                    results.hit(ranked)
            return found

        runs = [timed(once)]
        # Noise matters near the limit, not at a multiple of it.
        while len(runs) < repeat and runs[0][0] < 3:
            runs.append(timed(once))
        return statistics.median(seconds for seconds, _ in runs), runs[0][1]

    for mode, needles in SCANS.items():
        for needle in needles:
            seconds, found = measure(mode, needle)
            row = Row("search-scan", f"{mode} {needle} ({found:,} events)", seconds, "s", 1.5)
            if rg := ripgrep(store, mode, needle, repeat):
                row.ratio, row.to = seconds / rg, "rg -ci"
            c.add(row)
            part, found = measure(mode, needle, late)
            what = f"the same in the last tenth ({found:,} events)"
            c.add(Row("search-scan", what, part, "s", ratio=part / seconds, to="all of it"))
    db.close()


def client(c: Context) -> None:
    """The command as typed; its memory must not grow with what it finds."""
    bench, store = "search-client", c.dense()
    plain = [
        sess(*(["--"] if query[0] == "-" else ()), query)
        for query in queries()[:: 20 if c.quick else 5]
    ]
    run(sess("parser"), store.env, ok=(0, 1))
    runs = [run(command, store.env, ok=(0, 1)) for command in plain]
    middle = statistics.median(one.seconds for one in runs)
    c.wall(bench, f"sess search, median of {len(runs)} queries", middle)
    c.add(Row(bench, "the same less python -c pass", (middle - c.bare) * 1000, "ms", 60))
    if rg := ripgrep(store, "substring", "parser", min(c.repeat, 3)):
        row = Row(bench, "the same beside ripgrep on the transcripts", middle / rg, "x", 1 / 3)
        row.ratio, row.to = middle / rg, "rg -ci parser"
        c.add(row)
    peak = max(weigh(store, command).peak_mb for command in plain)
    c.add(Row(bench, "peak memory, the most of these", peak, "MB", 350))
    known = run([SESS, "search", "--help"], store.env).out.decode()
    for arguments in HEAVY:
        # `sess search` takes an option that it does not know for a word.
        if unknown := [a for a in arguments if a.startswith("--") and a not in known]:
            say(f"{bench}: sess search has no {unknown[0]}")
            continue
        done = weigh(store, sess(*arguments))
        what = f"peak memory of {' '.join(arguments)} in {done.seconds:.1f} s"
        c.add(Row(bench, what, done.peak_mb, "MB", 350))


def modes(c: Context) -> None:
    """Each way to search as typed, beside ripgrep over the transcripts in the page cache."""
    store = c.dense()
    for what, arguments in MODES.items():
        seconds, more = beyond(store, sess(*arguments), min(c.repeat, 5))
        row = Row("search-modes", f"{what}, beyond python", more * 1000, "ms")
        needle = arguments[-1].strip('"')
        mode = "regex" if "--regex" in arguments else "substring"
        if rg := ripgrep(store, mode, needle, min(c.repeat, 3)):
            row.ratio, row.to = seconds / rg, f"rg -ci {needle}"
        c.add(row)


def sess(*arguments: str) -> list[str]:
    return [SESS, "search", "--no-sync", *arguments]


def weigh(store: Store, command: list[str]) -> Finished:
    # A search lasts a few samples only, and holds the most shortly before its end.
    return run_watched(command, store.env, (0, 1), every=0.004)


@dataclass
class Looked:
    """Latencies and errors of a reader that searches continuously."""

    waits: list[float] = field(default_factory=list)
    searches: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def ask(self, index: Path, query: str) -> None:
        """A new reader each time, as every run of `sess` is one."""
        try:
            began = time.perf_counter()
            db = open_reader(index)
            next(iter(Search(CHEAP, limit=1).hits(db)), None)
            self.waits.append(time.perf_counter() - began)
            seconds, _ = timed(lambda: len(list(Search(query, limit=20).hits(db))))
            self.searches.append(seconds)
            db.close()
        except Exception as error:
            self.errors.append(f"{query}: {error}")


def look(index: Path, more: Callable[[int], bool]) -> Looked:
    looked, asked = Looked(), queries()
    n = 0
    while more(n):
        looked.ask(index, asked[n % len(asked)])
        n += 1
        time.sleep(0.01)
    return looked


def has_events(index: Path) -> bool:
    try:
        db = open_reader(index)
    except Exception:  # not made yet, or not complete
        return False
    found = bool(list(db.execute("SELECT 1 FROM events LIMIT 1")))
    db.close()
    return found


def while_loading(store: Store) -> tuple[Looked, Looked]:
    """Search during a first load, and the same number of times after it."""
    state = store.state.with_name("beside")
    state.mkdir(mode=0o700)
    index = state / "index.db"
    command = [SESSIOND, "sync"]
    env = store.env | {"SESSIOND_HOME": str(state)}
    try:
        with subprocess.Popen(
            command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as loader:
            while loader.poll() is None and not has_events(index):
                time.sleep(0.01)
            busy = look(index, lambda _: loader.poll() is None)
            assert loader.stderr
            check(command, loader.returncode, loader.stderr.read(), SYNC_OK)
        return busy, look(index, lambda n: n < len(busy.waits))
    finally:
        shutil.rmtree(state)


def loading(c: Context) -> None:
    """Readers must not notice that the daemon reads a backlog."""
    bench, store = "search-loading", c.work.store(max(40, c.search_mb / 10), terse=True)
    busy, idle = while_loading(store)
    if len(busy.waits) + len(busy.errors) < 10:
        raise BenchError("the load was over before ten searches")
    for error in busy.errors[:3]:
        say(f"{bench}: {error}")
    what = f"searches during a load of {store.mb:.0f} MB"
    c.add(Row(bench, what, len(busy.searches), "", 10, at_least=True))
    c.add(Row(bench, "errors among them", len(busy.errors), "", 0))
    compare(c, "slowest wait for a first row", max(busy.waits), max(idle.waits), 50)
    middle = statistics.median
    compare(c, "median wait for a first row", middle(busy.waits), middle(idle.waits))
    compare(c, "median ranked search", middle(busy.searches), middle(idle.searches))


def compare(c: Context, what: str, busy: float, idle: float, limit: float | None = None) -> None:
    row = Row("search-loading", what, busy * 1000, "ms", limit, ratio=busy / idle, to="at rest")
    c.add(row)


BENCHES: dict[str, Callable[[Context], None]] = {
    "search-ranked": ranked,
    "search-scan": scan,
    "search-client": client,
    "search-modes": modes,
    "search-loading": loading,
}
