"""Charts with two axes: columns over time, and the squares of a calendar and of a week.

Positions on the time axis are percentages, so that a chart fills the available width; heights are
pixels. The value axis is a separate drawing that stays in place when the rest scrolls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from sess_cli.export.report import days as calendar
from sess_cli.export.report.markup import text, tip
from sess_cli.export.report.periods import Axis

_HEIGHT = 200
_ABOVE = 10  # room for half a label above the highest line
_BELOW = 24
_WIDEST = 6.0  # percent of the chart for one column
_DENSE = 40  # more columns than fit the width of a phone
_CENTRED = 14  # few enough for names centred below them
_CELL = 14
_SQUARE = 11
_HOURS = 24
_ROW = 24


@dataclass(slots=True)
class Columns:
    """Stacked columns: for each position on the axis, one value for each series."""

    label: str  # for screen readers
    axis: Axis
    classes: Sequence[str]  # the colour of each series, from the bottom up
    values: Sequence[Sequence[float]]
    tips: Sequence[str]
    ticks: Sequence[float]
    say: Callable[[float], str]

    def __str__(self) -> str:
        return _framed(self.label, self._scale(), self._drawing())

    def _y(self, value: float) -> float:
        return round(_ABOVE + _HEIGHT * (1 - value / self.ticks[-1]), 1)

    def _scale(self) -> str:
        marks = "".join(
            f'<text x="50" y="{self._y(tick) + 4}" text-anchor="end">{text(self.say(tick))}</text>'
            for tick in self.ticks
        )
        return f'<svg class="scale" width="56" height="{_tall()}" aria-hidden="true">{marks}</svg>'

    def _drawing(self) -> str:
        slots = len(self.values)
        slot = 100 / slots
        width = min(slot * 0.8, _WIDEST)
        lines = "".join(
            f'<line class="{"base" if tick == 0 else "grid"}" x1="0" x2="100%"'
            f' y1="{self._y(tick)}" y2="{self._y(tick)}"/>'
            for tick in self.ticks
        )
        columns = "".join(
            f'<g class="mark">{self.tips[number]}'
            f'<rect class="hit" x="{number * slot:.3f}%" y="{_ABOVE}" width="{slot:.3f}%"'
            f' height="{_HEIGHT}"/>'
            f"{self._stack(row, number * slot + (slot - width) / 2, width)}</g>"
            for number, row in enumerate(self.values)
        )
        names = "".join(self._name(number, name, slot) for number, name in self.axis.marks())
        dense = " dense" if slots > _DENSE else ""
        return (
            f'<svg class="columns{dense}" width="100%" height="{_tall()}" role="img"'
            f' aria-label="{text(self.label)}">{lines}{columns}{names}</svg>'
        )

    def _stack(self, row: Sequence[float], x: float, width: float) -> str:
        drawn = []
        below = 0.0
        for colour, value in zip(self.classes, row, strict=True):
            if value <= 0:
                continue
            top = self._y(below + value)
            height = max(0.6, self._y(below) - top)
            drawn.append(
                f'<rect class="{colour}" x="{x:.3f}%" y="{top:g}" width="{width:.3f}%"'
                f' height="{height:.1f}"/>'
            )
            below += value
        return "".join(drawn)

    def _name(self, number: int, name: str, slot: float) -> str:
        centred = len(self.values) <= _CENTRED
        x = number * slot + (slot / 2 if centred else 0)
        anchor = "middle" if centred else "start"
        return f'<text x="{x:.3f}%" y="{_tall() - 5}" text-anchor="{anchor}">{text(name)}</text>'


def _tall() -> int:
    return _ABOVE + _HEIGHT + _BELOW


def _framed(label: str, scale: str, drawing: str) -> str:
    """A chart with keyboard navigation, its scale next to the scrolling content."""
    return (
        f'<div class="chart plot" tabindex="0" role="group" aria-label="{text(label)}">'
        f'{scale}<div class="scroll">{drawing}</div></div>'
    )


def year(sheet: calendar.Sheet, values: Mapping[date, int], marks: Sequence[int],
         tips: Mapping[date, str], label: str) -> str:  # fmt: skip
    """Weeks side by side, Monday on top."""
    top = 18
    height = top + 7 * _CELL
    names = "".join(
        f'<text x="28" y="{top + row * _CELL + 10}" text-anchor="end">{name}</text>'
        for row, name in enumerate(calendar.WEEKDAYS)
        if row in (0, 2, 4)
    )
    months = "".join(
        f'<text x="{column * _CELL}" y="11">{name}</text>' for column, name in sheet.months()
    )
    squares = "".join(
        f'<rect class="mark h{calendar.shade(values.get(day, 0), marks)}"'
        f' x="{sheet.column(day) * _CELL}" y="{top + day.weekday() * _CELL}"'
        f' width="{_SQUARE}" height="{_SQUARE}" rx="2">'
        f"{tips.get(day) or tip(f'{day:%a} {day.isoformat()}', [('no activity', '')])}</rect>"
        for day in sheet.days()
    )
    scale = f'<svg class="scale" width="34" height="{height}" aria-hidden="true">{names}</svg>'
    drawing = (
        f'<svg class="year" width="{sheet.weeks * _CELL}" height="{height}" role="img"'
        f' aria-label="{text(label)}">{months}{squares}</svg>'
    )
    return _framed(label, scale, drawing)


def week(values: Mapping[tuple[int, int], int], marks: Sequence[int],
         tips: Mapping[tuple[int, int], str], label: str) -> str:  # fmt: skip
    """Hours of the day from left to right, Monday on top."""
    height = 7 * _ROW + 20
    names = "".join(
        f'<text x="28" y="{row * _ROW + 16}" text-anchor="end">{name}</text>'
        for row, name in enumerate(calendar.WEEKDAYS)
    )
    slot = 100 / _HOURS
    squares = "".join(
        f'<rect class="mark h{calendar.shade(values.get((row, hour), 0), marks)}"'
        f' x="{hour * slot:.3f}%" y="{row * _ROW}" width="{slot * 0.9:.3f}%" height="{_ROW - 3}"'
        f' rx="2">{tips[row, hour]}</rect>'
        for row in range(7)
        for hour in range(_HOURS)
    )
    hours = "".join(
        f'<text x="{hour * slot:.3f}%" y="{height - 4}">{hour:02}:00</text>'
        for hour in range(0, _HOURS, 4)
    )
    scale = f'<svg class="scale" width="34" height="{height}" aria-hidden="true">{names}</svg>'
    drawing = (
        f'<svg class="week" width="100%" height="{height}" role="img"'
        f' aria-label="{text(label)}">{squares}{hours}</svg>'
    )
    return _framed(label, scale, drawing)


def shades(marks: Sequence[int], unit: str) -> str:
    """The legend of the shades."""
    keys = "".join(
        f'<li><svg class="key" width="11" height="11" aria-hidden="true">'
        f'<rect class="h{number}" width="11" height="11" rx="2"/></svg>{text(said)}</li>'
        for number, said in calendar.legend(marks)
    )
    return f'<ul class="legend shades"><li>{text(unit)}:</li>{keys}</ul>'


def legend(entries: Sequence[tuple[str, str, str]]) -> str:
    """The legend of the series: colour, name as markup, value."""
    keys = "".join(
        f'<li><svg class="key" width="11" height="11" aria-hidden="true">'
        f'<rect class="{colour}" width="11" height="11" rx="2"/></svg>{shown}'
        f' <span class="dim">{text(value)}</span></li>'
        for colour, shown, value in entries
    )
    return f'<ul class="legend">{keys}</ul>'
