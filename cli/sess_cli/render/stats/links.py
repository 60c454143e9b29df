"""Citations for `sess show`: `1a2b3c4d#9f8e7d6c`."""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property

import apsw

from sess_schema.citations import Citations
from sess_schema.ids import EventId

_SHORT = 8
_AGENT = "agent-"


class Links:
    """Knows how short each id can be."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._cites = Citations(db)

    def session(self, native_id: str) -> str:
        """The shortest unique prefix of an id, at least eight characters."""
        at = bisect_left(self._ordered, native_id)
        near = self._ordered[max(0, at - 1) : at] + self._ordered[at + 1 : at + 2]
        length = _SHORT + (len(_AGENT) if native_id.startswith(_AGENT) else 0)
        while length < len(native_id) and any(one.startswith(native_id[:length]) for one in near):
            length += 1
        return native_id[:length]

    @cached_property
    def _ordered(self) -> list[str]:
        """All ids: those that begin most alike are neighbours."""
        known = self._db.execute("SELECT DISTINCT native_id FROM sessions WHERE records > 0")
        return sorted(one for (one,) in known)

    def event(self, native_id: str, event: EventId | None) -> str:
        return self.session(native_id) + (
            f"#{self._cites.short(event)}" if event is not None else ""
        )

    def key(self, event: EventId | None) -> str | None:
        """The full key, for scripts."""
        return None if event is None else self._cites.key(event)
