"""Reads again what an older edition of a source read (`Source.edition`).

Logs are read from the archive, together with all logs that share records with them, so that the
result is that of a fresh load. Documents and databases are marked, and the next pass reads them
anew.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import apsw

from sess_common.progress import Progress as Report
from sess_common.progress import unseen
from sess_schema import archive
from sess_schema.ids import NO_SOURCE, SessionId, SourceId
from sessiond.engines.lines import read_archived
from sessiond.reading.tracked import Tracked, load_all
from sessiond.sourcekit.base import LINK_META, TITLE_AI, Source
from sessiond.sourcekit.foreign import NO_PLACE, STALE_PLACE
from sessiond.writing.record_rows import same_moment
from sessiond.writing.sessions import Session
from sessiond.writing.transaction import Store, Transaction

if TYPE_CHECKING:
    from sessiond.sourcekit.masking import Masker

COMMIT_BYTES = 32 << 20

log = logging.getLogger("sessiond")

# Sessions that may share records, titles or responses with one.
_NEAR = (
    "SELECT parent_id FROM sessions WHERE id = ?1 AND parent_id IS NOT NULL"
    " UNION SELECT id FROM sessions WHERE parent_id = ?1"
    " UNION SELECT o.session_id FROM records t JOIN records o"
    " ON o.native_key = t.native_key AND o.native_id = t.native_id"
    " WHERE t.session_id = ?1"
    f" UNION SELECT o.session_id FROM records t JOIN records o ON {same_moment('o', 't')}"
    " WHERE t.session_id = ?1"
    " UNION SELECT l.session_id FROM records t JOIN leaf_titles l ON l.leaf = t.native_id"
    " WHERE t.session_id = ?1"
    " UNION SELECT t.session_id FROM leaf_titles l JOIN records t"
    " ON t.native_key = short_key(l.leaf) AND t.native_id = l.leaf"
    " WHERE l.session_id = ?1"
)

Logs = dict[SourceId, Tracked]  # by id


def reread(
    store: Store,
    sources: Mapping[str, Source],
    report: Report = unseen,
    stopped: Callable[[], bool] = lambda: False,
    mask: Masker | None = None,
) -> int:
    """Read what is due, newest first; return how many logs. A stop loses one batch at most."""
    every = {one.id or NO_SOURCE: one for one in load_all(store.db).values() if one.part_of is None}
    due = {
        key: one
        for key, one in every.items()
        if one.agent in sources and one.edition != sources[one.agent].edition
    }
    logs = {key: one for key, one in every.items() if one.kind == "transcript"}
    _read_wholes_anew(store.db, sources, [one for key, one in due.items() if key not in logs])
    left = sorted(due.keys() & logs.keys())
    total = sum(_size(logs[key]) for key in left)
    done = count = 0
    while left and not stopped():
        report(f"reading archived logs again, {done >> 20:,} of {total >> 20:,} MB")
        read = _read_batch(store, sources, logs, left, mask)
        done += sum(_size(logs[key]) for key in left if key in read)
        count += len(read)
        left = [key for key in left if key not in read]
    return count


def _size(one: Tracked) -> int:
    return one.progress.checkpoint.offset


def _read_wholes_anew(
    db: apsw.Connection, sources: Mapping[str, Source], due: list[Tracked]
) -> None:
    """Make the next pass compare all of each document and database."""
    if not due:
        return
    with db:
        for one in due:
            db.execute(
                "UPDATE database_rows SET place = place + ?, digest = ~digest"
                " WHERE source_id = ? AND place > ?",
                (STALE_PLACE, one.id, NO_PLACE),
            )
            if one.is_whole:
                db.execute(
                    "UPDATE sources SET ctime_ns = 0, parser_state = NULL WHERE id = ?", (one.id,)
                )
            one.save_edition(db, sources[one.agent].edition)


def _read_batch(
    store: Store,
    sources: Mapping[str, Source],
    logs: Logs,
    left: list[SourceId],
    mask: Masker | None,
) -> set[SourceId]:
    """Read the newest families in one transaction; return their logs."""
    read: set[SourceId] = set()
    family: list[Tracked] = []
    size = 0
    store.begin()
    try:
        for key in reversed(left):
            if key in read:
                continue
            # What was just read is right already; of a new index, relatives are not known before.
            family = [one for one in _family(store.db, logs, key) if one.id not in read]
            _read_family(store.transaction, sources, [replace(one) for one in family], mask)
            read.update(one.id or NO_SOURCE for one in family)
            size += sum(map(_size, family))
            if size > COMMIT_BYTES:
                break
        store.commit()
    except apsw.Error:
        store.roll_back()
        raise
    except Exception as error:
        store.roll_back()
        log.warning('cannot read "%s" again: %r', family[0].path, error)
        with store.db:  # what the older edition read stays
            for one in family:
                one.save_edition(store.db, sources[one.agent].edition)
        return {one.id or NO_SOURCE for one in family}
    except BaseException:
        store.roll_back()
        raise
    return read


def _family(db: apsw.Connection, logs: Logs, first: SourceId) -> list[Tracked]:
    """A log and all logs that are connected with it, by any number of steps."""
    family = {first: logs[first]}
    seen: set[SessionId] = set()
    queue = _sessions_of(db, first)
    while queue:
        session = queue.pop()
        if session in seen:
            continue
        seen.add(session)
        queue += [near for (near,) in db.execute(_NEAR, (session,)) if near not in seen]
        for (source,) in db.execute(
            "SELECT source_id FROM session_sources WHERE session_id = ?", (session,)
        ):
            if source in logs and source not in family:
                family[source] = logs[source]
                queue += _sessions_of(db, source)
    return sorted(family.values(), key=lambda one: _age(db, one))


def _age(db: apsw.Connection, one: Tracked) -> tuple[Any, ...]:
    """Originals are read before their copies, so that events keep their numbers."""
    oldest = db.execute(
        "SELECT coalesce(s.opened_at, 1 << 62), s.kind = 'subagent', s.native_id, s.home"
        " FROM session_sources m JOIN sessions s ON s.id = m.session_id"
        " WHERE m.source_id = ? ORDER BY 1, 2, 3, 4 LIMIT 1",
        (one.id,),
    ).fetchone()
    return (*(oldest or ()), one.id or NO_SOURCE)


def _sessions_of(db: apsw.Connection, source: SourceId) -> list[SessionId]:
    rows = db.execute("SELECT session_id FROM session_sources WHERE source_id = ?", (source,))
    return [session for (session,) in rows]


def _read_family(
    transaction: Transaction,
    sources: Mapping[str, Source],
    family: list[Tracked],
    mask: Masker | None,
) -> None:
    db = transaction.db
    ids = ",".join(str(one.id) for one in family)
    members = f"(SELECT session_id FROM session_sources WHERE source_id IN ({ids}))"
    alone: list[Any] = db.execute(
        f"SELECT id FROM sessions WHERE id IN {members} AND id NOT IN"
        f" (SELECT session_id FROM session_sources WHERE source_id NOT IN ({ids}))"
    ).fetchall()
    for (session,) in alone:
        _forget(transaction.sessions.by_id(session))
        transaction.facts.take_back_titles(session)
        transaction.facts.count_again(session)
    transaction.copies.purge(
        f"SELECT id FROM records WHERE session_id IN {members} AND source_id IN ({ids})"
        " AND retired = 0",
    )
    db.execute(f"DELETE FROM warnings WHERE source_id IN ({ids}) AND retired = 0")
    for one in family:
        _read_log(transaction, sources[one.agent], one, mask)
    # What left a file long ago follows the owner of its copies.
    db.execute(
        "UPDATE records SET copy_of = (SELECT coalesce(o.copy_of, o.id) FROM records o"
        " WHERE o.id = records.copy_of) WHERE copy_of IN purged AND retired > 0"
    )


def _forget(session: Session) -> None:
    """Reset what its log gave; what a sidecar gave stays, because the sidecar may be gone."""
    title, rank = session.title, session.title_rank
    session.unlearn()
    if rank >= TITLE_AI:
        session.title, session.title_rank = title, rank
    if session.link_rank < LINK_META:
        session.call_id, session.link_rank = None, 0


def _read_log(
    transaction: Transaction, source: Source, tracked: Tracked, mask: Masker | None
) -> None:
    db, marks = transaction.db, tracked.progress.checkpoint
    with _archived(db, tracked) as fd:
        spec, slices = read_archived(source, tracked.path, fd, mask)
        for slice_ in slices:
            transaction.chunks.add_problems(tracked, slice_.problems)
            if slice_.records:
                transaction.records.write(tracked, spec, slice_.records)
            tracked.save_progress(db, slice_.progress)
    if tracked.progress.checkpoint.offset == marks.offset and marks.tail_hash is not None:
        # The marks are of the file, which the archive equals only outside its masks.
        tracked.save_progress(db, replace(tracked.progress, checkpoint=marks))
    tracked.save_edition(db, source.edition)


@contextmanager
def _archived(db: apsw.Connection, tracked: Tracked) -> Iterator[int]:
    """The bytes of a log that were read as records, in an unnamed file next to the index."""
    with tempfile.TemporaryFile(dir=os.path.dirname(db.filename)) as file:
        source = tracked.id or NO_SOURCE
        file.writelines(archive.laid_out(db, archive.chunks(db, source, archive.LIVE)))
        file.truncate(_size(tracked))
        file.flush()
        yield file.fileno()
