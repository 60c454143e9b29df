"""Statistics, lists and shown sessions at full size, as people see them."""

from collections.abc import Callable

from harness import SESS, run_watched
from report import Context, Row
from starting import beyond

VIEWS = (
    "tools", "errors", "files", "edits", "context", "cache", "latency", "interruptions", "windows",
    "calendar",
)  # fmt: skip
QUESTIONS: dict[str, tuple[list[str], float | None]] = {
    "the last week as JSON": (["stats", "--since", "2026-02-22", "--json"], 100),
    "everything by day": (["stats", "--by", "day"], 300),
    "the dashboard": (["stats"], 300),
    **{f"stats {view}": (["stats", view], 300) for view in VIEWS},
    "list": (["list"], None),
    "list of everything as JSON": (["list", "--all", "--limit", "0", "--json"], None),
    "show last": (["show", "last"], None),
}


def views(c: Context) -> None:
    store = c.dense()
    for what, (arguments, limit) in QUESTIONS.items():
        command = [SESS, *arguments, "--no-sync"]
        took, more = beyond(store, command, min(3, c.repeat))
        name = f"{what}, {store.mb:.0f} MB, beyond python"
        c.add(Row("views", name, more * 1000, "ms", limit, ratio=took / c.bare))
    command = [SESS, "stats", "--no-sync"]
    peak = run_watched(command, store.env, (0,), every=0.005).peak_mb
    c.add(Row("views", "the dashboard: peak memory", peak, "MB"))


BENCHES: dict[str, Callable[[Context], None]] = {"views": views}
