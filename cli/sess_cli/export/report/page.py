"""`sess stats --html`: the report as one self-contained file that runs only its own script."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib import resources
from typing import TYPE_CHECKING

from sess_cli.export.html import shell
from sess_cli.export.report import calendars, figures, over_time, rankings, scales
from sess_cli.export.report.figures import Figures
from sess_cli.export.report.markup import cost, exact, flat, name, text
from sess_cli.render import amounts, layout, tallies

if TYPE_CHECKING:
    import apsw

    from sess_schema.queries.stats import Stats

_ROOM = 6  # difference in rows that makes room for another chart
_NAMED = 8  # models without a price


def write(db: apsw.Connection, asked: Stats, path: str) -> None:
    """Write the report, readable only by its owner."""
    from sess_cli.export.files import new_file  # noqa: PLC0415

    page = document(figures.read(db, asked))
    with new_file(path) as file:
        file.write(page.encode("utf-8", "backslashreplace"))


def document(data: Figures) -> str:
    style, script = _asset("report.css"), _asset("report.js")
    title = f"Coding agents: {flat(_window(data))}"
    head = shell.head(title, style=style, script=script, images=False)
    main = "".join(
        (
            over_time.spent(data),
            over_time.tokens(data),
            _side_by_side(data),
            rankings.latencies(data),
            calendars.year(data),
            calendars.week(data),
        )
    )
    return (
        f"{head}<body>\n"
        f"{_header(data)}\n<main>{main}</main>\n{_footer()}\n"
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _side_by_side(data: Figures) -> str:
    """The rankings in two columns, with failed calls in the shorter one if there is room."""
    left, right = (
        sum(min(rankings.ROWS, len(rows)) for rows in column)
        for column in ((data.models, data.tools), (data.projects, data.classes))
    )
    failed = over_time.failed(data)
    beside = [failed if right - left > _ROOM else "", failed if left - right > _ROOM else ""]
    columns = (
        f"<div>{rankings.models(data)}{rankings.tools(data)}{beside[0]}</div>"
        f"<div>{rankings.projects(data)}{rankings.classes(data)}{beside[1]}</div>"
    )
    return f'<div class="pair">{columns}</div>{"" if any(beside) else failed}'


def _header(data: Figures) -> str:
    chosen = "".join(
        f'<li><span class="dim">{what}</span> {name(value, 80)}</li>'
        for what, value in _filters(data)
    )
    chosen = f'<ul class="filters">{chosen}</ul>' if chosen else ""
    return (
        '<header><div class="head"><h1>Coding agents</h1>'
        '<button type="button" id="theme" hidden>Theme</button></div>'
        f'<p class="window">{text(_window(data))} <span class="dim">{text(_zone(data))}</span></p>'
        f"{chosen}{_tiles(data)}{_unpriced(data)}{_estimated(data)}</header>"
    )


def _filters(data: Figures) -> list[tuple[str, str]]:
    """The filters asked for, as names and values."""
    asked = data.asked
    named = (
        ("agent", asked.agents),
        ("project", [layout.home_short(project) for project in asked.projects]),
        ("model", asked.models),
        ("branch", asked.branches),
    )
    found = [(what, ", ".join(map(flat, values))) for what, values in named if values]
    if data.session is not None:
        found.append(("session", data.session))
    if asked.subagents != "include":
        found.append(("subagents", asked.subagents))
    return found


def _window(data: Figures) -> str:
    asked = data.asked

    def said(moment: int) -> str:
        at = datetime.fromtimestamp(moment / 1000, UTC).astimezone(asked.zone)
        return f"{at:%Y-%m-%d}" if (at.hour, at.minute) == (0, 0) else f"{at:%Y-%m-%d %H:%M}"

    if asked.since is not None and asked.until is not None:
        return f"{said(asked.since)} to {said(asked.until)}"
    if asked.since is not None:
        return f"since {said(asked.since)}"
    if asked.until is not None:
        return f"until {said(asked.until)}"
    days = data.span()
    if days is None:
        return "all time"
    return days[0] if days[0] == days[1] else f"{days[0]} to {days[1]}"


def _zone(data: Figures) -> str:
    zone = data.asked.zone
    return f"time zone {zone or datetime.now().astimezone().tzname()}"


def _tiles(data: Figures) -> str:
    total = data.total
    kinds = [
        f"{tallies.short(count)} {what}"
        for what, count in (
            ("in", total.input_tokens),
            ("out", total.output_tokens),
            ("of it reasoning", total.reasoning_tokens),
            ("cache write", total.cache_write_tokens),
            ("cache read", total.cache_read_tokens),
        )
        if count or not what.startswith("of it")
    ]
    uses = data.uses
    failed = f"{uses.errors:,} failed"
    if uses.errors:
        failed += f", {scales.share(uses.errors, uses.answered)} of the calls that ran"
    if uses.denied:
        failed += f", {uses.denied:,} denied"
    idle = "pauses cut at 5 minutes" + (", all models" if data.asked.models else "")
    worked = f"on {amounts.plural(len(data.active_days), 'active day')}"
    tiles = (
        ("cost", "Cost", cost(total), "as recorded, or at the day's list prices"),
        ("tokens", "Tokens", exact(total.tokens, tallies.short(total.tokens)), ", ".join(kinds)),
        ("sessions", "Sessions", exact(len(total.sessions)), worked),
        ("prompts", "Prompts", exact(total.prompts), "typed by people"),
        ("responses", "Responses", exact(total.requests), "each counted once"),
        ("calls", "Tool calls", exact(total.tool_calls), failed),
        ("active", "Active time", exact(data.active_ms, amounts.duration(data.active_ms)),
         idle),
    )  # fmt: skip
    shown = "".join(
        f'<div class="tile" id="total-{id_}"><dt>{what}</dt><dd>{value}</dd>'
        f'<dd class="dim">{text(more)}</dd></div>'
        for id_, what, value, more in tiles
    )
    return f'<dl class="tiles">{shown}</dl>'


def _unpriced(data: Figures) -> str:
    if not data.unpriced:
        return ""
    listed = ", ".join(
        f"{name(model, 40)} ({count:,})" for model, count in list(data.unpriced.items())[:_NAMED]
    )
    more = len(data.unpriced) - _NAMED
    others = f" and {amounts.plural(more, 'more model')}" if more > 0 else ""
    return (
        '<p class="warning" id="unpriced">'
        f"{amounts.plural(sum(data.unpriced.values()), 'response')} without a known price,"
        f" excluded from cost totals: {listed}"
        f"{others}</p>"
    )


def _estimated(data: Figures) -> str:
    if not data.estimated:
        return ""
    tokens = amounts.plural(data.estimated, "output token")
    return (
        f'<p class="warning" id="estimated">About {tokens} that no'
        " agent recorded (estimated at four characters per token), excluded from all totals.</p>"
    )


def _footer() -> str:
    return (
        '<footer class="dim"><p>A response counts once, even if several lines, forks or resumed'
        " sessions repeat it; a session counts once, with its subagents. Arrow keys move through"
        " the focused chart. Made by <code>sess stats --html</code>"
        f" on {datetime.now(UTC):%Y-%m-%d}.</p>"
        '</footer><div id="tip" role="status" aria-live="polite" hidden></div>'
    )


def _asset(file: str) -> str:
    return resources.files("sess_cli.export.report").joinpath("assets", file).read_text("utf-8")
