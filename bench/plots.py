"""Plots as SVG, readable on light and dark pages."""

import math
from html import escape

FONT = 'font-family="sans-serif" font-size="12" fill="#888"'
COLOURS = ("#4c8bf5", "#e8710a", "#1e8e3e", "#d93025", "#9334e6", "#12a4af", "#b06000", "#888888")
BAR, GAP, LEFT, WIDTH = 16, 6, 330, 760
HEIGHT, EDGE, LEGEND = 330, 60, 270


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def bars(title: str, values: list[tuple[str, float]], limit: float | None = None) -> str:
    """Bars from the left, each with its name and value, and a line at the limit."""
    most = max([value for _, value in values] + [limit or 0]) or 1
    scale = (WIDTH - LEFT - 70) / most
    height = 30 + len(values) * (BAR + GAP)
    parts = [head(title, height)]
    for place, (name, value) in enumerate(values):
        y = 26 + place * (BAR + GAP)
        width = max(1.0, scale * max(value, 0))
        over = limit is not None and value > limit
        colour = COLOURS[1] if over else COLOURS[0]
        label = escape(name if len(name) < 52 else name[:50] + "…")
        parts += [
            f'<text x="{LEFT - 8}" y="{y + 12}" text-anchor="end">{label}</text>',
            f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{colour}"/>',
            f'<text x="{LEFT + width + 6:.1f}" y="{y + 12}">{number(value)}</text>',
        ]
    if limit is not None:
        x = LEFT + scale * limit
        parts.append(line([(x, 22), (x, height)], "#888", dashed=True))
    return "\n".join([*parts, "</svg>"]) + "\n"


def curves(title: str, at: list[float], series: dict[str, list[float]], unit: str) -> str:
    """Lines over sizes in MB, both axes logarithmic; the legend stands in the order of the ends."""
    shown = {name: values for name, values in series.items() if min(values) > 0}
    values = [value for one in shown.values() for value in one]
    bottom, top = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    first, last = math.log10(at[0]), math.log10(at[-1])
    across, up = WIDTH - EDGE - LEGEND, HEIGHT - 70

    def point(size: float, value: float) -> tuple[float, float]:
        right = (math.log10(size) - first) / ((last - first) or 1)
        high = (math.log10(value) - bottom) / ((top - bottom) or 1)
        return EDGE + right * across, HEIGHT - 40 - high * up

    parts = [head(title, HEIGHT)]
    for power in range(bottom, top + 1):
        _, y = point(at[0], 10.0**power)
        parts.append(line([(EDGE, y), (EDGE + across, y)], "#8884"))
        parts.append(
            f'<text x="{EDGE - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>'
        )
    for size in at:
        x, _ = point(size, 10.0**bottom)
        label = f"{size / 1000:.2g} GB" if size >= 999 else f"{size:.0f} MB"
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 20}" text-anchor="middle">{label}</text>')
    parts.append(f'<text x="4" y="{HEIGHT - 4}">{escape(unit)}</text>')
    ordered = sorted(shown, key=lambda name: -shown[name][-1])
    free = 0.0
    for place, name in enumerate(ordered):
        colour = COLOURS[place % len(COLOURS)]
        points = [point(size, value) for size, value in zip(at, shown[name], strict=True)]
        parts.append(line(points, colour))
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
        free = max(points[-1][1], free + 15)  # names do not cover each other
        said = f"{escape(name)}, {number(shown[name][-1])}"
        parts.append(
            f'<text x="{EDGE + across + 10}" y="{free + 4:.1f}" fill="{colour}">{said}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def head(title: str, height: int) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {FONT}>\n'
        f'<text x="4" y="16" font-weight="bold">{escape(title)}</text>'
    )


def line(points: list[tuple[float, float]], colour: str, *, dashed: bool = False) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dash = ' stroke-dasharray="4 3"' if dashed else ""
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"{dash}/>'
