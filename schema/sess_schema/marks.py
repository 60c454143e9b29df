"""What people said about their sessions: titles of their own, labels, and which are pinned.

No archive can give these back. They are kept by the session's own name, not by its number here, so
that a session that is read again, salvaged or restored still has them.
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from sess_common.errors import SessError
from sess_schema.ids import SessionId

TITLE, LABEL, PIN = KINDS = ("title", "label", "pin")
LONGEST = 200  # characters of a title or label

_OF = "m.agent = {0}.agent AND m.native_id = {0}.native_id AND m.home = {0}.home AND m.kind = '{1}'"


def title(sessions: str = "s") -> str:
    """SQL: the title of a session, a person's before the agent's; `sessions` is the table."""
    own = f"SELECT m.value FROM own_marks m WHERE {_OF.format(sessions, TITLE)}"
    return f"coalesce(({own}), {sessions}.title)"


def labelled(names: Sequence[str]) -> tuple[str, list[str]]:
    """SQL over `sessions s`: those with one of these labels, which may have wildcards."""
    either = " OR ".join(["lower(m.value) GLOB ?"] * len(names))
    where = f"EXISTS (SELECT 1 FROM own_marks m WHERE {_OF.format('s', LABEL)} AND ({either}))"
    return where, [name.lower() for name in names]


def condition(labels: Sequence[str], *, pinned: bool) -> tuple[str, list[str]]:
    """SQL over `sessions s`: those that are marked so."""
    where, names = labelled(labels) if labels else ("1", [])
    return f"{where} AND {PINNED}" if pinned else where, names


PINNED = f"EXISTS (SELECT 1 FROM own_marks m WHERE {_OF.format('s', PIN)})"
LABELS = f"SELECT value FROM own_marks WHERE kind = '{LABEL}' GROUP BY 1 ORDER BY count(*) DESC, 1"


# A row of `own_marks`, in this order.
COLUMNS = ("agent", "native_id", "home", "kind", "value", "at")
Mark = tuple[str, str, str, str, str, int]


class Marks:
    """The marks of all sessions, read once."""

    def __init__(self, db: apsw.Connection) -> None:
        self._labels: dict[SessionId, list[str]] = {}
        self._pinned: set[SessionId] = set()
        for key, kind, value in db.execute(
            "SELECT s.id, m.kind, m.value FROM own_marks m JOIN sessions s ON m.agent = s.agent"
            " AND m.native_id = s.native_id AND m.home = s.home ORDER BY m.value"
        ):
            if kind == LABEL:
                self._labels.setdefault(key, []).append(value)
            elif kind == PIN:
                self._pinned.add(key)

    def labels(self, session: SessionId) -> list[str]:
        return self._labels.get(session, [])

    def around(self, title: str, session: SessionId) -> str:
        """A title with a star if the session is pinned, and with its labels."""
        labels = "".join(f" [{label}]" for label in self.labels(session))
        return f"{'★ ' if self.is_pinned(session) else ''}{title}{labels}"

    def is_pinned(self, session: SessionId) -> bool:
        return session in self._pinned


def counts(db: apsw.Connection) -> list[tuple[str, int]]:
    """Each label and how many sessions have it, the most used first."""
    return [
        (str(name), int(number))
        for name, number in db.execute(
            "SELECT m.value, count(*) FROM own_marks m JOIN sessions s ON m.agent = s.agent"
            " AND m.native_id = s.native_id AND m.home = s.home"
            f" WHERE m.kind = '{LABEL}' GROUP BY 1 ORDER BY 2 DESC, 1"
        )
    ]


# -- writing, which only the daemon does


def put(db: apsw.Connection, session: SessionId, kind: str, value: str, now: int) -> None:
    """Mark a session; a title replaces the one it had."""
    take(db, session, kind, None if kind == TITLE else value)
    db.execute(
        "INSERT INTO own_marks (agent, native_id, home, kind, value, at)"
        " SELECT agent, native_id, home, ?, ?, ? FROM sessions WHERE id = ?",
        (kind, value, now, session),
    )


def restore(db: apsw.Connection, mark: Mark) -> bool:
    """Note a mark that was kept elsewhere; False if the session has it, or a title, already."""
    known = (
        "SELECT 1 FROM own_marks WHERE (agent, native_id, home, kind) = (?, ?, ?, ?)"
        f" AND (kind = '{TITLE}' OR value = ?)"
    )
    if db.execute(known, mark[:5]).get is not None:
        return False
    columns = ", ".join(COLUMNS)
    db.execute(f"INSERT INTO own_marks ({columns}) VALUES (?, ?, ?, ?, ?, ?)", mark)
    return True


def take(db: apsw.Connection, session: SessionId, kind: str, value: str | None) -> int:
    """Take marks of a kind off a session; one value or all. How many there were."""
    db.execute(
        "DELETE FROM own_marks WHERE kind = ? AND (? IS NULL OR value = ?) AND (agent, native_id,"
        " home) IN (SELECT agent, native_id, home FROM sessions WHERE id = ?)",
        (kind, value, value, session),
    )
    return db.changes()


def checked(kind: str, text: str) -> str:
    """A title or label on one line; raises if it is none."""
    line = " ".join(text.split())
    if not line:
        raise SessError(f"an empty {kind}", hint=f"`sess {kind} --help`")
    if len(line) > LONGEST:
        raise SessError(f"the {kind} is too long", hint=f"at most {LONGEST} characters")
    if kind == LABEL and (not line.isprintable() or any(mark in line for mark in '*?[,"')):
        raise SessError(
            f'not a label: "{line}"', hint="names have no comma, quote, asterisk, ? or ["
        )
    return line
