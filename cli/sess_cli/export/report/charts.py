"""The kinds of `Chart`: bars and spans by name, columns over time, squares of a year and a week.

Each takes a section and one of its charts, and returns the drawing, and what its caption adds.
Widths are percentages, so that a chart fills the available width; heights are pixels. The value
axis is a separate drawing that stays in place when the rest scrolls.
"""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from sess_cli.render import amounts, layout, tallies
from sess_cli.render.stats import calendar
from sess_cli.render.stats.report import Amount, Chart, Column, Section
from sess_cli.render.stats.sums import UNDATED, Axis
from sess_common import times
from sess_common.escape import safe

ROWS = 12  # of bars and spans; the data has all
_NOTHING = ("", "0", "$0")
_UNDATED = "Nothing of it has a date."
_BAR = 16
_MANY = ("one", "two")  # columns of bars
_RIDGE = 30
_BINS = 48
_WIDTH = 1000  # of a drawing that is stretched to the available width
_HEIGHT = 200
_ABOVE = 10  # room for half a label above the highest line
_BELOW = 24
_TALL = _ABOVE + _HEIGHT + _BELOW
_WIDEST = 6.0  # percent of the chart for one column
_DENSE = 40  # more columns than fit the width of a phone
DENSE = '<svg class="columns dense"'
_SWIPE = "The newest are shown: scroll for what came before."
_CENTRED = 14  # few enough for names centred below them
_CELL = 14
_SQUARE = 11
_TOP = 18
_HOURS = 24
_ROW = 24

_TICKS = 4  # about as many above zero
_STEPS = (1, 2, 5, 10)
# Ticks of a logarithmic time axis, in milliseconds.
_SPANS = (
    1, 10, 100, times.SECOND, 10 * times.SECOND, times.MINUTE, 10 * times.MINUTE, times.HOUR,
    10 * times.HOUR, 100 * times.HOUR,
)  # fmt: skip
_LONGEST = 400  # characters of a name

Row = Mapping[str, Any]
Drawing = tuple[str, str]


def amount(row: Row, key: str) -> Any:
    value = row.get(key)
    if isinstance(value, Amount):
        return value.number
    return 0 if value is None else value


def said(column: Column, row: Row) -> str:
    value = row.get(column.key)
    return "" if value is None else column.form(value)


def cell(column: Column, row: Row, shown: str | None = None) -> str:
    """A value as markup, with the exact number for programs if it is a whole one."""
    shown = said(column, row) if shown is None else shown
    value = amount(row, column.key)
    return exact_number(value, shown) if shown and isinstance(value, int) else text(shown)


def _tip(chart: Chart, row: Row, head: str) -> str:
    """All that is not nothing, first what is drawn."""
    ordered = sorted(chart.columns[1:], key=lambda column: column.key not in chart.drawn)
    values = [(column.head, said(column, row)) for column in ordered]
    return tooltip(head, [(what, value) for what, value in values if value not in _NOTHING])


def _drawn(chart: Chart) -> list[Column]:
    return [column for column in chart.columns if column.key in chart.drawn]


def _chart(classes: str, label: str, inside: str) -> str:
    """A chart with keyboard navigation."""
    return (
        f'<div class="chart {classes}" tabindex="0" role="group" aria-label="{text(label)}">'
        f"{inside}</div>"
    )


def _plot(label: str, scale: str, drawing: str) -> str:
    """Arrow keys move in what scrolls; on a narrow screen a line says that it does."""
    hint = "" if DENSE not in drawing else f'<p class="note swipe">{_SWIPE}</p>'
    return (
        f'<div class="chart plot">{scale}<div class="scroll" tabindex="0" role="group"'
        f' aria-label="{text(label)}">{drawing}</div></div>{hint}'
    )


def _first(rows: Sequence[Row]) -> str:
    return f" The first {ROWS} of {len(rows):,}." if len(rows) > ROWS else ""


