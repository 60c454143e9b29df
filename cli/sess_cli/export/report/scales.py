"""Axes: round tick values and their labels."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sess_cli.render import amounts
from sess_common import times

_STEPS = (1, 2, 5, 10)
# Ticks of a logarithmic time axis, in milliseconds.
_SPANS = (
    1, 10, 100, times.SECOND, 10 * times.SECOND, times.MINUTE, 10 * times.MINUTE, times.HOUR,
    10 * times.HOUR, 100 * times.HOUR,
)  # fmt: skip


def ticks(most: float, wanted: int = 4) -> list[float]:
    """Round ticks from zero to the first that is not below the largest value."""
    if most <= 0:
        return [0.0, 1.0]
    rough = most / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * one for one in _STEPS if power * one >= rough * 0.999)
    return [number * step for number in range(math.ceil(most / step - 1e-9) + 1)]


def whole_ticks(most: int, wanted: int = 4) -> list[float]:
    """The same for counts: only whole numbers."""
    return ticks(most, wanted) if most > wanted else [float(number) for number in range(most + 1)]


def dollars(amount: float) -> str:
    """A tick label of a money axis: `$0.25`, `$40`, `$1.5k`."""
    if amount == 0:
        return "$0"
    if amount < 1:
        return f"${amount:.{max(2, -math.floor(math.log10(amount)))}f}"
    if amount < 10:
        return f"${amount:g}"
    return f"${number(amount)}"


def number(amount: float) -> str:
    """A tick label: `40`, `2.5k`, `1M`."""
    for limit, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if amount >= limit:
            return f"{amount / limit:g}{unit}"
    return f"{amount:g}"


def share(amount: int, whole: int) -> str:
    """`3.2%`; tiny shares are not shown as zero."""
    if not whole:
        return ""
    value = 100 * amount / whole
    if 0 < value < 0.1:
        return "<0.1%"
    return f"{value:.0f}%" if value in (0, 100) else f"{value:.1f}%"


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
    found = [0] * bins
    for span in ordered:
        # A whole second belongs right of its tick, however its logarithm is rounded.
        found[min(bins - 1, int(log_place(span, last) * bins + 1e-9))] += 1
    return found
