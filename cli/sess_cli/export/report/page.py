"""`sess stats --html`: one file with everything in it, that runs nothing but its own script."""

from __future__ import annotations

import base64
import hashlib
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

_ROOM = 6  # rows that a column lacks before a chart over time goes below it
_NAMED = 8  # models without a price


def write(db: apsw.Connection, asked: Stats, path: str) -> None:
    """The report of what was asked for, as a file for its owner."""
    from sess_cli.export.files import new_file  # noqa: PLC0415

    page = document(figures.read(db, asked))
    with new_file(path) as file:
        file.write(page.encode("utf-8", "backslashreplace"))


def document(told: Figures) -> str:
    style, script, early = _asset("report.css"), _asset("report.js"), shell.early()
    policy = (
        f"default-src 'none'; style-src {_hashed(style)};"
        f" script-src {_hashed(early)} {_hashed(script)}; base-uri 'none'; form-action 'none'"
    )
    main = "".join(
        (
            over_time.spent(told),
            over_time.tokens(told),
            _side_by_side(told),
            rankings.latencies(told),
            calendars.year(told),
            calendars.week(told),
        )
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>Coding agents: {text(_window(told))}</title>\n"
        f"<style>{style}</style>\n<script>{early}</script>\n</head>\n<body>\n"
        f"{_header(told)}\n<main>{main}</main>\n{_footer()}\n"
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _side_by_side(told: Figures) -> str:
    """The charts in rows in two columns; the failed calls where there is room for them."""
    left, right = (
        sum(min(rankings.ROWS, len(rows)) for rows in column)
        for column in ((told.models, told.tools), (told.projects, told.classes))
    )
    failed = over_time.failed(told)
    beside = [failed if right - left > _ROOM else "", failed if left - right > _ROOM else ""]
    columns = (
        f"<div>{rankings.models(told)}{rankings.tools(told)}{beside[0]}</div>"
        f"<div>{rankings.projects(told)}{rankings.classes(told)}{beside[1]}</div>"
    )
    return f'<div class="pair">{columns}</div>{"" if any(beside) else failed}'


def _header(told: Figures) -> str:
    chosen = "".join(
        f'<li><span class="dim">{what}</span> {name(value, 80)}</li>'
        for what, value in _filters(told)
    )
    chosen = f'<ul class="filters">{chosen}</ul>' if chosen else ""
    return (
        '<header><div class="head"><h1>Coding agents</h1>'
        '<button type="button" id="theme" hidden>Theme</button></div>'
        f'<p class="window">{text(_window(told))} <span class="dim">{text(_zone(told))}</span></p>'
        f"{chosen}{_tiles(told)}{_unpriced(told)}{_estimated(told)}</header>"
    )


def _filters(told: Figures) -> list[tuple[str, str]]:
    """What was asked for, as names and values."""
    asked = told.asked
    named = (
        ("agent", asked.agents),
        ("project", [layout.home_short(project) for project in asked.projects]),
        ("model", asked.models),
        ("branch", asked.branches),
    )
    found = [(what, ", ".join(map(flat, values))) for what, values in named if values]
    if told.session is not None:
        found.append(("session", told.session))
    if asked.subagents != "include":
        found.append(("subagents", asked.subagents))
    return found


def _window(told: Figures) -> str:
    asked = told.asked

    def said(moment: int) -> str:
        at = datetime.fromtimestamp(moment / 1000, UTC).astimezone(asked.zone)
        return f"{at:%Y-%m-%d}" if (at.hour, at.minute) == (0, 0) else f"{at:%Y-%m-%d %H:%M}"

    if asked.since is not None and asked.until is not None:
        return f"{said(asked.since)} to {said(asked.until)}"
    if asked.since is not None:
        return f"since {said(asked.since)}"
    if asked.until is not None:
        return f"until {said(asked.until)}"
    days = told.span()
    if days is None:
        return "all time"
    return days[0] if days[0] == days[1] else f"{days[0]} to {days[1]}"


def _zone(told: Figures) -> str:
    zone = told.asked.zone
    return f"time zone {zone or datetime.now().astimezone().tzname()}"


def _tiles(told: Figures) -> str:
    total = told.total
    parts = [
        f"{tallies.short(count)} {what}"
        for what, count in (
            ("in", total.input_tokens),
            ("out", total.output_tokens),
            ("cache write", total.cache_write_tokens),
            ("cache read", total.cache_read_tokens),
        )
    ]
    uses = told.uses
    failed = f"{uses.errors:,} failed"
    if uses.errors:
        failed += f", {scales.share(uses.errors, uses.answered)} of those answered"
    if uses.denied:
        failed += f", {uses.denied:,} denied"
    idle = "gaps cut at 5 minutes" + (", with all models" if told.asked.models else "")
    worked = f"on {amounts.plural(len(told.active_days), 'active day')}"
    tiles = (
        ("cost", "Cost", cost(total), "as recorded, or at list prices of the day"),
        ("tokens", "Tokens", exact(total.tokens, tallies.short(total.tokens)), ", ".join(parts)),
        ("sessions", "Sessions", exact(len(total.sessions)), worked),
        ("prompts", "Prompts", exact(total.prompts), "by people and to subagents"),
        ("responses", "Responses", exact(total.requests), "each counted once"),
        ("calls", "Tool calls", exact(total.tool_calls), failed),
        ("active", "Active time", exact(told.active_ms, amounts.duration(told.active_ms)),
         idle),
    )  # fmt: skip
    shown = "".join(
        f'<div class="tile" id="total-{id_}"><dt>{what}</dt><dd>{value}</dd>'
        f'<dd class="dim">{text(more)}</dd></div>'
        for id_, what, value, more in tiles
    )
    return f'<dl class="tiles">{shown}</dl>'


def _unpriced(told: Figures) -> str:
    if not told.unpriced:
        return ""
    listed = ", ".join(
        f"{name(model, 40)} ({count:,})" for model, count in list(told.unpriced.items())[:_NAMED]
    )
    more = len(told.unpriced) - _NAMED
    return (
        '<p class="warning" id="unpriced">'
        f"{amounts.plural(sum(told.unpriced.values()), 'response')} of unknown price, in no sum of"
        f" money: {listed}{f' and {more:,} more models' if more > 0 else ''}</p>"
    )


def _estimated(told: Figures) -> str:
    if not told.estimated:
        return ""
    return (
        f'<p class="warning" id="estimated">About {exact(told.estimated)} tokens of output that no'
        " agent recorded (estimated at four characters a token), in no sum.</p>"
    )


def _footer() -> str:
    return (
        '<footer class="dim"><p>A response is counted once, however many lines, forks and resumes'
        " repeat it; a session once, with its subagents. Arrow keys walk through a chart that has"
        f" the focus. Made by <code>sess stats --html</code> on {datetime.now(UTC):%Y-%m-%d}.</p>"
        '</footer><div id="tip" role="status" aria-live="polite" hidden></div>'
    )


def _asset(file: str) -> str:
    return resources.files("sess_cli.export.report").joinpath("assets", file).read_text("utf-8")


def _hashed(source: str) -> str:
    digest = hashlib.sha256(source.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