def bars(section: Section, chart: Chart) -> Drawing:
    """Each column of bars begins at zero and has its own scale."""
    columns = _drawn(chart)
    rows = [row for row in section.rows if any(said(c, row) not in _NOTHING for c in columns)]
    if not rows:
        return "", ""
    most = [max(amount(row, column.key) for row in rows[:ROWS]) or 1 for column in columns]
    heads = "".join(f'<th scope="col" colspan="2">{text(column.head)}</th>' for column in columns)
    body = "".join(_bar(section, chart, row, most) for row in rows[:ROWS])
    widths = '<col class="name">' + '<col class="amount"><col class="value">' * len(columns)
    table = (
        f'<table class="bars {_MANY[len(columns) - 1]}"><colgroup>{widths}</colgroup>'
        f'<thead><tr><th scope="col">{text(section.kind.title())}</th>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )
    return _chart("rows", chart.title, table), _first(rows)


def _bar(section: Section, chart: Chart, row: Row, most: Sequence[float]) -> str:
    head = said(chart.columns[0], row)
    about = _tip(chart, row, head)
    cells = []
    for column, largest in zip(_drawn(chart), most, strict=True):
        value = amount(row, column.key)
        colour = row.get("_colour", column.colour)
        drawn = (
            f'<rect class="{colour}" width="{max(100 * value / largest, 0.4):.2f}%"'
            f' height="{_BAR}" rx="2"/>'
        )
        shown = tallies.short(value) if type(row[column.key]) is int else None
        cells.append(
            f'<td class="bar"><svg width="100%" height="{_BAR}" aria-hidden="true">'
            f"{about}{drawn if value else ''}</svg></td>"
            f'<td class="value">{cell(column, row, shown)}</td>'
        )
    named = path_name(head) if section.paths else whole_name(head)
    return f'<tr class="mark"><th scope="row">{named}</th>{"".join(cells)}</tr>'


def spans(section: Section, chart: Chart) -> Drawing:
    """The distribution of durations in each row, on one logarithmic axis."""
    rows = [row for row in section.rows if row[chart.drawn[0]]]
    if not rows:
        return "", ""
    marks = span_ticks(max(row["max_ms"] for row in rows[:ROWS]))
    body = "".join(_ridge(chart, row, marks) for row in rows[:ROWS])
    names = "".join(
        f'<text x="{100 * log_place(mark, marks[-1]):.2f}%" y="13"'
        f' class="{"major" if mark in (1, times.SECOND, marks[-1]) else "minor"}"'
        f' text-anchor="{_anchor(at, len(marks))}">{text(span_name(mark))}</text>'
        for at, mark in enumerate(marks)
    )
    table = (
        '<table class="bars spans"><colgroup><col class="name"><col class="amount">'
        '<col class="value"><col class="value"><col class="value max"></colgroup>'
        f'<thead><tr><th scope="col">{text(section.kind.title())}</th>'
        '<th scope="col">distribution</th><th scope="col" class="value">median</th>'
        '<th scope="col" class="value">p95</th><th scope="col" class="value max">max</th>'
        f"</tr></thead><tbody>{body}</tbody><tfoot><tr><td></td>"
        f'<td class="bar"><svg width="100%" height="18" aria-hidden="true">{names}</svg></td>'
        '<td></td><td></td><td class="max"></td></tr></tfoot></table>'
    )
    return _chart("rows", chart.title, table), _first(rows)


def _anchor(at: int, count: int) -> str:
    return "start" if at == 0 else "end" if at == count - 1 else "middle"


def _ridge(chart: Chart, row: Row, marks: Sequence[int]) -> str:
    last = marks[-1]
    counts = histogram(row[chart.drawn[0]], last, _BINS)
    wide = _WIDTH / _BINS
    steps = "".join(
        f"V{_RIDGE * (1 - count / max(counts)):.1f}H{(at + 1) * wide:.1f}"
        for at, count in enumerate(counts)
    )
    flags = [("grid", mark) for mark in marks[1:-1]]
    flags += [("median", row["p50_ms"]), ("late", row["p95_ms"])]
    lines = [
        f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{_RIDGE}"/>'
        for kind, x in ((kind, _WIDTH * log_place(span, last)) for kind, span in flags)
    ]
    head = said(chart.columns[0], row)
    cells = "".join(
        f'<td class="{kind}">{exact_number(row[key], amounts.duration(row[key]))}</td>'
        for kind, key in (("value", "p50_ms"), ("value", "p95_ms"), ("value max", "max_ms"))
    )
    return (
        f'<tr class="mark"><th scope="row">{whole_name(head)}</th><td class="bar">'
        f'<svg class="ridge" width="100%" height="{_RIDGE}" viewBox="0 0 {_WIDTH} {_RIDGE}"'
        f' preserveAspectRatio="none" aria-hidden="true">{_tip(chart, row, head)}'
        f"{''.join(lines[:-2])}"
        f'<path d="M0 {_RIDGE}{steps}V{_RIDGE}Z"/>{"".join(lines[-2:])}</svg></td>{cells}</tr>'
    )


def stacks(section: Section, chart: Chart) -> Drawing:
    """Columns of several series, with their legend."""
    drawing, note = columns(section, chart)
    named = short_names([each.head for each in _drawn(chart)], 40)
    keys = [
        (each.colour, name, _brief(each)(amount(chart.total or {}, each.key)))
        for each, name in zip(_drawn(chart), named, strict=True)
    ]
    return (_legend(keys) if drawing else "") + drawing, note


def columns(section: Section, chart: Chart) -> Drawing:
    """What has no date is only in the data."""
    series = _drawn(chart)
    dated, undated = list[list[Any]](), 0
    for row in section.rows:
        values = [amount(row, column.key) for column in series]
        if row[section.kind] == UNDATED:
            undated = sum(values)
        else:
            dated.append(values)
    if not undated and not any(map(any, dated)):
        return "", ""
    note = f" {series[0].form(undated)} without a date: only in the data." if undated else ""
    if not dated:
        return empty_note(_UNDATED), note
    axis = Axis(section.kind, [row[section.kind] for row in section.rows[: len(dated)]])
    tips = [
        _tip(chart, row, axis.name(name))
        for row, name in zip(section.rows, axis.columns, strict=False)
    ]
    most = max(map(sum, dated))
    if series[0].form is tallies.money:
        ticks, names = round_ticks(most / 1e9), money_label
        dated = [[value / 1e9 for value in values] for values in dated]
    else:
        ticks, names = whole_ticks(most or 1), number_label
    scale = "".join(
        f'<text x="50" y="{_y(tick, ticks) + 4}" text-anchor="end">{text(names(tick))}</text>'
        for tick in ticks
    )
    scale = f'<svg class="scale" width="56" height="{_TALL}" aria-hidden="true">{scale}</svg>'
    return _plot(chart.title, scale, _stacked(chart, axis, dated, tips, ticks)), note


def _brief(column: Column) -> Callable[[Any], str]:
    return column.form if column.form is tallies.money else tallies.short


def _y(value: float, ticks: Sequence[float]) -> float:
    return round(_ABOVE + _HEIGHT * (1 - value / ticks[-1]), 1)


def _stacked(
    chart: Chart,
    axis: Axis,
    values: Sequence[Sequence[float]],
    tips: Sequence[str],
    ticks: Sequence[float],
) -> str:
    colours = [column.colour for column in _drawn(chart)]
    slot = 100 / len(values)
    width = min(slot * 0.8, _WIDEST)
    lines = "".join(
        f'<line class="{"base" if tick == 0 else "grid"}" x1="0" x2="100%"'
        f' y1="{_y(tick, ticks)}" y2="{_y(tick, ticks)}"/>'
        for tick in ticks
    )
    drawn = "".join(
        f'<g class="mark">{tips[at]}<rect class="hit" x="{at * slot:.3f}%" y="{_ABOVE}"'
        f' width="{slot:.3f}%" height="{_HEIGHT}"/>'
        f"{_stack(colours, row, at * slot + (slot - width) / 2, width, ticks)}</g>"
        for at, row in enumerate(values)
    )
    centred = len(values) <= _CENTRED
    names = ""
    for at, name in axis.marks():
        last = at == len(values) - 1
        x = at + (0.5 if centred else last)
        anchor = "middle" if centred else "end" if last else "start"
        names += (
            f'<text x="{x * slot:.3f}%" y="{_TALL - 5}" text-anchor="{anchor}">{text(name)}</text>'
        )
    return (
        f'<svg class="columns{" dense" if len(values) > _DENSE else ""}" width="100%"'
        f' height="{_TALL}" role="img" aria-label="{text(chart.title)}">{lines}{drawn}{names}</svg>'
    )


def _stack(
    colours: Sequence[str], row: Sequence[float], x: float, width: float, ticks: Sequence[float]
) -> str:
    drawn = ""
    below = 0.0
    for colour, value in zip(colours, row, strict=True):
        if value <= 0:
            continue
        top = _y(below + value, ticks)
        height = max(0.6, _y(below, ticks) - top)
        drawn += (
            f'<rect class="{colour}" x="{x:.3f}%" y="{top:g}" width="{width:.3f}%"'
            f' height="{height:.1f}"/>'
        )
        below += value
    return drawn


def year(section: Section, chart: Chart) -> Drawing:
    """Weeks side by side, Monday on top, and beside them the facts."""
    rows = {date.fromisoformat(row["day"]): row for row in section.rows}
    values = {day: row[chart.drawn[0]] for day, row in rows.items()}
    if not values:
        return "", ""
    marks = calendar.shade_limits([*values.values()])
    sheets = calendar.sheets(values, chart.until or max(values))
    drawn = ""
    for sheet in sheets:
        months = "".join(
            f'<text x="{column * _CELL}" y="11">{month}</text>' for column, month in sheet.months()
        )
        squares = "".join(
            f'<rect class="mark h{calendar.shade(values.get(day, 0), marks)}"'
            f' x="{sheet.column(day) * _CELL}" y="{_TOP + day.weekday() * _CELL}"'
            f' width="{_SQUARE}" height="{_SQUARE}" rx="2">'
            f"{_tip(chart, rows.get(day, {}), f'{day:%a} {day}')}</rect>"
            for day in sheet.days()
        )
        drawn += f"<h3>{sheet.name}</h3>" if sheet.name else ""
        drawn += _squares(
            f"{chart.title} {sheet.name}".strip(),
            "year",
            (f"{sheet.weeks * _CELL}", _TOP + 7 * _CELL),
            {day: _TOP + day * _CELL + 10 for day in (0, 2, 4)},
            months + squares,
        )
    before = sheets[-1].first
    note = f" Days before {before} are only in the data." if min(values) < before else ""
    facts = "".join(
        f"<div><dt>{text(what)}</dt><dd>{text(how)}</dd></div>" for what, how in chart.facts
    )
    beside = f'<dl class="facts">{facts}</dl>'
    return f'{_shades(marks)}<div class="sheets"><div>{drawn}</div>{beside}</div>', note


def week(section: Section, chart: Chart) -> Drawing:
    """Hours of the day from left to right, Monday on top."""
    rows = {row["_slot"]: row for row in section.rows}
    marks = calendar.shade_limits([row[chart.drawn[0]] for row in section.rows])
    if not marks and not rows:
        return "", ""
    slot = 100 / _HOURS
    squares = ""
    for day in range(7):
        for hour in range(_HOURS):
            name = calendar.slot(day, hour)
            row = rows.get(name, {})
            squares += (
                f'<rect class="mark h{calendar.shade(row.get(chart.drawn[0], 0), marks)}"'
                f' x="{hour * slot:.3f}%" y="{day * _ROW}" width="{slot * 0.9:.3f}%"'
                f' height="{_ROW - 3}" rx="2">{_tip(chart, row, name)}</rect>'
            )
    height = 7 * _ROW + 20
    hours = "".join(
        f'<text x="{hour * slot:.3f}%" y="{height - 4}">{hour:02}:00</text>'
        for hour in range(0, _HOURS, 4)
    )
    names = {day: day * _ROW + 16 for day in range(7)}
    drawn = _squares(chart.title, "week", ("100%", height), names, squares + hours)
    return _shades(marks) + drawn, ""


def _squares(
    label: str, kind: str, size: tuple[str, int], names: Mapping[int, int], drawn: str
) -> str:
    """`names`: the weekdays that are named, and how far below the top."""
    width, height = size
    days = "".join(
        f'<text x="28" y="{y}" text-anchor="end">{calendar.WEEKDAYS[day]}</text>'
        for day, y in names.items()
    )
    return _plot(
        label,
        f'<svg class="scale" width="34" height="{height}" aria-hidden="true">{days}</svg>',
        f'<svg class="{kind}" width="{width}" height="{height}" role="img"'
        f' aria-label="{text(label)}">{drawn}</svg>',
    )


def _shades(marks: Sequence[int]) -> str:
    keys = "".join(
        f"<li>{_key(f'h{at}')}{text(said)}</li>" for at, said in calendar.legend_labels(marks)
    )
    return f'<ul class="legend shades"><li>Prompts and responses:</li>{keys}</ul>'


def _legend(entries: Iterable[tuple[str, str, str]]) -> str:
    """The series: colour, name as markup, and sum."""
    keys = "".join(
        f'<li>{_key(colour)}{shown} <span class="dim">{text(value)}</span></li>'
        for colour, shown, value in entries
    )
    return f'<ul class="legend">{keys}</ul>'


def _key(colour: str) -> str:
    return (
        '<svg class="key" width="11" height="11" aria-hidden="true">'
        f'<rect class="{colour}" width="11" height="11" rx="2"/></svg>'
    )


DRAWINGS: dict[str, Callable[[Section, Chart], Drawing]] = {
    "bars": bars, "spans": spans, "columns": columns, "stacks": stacks, "year": year, "week": week,
}  # fmt: skip


# -- axes: round ticks and their labels


def round_ticks(most: float) -> list[float]:
    """Round ticks from zero to the first that is not below the largest value."""
    if most <= 0:
        return [0.0, 1.0]
    rough = most / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * size for size in _STEPS if power * size >= rough * 0.999)
    return [number * step for number in range(math.ceil(most / step - 1e-9) + 1)]


