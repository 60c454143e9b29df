"""Prints records of a transcript in rows: `sess records`, `sess cut` and `sess suggest`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from sess_cli.edit.cutting import Cut, Target
from sess_cli.render import amounts, layout
from sess_cli.terminal import Terminal
from sess_schema.queries.transcripts import Record, Transcript

COLOURS = {"user": "green", "assistant": "cyan", "tool": "magenta", "system": "dim"}
_PIPED_WIDTH = 120
_MOST, _FIRST, _LAST = 100, 40, 10  # records of a cut that are shown: all, or its ends


def tokens(count: int) -> str:
    """`812`, `1.2k`, `3.4M`."""
    if count < 1000:
        return str(count)
    if count < 999_950:
        return f"{count / 1000:.1f}k"
    return f"{count / 1e6:.1f}M"


def shown_preview(record: Record) -> str:
    return record.preview or f"({record.kind})"


def lines(
    terminal: Terminal, target: Target, transcript: Transcript, *, graph: bool, utc: bool
) -> Iterator[str]:
    shown = transcript.of(target.session.key)
    yield terminal.line(f"{target.session.session}  {target.session.agent}")
    yield terminal.line(layout.home_short(target.name))
    total = sum(record.tokens for record in shown)
    yield f"{amounts.plural(len(shown), 'record')}, about {tokens(total)} tokens"
    yield ""
    ties = _ties(transcript) if graph else {}
    for record in shown:
        yield row(terminal, record, utc=utc, ties=ties.get(record.number, "") if graph else None)


def row(
    terminal: Terminal,
    record: Record,
    *,
    utc: bool = False,
    ties: str | None = None,
    mark: str = "",
) -> str:
    """One record in one line."""
    time = amounts.clock(record.ts, utc=utc, seconds=True) if record.ts is not None else ""
    role = terminal.style(f"{record.role:<9}", COLOURS[record.role])
    start = f"{mark}{record.number:>5}  "
    middle = f"  {tokens(record.tokens):>6}  {time:<8}  "
    tied = "" if ties is None else layout.pad(ties, 12) + "  "
    used = len(start) + 9 + len(middle) + layout.cells(tied)
    width = max(20, (terminal.width or _PIPED_WIDTH) - used)
    preview = layout.cut(terminal.line(shown_preview(record)), width)
    return f"{start}{role}{terminal.style(middle, 'dim')}{tied}{preview}".rstrip()


def _ties(transcript: Transcript) -> dict[int, str]:
    """`→ 6` for a call that 6 answers, `← 5` for the result of a call in 5, `→ ?` for no result."""
    ties: dict[int, list[str]] = defaultdict(list)
    answered = {(edge.caller, edge.call.event) for edge in transcript.edges}
    for edge in transcript.edges:
        ties[edge.answer].append(f"← {edge.caller}")
    for record in transcript.records:
        for call in record.calls:
            if (record.number, call.event) not in answered:
                ties[record.number].append("→ ?")
    for edge in transcript.edges:
        ties[edge.caller].append(f"→ {edge.answer}")
    return {number: ", ".join(dict.fromkeys(own)) for number, own in ties.items()}


def cut_lines(terminal: Terminal, cut: Cut) -> Iterator[str]:
    """What a cut takes out."""
    plan = cut.plan
    with_them = f", {len(plan.pulled)} of them because they belong to others" if plan.pulled else ""
    yield f"{amounts.plural(len(plan.gone), 'record')} to cut{with_them}:"
    gone = plan.removed()
    hidden = len(gone) - _FIRST - _LAST if len(gone) > _MOST else 0
    for place, record in enumerate(gone):
        if hidden and place == _FIRST:
            yield f"   … {hidden:,} more; --json lists them all"
        if hidden and _FIRST <= place < _FIRST + hidden:
            continue
        sign = ("-", "red") if record.number in plan.chosen else ("+", "yellow")
        yield row(terminal, record, mark=terminal.style(*sign))
    left = plan.before - plan.saved
    yield f"about {tokens(plan.before)} tokens before, {tokens(left)} after"
    for text in cut.warnings:
        yield terminal.style(f"warning: {text}", "yellow")
