"""`sess stats edits`."""

from __future__ import annotations

from typing import Any

import apsw

from sess_cli.render import amounts
from sess_cli.render.stats.report import Column, Report, Section, ViewOptions, number, percent
from sess_cli.render.tallies import money
from sess_schema.queries.stats import Stats
from sess_schema.queries.views import edits
from sess_schema.queries.views.edits import Changes

_COLUMNS = (
    Column("edits", "edits", number),
    Column("files", "files", number),
    Column("lines_added", "lines +", number),
    Column("lines_removed", "lines -", number),
)


def report(db: apsw.Connection, asked: Stats, options: ViewOptions) -> Report:
    found = edits.read(db, asked)
    total = found.total
    changed = f"{amounts.plural(total.calls, 'edit')} to {amounts.plural(len(total.files), 'file')}"
    facts = [("edits", f"{changed}: +{total.added:,} -{amounts.plural(total.removed, 'line')}")]
    if found.one_shot_rate is not None:
        rate = f"{percent(found.one_shot_rate)} of {amounts.plural(found.turns, 'turn')} with edits"
        facts.append(("one shot", f"{rate} did not edit a file again after a command"))
        facts.append(("cost", f"{money(round(found.cost_nano / found.turns))} per turn with edits"))
    whole = {
        "total": "total",
        **_facts(total),
        "edit_turns": found.turns,
        "one_shot_turns": found.one_shot,
        "one_shot_rate": found.one_shot_rate,
        "cost_per_edit_turn_usd": found.cost_per_turn,
    }
    return Report(
        "edits",
        [
            Section("total", [whole], ()),
            Section(
                "tool",
                [{"tool": name, **_facts(one)} for name, one in found.tools.items()],
                (Column("tool", "tool"), *_COLUMNS),
            ),
            Section(
                "suffix",
                [{"suffix": name, **_facts(one)} for name, one in found.suffixes.items()],
                (Column("suffix", "file type"), *_COLUMNS),
                most=15,
            ),
        ],
        facts=facts,
    )


def _facts(changes: Changes) -> dict[str, Any]:
    return {
        "edits": changes.calls,
        "files": len(changes.files),
        "lines_added": changes.added,
        "lines_removed": changes.removed,
    }