def whole_ticks(most: int) -> list[float]:
    """The same for counts: only whole numbers."""
    return round_ticks(most) if most > _TICKS else [*map(float, range(most + 1))]


def money_label(amount: float) -> str:
    """A tick label of a money axis: `$0.25`, `$40`, `$1.5k`."""
    if amount == 0:
        return "$0"
    if amount < 1:
        return f"${amount:.{max(2, -math.floor(math.log10(amount)))}f}"
    if amount < 10:
        return f"${amount:g}"
    return f"${number_label(amount)}"


def number_label(amount: float) -> str:
    """A tick label: `40`, `2.5k`, `1M`."""
    for limit, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if amount >= limit:
            return f"{amount / limit:g}{unit}"
    return f"{amount:g}"


def span_ticks(most: int) -> list[int]:
    """Ticks of a logarithmic axis that ends at or above the longest span."""
    kept = [span for span in _SPANS if span < most]
    return [*kept, *_SPANS[len(kept) : len(kept) + 1]] or [1]


def span_name(span: int) -> str:
    """`10ms`, `1s`, `10m`: like durations, without trailing zeros."""
    for unit, name in ((times.HOUR, "h"), (times.MINUTE, "m"), (times.SECOND, "s")):
        if span >= unit:
            return f"{span // unit}{name}"
    return amounts.duration(span)


