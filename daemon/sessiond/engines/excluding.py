"""Finds the project of what was just read, to leave out excluded ones before they are written."""

from __future__ import annotations

import json
from collections.abc import Iterable

import apsw

from sessiond.engines.steps import AddSlice, ChangeConversation, Step
from sessiond.reading.exclude import Exclude
from sessiond.reading.tracked import WHOLES
from sessiond.sourcekit.base import Record

_FACT = "excluded_projects"


def excluded_project(rules: Exclude, step: Step) -> str | None:
    """The excluded project that a step's content belongs to."""
    if isinstance(step, AddSlice):
        found = step.spec.project or _folder(placed.record for placed in step.slice_.records)
    elif isinstance(step, ChangeConversation):
        change = step.conversation
        records = (item.record for item in change.items if item.record is not None)
        found = change.project or change.spec.project or _folder(records)
    else:
        return None
    return found if rules.has_project(found) else None


def _folder(records: Iterable[Record]) -> str | None:
    return next((record.cwd for record in records if record.cwd), None)


def compare_rules(db: apsw.Connection, rules: Exclude) -> bool:
    """After a rule was removed, let every document and database be compared as a whole.

    True if the index was changed for it.
    """
    stored = db.execute("SELECT value FROM facts WHERE name = ?", (_FACT,)).get
    before, now = json.loads(stored or "[]"), list(rules.projects)
    if before == now:
        return False
    with db:
        if set(before) - set(now):
            kinds = ", ".join(f"'{kind}'" for kind in WHOLES)
            db.execute(
                f"UPDATE sources SET ctime_ns = 0, parser_state = NULL WHERE kind IN ({kinds})"
            )
        db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (_FACT, json.dumps(now)))
    return True
