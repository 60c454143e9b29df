"""Measures sess and sessiond on generated corpora, beside a yardstick of the same run.

    python bench/run.py [BENCH...] [--size small|usual|full] [--minutes 13] [--compare]

Writes RESULTS.md, results.json and plots beside this file when all benches were asked for. Corpora
are kept in bench/data. A bench that would begin after `--minutes` is left out, and named.
"""

import argparse
import sys
import time
from collections.abc import Callable

import cursoring
import editing
import exporting
import filming
import finding
import keeping_up
import loading
import painting
import peers
import recalling
import results
import searching
import starting
import viewing
import wear
from harness import BenchError, Store, Workspace, run, say
from report import Context, Row, table


def load(c: Context) -> None:
    """Many small records, real-sized ones, and few huge ones."""
    for shape in loading.SHAPES:
        found = loading.measure(shape, 10 if c.quick else 60, 1 if c.quick else 2)
        size = f"{shape} records, {found['mb']:.0f} MB"
        c.add(Row("load", f"{size}: share of the yardstick", found["share"], "", 0.5, True))
        c.add(Row("load", f"{size}: the same of its rows alone", found["rows_share"], ""))
        c.add(Row("load", f"{size}: share by wall time", found["wall_share"], ""))
        c.add(Row("load", f"{size}: peak memory", found["peak_mb"], "MB", 350))
        c.add(Row("load", f"{size}: index / transcripts", found["index"], "", 0.9))
    for store in (c.work.store(2 if c.quick else 10, terse=True), c.dense()):
        speed = store.mb / store.loaded.seconds
        what = f"small records, {store.mb:.0f} MB"
        c.add(Row("load", what, speed, "MB/s", ratio=_yardstick(store), to="orjson alone, MB/s"))
        c.add(Row("load", f"{what}: peak memory", store.loaded.peak_mb, "MB", 350))
        c.add(Row("load", f"{what}: index / transcripts", store.loaded_mb / store.mb, "", 0.9))


def _yardstick(store: Store) -> float:
    """The speed of the load as a share of decoding the same files."""
    code = (
        "import orjson, pathlib, sys\n"
        "for path in pathlib.Path(sys.argv[1]).rglob('*.jsonl'):\n"
        "    with path.open('rb') as lines:\n"
        "        for line in lines: orjson.loads(line)\n"
    )
    seconds = run([sys.executable, "-c", code, str(store.home / ".claude")]).seconds
    return seconds / store.loaded.seconds


def agents(c: Context) -> None:
    """Every agent's own files, as many as make a megabyte."""
    import agents as every  # needs the tests' golden homes

    mb = 0.2 if c.quick else 1
    usual, *_ = every.speed("claude", mb, every.RECORD)
    for agent in every.golden_home.agents():
        fast, size, *_ = every.speed(agent, mb, every.RECORD)
        row = Row("agents", f"{agent}, {size:.1f} MB", fast, "MB/s of processor time")
        row.ratio, row.to = fast / usual, "Claude Code"
        c.add(row)


# In order of importance: what does not fit into the time is at the end.
BENCHES: dict[str, Callable[[Context], None]] = {
    **starting.BENCHES,
    "load": load,
    "search-ranked": searching.BENCHES["search-ranked"],
    "search-client": searching.BENCHES["search-client"],
    **recalling.BENCHES,
    **viewing.BENCHES,
    **keeping_up.BENCHES,
    **wear.BENCHES,
    "search-modes": searching.BENCHES["search-modes"],
    "search-scan": searching.BENCHES["search-scan"],
    **exporting.BENCHES,
    **painting.BENCHES,
    **editing.BENCHES,
    **filming.BENCHES,
    "agents": agents,
    "search-loading": searching.BENCHES["search-loading"],
    **finding.BENCHES,
    **cursoring.BENCHES,
}


SIZES = {"small": (10.0, 20.0), "usual": (60.0, 300.0), "full": (100.0, 1000.0)}  # MB


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure sess and sessiond.")
    others = {**peers.BENCHES, **painting.PEERS}
    every = {**BENCHES, **others}
    parser.add_argument("benches", nargs="*", metavar="BENCH", help=", ".join(every))
    parser.add_argument("--size", choices=SIZES, default="usual", help="of the corpora")
    parser.add_argument("--compare", action="store_true", help="also other programs")
    parser.add_argument("--minutes", type=float, default=13, help="begin no bench after these")
    parser.add_argument("--repeat", type=int, help="runs per median (default 5, small 3)")
    args = parser.parse_args()
    for name in args.benches:
        if name not in every:
            parser.error(f"no bench {name}; there are {', '.join(every)}")
    (mb, search_mb), small = SIZES[args.size], args.size == "small"
    c = Context(Workspace(), small, args.repeat or (3 if small else 5), mb, search_mb, [])
    names = args.benches or [*BENCHES]
    if args.compare and not args.benches:  # before what may not fit
        at = names.index("agents")
        names[at:at] = others
    failed, began = list[str](), time.monotonic()
    durations: dict[str, float] = {}
    try:
        for name in names:
            if time.monotonic() - began > args.minutes * 60:
                failed.append(f"{name}: not begun, {args.minutes:g} minutes were over")
                continue
            started = time.monotonic()
            try:
                every[name](c)
                durations[name] = time.monotonic() - started
            except BenchError as error:
                failed.append(f"{name}: {error}")
                say(f"{name} failed: {error}")
    finally:
        c.work.close()
    print(table(c.rows))
    about = {
        "corpora": f"bench/corpus.py: {mb:g} MB of records of usual size, and {search_mb:g} MB of"
        " many short ones (`--terse`), as Claude Code writes them; the same bytes at every run",
        "took": f"{(time.monotonic() - began) / 60:.0f} minutes, in seconds: "
        + ", ".join(f"{name} {took:.0f}" for name, took in durations.items()),
    }
    if not args.benches:
        results.write(c.rows, about, failed)
    for line in failed:
        print(f"failed: {line}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
