"""All the data of the report, read from the index once."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING

from sess_cli.export.report import periods
from sess_cli.export.report.periods import UNDATED, Axis
from sess_schema import paths
from sess_schema.queries.stats import NONE, Stats, Tally
from sess_schema.queries.views import failures, tools
from sess_schema.queries.views.calendar import busy
from sess_schema.queries.views.tools import Use

if TYPE_CHECKING:
    import apsw

OTHER = "other"
REST = "s6"  # the CSS class of all other models
_SERIES = 6


@dataclass(slots=True)
class Figures:
    asked: Stats
    total: Tally
    axis: Axis
    columns: dict[str, Tally]  # by column of the axis, or undated
    by_model: dict[str, dict[str, Tally]]  # the same, then by model
    models: dict[str, Tally]  # largest first
    projects: dict[str, Tally]
    tools: dict[str, Use]
    classes: dict[str, int]  # failed calls by class, most first
    active_ms: int
    estimated: int  # tokens that no agent recorded; not in any total
    session: str | None = None  # if only one was asked for
    days: dict[date, Tally] = field(default_factory=dict)
    clock: dict[tuple[int, int], Tally] = field(default_factory=dict)  # weekday and hour

    @property
    def series(self) -> list[str]:
        """The models that get their own colour, largest first."""
        spending = [name for name, tally in self.models.items() if tally.requests]
        return spending[:_SERIES]

    @property
    def uses(self) -> Use:
        """All tools together, without times."""
        every = self.tools.values()
        return Use(
            sum(use.calls for use in every),
            sum(use.errors for use in every),
            sum(use.denied for use in every),
            sum(use.orphans for use in every),
        )

    @property
    def unpriced(self) -> dict[str, int]:
        """Models without a price and their numbers of responses, most first."""
        found = [(model, tally.unpriced) for model, tally in self.models.items() if tally.unpriced]
        return dict(sorted(found, key=lambda one: (-one[1], one[0])))

    @property
    def active_days(self) -> list[date]:
        return sorted(day for day, tally in self.days.items() if busy(tally))

    @property
    def today(self) -> date:
        return datetime.now(self.asked.zone).date()

    def span(self) -> tuple[str, str] | None:
        """The first and the last day with activity."""
        return (min(self.days).isoformat(), max(self.days).isoformat()) if self.days else None


def read(db: apsw.Connection, asked: Stats) -> Figures:
    classes = _classes(db, asked)  # first: it needs the most memory, and frees it
    hours = _dated(asked.table(db, "hour", "model"))
    axis = periods.axis(hours, asked.since, asked.until, asked.zone)
    figures = Figures(
        asked,
        total=Tally(),
        axis=axis,
        columns={column: Tally() for column in axis.columns},
        by_model={column: {} for column in axis.columns},
        models={},
        projects=_ranked(asked.groups(db, "project")),
        tools=tools.read(db, asked).tools,
        classes=classes,
        active_ms=asked.active_ms(db),
        estimated=asked.estimated_tokens(db),
        session=_session(db, asked),
    )
    for hour, models in hours.items():
        _place(figures, hour, models)
    figures.models = _ranked(figures.models)
    return figures


def days(db: apsw.Connection, asked: Stats) -> tuple[Tally, dict[date, Tally]]:
    """The total and the tally of each day, for the calendar alone."""
    total = Tally()
    found = {}
    for day, tally in asked.groups(db, "day").items():
        total.add(tally)
        if (known := _day(day)) is not None:
            found[known] = tally
    return total, found


def _place(figures: Figures, hour: str, models: dict[str, Tally]) -> None:
    column = hour if hour == UNDATED else periods.column_of(figures.axis.step, hour)
    row = figures.by_model.setdefault(column, {})
    for model, tally in models.items():
        row.setdefault(model, Tally()).add(tally)
        figures.models.setdefault(model, Tally()).add(tally)
        figures.columns.setdefault(column, Tally()).add(tally)
        figures.total.add(tally)
        if hour != UNDATED:
            moment = periods.moment(hour)
            figures.days.setdefault(moment.date(), Tally()).add(tally)
            figures.clock.setdefault((moment.weekday(), moment.hour), Tally()).add(tally)


def _session(db: apsw.Connection, asked: Stats) -> str | None:
    if asked.session is None:
        return None
    return str(db.execute("SELECT native_id FROM sessions WHERE id = ?", (asked.session,)).get)


def _classes(db: apsw.Connection, asked: Stats) -> dict[str, int]:
    found = failures.read(db, asked, paths.home().config).classes()
    return {kind: len(calls) for kind, calls in found.items()}


def _dated(hours: dict[str, dict[str, Tally]]) -> dict[str, dict[str, Tally]]:
    """Hours outside the calendar's years count as undated."""
    found: dict[str, dict[str, Tally]] = {}
    for hour, models in hours.items():
        known = hour if _day(hour) is not None else UNDATED
        for model, tally in models.items():
            found.setdefault(known, {}).setdefault(model, Tally()).add(tally)
    return found


def _day(name: str) -> date | None:
    try:
        return date.fromisoformat(name[:10])
    except ValueError:
        return None


def _ranked(groups: dict[str, Tally]) -> dict[str, Tally]:
    """Most expensive first; by tokens if nothing has a cost."""
    return dict(
        sorted(
            groups.items(),
            key=lambda one: (-one[1].cost_nano, -one[1].tokens, -one[1].tool_calls, one[0]),
        )
    )


def model_name(model: str) -> str:
    return "no model" if model == NONE else model


def colours(data: Figures) -> dict[str, str]:
    """The CSS class of each model with its own colour; all others are `REST`."""
    return {model: f"s{number}" for number, model in enumerate(data.series)}
