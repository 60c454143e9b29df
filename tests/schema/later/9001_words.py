"""Counts the words of every event. Frozen with its migration: it imports nothing of ours."""

from __future__ import annotations

from collections.abc import Callable

import apsw


def apply(db: apsw.Connection, progress: Callable[[int, int], None]) -> None:
    texts = db.execute(
        "SELECT id, text || ' ' || input || ' ' || output FROM event_texts"
    ).fetchall()
    for number, (event, text) in enumerate(texts):
        progress(number, len(texts))
        assert isinstance(text, str)
        db.execute("INSERT INTO words (event_id, count) VALUES (?, ?)", (event, len(text.split())))
    db.execute(
        "UPDATE sessions SET words = coalesce((SELECT sum(w.count) FROM words w"
        " JOIN events e ON e.id = w.event_id WHERE e.session_id = sessions.id), 0)"
    )
