"""`sess stats --html`: the report as one self-contained file that runs only its own script."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sess_cli.export.html import shell
from sess_cli.export.report import charts as drawings
from sess_cli.export.report.charts import (
    Row,
    amount,
    cell,
    empty_note,
    exact_number,
    flat,
    said,
    short_name,
    short_names,
    text,
)
from sess_cli.render import amounts, layout, tallies
from sess_cli.render.stats import report_of
from sess_cli.render.stats.report import Amount, Chart, Report, Section, ViewOptions
from sess_common import times
from sess_schema import outputs

if TYPE_CHECKING:
    import apsw

    from sess_schema.queries.stats import Stats

_ASSETS = os.path.join(os.path.dirname(__file__), "assets")
_VIEWS = ("errors", "sums", "tools", "calendar")  # errors first: they need and free most memory
_ROOM = 6  # difference in rows that makes room for another chart
_NAMED = 8  # models without a price
_MOST_ROWS = 2000  # of a table


def write(db: apsw.Connection, asked: Stats, path: str, *, replace: bool = False) -> None:
    """Write the report, readable only by its owner."""
    options = ViewOptions(now=times.now_ms())
    views = [report_of(view, db, asked, options) for view in _VIEWS]
    session = None
    if asked.session is not None:
        stored = db.execute("SELECT native_id FROM sessions WHERE id = ?", (asked.session,))
        session = str(stored.get)
    page = _document(asked, views, session)
    with outputs.new_file(path, replace=replace) as file:
        file.write(page.encode("utf-8", "backslashreplace"))


def _document(asked: Stats, views: Sequence[Report], session: str | None) -> str:
    rows = {(report.view, part.kind): part.rows for report in views for part in report.sections}
    charts = {
        chart.name: (part, chart)
        for report in views
        for part in report.sections
        for chart in part.charts
    }
    (total,) = rows["sums", "total"]
    active_days = rows["calendar", "total"][0]["active_days"]
    style, script = (shell.asset(name, _ASSETS) for name in ("report.css", "report.js"))
    window = _window(asked, rows["calendar", "day"])
    zone = f"time zone {asked.zone or datetime.now().astimezone().tzname()}"
    return (
        shell.head(f"Coding agents: {window}", style=style, script=script, images=False)
        + '<body>\n<header><div class="head"><h1>Coding agents</h1>'
        '<button type="button" id="theme" hidden>Theme</button></div>'
        f'<p class="window">{text(window)} <span class="dim">{text(zone)}</span></p>'
        f"{_filters(asked, session)}"
        f"{_tiles(asked, total, charts['tools'][1].total or {}, active_days)}"
        f"{_excluded(rows['sums', 'model'], total)}</header>\n"
        f"<main>{_main(charts)}</main>\n{_footer()}\n"
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _main(charts: Mapping[str, tuple[Section, Chart]]) -> str:
    """The rankings in two columns, with failed calls in the shorter one if there is room."""
    figures = {name: _figure(*drawn) for name, drawn in charts.items()}
    columns = [["models", "tools"], ["projects", "errors"]]
    left, right = (
        sum(min(drawings.ROWS, len(charts[name][0].rows)) for name in names) for names in columns
    )
    below = ["latency", "calendar", "clock"]
    if abs(left - right) > _ROOM:
        columns[left > right].append("failures")
    else:
        below.insert(0, "failures")
    pair = "".join(f"<div>{''.join(figures[name] for name in names)}</div>" for names in columns)
    return (
        f'{figures["cost"]}{figures["tokens"]}<div class="pair">{pair}</div>'
        f"{''.join(figures[name] for name in below)}"
    )


def _figure(section: Section, chart: Chart) -> str:
    """A chart with its heading, a caption, and its data."""
    drawing, note = drawings.DRAWINGS[chart.kind](section, chart)
    return (
        f'<figure id="{chart.name}"><figcaption><h2>{text(chart.title)}</h2>'
        f'<p class="note">{text(chart.about + note)}</p></figcaption>'
        f"{drawing or empty_note(chart.nothing)}{_table(section, chart)}</figure>"
    )


def _table(section: Section, chart: Chart) -> str:
    """The data of a chart: every row in which something was counted."""
    first, *columns = chart.columns
    cells = [
        (said(first, row), [cell(column, row) for column in columns])
        for row in section.rows
        if any(amount(row, column.key) for column in columns)
    ]
    if not cells:
        return ""
    heads = "".join(
        f'<th scope="col">{head}</th>'
        for head in short_names([column.head for column in chart.columns], 40)
    )
    named = short_names([head for head, _ in cells[:_MOST_ROWS]], 60, from_end=True)
    rows = "".join(_row(head, row) for head, (_, row) in zip(named, cells, strict=False))
    foot = note = ""
    if chart.total is not None:
        total = [cell(column, chart.total) for column in columns]
        foot = f"<tfoot>{_row('total', total)}</tfoot>"
    if len(cells) > _MOST_ROWS:
        shown = f"{_MOST_ROWS:,} of {len(cells):,} rows shown; the total includes all."
        note = f'<p class="note">{shown}</p>'
    return (
        f'<details class="data" id="{chart.name}-data"><summary>Data</summary>{note}'
        '<div class="scroll" tabindex="0" role="group" aria-label="Data">'
        f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody>{foot}</table>"
        "</div></details>"
    )


def _row(head: str, cells: Sequence[str]) -> str:
    return f'<tr><th scope="row">{head}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'


def _filters(asked: Stats, session: str | None) -> str:
    """The filters asked for, as names and values."""
    given = {
        "agent": asked.agents,
        "project": [layout.home_short(project) for project in asked.projects],
        "model": asked.models,
        "branch": asked.branches,
        "session": [session] if session is not None else (),
        "subagents": [asked.subagents] if asked.subagents != "include" else (),
    }
    chosen = "".join(
        f'<li><span class="dim">{what}</span> {short_name(", ".join(map(flat, values)), 80)}</li>'
        for what, values in given.items()
        if values
    )
    return f'<ul class="filters">{chosen}</ul>' if chosen else ""


def _window(asked: Stats, days: Sequence[Row]) -> str:
    def moment(ms: int) -> str:
        at = datetime.fromtimestamp(ms / 1000, UTC).astimezone(asked.zone)
        return f"{at:%Y-%m-%d}" if (at.hour, at.minute) == (0, 0) else f"{at:%Y-%m-%d %H:%M}"

    if asked.since is not None and asked.until is not None:
        return f"{moment(asked.since)} to {moment(asked.until)}"
    if asked.since is not None:
        return f"since {moment(asked.since)}"
    if asked.until is not None:
        return f"until {moment(asked.until)}"
    if not days:
        return "all time"
    first, last = days[0]["day"], days[-1]["day"]
    return first if first == last else f"{first} to {last}"


def _tiles(asked: Stats, total: Row, tools: Row, active_days: int) -> str:
    kinds = [
        f"{tallies.short(total[key])} {what}"
        for what, key in (
            ("in", "input_tokens"),
            ("out", "output_tokens"),
            ("of it reasoning", "reasoning_tokens"),
            ("cache write", "cache_write_tokens"),
            ("cache read", "cache_read_tokens"),
        )
        if total[key] or not what.startswith("of it")
    ]
    failed = f"{tools['errors']:,} failed"
    if tools["errors"]:
        failed += f", {amounts.percent(tools['error_rate'])} of the calls that ran"
    if tools["denied"]:
        failed += f", {tools['denied']:,} denied"
    idle = "pauses cut at 5 minutes" + (", all models" if asked.models else "")
    tokens = Amount(total["tokens"], tallies.short(total["tokens"]))
    active = Amount(total["active_ms"], amounts.duration(total["active_ms"]))
    days = f"on {amounts.plural(active_days, 'active day')}"
    if total["other_sessions"]:
        days += f"; {total['other_sessions']:,} unlisted"
    tiles = (
        ("cost", "Cost", total["_cost"], "as recorded, or at the day's list prices"),
        ("tokens", "Tokens", tokens, ", ".join(kinds)),
        ("sessions", "Sessions", total["sessions"], days),
        ("prompts", "Prompts", total["prompts"], "typed by people"),
        ("responses", "Responses", total["requests"], "each counted once"),
        ("calls", "Tool calls", total["tool_calls"], failed),
        ("active", "Active time", active, idle),
    )
    shown = "".join(
        f'<div class="tile" id="total-{key}"><dt>{what}</dt><dd>{exact_number(value)}</dd>'
        f'<dd class="dim">{text(more)}</dd></div>'
        for key, what, value, more in tiles
    )
    return f'<dl class="tiles">{shown}</dl>'


def _excluded(models: Sequence[Row], total: Row) -> str:
    """What no total includes."""
    notes = ""
    unpriced = {row["model"]: row["unpriced_requests"] for row in models}
    ranked = sorted(filter(unpriced.get, unpriced), key=lambda model: (-unpriced[model], model))
    if ranked:
        named = short_names(ranked[:_NAMED], 40)
        listed = ", ".join(
            f"{name} ({unpriced[m]:,})" for name, m in zip(named, ranked, strict=False)
        )
        if more := len(ranked[_NAMED:]):
            listed += f" and {amounts.plural(more, 'more model')}"
        notes += (
            '<p class="warning" id="unpriced">'
            f"{amounts.plural(sum(unpriced.values()), 'response')} without a known price,"
            f" excluded from cost totals: {listed}</p>"
        )
    if total["estimated"]:
        tokens = amounts.plural(total["estimated"], "output token")
        notes += (
            f'<p class="warning" id="estimated">About {tokens} that no agent recorded'
            " (estimated at four characters per token), excluded from all totals.</p>"
        )
    return notes


def _footer() -> str:
    return (
        '<footer class="dim"><p>A response counts once, even if several lines, forks or resumed'
        " sessions repeat it; a session counts once, with its subagents. Arrow keys move through"
        " the focused chart. Made by <code>sess stats --html</code>"
        f" on {datetime.now(UTC):%Y-%m-%d}.</p>"
        '</footer><div id="tip" role="status" aria-live="polite" hidden></div>'
    )
