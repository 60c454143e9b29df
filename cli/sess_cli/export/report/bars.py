"""Bar charts and latency distributions. Each is a table with a small drawing in each row, so that
names wrap, are cut and are read aloud like text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sess_cli.export.report import scales
from sess_cli.export.report.markup import exact, path, text, tip, whole
from sess_cli.render import amounts
from sess_schema import times
from sess_schema.queries.stats import percentile

_BAR = 16
_MANY = ("one", "two")  # columns of bars
_RIDGE = 30
_BINS = 48
_WIDTH = 1000  # of a drawing that is stretched to the available width


@dataclass(slots=True)
class Bar:
    """One row: a name, and for each column of bars a value and its label."""

    name: str
    values: Sequence[float]
    shown: Sequence[str]  # markup
    tip: str
    colours: Sequence[str]


def bars(label: str, heads: Sequence[str], rows: Sequence[Bar], *, paths: bool = False) -> str:
    """Bars from a common zero; each column has its own scale."""
    most = [max((row.values[n] for row in rows), default=0) or 1 for n in range(len(heads) - 1)]
    head = f'<th scope="col">{text(heads[0])}</th>' + "".join(
        f'<th scope="col" colspan="2">{text(one)}</th>' for one in heads[1:]
    )
    body = "".join(_bar(row, most, paths=paths) for row in rows)
    columns = '<col class="name">' + '<col class="amount"><col class="value">' * (len(heads) - 1)
    return (
        f'<div class="chart rows" tabindex="0" role="group" aria-label="{text(label)}">'
        f'<table class="bars {_MANY[len(heads) - 2]}"><colgroup>{columns}</colgroup>'
        f"<thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _bar(row: Bar, most: Sequence[float], *, paths: bool) -> str:
    cells = []
    for n, value in enumerate(row.values):
        wide = 100 * value / most[n]
        drawn = (
            f'<rect class="{row.colours[n]}" width="{max(wide, 0.4):.2f}%" height="{_BAR}" rx="2"/>'
        )
        cells.append(
            f'<td class="bar"><svg width="100%" height="{_BAR}" aria-hidden="true">'
            f"{row.tip}{drawn if value > 0 else ''}</svg></td>"
            f'<td class="value">{row.shown[n]}</td>'
        )
    shown = path(row.name) if paths else whole(row.name)
    return f'<tr class="mark"><th scope="row">{shown}</th>{"".join(cells)}</tr>'


def spans(label: str, rows: Sequence[tuple[str, Sequence[int]]]) -> str:
    """The distribution of each tool's durations, on one logarithmic axis."""
    marks = scales.span_ticks(max(ordered[-1] for _, ordered in rows))
    body = "".join(_ridge(tool, ordered, marks) for tool, ordered in rows)
    names = "".join(
        f'<text x="{100 * scales.log_place(mark, marks[-1]):.2f}%" y="13"'
        f' class="{"major" if mark in (1, times.SECOND, marks[-1]) else "minor"}"'
        f' text-anchor="{_anchor(number, len(marks))}">{text(scales.span_name(mark))}</text>'
        for number, mark in enumerate(marks)
    )
    return (
        f'<div class="chart rows" tabindex="0" role="group" aria-label="{text(label)}">'
        '<table class="bars spans"><colgroup><col class="name"><col class="amount">'
        '<col class="value"><col class="value"><col class="value max"></colgroup>'
        '<thead><tr><th scope="col">Tool</th><th scope="col">distribution</th>'
        '<th scope="col" class="value">median</th><th scope="col" class="value">p95</th>'
        '<th scope="col" class="value max">max</th>'
        f"</tr></thead><tbody>{body}</tbody><tfoot><tr><td></td>"
        f'<td class="bar"><svg width="100%" height="18" aria-hidden="true">{names}</svg></td>'
        '<td></td><td></td><td class="max"></td></tr></tfoot></table></div>'
    )


def _anchor(number: int, count: int) -> str:
    if number == 0:
        return "start"
    return "end" if number == count - 1 else "middle"


def _ridge(tool: str, ordered: Sequence[int], marks: Sequence[int]) -> str:
    last = marks[-1]
    counts = scales.histogram(ordered, last, _BINS)
    most = max(counts)
    wide = _WIDTH / _BINS
    steps = "".join(
        f"V{_RIDGE * (1 - count / most):.1f}H{(number + 1) * wide:.1f}"
        for number, count in enumerate(counts)
    )
    lines = "".join(
        f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{_RIDGE}"/>'
        for x in (_WIDTH * scales.log_place(mark, last) for mark in marks[1:-1])
    )
    middle, late = percentile(ordered, 50) or 0, percentile(ordered, 95) or 0
    flags = "".join(
        f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{_RIDGE}"/>'
        for kind, x in (
            ("median", _WIDTH * scales.log_place(middle, last)),
            ("late", _WIDTH * scales.log_place(late, last)),
        )
    )
    about = tip(
        tool,
        [
            ("calls", f"{len(ordered):,}"),
            *((f"p{p}", f"{percentile(ordered, p) or 0:,} ms") for p in (50, 90, 95, 99)),
            ("max", f"{ordered[-1]:,} ms"),
        ],
    )
    cells = "".join(
        f'<td class="{kind}">{exact(span, amounts.duration(span))}</td>'
        for kind, span in (("value", middle), ("value", late), ("value max", ordered[-1]))
    )
    return (
        f'<tr class="mark"><th scope="row">{whole(tool)}</th><td class="bar">'
        f'<svg class="ridge" width="100%" height="{_RIDGE}" viewBox="0 0 {_WIDTH} {_RIDGE}"'
        f' preserveAspectRatio="none" aria-hidden="true">{about}{lines}'
        f'<path d="M0 {_RIDGE}{steps}V{_RIDGE}Z"/>{flags}</svg></td>{cells}</tr>'
    )
