"""What is marked for a cut, what that means, and marking it without a screen."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sess_cli.edit.listing import row, tokens
from sess_cli.edit.plan import PARENTLESS, Plan, parse_range
from sess_cli.edit.suggest import Suggestion
from sess_cli.render import amounts
from sess_cli.terminal import Terminal
from sess_common.errors import SessError
from sess_common.program import say
from sess_schema.queries.transcripts import Record

CHOSEN, SUGGESTED, PULLED, KEPT = "x", "◆", "+", " "


@dataclass
class Marks:
    """The marks on the records of a session. Suggestions are shown; only people mark."""

    records: list[Record]
    plan_of: Callable[[Iterable[int]], Plan]
    suggestions: dict[int, Suggestion] = field(default_factory=dict)
    relink: bool = False
    force: bool = False
    chosen: set[int] = field(default_factory=set)
    plan: Plan = field(init=False)

    def __post_init__(self) -> None:
        self._look()

    @property
    def suggested(self) -> set[int]:
        return {number for one in self.suggestions.values() for number in one.to_cut}

    def choose_suggested(self) -> None:
        self.chosen |= self.suggested
        self._look()

    def toggle(self, number: int) -> None:
        self.chosen ^= {number}
        self._look()

    def clear(self) -> None:
        self.chosen.clear()
        self._look()

    def _look(self) -> None:
        self.plan = self.plan_of(self.chosen)

    def mark(self, number: int) -> str:
        """How a record is marked."""
        if number in self.chosen:
            return CHOSEN
        if number in self.plan.pulled:
            return PULLED
        return SUGGESTED if number in self.suggested else KEPT

    def why(self, number: int) -> str:
        """Why a record is suggested, or goes with another one; empty for most."""
        if number in self.suggestions:
            return f"suggested: {self.suggestions[number].reason}"
        for one in self.suggestions.values():
            if number in one.to_cut:
                return f"suggested: its result in {one.record.number} has {one.reason}"
        if number in self.plan.pulled:
            callers = sorted(self.plan.transcript.callers[number] & self.plan.gone)
            if callers:
                return f"goes with {callers[0]}, whose call it answers"
            return "goes with the record that it repeats"
        return ""

    @property
    def warnings(self) -> list[str]:
        return [
            warning.text
            for warning in self.plan.warnings
            if not (self.relink and warning.kind == PARENTLESS)
        ]

    def header(self) -> str:
        """How much there is, and how much is left."""
        plan = self.plan
        left = len(plan.transcript.records) - len(plan.gone)
        counts = f"{len(plan.transcript.records):,} records"
        used = f"{tokens(plan.before)} tokens"
        if not plan.gone:
            return f"{counts}, about {used}; nothing is marked"
        return f"{counts} → {left:,}, about {used} → {tokens(plan.before - plan.saved)}"

    def trouble(self) -> str:
        """What a cut would break, in one line."""
        warnings = self.warnings
        if not warnings:
            return ""
        parents = any(warning.kind == PARENTLESS for warning in self.plan.warnings)
        hint = "; r relinks parents" if parents and not self.relink else ""
        return f"{amounts.plural(len(warnings), 'warning')}: {warnings[0]}{hint}"


def pick_by_numbers(marks: Marks, *, utc: bool) -> bool:
    """Ask for numbers until they are right; without one, nothing is cut."""
    terminal = Terminal()
    for record in marks.records:
        terminal.write(row(terminal, record, utc=utc, mark=marks.mark(record.number)))
        if why := marks.why(record.number):
            terminal.write(f"          {terminal.line(why)}")
    terminal.write(marks.header())
    suggested = ",".join(map(str, sorted(marks.suggested)))
    while True:
        say(f"numbers to cut{f', or s for {suggested}' if suggested else ''}: ")
        line = sys.stdin.readline()
        if not line.strip():
            return False
        if suggested and line.strip() == "s":
            marks.choose_suggested()
            return True
        try:
            marks.chosen.clear()
            for number in parse_range(line, len(marks.plan.transcript.records)):
                marks.toggle(number)
        except SessError as error:
            say(f"sess: {error.message}")
            continue
        return True
