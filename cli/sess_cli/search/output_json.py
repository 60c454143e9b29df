"""Hits as JSON objects; docs/json.md describes the fields."""

from __future__ import annotations

from typing import Any

import apsw

from sess_common.errors import SessError
from sess_schema import objects
from sess_schema.citations import Citations
from sess_schema.ids import EventId
from sess_schema.queries.neighbours import Neighbours
from sess_schema.queries.search import Hit, Results
from sess_schema.queries.search.locate import location

VERSION = 2
FIELDS = (
    "version", "session", "agent", "project", "title", "parent", "event", "ts", "ts_from", "type",
    "label", "tool", "status", "snippet", "matches", "field", "offsets", "path", "line", "score",
    "superseded", "before", "after",
)  # fmt: skip


def chosen_fields(given: str) -> tuple[str, ...]:
    """A list such as `session,event,snippet`."""
    names = tuple(name.strip() for name in given.split(",") if name.strip())
    unknown = [name for name in names if name not in FIELDS]
    if unknown or not names:
        raise SessError(
            f'no such field: "{unknown[0]}"' if unknown else "no fields given",
            hint=", ".join(FIELDS),
        )
    return names


class Objects:
    """Turns hits into objects."""

    def __init__(
        self,
        db: apsw.Connection,
        results: Results,
        fields: tuple[str, ...] = FIELDS,
        before: int = 0,
        after: int = 0,
    ) -> None:
        self.db, self.results, self.fields = db, results, fields
        self.before, self.after = before, after
        self.neighbours = Neighbours(db)
        self.cites = Citations(db)

    def of(self, hit: Hit) -> dict[str, Any]:
        def key(event: EventId) -> str:
            return self.cites.key(event, hit.session_key)

        path, line = (None, None)
        if "path" in self.fields or "line" in self.fields:
            path, line = location(self.db, hit, self.results.texts(hit.event))
        whole = {"version": VERSION, **objects.hit(hit, key(hit.event), path, line)}
        if self.before or self.after:
            around = self.neighbours.around(hit.session_key, hit.event, self.before, self.after)
            whole["before"], whole["after"] = (
                [objects.neighbour(one, key(one.id), Neighbours.words(one)) for one in beside]
                for beside in around
            )
        return {name: whole[name] for name in self.fields if name in whole}
