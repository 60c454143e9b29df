"""Measures sess and sessiond on generated corpora, and prints the figures beside their targets.

    python bench/run.py [BENCH...] [--quick] [--json]

Corpora are kept in bench/data. Times depend on the machine: the last column compares each with
something measured in the same run, a bare `python -c pass` unless the row says otherwise.
"""

import argparse
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import apsw
import cursoring
import editing
import exporting
import filming
import finding
import orjson
import searching
import summing
from harness import (
    HAS_PROC,
    SESS,
    SESSIOND,
    BenchError,
    Finished,
    Store,
    Workspace,
    corpus,
    cpu_seconds,
    median,
    run,
    say,
    status_mb,
)
from report import Context, Row, table

NOWHERE = "qqqnowhere"
QUERIES = (
    "timeout",  # one frequent word
    "the",  # the most frequent one
    "retry backoff",
    "is_error",
    '"raise ValueError"',
    "migrat*",
    "parser cache session",
    "Traceback TimeoutError",
    "src/router.py",
    "测试",
    NOWHERE,
)
PARSE = """
import orjson, pathlib, sys
for path in pathlib.Path(sys.argv[1]).rglob("*.jsonl"):
    with path.open("rb") as lines:
        for line in lines: orjson.loads(line)
"""


def startup(c: Context) -> None:
    c.wall("startup", "python -c pass", c.bare)
    for command in ([SESS, "--version"], [SESS, "--help"], [SESSIOND, "--version"]):
        name = f"{Path(command[0]).name} {command[1]}"
        c.wall("startup", name, median(c.repeat * 2, lambda command=command: run(command)))


def load(c: Context) -> None:
    source = corpus(c.mb)
    # Reads all files once, so that the load finds them in the page cache, too.
    parse = run([sys.executable, "-c", PARSE, str(source)]).seconds
    store = c.main()
    # One load varies by a quarter on a shared machine.
    loads = [store.loaded] + [store.load_again() for _ in range(0 if c.quick else 2)]
    seconds = [one.seconds for one in loads]
    middle = statistics.median(seconds)
    what, to = f"first load, {store.mb:.0f} MB, median of {len(loads)}", "time of orjson alone"
    c.add(Row("load", what, store.mb / middle, "MB/s", 25, True, middle / parse, to))
    if len(loads) > 1:
        c.add(Row("load", "the slowest of them", store.mb / max(seconds), "MB/s"))
        c.add(Row("load", "the fastest of them", store.mb / min(seconds), "MB/s"))
    if HAS_PROC:
        c.add(Row("load", "peak memory, highest", max(one.peak_mb for one in loads), "MB", 350))
    ratio = store.loaded_mb / store.mb
    c.add(Row("load", "index / transcripts", ratio, "", 1.1))


def idle_sync(c: Context) -> None:
    store = c.thousand()
    store.sync()
    seconds = median(c.repeat, store.sync)
    c.wall("idle-sync", "nothing new in 1,000 files", seconds)
    c.add(Row("idle-sync", "the same less python -c pass", (seconds - c.bare) * 1000, "ms", 300))


def append_one(store: Store) -> Finished:
    store.append("one more line about the parser")
    return store.sync(store.live)


def append(c: Context) -> None:
    """One line more must cost the same in a small and in a large store."""
    walls, delays, cpu = {}, {}, {}
    for mb in (2 if c.quick else 10, c.large_mb):
        store = c.work.store(mb)
        for _ in range(200):
            store.append("a line from before")
        store.sync(store.live)
        walls[mb] = median(c.repeat, lambda store=store: append_one(store))
        c.wall("append", f"sync PATH at {mb:g} MB", walls[mb])
        with store.daemon() as pid:
            before = cpu_seconds(pid) if HAS_PROC else 0.0
            samples = appear(store, c.repeat * 5)
            used = cpu_seconds(pid) - before if HAS_PROC else 0.0
        delays[mb], cpu[mb] = statistics.median(samples), used / len(samples)
        c.wall("append", f"newline to searchable at {mb:g} MB", delays[mb])
        c.add(Row("append", f"daemon's processor time at {mb:g} MB", cpu[mb] * 1000, "ms"))
    for what, figures in (("sync PATH", walls), ("searchable", delays), ("processor time", cpu)):
        small, large = figures.values()
        if small:
            c.add(Row("append", f"{what}, large / small store", large / small, "x"))


