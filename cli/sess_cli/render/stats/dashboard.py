"""`sess stats` without arguments: the most useful numbers on one screen; and `--watch`."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from functools import partial
from io import StringIO

import apsw

from sess_cli import fresh
from sess_cli.render import amounts, layout
from sess_cli.render.stats.calendar import days_between
from sess_cli.render.stats.report import write_fact
from sess_cli.render.stats.tools import most_called, tool_name
from sess_cli.render.tallies import cost, money, name_of, short
from sess_cli.terminal import Terminal
from sess_common import paths, times
from sess_common.errors import SessError
from sess_schema.queries.stats import Stats, Worktime
from sess_schema.queries.views import overview
from sess_schema.queries.views.overview import Overview
from sess_schema.queries.views.tools import Use
from sess_schema.sums import Tally

_BARS = "▁▂▃▄▅▆▇█"
_ROOM = 10  # for fact names
_TALL = 38  # lines, if they fit
_MOST_BARS = 60
_POLL = 0.25  # seconds between checks of the index, which are cheap
_SYNC = 10.0  # seconds between syncs when no daemon runs
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _END_OF_LINE, _BELOW = "\x1b[H", "\x1b[K", "\x1b[J"


def write(db: apsw.Connection, asked: Stats, terminal: Terminal, height: int | None = None) -> None:
    """Write at most `height` lines; by default, what the terminal shows above its prompt."""
    if height is None:
        lines = shutil.get_terminal_size((80, 24)).lines  # a pipe has no height
        height = min(_TALL, lines - 2) if terminal.interactive else _TALL
    figures = overview.read_overview(db, asked, paths.home().config)
    _draw_facts(terminal, figures)
    # Facts and headings take thirteen lines; tools get most of the rest, then models and projects.
    room = max(3, height - 13)
    top = max(1, min(5, room // 5))
    tools = max(1, min(12, room - 2 * top - 1))
    _draw_top(terminal, "model", figures.models, top)
    _draw_top(terminal, "project", figures.projects, top)
    _draw_tools(terminal, figures, tools)


def _draw_facts(terminal: Terminal, figures: Overview) -> None:
    total, fact = figures.total, partial(write_fact, terminal, room=_ROOM)
    paid = money(total.cost_nano)
    if total.unpriced:
        paid += f" and {amounts.plural(total.unpriced, 'response')} of unknown price"
        paid += f" ({_unpriced(terminal, figures)})"
    if total.saved_nano > 0:
        paid += f"; the cache saved {money(total.saved_nano)}"
    fact("cost", paid)
    if figures.subscriptions:
        names = ", ".join(figures.subscriptions)
        fact("", f"{names}: paid by subscription; this is what the tokens cost at list prices")
    if figures.outdated:
        names = ", ".join(figures.outdated)
        oldest = min(figures.outdated.values())
        fact("", f"prices of {names} are older than half a year ({oldest})")
    reasoned = f" ({short(total.reasoning_tokens)} reasoning)" if total.reasoning_tokens else ""
    tokens = (
        f"{short(total.tokens)}: in {short(total.input_tokens)},"
        f" out {short(total.output_tokens)}{reasoned},"
        f" cache write {short(total.cache_write_tokens)}, read {short(total.cache_read_tokens)}"
    )
    fact("tokens", tokens)
    if figures.estimated_tokens:
        more = amounts.plural(figures.estimated_tokens, "more output token")
        fact("estimated", f"{more}, not recorded")
    counts = {"session": len(total.sessions), "prompt": total.prompts, "response": total.requests}
    work = [amounts.plural(count, name) for name, count in counts.items()]
    if total.others:
        work[0] += f" and {len(total.others):,} unlisted"
    fact("work", ", ".join(work))
    if figures.time.active:
        fact("time", _time(figures.time))
    _draw_days(fact, figures.days)
    uses = figures.uses.tools.values()
    answered = sum(use.answered for use in uses)
    errors = sum(use.errors for use in uses)
    if answered or figures.refused:
        rate = f" ({amounts.percent(errors / answered)})" if answered else ""
        failed = f"{errors:,} of {amounts.plural(answered, 'call')}{rate}"
        if denied := sum(use.denied for use in uses):
            failed += f", {denied:,} denied"
        if figures.refused:
            failed += f"; {amounts.plural(figures.refused, 'API error')}"
        fact("failed", failed)
    if figures.classes:
        fact("errors", _classes(terminal, figures.classes, (terminal.width or 100) - _ROOM))


def _time(spent: Worktime) -> str:
    shares = f"agents {amounts.duration(spent.agent)}, you {amounts.duration(spent.user)}"
    text = f"{amounts.duration(spent.active)} active: {shares}"
    if spent.concurrency > 1:
        text += f"; up to {spent.concurrency:,} sessions at once"
    return text


def _unpriced(terminal: Terminal, figures: Overview) -> str:
    models = sorted(
        (name for name, tally in figures.models.items() if tally.unpriced),
        key=lambda name: (-figures.models[name].unpriced, name),
    )
    named = ", ".join(terminal.line(name) for name in models[:3])
    return named + (", …" if len(models) > 3 else "")


def _classes(terminal: Terminal, classes: Mapping[str, int], width: int) -> str:
    """As many as fit on one line."""
    text = ""
    for name, count in classes.items():
        more = f"{', ' if text else ''}{terminal.line(name)} {count:,}"
        if layout.cells(text + more) > width - 3:
            return text + ", …"
        text += more
    return text


def _draw_days(fact: Callable[[str, str], None], days: Mapping[str, Tally]) -> None:
    """One bar per day, week or month, whichever fits."""
    dated = {date.fromisoformat(day): tally for day, tally in days.items() if day != "undated"}
    if not dated:
        return
    paid = any(tally.cost_nano for tally in dated.values())
    first, last = min(dated), max(dated)
    for name, start in (("day", lambda day: day), ("week", _week), ("month", _month)):
        periods = _periods(first, last, start)
        if len(periods) <= _MOST_BARS or name == "month":
            break
    sums = dict.fromkeys(periods[-_MOST_BARS:], 0)
    for day, tally in dated.items():
        if start(day) in sums:
            sums[start(day)] += tally.cost_nano if paid else tally.tokens + tally.prompts
    most = max(sums.values()) or 1
    bars = "".join(_BARS[min(7, value * 8 // most)] if value else " " for value in sums.values())
    what = "cost" if paid else "work"
    span = f"{first}" if first == last else f"{first} to {last}"
    fact(f"by {name}", bars)
    fact("", f"{what}, {span}")


def _week(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _month(day: date) -> date:
    return day.replace(day=1)


def _periods(first: date, last: date, start: Callable[[date], date]) -> list[date]:
    return [*dict.fromkeys(start(day) for day in days_between(first, last))]


def _draw_top(terminal: Terminal, by: str, groups: Mapping[str, Tally], most: int) -> None:
    rows = [(group, tally) for group, tally in groups.items() if tally.requests]
    rows.sort(key=lambda row: (-row[1].cost_nano, -row[1].tokens, row[0]))
    if not rows:
        return
    terminal.write("")
    more = f" ({len(rows):,})" if len(rows) > most else ""
    head = f"{f'{by}s{more}':<42} {'cost':>11} {'tokens':>9} {'responses':>10}"
    terminal.write(terminal.style(head, "dim"))
    for group, tally in rows[:most]:
        label = terminal.line(name_of(group, by))
        label = layout.cut_start(label, 40) if by == "project" else layout.cut(label, 40)
        numbers = f"{cost(tally):>11} {short(tally.tokens):>9} {tally.requests:>10,}"
        terminal.write(f"  {layout.pad(label, 40)} {numbers}")


def _draw_tools(terminal: Terminal, figures: Overview, most: int) -> None:
    tools = most_called(figures.uses.tools)
    if not tools:
        return
    terminal.write("")
    more = f" ({len(tools):,})" if len(tools) > most else ""
    head = f"{'tools' + more:<26} {'calls':>8} {'errors':>7} {'rate':>6}"
    terminal.write(terminal.style(f"{head} {'p50':>8} {'p95':>8} {'max':>8}", "dim"))
    for tool, use in tools[:most]:
        label = layout.pad(layout.cut(terminal.line(tool_name(tool)), 24), 24)
        terminal.write(f"  {label} {_numbers(use)}".rstrip())


def _numbers(use: Use) -> str:
    rate = "" if use.error_rate is None else amounts.percent(use.error_rate)
    marks = (use.mark(50), use.mark(95), use.mark(100))
    spans = " ".join(f"{'' if mark is None else amounts.duration(mark):>8}" for mark in marks)
    return f"{use.calls:>8,} {use.errors:>7,} {rate:>6} {spans}"


Draw = Callable[[apsw.Connection, Terminal, int], None]


def watch(draw: Draw, *, sync: bool) -> None:
    """Run until interrupted. `draw` writes at most the given number of lines."""
    if not sys.stdout.isatty():
        raise SessError("--watch needs a terminal", hint="leave it out to print once")
    sys.stdout.write(_ENTER)
    try:
        while True:
            with fresh.open_with_sessions(sync=sync) as db:
                _follow(db, draw)
    finally:
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()


def _follow(db: apsw.Connection, draw: Draw) -> None:
    """Draw whenever something changes, until the next sync is due."""
    until = time.monotonic() + _SYNC
    seen: tuple[object, ...] | None = None
    while time.monotonic() < until:
        size = shutil.get_terminal_size((80, 24))
        now = (db.pragma("data_version"), size)
        if now != seen:
            seen = now
            _show(db, draw, size.columns, size.lines)
        time.sleep(_POLL)


def _show(db: apsw.Connection, draw: Draw, columns: int, lines: int) -> None:
    """Overwrite the screen line by line, so that it does not flicker."""
    page = StringIO()
    terminal = Terminal(page, paged=True)
    with db:
        draw(db, terminal, lines - 2)
    drawn = page.getvalue().splitlines()[: lines - 2]
    drawn += [""] * (lines - 1 - len(drawn))
    foot = layout.cut(f"{amounts.clock(times.now_ms(), seconds=True)}  Ctrl-C to quit", columns)
    drawn.append(terminal.style(foot, "dim"))
    sys.stdout.write(_HOME + f"{_END_OF_LINE}\r\n".join(drawn) + _END_OF_LINE + _BELOW)
    sys.stdout.flush()
