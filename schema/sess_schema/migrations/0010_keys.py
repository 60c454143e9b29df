"""Gives everything with a random id its key. Indexes are made afterwards, which takes less time.

Frozen with its migration: the keys as they were defined then, which imports nothing of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zlib import crc32

import apsw

_STEPS = (
    "UPDATE turns SET native_key = frozen_key(native_id) WHERE native_id IS NOT NULL",
    "CREATE INDEX turns_by_native_key ON turns (native_key) WHERE native_key IS NOT NULL",
    "CREATE INDEX turns_by_digest ON turns (digest) WHERE native_id IS NULL",
    # For copies with other ids: few records say the same at one time, and times come in order.
    "CREATE INDEX turns_by_moment ON turns (ts, digest & 65535) WHERE ts IS NOT NULL",
    "UPDATE events SET call_key = frozen_key(call_id) WHERE call_id IS NOT NULL",
    "CREATE INDEX events_by_call ON events (call_key) WHERE call_key IS NOT NULL",
)
_RESPONSES = (
    "UPDATE usage SET response_uid = ((frozen_key(message_id) >> 11) << 43)"
    " | (response_uid & 8796093022207) WHERE message_id <> ''"
)


def _key(*given: Any) -> int:
    (id_,) = given
    return crc32(id_.encode("utf-8", "replace")) & 0x7FFF_FFFF


def apply(db: apsw.Connection, progress: Callable[[int, int], None]) -> None:
    changed = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'usage_changed'").get
    db.execute("DROP TRIGGER usage_changed")  # no sum changes
    db.create_scalar_function("frozen_key", _key, 1, deterministic=True)
    steps = (*_STEPS, _RESPONSES)
    for number, sql in enumerate(steps):
        progress(number, len(steps))
        db.execute(sql)
    db.create_scalar_function("frozen_key", None, 1)
    db.execute(changed)