def log_place(span: float, last: int) -> float:
    """The position of a span on an axis from 1 ms to `last`, from 0 to 1."""
    if span <= 1:
        return 0.0
    return min(1.0, math.log(span) / math.log(last)) if last > 1 else 0.0


def histogram(ordered: Sequence[int], last: int, bins: int) -> list[int]:
    """The number of spans in each of `bins` equal intervals of the logarithmic axis."""
    counts = [0] * bins
    for span in ordered:
        # A whole second belongs right of its tick, however its logarithm is rounded.
        counts[min(bins - 1, int(log_place(span, last) * bins + 1e-9))] += 1
    return counts


# -- markup: names come from transcripts, so they are escaped here


def flat(text: str) -> str:
    """A name on one line, with its control characters made visible."""
    shown = safe(text).replace("\n", "⏎").replace("\t", "⇥")
    return shown if len(shown) <= _LONGEST else shown[:_LONGEST] + "…"


def text(value: str) -> str:
    return html.escape(flat(value), quote=True)


def short_name(value: str, width: int) -> str:
    """A name cut to a width, whole in its tooltip, with its own text direction."""
    return short_names([value], width)[0]


def short_names(values: Sequence[str], width: int, *, from_end: bool = False) -> list[str]:
    """The same for several: those that would be cut to the same are whole."""
    cut = layout.cut_start if from_end else layout.cut
    whole = [*map(flat, values)]
    alike = Counter(cut(shown, width) for shown in {*whole})
    return [_name(shown, cut(shown, width), alike) for shown in whole]


