"""State shared by the benches, and the table of their figures."""

import sys
from dataclasses import dataclass

from harness import Store, Workspace, median, run, say
from plots import number


@dataclass
class Row:
    bench: str
    what: str
    value: float
    unit: str
    limit: float | None = None
    at_least: bool = False
    ratio: float | None = None
    to: str = ""

    @property
    def verdict(self) -> str:
        if self.limit is None:
            return ""
        good = self.value >= self.limit if self.at_least else self.value <= self.limit
        return "ok" if good else "MISS"


@dataclass
class Context:
    work: Workspace
    quick: bool
    repeat: int
    mb: float
    search_mb: float
    rows: list[Row]
    bare_seconds: float = 0.0

    @property
    def bare(self) -> float:
        """Seconds that `python -c pass` takes here and now."""
        if not self.bare_seconds:
            self.bare_seconds = median(self.repeat * 2, lambda: run([sys.executable, "-c", "pass"]))
        return self.bare_seconds

    def add(self, row: Row) -> None:
        if self.quick:
            row.limit = None  # the targets are for the full sizes
        self.rows.append(row)
        value = f"{row.value:.3g} {row.unit}"
        say(f"{row.bench}: {row.what}: {value} {row.verdict}".rstrip())

    def wall(self, bench: str, what: str, seconds: float, limit: float | None = None) -> None:
        self.add(Row(bench, what, seconds * 1000, "ms", limit, ratio=seconds / self.bare))

    def thousand(self) -> Store:
        return self.work.store(5, 1000)

    def main(self) -> Store:
        return self.work.store(self.mb)

    def dense(self) -> Store:
        """Many short events: the cost of searching grows with their number."""
        return self.work.store(self.search_mb, terse=True)


def table(rows: list[Row]) -> str:
    cells = [("bench", "measure", "value", "", "target", "", "ratio", "")]
    for row in rows:
        sign = ">=" if row.at_least else "<="
        target = f"{sign} {number(row.limit)}" if row.limit is not None else ""
        ratio = f"{row.ratio:.1f}x" if row.ratio is not None else ""
        to = row.to or ("python -c pass" if ratio else "")
        value = number(row.value)
        cells.append((row.bench, row.what, value, row.unit, target, row.verdict, ratio, to))
    widths = [max(len(line[n]) for line in cells) for n in range(8)]
    right = {2, 4, 6}
    return "\n".join(
        "  ".join(
            cell.rjust(widths[n]) if n in right else cell.ljust(widths[n])
            for n, cell in enumerate(line)
        ).rstrip()
        for line in cells
    )
