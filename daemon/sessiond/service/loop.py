"""The daemon's loop: waits for hints, ingests what they name, and regularly walks everything."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import signal
import sys
import threading
import time
from contextlib import closing
from dataclasses import replace

import apsw

from sess_common import paths
from sess_common.errors import Exit, SessError
from sess_schema import __version__
from sess_schema.connection import open_writer, wait_for_locks
from sess_schema.ground import Ground, GroundLost, standing_on
from sess_schema.queries.views import digests
from sessiond import config
from sessiond.engines.lines import SETTLE_SECONDS
from sessiond.engines.steps import Summary
from sessiond.ingest import Ingest
from sessiond.prices import Pricer
from sessiond.reading import tail, territory
from sessiond.reading.survey import survey
from sessiond.reading.territory import Place, Territory
from sessiond.reading.tracked import WHOLES
from sessiond.service import notify, one_pass, requests
from sessiond.service.startup import catch_up, reprice_if_due, writer_lock
from sessiond.service.watch import Hints, Pace, Watcher
from sessiond.sourcekit.base import Source
from sessiond.sources import all_sources
from sessiond.writing.transaction import Store

log = logging.getLogger("sessiond")

TICK = 1.0  # how soon a new root is noticed
GATHER = 0.01  # writes come in bursts; wait this long for the rest
POLL_UNCOVERED = 2.0  # out of watches: walk this often instead
CLOCK_JUMP = 30.0  # wall clock this far from the monotonic one: the machine slept
IDLE_CHECKPOINT = 20.0
IDLE_DIGEST = 2.0
DIGEST_SECONDS = 0.2  # at each rest
WAL_LIMIT = 64 << 20  # a longer one is written back at once, however busy the daemon is
WAL_RETRY = 5.0
RETRY_FIRST, RETRY_LAST = 2.0, 60.0
_PASSING = apsw.FullError, apsw.IOError, apsw.BusyError, apsw.ReadOnlyError, PermissionError


class Service:
    """One running daemon."""

    def __init__(self, home: paths.Home) -> None:
        self._home = home
        self._stop = threading.Event()
        self._reload = False
        self._watcher = Watcher()
        self._heart = notify.Heart(home.status)
        self._sources: list[Source] = []
        self._territory = Territory([])
        self._settings = config.Config()
        self._next_walk = 0.0
        self._recheck: dict[str, float] = {}
        self._told: dict[str, str] = {}  # why files were skipped, as the log says
        self._pace = Pace()
        self._retry = 0.0
        self._last_write = 0.0
        self._checkpointed = True
        self._digested = False
        self._next_cut = 0.0

    def run(self) -> int:
        """Run until SIGTERM; return the exit code."""
        managed = "INVOCATION_ID" in os.environ or notify.under_launchd()
        started_at = int(time.time() * 1000)
        with writer_lock(self._home, "daemon", started_at=started_at, service=managed) as held:
            try:
                self._catch_signals()
                self._configure()
                db = self._open()
                if db is not None:
                    with closing(db), standing_on(db, self._home.index, held) as ground:
                        self._serve(db, ground)
            except GroundLost as lost:
                log.error("%s", lost.message)
                raise
            finally:
                notify.stopping()
                self._watcher.stop()
                self._heart.close()
        return Exit.OK

    def _open(self) -> apsw.Connection | None:
        """Open the index as soon as the disk has space; None if stopped before that."""
        while not self._stop.is_set():
            try:
                return open_writer(self._home.index, self._busy)
            except SessError as error:
                # A service manager stops restarting us after a few failures in a row.
                if not isinstance(error.__cause__, _PASSING):
                    raise
                notify.ready("waiting")
                self._pause(error)
            while not self._stop.is_set() and time.monotonic() < self._next_walk:
                self._watcher.wait(TICK)
                notify.alive()
        return None

    def _catch_signals(self) -> None:
        def end(number: int, _frame: object) -> None:
            self._stop.set()
            self._watcher.wake()

        def reload(number: int, _frame: object) -> None:
            self._reload = True
            self._watcher.wake()

        signal.signal(signal.SIGTERM, end)
        signal.signal(signal.SIGINT, end)
        if hasattr(signal, "SIGHUP"):
            signal.signal(signal.SIGHUP, reload)

    def _configure(self) -> None:
        self._settings = config.load(self._home.config_file)
        self._sources = all_sources(self._settings)
        self._next_walk = 0.0

    def _log_places(self) -> None:
        roots = self._roots()
        there = [root for root in roots if os.path.isdir(root)]
        for root in there:
            log.info("watching %s", root)
        if missing := len(roots) - len(there):
            log.info("looking out for %d places that do not exist yet", missing)

    def _serve(self, db: apsw.Connection, ground: Ground) -> None:
        self._reprice(db)
        store = Store(db, Pricer(self._settings.prices))
        self._catch_up(store)
        ingest = Ingest(
            store, settle=False, exclude=self._settings.exclude, mask=self._settings.mask
        )
        ingest.stop, ingest.survives = self._stop, one_pass.survives
        ingest.on_progress = self._progress
        self._watcher.cover(self._roots())
        notify.ready("indexing")
        log.info("started, version %s, pid %d", __version__, os.getpid())
        self._log_places()
        slept = time.time() - time.monotonic()
        hints = Hints(set(), lost=True)
        while not self._stop.is_set():
            ground.check()
            if self._reload:
                self._reload_config()
                ingest.exclude, ingest.mask = self._settings.exclude, self._settings.mask
            if self._watcher.cover(self._roots()):
                hints.lost = True
            drift = time.time() - time.monotonic()
            if abs(drift - slept) > CLOCK_JUMP:
                hints.lost, slept = True, drift
            self._step(ingest, hints)
            if requests.serve(self._home, store, ingest):
                ingest.forget_state()
            self._rest(db)
            self._heart.flush()
            hints = self._watcher.wait(self._patience())
            if hints.paths and not self._stop.is_set():
                time.sleep(GATHER)
                more = self._watcher.wait(0)
                hints = Hints(hints.paths | more.paths, hints.lost or more.lost)
            notify.alive()
        log.info("stopping")
        with contextlib.suppress(apsw.Error):  # on a full disk the old statistics stay
            db.pragma("optimize")
        _truncate_wal(db)

    def _reprice(self, db: apsw.Connection) -> None:
        try:
            changed = reprice_if_due(db, self._settings, self._busy)
        except apsw.Error as error:  # a full disk: the next start retries
            log.warning("cannot reprice: %s", error)
            return
        if changed:
            log.info("repriced %d responses", changed)

    def _catch_up(self, store: Store) -> None:
        try:
            mask = self._settings.mask
            for line in catch_up(store, self._sources, self._busy, self._stop.is_set, mask):
                log.info("%s", line)
        except apsw.Error as error:  # a full disk: the next start continues
            log.warning("cannot bring older records up to date: %s", error)

    def _roots(self) -> list[str]:
        """The current roots: one may have become a link to another place."""
        self._territory = Territory(self._sources, territory.handed_files(self._home))
        return [place.path for place in self._territory.places]

    def _patience(self) -> float:
        # While the index cannot be written, only the next retry is due.
        due = [self._next_walk] if self._retry else [self._next_walk, *self._recheck.values()]
        return max(0.0, min(TICK, min(due) - time.monotonic()))

    def _reload_config(self) -> None:
        self._reload = False
        notify.reloading()
        try:
            self._configure()
            log.info("configuration reloaded")
        except SessError as error:
            log.error("configuration not reloaded: %s", error.message)
        notify.ready("indexing")

    def _step(self, ingest: Ingest, hints: Hints) -> None:
        """One pass: over everything if a walk is due, otherwise over the hinted files."""
        now = time.monotonic()
        if self._retry and now < self._next_walk:
            return
        try:
            if hints.lost or now >= self._next_walk:
                summary = ingest.reconcile(self._territory.places)
                self._after_walk(summary)
            else:
                due = {path for path, when in self._recheck.items() if when <= now}
                if not hints.paths and not due:
                    return
                summary = self._ingest_hinted(ingest, hints.paths, due)
        except SessError as error:
            self._pause(error)
            return
        except Exception as error:
            log.exception("unexpected error")
            self._pause(
                SessError(f"unexpected error: {type(error).__name__} (see `sessiond logs`)")
            )
            return
        if self._retry:
            log.info("index is writable again")
        self._retry = 0.0
        for path in summary.unsettled:
            self._recheck[path] = time.monotonic() + self._pace.pause(path, SETTLE_SECONDS)
        for path, failures in summary.failed.items():
            self._recheck[path] = time.monotonic() + min(RETRY_LAST, RETRY_FIRST**failures)
        if summary.changed or summary.gone:
            self._last_write = time.monotonic()
            self._checkpointed = self._digested = False
        for path, why in summary.skipped:
            if self._told.get(path) != why:
                log.warning("skipped %s: %s", path, why)
            self._told[path] = why
            self._heart.skip(path, why)
        self._heart.beat(
            overflows=self._watcher.overflows,
            hints=len(hints.paths),
            read_bytes=summary.read_bytes,
            records=summary.records,
        )

    def _ingest_hinted(self, ingest: Ingest, hinted: set[str], due: set[str]) -> Summary:
        for path in due:
            self._recheck.pop(path, None)
        places: dict[str, Place] = {}
        force = False
        for path in map(tail.log_name, hinted | due):
            around = self._territory.place_of(path)
            if around is None:
                continue
            if around.kind is not None:  # the place is the file
                self._add_place(places, around, path, whole=around.kind in WHOLES)
                continue
            for source in around.sources:
                kind = source.kind_of(path)
                # A change of a sidecar means that its file must be read.
                concerned = source.owner(path) if kind == "sidecar" else path
                wholes = [
                    one
                    for one in (concerned, *source.readers(path))
                    if source.classify(one) in WHOLES
                ]
                for whole in wholes:
                    self._add_place(places, around, whole, whole=True)
                if wholes:
                    continue
                if kind is not None or (os.path.isdir(path) and source.enters(path)):
                    self._add_place(places, around, concerned, whole=False)
                    force = force or path in due or kind == "sidecar"
        there = [place for path, place in places.items() if os.path.lexists(tail.log_file(path))]
        seen = survey(there, self._territory.roots - places.keys())
        seen.skipped = [entry for entry in seen.skipped if entry[0] not in hinted]
        summary = ingest.ingest(seen, force=force)
        self._pace.read(seen.files, changed=summary.records > 0)
        summary.gone += ingest.mark_deleted(list(places))
        return summary

    def _add_place(
        self, places: dict[str, Place], around: Place, path: str, *, whole: bool
    ) -> None:
        """Read a file in this pass; one that is read whole, only when it is due."""
        again = self._pace.too_soon(path) if whole else 0.0
        if again:
            self._recheck.setdefault(path, again)
        else:
            places[path] = replace(around, path=path)

    def _after_walk(self, summary: Summary) -> None:
        period = self._settings.reconcile_seconds
        still = {path for path, _ in summary.skipped}
        self._told = {path: why for path, why in self._told.items() if path in still}
        watched = self._watcher.watched_directories()
        blind = self._watcher.error is not None or (
            watched is not None and watched < summary.directories
        )
        if blind and not self._heart.blind:
            log.warning(
                "watching only %s of %d directories, polling the rest every %.0f s; to watch them"
                " all, run: %s",
                watched or 0,
                summary.directories,
                POLL_UNCOVERED,
                self._watcher.fix,
            )
        if blind:
            self._watcher.fell_short()
        self._heart.walked(
            seen=summary.seen,
            directories=summary.directories,
            watched=watched,
            blind=blind,
            fix=self._watcher.fix if blind else None,
            skipped=summary.skipped,
        )
        self._next_walk = time.monotonic() + (POLL_UNCOVERED if blind else period)

    def _pause(self, error: SessError) -> None:
        """The index cannot be written now: report it and retry later."""
        damaged = isinstance(error.__cause__, apsw.CorruptError | apsw.NotADBError)
        if damaged or isinstance(error, GroundLost):
            raise error
        self._retry = min(RETRY_LAST, self._retry * 2 or RETRY_FIRST)
        self._next_walk = time.monotonic() + self._retry
        log.error("%s; retrying in %.0f s", error.message, self._retry)
        self._heart.beat(error=error.message)
        notify.status(error.message)

    def _progress(self, summary: Summary) -> None:
        notify.alive()
        self._heart.reading(summary.read_bytes, summary.total_bytes)

    def _busy(self, text: str) -> None:
        notify.busy(text)
        self._heart.doing(text)

    def _bound_wal(self, db: apsw.Connection) -> None:
        """A reader that stands still keeps the WAL from being used again: cut it when it may be."""
        now = time.monotonic()
        if now < self._next_cut or _size_of(f"{self._home.index}-wal") <= WAL_LIMIT:
            return
        self._next_cut = now + WAL_RETRY
        cut = _truncate_wal(db)
        if not cut and not self._heart.wal_pinned:
            log.warning("a reader keeps the WAL from shrinking; it is over %d MB", WAL_LIMIT >> 20)
        self._heart.tell(wal_pinned=not cut)

    def _rest(self, db: apsw.Connection) -> None:
        """After a while without writes, truncate the WAL and return memory to the system."""
        self._bound_wal(db)
        if not self._digested and time.monotonic() - self._last_write >= IDLE_DIGEST:
            self._digested = _digest(db)  # else it goes on at the next rest
            self._checkpointed = False
        if self._checkpointed or time.monotonic() - self._last_write < IDLE_CHECKPOINT:
            return
        self._checkpointed = _truncate_wal(db)
        self._heart.tell(wal_pinned=not self._checkpointed)
        if not self._checkpointed:  # the next rest retries
            self._last_write = time.monotonic()
        db.pragma("shrink_memory")
        _trim_heap()


def _digest(db: apsw.Connection) -> bool:
    """Make digests that are due, for a moment; whether none is left."""
    try:
        return digests.make(db, DIGEST_SECONDS)
    except apsw.Error as error:  # readers count what has no digest
        log.warning("cannot sum up sessions: %s", error)
        return True


def _size_of(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _truncate_wal(db: apsw.Connection) -> bool:
    """Write the WAL back into the index; False if a reader or the disk prevents it."""
    wait_for_locks(db, 0)  # a reader may keep its snapshot for long, and SIGTERM must be fast
    try:
        db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.BusyError:
        return False
    except apsw.Error as error:
        log.warning("cannot truncate the WAL: %s", error)
        return False
    finally:
        wait_for_locks(db, 5)
    return True


def _trim_heap() -> None:
    """glibc keeps the freed memory of a bulk load unless asked to return it."""
    if sys.platform.startswith("linux"):
        try:
            ctypes.CDLL(None).malloc_trim(0)
        except (AttributeError, OSError):
            return


def serve() -> int:
    return Service(paths.home()).run()