def _name(whole: str, cut: str, alike: Mapping[str, int]) -> str:
    if cut == whole or alike[cut] > 1:
        return f"<bdi>{html.escape(whole, quote=True)}</bdi>"
    title = html.escape(whole, quote=True)
    return f'<bdi title="{title}">{html.escape(cut, quote=True)}</bdi>'


def whole_name(value: str) -> str:
    """A whole name, for a place that cuts by itself what does not fit."""
    shown = html.escape(flat(value), quote=True)
    return f'<bdi dir="ltr" title="{shown}">{shown}</bdi>'


def path_name(value: str) -> str:
    """A path, its last name first, so that cutting keeps the most useful name."""
    above, _, last = flat(value).rpartition("/")
    if not above or not last:
        return whole_name(value)
    shown = html.escape(flat(value), quote=True)
    return (
        f'<bdi dir="ltr" title="{shown}">{html.escape(last)}</bdi>'
        f' <bdi dir="ltr" class="dim">{html.escape(above)}</bdi>'
    )


def tooltip(head: str, lines: Iterable[tuple[str, str]] = ()) -> str:
    """The tooltip of a mark: a heading, then names and values."""
    shown = [text(head), *(f"{text(what)}\t{text(value)}" for what, value in lines)]
    return f"<title>{chr(10).join(shown)}</title>"


def exact_number(value: int | Amount, shown: str = "") -> str:
    """A number for people, with the exact one for programs."""
    number = value.number if isinstance(value, Amount) else value
    return f'<data value="{number}">{text(shown or str(value))}</data>'


def empty_note(caption: str) -> str:
    return f'<p class="empty">{text(caption)}</p>'
