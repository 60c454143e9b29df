"""Does what clients ask of the writer (`sess_common.requests`).

Runs as `python -m sessiond.service.requests` with a request on standard input when no daemon does.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import apsw

from sess_common import paths, program, requests
from sess_common.errors import Exit, SessError, explained
from sess_schema import marks
from sess_schema.connection import open_writer
from sess_schema.ids import SessionId
from sessiond import config
from sessiond.ingest import Ingest
from sessiond.prices import Pricer
from sessiond.reading import territory
from sessiond.reading.territory import Territory
from sessiond.service.startup import writer_lock
from sessiond.sources import all_sources
from sessiond.writing.transaction import Store

log = logging.getLogger("sessiond")

WAIT_FOR_SYNC = 30.0


def _forget(store: Store, ingest: Ingest, request: dict[str, Any]) -> dict[str, Any]:
    from sessiond.writing.forget import forget  # rare

    again = request.get("again") is True
    done = forget(store, [SessionId(key) for key in request["sessions"]], again=again)
    territory.discard_forgotten(paths.home(), store.db)
    if again:
        home = paths.home()
        sources = all_sources(config.load(home.config_file))
        ingest.forget_state()
        ingest.reconcile(Territory(sources, territory.handed_files(home)).places)
    return done


def _read(store: Store, ingest: Ingest, request: dict[str, Any]) -> dict[str, Any]:
    """As `sessiond sync DIR` does it without a daemon."""
    from sessiond.service.one_pass import named_places  # rare
    from sessiond.service.pass_report import facts_of

    home = paths.home()
    sources = all_sources(config.load(home.config_file))
    places = named_places(
        sources, Territory(sources, territory.handed_files(home)), request["paths"]
    )
    reader = Ingest(store, exclude=ingest.exclude, mask=ingest.mask)
    reader.stop, reader.on_progress = ingest.stop, ingest.on_progress
    started = time.monotonic()
    summary = reader.reconcile(places, roots=False)
    return facts_of(summary, time.monotonic() - started, [place.path for place in places])


def _mark(store: Store, _ingest: Ingest, request: dict[str, Any]) -> dict[str, Any]:
    """Put marks on sessions, or take them off; how many sessions changed."""
    db, now, changed = store.db, time.time_ns() // 1_000_000, 0
    with db:
        for number in request["sessions"]:
            session, before = SessionId(number), db.total_changes()
            for kind, value in request.get("take", ()):
                marks.take(db, session, kind, value)
            for kind, value in request.get("put", ()):
                marks.put(db, session, kind, value, now)
            changed += db.total_changes() > before
    return {"sessions": changed}


_Handler = Callable[[Store, Ingest, dict[str, Any]], dict[str, Any]]
_HANDLERS: dict[str, _Handler] = {"forget": _forget, "mark": _mark, "read": _read}


def answer(store: Store, ingest: Ingest, request: dict[str, Any]) -> dict[str, Any]:
    """What to answer; an error is an answer, too."""
    try:
        return _HANDLERS[request["what"]](store, ingest, request)
    except Exception as error:
        with contextlib.suppress(apsw.Error):
            store.roll_back()
        failure = explained(error, store.db.filename)
        if failure is None:
            log.exception("request failed")
            failure = SessError(f"{type(error).__name__}: {error}", code=Exit.INTERNAL)
        return {"error": failure.message, "hint": failure.hint, "code": failure.code}


def serve(home: paths.Home, store: Store, ingest: Ingest) -> int:
    """Answer every waiting request; return how many."""
    count = 0
    for path in sorted(requests.folder(home).glob("*.json")):
        try:
            request = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError):
            request = {"what": None}
        requests.write(path.with_suffix(".done"), answer(store, ingest, request))
        path.unlink(missing_ok=True)
        count += 1
    return count


def answer_alone(request: dict[str, Any]) -> dict[str, Any]:
    """Answer in this process, as the only writer."""
    home = paths.home()
    with writer_lock(home, "sync", wait=WAIT_FOR_SYNC):
        settings = config.load(home.config_file)
        with closing(open_writer(home.index)) as db:
            store = Store(db, Pricer(settings.prices))
            ingest = Ingest(store, exclude=settings.exclude, mask=settings.mask)
            return answer(store, ingest, request)


def main() -> int:
    try:
        json.dump(answer_alone(json.load(sys.stdin)), sys.stdout)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except Exception as error:
        return program.explain("sessiond", error)
    return Exit.OK


if __name__ == "__main__":
    sys.exit(main())
