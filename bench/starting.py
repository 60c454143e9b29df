"""Start-up: what each command costs beyond `python -c pass`, and what it loads.

Commands take turns with the bare interpreter, so that all of them see the same neighbours.
"""

import statistics
import subprocess
import sys
from collections.abc import Callable

from harness import SESS, SESSIOND, Store, run
from report import Context, Row

BARE = [sys.executable, "-c", "pass"]
COMMANDS: dict[tuple[str, ...], float | None] = {
    (SESS, "--version"): 50,
    (SESS, "--help"): 50,
    (SESS, "statusline"): 60,
    (SESS, "search", "--no-sync", "parser"): 60,
    (SESS, "search", "--no-sync", "--json", "parser"): None,
    (SESS, "list", "--no-sync"): None,
    (SESS, "show", "last", "--no-sync"): None,
    (SESS, "stats", "--no-sync", "--since", "7d"): 100,
    (SESSIOND, "--version"): None,
}


def name_of(command: tuple[str, ...]) -> str:
    program, *rest = command
    return " ".join([program.rpartition("/")[2], *(one for one in rest if one != "--no-sync")])


def beyond(store: Store, command: list[str], repeat: int) -> tuple[float, float]:
    """Seconds, and seconds beyond the interpreter, medians of runs that take turns with it."""
    run(command, store.env, ok=(0, 1))
    pairs = [
        (run(command, store.env, ok=(0, 1)).seconds, run(BARE, store.env).seconds)
        for _ in range(repeat)
    ]
    took = statistics.median(pair[0] for pair in pairs)
    return took, took - statistics.median(pair[1] for pair in pairs)


def imports(store: Store, command: list[str]) -> tuple[int, float]:
    """How many modules it loads, and how many milliseconds that takes under -X importtime."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *command],
        env=store.env,
        capture_output=True,
        text=True,
        check=False,
    )
    own = [
        int(line.removeprefix("import time:").partition("|")[0])
        for line in done.stderr.splitlines()
        if line.startswith("import time:") and "self" not in line
    ]
    return len(own), sum(own) / 1000


def startup(c: Context) -> None:
    store = c.work.store(10)
    c.wall("startup", "python -c pass", c.bare)
    for command, limit in COMMANDS.items():
        took, more = beyond(store, list(command), c.repeat * 2)
        what = f"{name_of(command)}, beyond python"
        c.add(Row("startup", what, more * 1000, "ms", limit, ratio=took / c.bare))
        number, ms = imports(store, list(command))
        c.add(Row("startup", f"{name_of(command)}: {number} modules, importtime", ms, "ms"))


BENCHES: dict[str, Callable[[Context], None]] = {"startup": startup}
