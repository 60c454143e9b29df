"""Citations for `sess show`: `1a2b3c4d#9f8e7d6c`."""

from __future__ import annotations

import apsw

from sess_schema.citations import Citations

_SHORT = 8
_AGENT = "agent-"


class Links:
    """Caches how short each id can be."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._ids: dict[str, str] = {}
        self._cites = Citations(db)

    def session(self, native_id: str) -> str:
        """The shortest unique prefix of an id, at least eight characters."""
        found = self._ids.get(native_id)
        if found is None:
            length = _SHORT + (len(_AGENT) if native_id.startswith(_AGENT) else 0)
            while length < len(native_id) and self._shared(native_id[:length]):
                length += 1
            found = self._ids[native_id] = native_id[:length]
        return found

    def event(self, native_id: str, event: int | None) -> str:
        return self.session(native_id) + (
            f"#{self._cites.short(event)}" if event is not None else ""
        )

    def key(self, event: int | None) -> str | None:
        """The full key, for scripts."""
        return None if event is None else self._cites.key(event)

    def _shared(self, beginning: str) -> bool:
        count: int = self._db.execute(
            "SELECT count(DISTINCT native_id) FROM sessions"
            " WHERE substr(native_id, 1, length(?1)) = ?1 AND turns > 0",
            (beginning,),
        ).get
        return count > 1
