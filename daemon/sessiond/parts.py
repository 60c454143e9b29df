"""Conversations inside a database: their records come, change in place, move and go.

Each conversation is a source of its own (`database#conversation`), archived as one line per
record. The place of a line is its number in the conversation, so that the archive and everything
that is shown follow the order of the conversation, whatever came first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import apsw

from sess_schema import archive
from sessiond.known import GONE as NO_PLACE
from sessiond.revision import Revision
from sessiond.sessions import Session
from sessiond.slices import Problem, Turn, said
from sessiond.sources.base import Conversation, Item, Record
from sessiond.sources.cursor.projects import common_folder
from sessiond.store import Store
from sessiond.tracked import GONE, LIVE, Tracked, now_ms

PLACE_BITS = 32  # no record is longer than its share of the places
PREVIEW = 100


class PartWriter:
    """Writes what changed in conversations, inside the store's transaction."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._db: apsw.Connection = store.db
        self._revision = Revision(store)

    def apply(self, whole: Tracked, part: Tracked, change: Conversation) -> int:
        """Bring one conversation up to date; how many records were written."""
        if change.gone:
            self._leave(whole, part, change)
            return 0
        if not change.order and part.id is None:  # begun, but nothing was said in it
            self._remember(whole, [(item, None) for item in change.items])
            return 0
        part.part_of = whole.id
        part.save_identity(self._db)
        session = self._learn(part, change)
        stored = self._stored(whole, [item.key for item in change.items] + change.removed)
        lost = [stored[key] for key in change.removed if key in stored]
        lines = {key: number for number, key in enumerate(change.order, 1)}
        seen: list[tuple[Item, int | None]] = []
        new: list[tuple[Item, Record]] = []
        for item in change.items:
            turn_id = stored.get(item.key)
            if item.record is None:
                lost += [turn_id] if turn_id else []
                seen.append((item, None))
            elif turn_id and self._revision.apply(session, turn_id, item.record):
                self._rewrite_line(part, turn_id, item)
                seen.append((item, turn_id))
            else:
                lost += [turn_id] if turn_id else []
                new.append((item, item.record))
        self._retire(part, session, lost)
        self._forget(whole, change.removed)
        seen += self._add(part, change, new, lines)
        self._remember(whole, seen)
        self._place(whole, part, lines)
        self._move(whole, change.moved)
        self._finish(part, session, change)
        return sum(turn_id is not None for _, turn_id in seen)

    # -- the session

    def _learn(self, part: Tracked, change: Conversation) -> Session:
        sessions = self._store.sessions
        session = sessions.get(part.agent, change.spec)
        if session.parent_id is not None:
            session.kind = "subagent"
        if change.project and change.project_rank >= session.project_rank:
            session.project, session.project_rank = change.project, change.project_rank
        session.git_branch = change.git_branch or session.git_branch
        session.mode = change.mode or session.mode
        if change.model and change.model not in session.models:
            session.models.append(change.model)
        for child_id in change.children:
            child = sessions.named(part.agent, child_id)
            if child.parent_id is None and child.id != session.id:
                child.kind, child.parent_id = "subagent", session.id
        return session

    def _finish(self, part: Tracked, session: Session, change: Conversation) -> None:
        """What the rows say about the session now, whatever they said before."""
        self._store.events.flush()
        ((first, last, count),) = self._db.execute(
            "SELECT min(ts) FILTER (WHERE ts_from IS NULL), max(ts) FILTER (WHERE ts_from IS NULL),"
            " count(*) FROM turns WHERE session_id = ? AND retired = 0",
            (session.id,),
        )
        session.started_at = first if first is not None else change.created_at
        session.ended_at = last if last is not None else change.updated_at or change.created_at
        if session.project is None:
            session.project = common_folder(self._touched(session))
        self._store.recount_later(session.id)
        self._store.told_by_database(session.id)
        changed = change.updated_at or last or change.created_at or 0
        self._db.execute(
            "UPDATE sources SET generation = ?, lines = ?, mtime_ns = ?, read_at = ? WHERE id = ?",
            (part.generation, count, changed * 1_000_000, now_ms(), part.id),
        )
        if part.state != LIVE or part.error:
            part.save_state(self._db, LIVE)

    def _touched(self, session: Session) -> Iterable[str]:
        for (path,) in self._db.execute(
            "SELECT DISTINCT f.path FROM events e JOIN files f ON f.event_id = e.id"
            " WHERE e.session_id = ? AND e.retired = 0",
            (session.id,),
        ):
            yield path

    # -- records

    def _add(
        self,
        part: Tracked,
        change: Conversation,
        new: list[tuple[Item, Record]],
        lines: Mapping[str, int],
    ) -> list[tuple[Item, int | None]]:
        if not new:
            return []
        new.sort(key=lambda pair: lines[pair[0].key])
        turns = [
            Turn(_place(lines[item.key]), len(item.raw), lines[item.key], record, said(record))
            for item, record in new
        ]
        self._store.write_turns(part, change.spec, turns)
        self._db.executemany(
            "INSERT INTO chunks (source_id, retired, offset, length, data) VALUES (?, 0, ?, ?, ?)",
            [
                (part.id, turn.offset, len(item.raw) + 1, archive.pack(item.raw + b"\n"))
                for turn, (item, _) in zip(turns, new, strict=True)
            ],
        )
        self._store.chunks.add_problems(
            part,
            [
                Problem(turn.line, turn.offset, warning, _preview(item.raw))
                for turn, (item, record) in zip(turns, new, strict=True)
                for warning in record.warnings
            ],
        )
        return [(item, turn.id) for turn, (item, _) in zip(turns, new, strict=True)]

    def _rewrite_line(self, part: Tracked, turn_id: int, item: Item) -> None:
        record = item.record
        assert record is not None
        offset = self._db.execute("SELECT offset FROM turns WHERE id = ?", (turn_id,)).get
        self._db.execute(
            "UPDATE turns SET length = ?, kind = ?, role = ?, parent_id = ?, ts = ?, ts_from = ?,"
            " digest = ? WHERE id = ?",
            (
                len(item.raw),
                record.kind,
                record.role,
                record.parent_id,
                record.ts,
                record.ts_from,
                said(record),
                turn_id,
            ),
        )
        self._db.execute(
            "UPDATE chunks SET length = ?, data = ?"
            " WHERE source_id = ? AND retired = 0 AND offset = ?",
            (len(item.raw) + 1, archive.pack(item.raw + b"\n"), part.id, offset),
        )

    def _retire(self, part: Tracked, session: Session, turn_ids: list[int]) -> None:
        """Records that left the conversation stay in the index under the number of a generation."""
        if not turn_ids:
            return
        part.generation += 1
        for turn_id in turn_ids:
            self._store.retire(turn_id, session.id, part.generation)
            self._db.execute(
                "UPDATE chunks SET retired = ? WHERE source_id = ? AND retired = 0"
                " AND offset = (SELECT offset FROM turns WHERE id = ?)",
                (part.generation, part.id, turn_id),
            )
            self._db.execute(
                "UPDATE turns SET retired = ? WHERE id = ?", (part.generation, turn_id)
            )
        self._store.part_lost(part)

    def _place(self, whole: Tracked, part: Tracked, lines: Mapping[str, int]) -> None:
        """Put every record where the conversation has it now."""
        wrong = [
            (turn_id, offset, lines[key])
            for key, turn_id, offset in self._db.execute(
                "SELECT r.key, t.id, t.offset FROM json_each(?) k CROSS JOIN database_rows r"
                " ON r.source_id = ? AND r.key = k.value JOIN turns t ON t.id = r.turn_id",
                (json.dumps(list(lines)), whole.id),
            )
            if offset != _place(lines[key])
        ]
        if not wrong:
            return
        chunks = [
            (_place(line), chunk_id)
            for _, offset, line in wrong
            for (chunk_id,) in self._db.execute(
                "SELECT id FROM chunks WHERE source_id = ? AND retired = 0 AND offset = ?",
                (part.id, offset),
            )
        ]
        self._db.executemany("UPDATE chunks SET offset = ? WHERE id = ?", chunks)
        self._db.executemany(
            "UPDATE turns SET offset = ?, line = ? WHERE id = ?",
            [(_place(line), line, turn_id) for turn_id, _, line in wrong],
        )

    # -- what is known about the rows of the database

    def _stored(self, whole: Tracked, keys: list[str]) -> dict[str, int]:
        return dict(
            iter(
                self._db.execute(
                    "SELECT r.key, r.turn_id FROM json_each(?) k CROSS JOIN database_rows r"
                    " ON r.source_id = ? AND r.key = k.value WHERE r.turn_id IS NOT NULL",
                    (json.dumps(keys), whole.id),
                )
            )
        )

    def _remember(self, whole: Tracked, items: Iterable[tuple[Item, int | None]]) -> None:
        self._db.executemany(
            "INSERT OR REPLACE INTO database_rows"
            " (source_id, key, place, digest, turn_id, alias, ts) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (whole.id, item.key, item.place, item.digest, turn_id, item.alias, item.ts)
                for item, turn_id in items
            ],
        )

    def _forget(self, whole: Tracked, keys: list[str]) -> None:
        self._db.executemany(
            "DELETE FROM database_rows WHERE source_id = ? AND key = ?",
            [(whole.id, key) for key in keys],
        )

    def _move(self, whole: Tracked, moved: list[tuple[str, int]]) -> None:
        self._db.executemany(
            "UPDATE database_rows SET place = ? WHERE source_id = ? AND key = ?",
            [(place, whole.id, key) for key, place in moved],
        )

    def _leave(self, whole: Tracked, part: Tracked, change: Conversation) -> None:
        """The whole conversation left the database: nothing of it is retired."""
        self._remember(whole, [(item, None) for item in change.items])
        self._move(whole, [(key, NO_PLACE) for key in change.removed])
        if part.id is not None:
            part.save_state(self._db, GONE)


def _preview(raw: bytes) -> str:
    return raw[: PREVIEW * 4].decode("utf-8", "replace")[:PREVIEW]


def _place(line: int) -> int:
    return line << PLACE_BITS
