"""Statistics at full size: a week, and everything by day and model."""

from collections.abc import Callable

from harness import SESS, median, run, run_watched
from report import Context, Row

QUESTIONS = (
    ("the last week", ["--since", "2026-02-22"], 250),
    ("everything by day", ["--by", "day"], 500),
    ("everything by model", ["--by", "model"], 500),
    ("everything", [], None),
)


def stats(c: Context) -> None:
    store = c.dense()
    for what, options, limit in QUESTIONS:
        command = [SESS, "stats", *options, "--no-sync"]
        seconds = median(c.repeat, lambda command=command: run(command, store.env))
        beyond = seconds - c.bare
        c.add(
            Row("stats", f"{what}, {store.mb:.0f} MB, beyond the interpreter", beyond * 1000, "ms",
                limit, ratio=seconds / c.bare)
        )  # fmt: skip
        peak = run_watched(command, store.env, (0,), every=0.005).peak_mb
        c.add(Row("stats", f"{what}: peak memory", peak, "MB", 80))
    command = [SESS, "statusline"]
    seconds = median(c.repeat, lambda: run(command, store.env)) - c.bare
    c.add(Row("stats", "sess statusline, beyond the interpreter", seconds * 1000, "ms"))


BENCHES: dict[str, Callable[[Context], None]] = {"stats": stats}
