"""Ids that agents give to sessions and records."""

from __future__ import annotations

import re

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def is_uuid(text: str) -> bool:
    return _UUID.fullmatch(text) is not None


def scoped(session: str, native_id: str | None) -> str | None:
    """An id unique in all sessions: most ids contain a UUID, the others repeat in each."""
    return native_id if native_id is None or _UUID.search(native_id) else f"{session}/{native_id}"