def search(c: Context) -> None:
    store = c.main()
    found = 0
    for query in QUERIES:
        command = [SESS, "search", "--no-sync", "--json", "--limit", "20", query]
        hits = run(command, store.env, ok=(0, 1)).out.count(b"\n")
        found += hits
        seconds = median(c.repeat, lambda command=command: run(command, store.env, ok=(0, 1)))
        # Finding nothing where something exists is fast, but not a success.
        limit = 250 if hits or query == NOWHERE else None
        c.wall("search", f"{query} ({hits} shown)", seconds, limit)
    if not found:
        raise BenchError("sess search found nothing at all, so its times say nothing")


def appear(store: Store, times: int) -> list[float]:
    """Append lines with a new word each; how long until a reader of the index finds it."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    sql = "SELECT rowid FROM event_index WHERE event_index MATCH ?"
    connection = apsw.Connection(f"file:{store.index}?mode=ro", flags=flags)
    delays = []
    for _ in range(times):
        store.append(f"a line with freshword{store.count} in it")
        word, began = f"freshword{store.count - 1}", time.perf_counter()
        while not list(connection.execute(sql, (word,))):
            if time.perf_counter() - began > 15:
                raise BenchError(f"sessiond start: {word} not searchable after 15 s")
            time.sleep(0.002)
        delays.append(time.perf_counter() - began)
        # Random pauses: a fixed one could fall into step with a timer.
        time.sleep(random.uniform(0.05, 0.4))
    connection.close()
    return delays


def fresh(c: Context) -> None:
    store = c.main()
    with store.daemon():
        delays = sorted(appear(store, 10 if c.quick else 50))
        middle, p95 = statistics.median(delays), delays[int(len(delays) * 0.95)]
        c.wall("fresh", f"newline to searchable, median of {len(delays)}", middle, 300)
        c.wall("fresh", "the same, 95th percentile", p95)
        command = [SESS, "search", "--json", f"freshword{store.count - 1}"]
        wall = median(c.repeat, lambda: run(command, store.env))
        c.wall("fresh", "sess search with the daemon up", wall)


def idle(c: Context) -> None:
    if not HAS_PROC:
        raise BenchError("needs /proc")
    store = c.thousand()
    seconds = 5 if c.quick else 30
    with store.daemon() as pid:
        before, began = cpu_seconds(pid), time.perf_counter()
        time.sleep(seconds)
        used = (cpu_seconds(pid) - before) / (time.perf_counter() - began)
        resident = status_mb(pid, "VmRSS")
        # A daemon that watches nothing is idle, too.
        appear(store, 1)
    c.add(Row("idle", f"processor over {seconds} s, 1,000 files", used * 100, "%", 1))
    c.add(Row("idle", "resident memory", resident, "MB", 80))


BENCHES: dict[str, Callable[[Context], None]] = {
    "startup": startup,
    "load": load,
    "idle-sync": idle_sync,
    "append": append,
    "search": search,
    **searching.BENCHES,
    **finding.BENCHES,
    **cursoring.BENCHES,
    **summing.BENCHES,
    **exporting.BENCHES,
    **editing.BENCHES,
    **filming.BENCHES,
    "fresh": fresh,
    "idle": idle,
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure sess and sessiond.")
    parser.add_argument("benches", nargs="*", metavar="BENCH", help=", ".join(BENCHES))
    parser.add_argument("--quick", action="store_true", help="small corpora, few repetitions")
    parser.add_argument("--mb", type=float, help="size of the main corpus (default 200)")
    parser.add_argument("--large-mb", type=float, help="large store of append (default --mb)")
    parser.add_argument("--search-mb", type=float, help="corpus of search-* (default 1000)")
    parser.add_argument("--repeat", type=int, help="runs per median (default 7)")
    parser.add_argument("--json", action="store_true", help="one object per row")
    args = parser.parse_args()
    for name in args.benches:
        if name not in BENCHES:
            parser.error(f"no bench {name}; there are {', '.join(BENCHES)}")
    mb = args.mb or (20 if args.quick else 200)
    repeat = args.repeat or (3 if args.quick else 7)
    search_mb = args.search_mb or (20 if args.quick else 1000)
    c = Context(Workspace(), args.quick, repeat, mb, args.large_mb or mb, search_mb, [])
    failed = []
    try:
        for name in args.benches or BENCHES:
            try:
                BENCHES[name](c)
            except BenchError as error:
                failed.append(f"{name}: {error}")
                say(f"{name} failed: {error}")
    finally:
        c.work.close()
    if args.json:
        for row in c.rows:
            print(orjson.dumps(asdict(row) | {"verdict": row.verdict}).decode())
    else:
        print(table(c.rows))
        about = f"Python {platform.python_version()}, {os.cpu_count()} cores"
        about += f"; load average {os.getloadavg()[0]:.1f}"
        print(f"\ncorpora of {mb:g} MB, for search-* {search_mb:g} MB; {about}")
    for line in failed:
        print(f"failed: {line}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
