"""One pass over all sources, then exit: `sessiond sync`, and what `sess` runs without a daemon.

Runs as `python -m sessiond.service.one_pass` without the command-line framework, which would double
its startup time.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw

from sess_common import lock, paths, program, receipt
from sess_common.errors import Exit
from sess_common.progress import Bar, Progress, progress_line
from sess_schema.connection import is_in_state, open_reader, open_writer
from sess_schema.ground import standing_on
from sessiond import config
from sessiond.engines.steps import Summary
from sessiond.ingest import Ingest
from sessiond.ingest.passes import steps_of
from sessiond.prices import Pricer
from sessiond.reading import tail
from sessiond.reading.survey import Candidate, Survey, survey
from sessiond.reading.territory import Place, Territory, handed_files
from sessiond.reading.tracked import Tracked, load_all
from sessiond.service import pass_report
from sessiond.service.notify import Heart
from sessiond.service.startup import catch_up, reprice_if_due, writer_lock
from sessiond.sourcekit import disk
from sessiond.sourcekit.base import Source
from sessiond.sources import all_sources
from sessiond.writing.transaction import Store

WAIT_FOR_OTHER_SYNC = 5.0


def run(
    targets: Sequence[str],
    *,
    as_json: bool = False,
    quiet: bool = False,
    background: bool = False,
) -> int:
    """Bring the index up to date and report what was done.

    `background` is for clients, who may have an answer before it ends.
    """
    home = paths.home()
    before = receipt.last_number(home)
    heart = Heart(home.status)
    heart.wait_before_first()
    wait = 0.0 if background or lock.daemon_runs(home.lock) else WAIT_FOR_OTHER_SYNC
    started_at = int(time.time() * 1000)
    with (
        writer_lock(home, "sync", wait=wait, background=background, started_at=started_at) as held,
        closing(heart),
    ):
        with disk.Notes() as notes:
            settings = config.load(home.config_file)
            sources = all_sources(settings, notes.environ)
            territory = Territory(sources, handed_files(home))
        places = named_places(sources, territory, targets) if targets else territory.places
        with _told(heart, show=not as_json) as progress:
            db = open_writer(home.index, progress)
        with closing(db), standing_on(db, home.index, held):
            with _told(heart, show=not as_json) as progress:
                reprice_if_due(db, settings, progress)
                store = Store(db, Pricer(settings.prices))
                catch_up(store, sources, progress, mask=settings.mask)
            ingest = Ingest(store, exclude=settings.exclude, mask=settings.mask)
            ingest.survives = survives
            started = time.monotonic()
            with Bar(show=not as_json) as bar:

                def tell(summary: Summary) -> None:
                    bar.update(summary.read_bytes, summary.total_bytes)
                    heart.reading(summary.read_bytes, summary.total_bytes)

                ingest.on_progress = tell
                ingest.walking = notes
                with _ended_by_signals(ingest):
                    summary = ingest.reconcile(places, roots=not targets)
            if not targets and ingest.is_settled() and not ingest.untried:
                unchanged = not summary.changed and not summary.gone
                seen = None if summary.skipped else summary.seen
                number = before if unchanged else None
                _leave_receipt(home, db, notes, ingest.walked, seen=seen, before=number)
            seconds = time.monotonic() - started
    roots = [place.path for place in places]
    facts = pass_report.facts_of(summary, seconds, roots)
    if ingest.stop.is_set():
        return Exit.INTERRUPTED
    return pass_report.tell(facts, as_json=as_json, quiet=quiet, named=bool(targets))


@contextmanager
def _ended_by_signals(ingest: Ingest) -> Iterator[None]:
    """At a logout, or when another writer wants to go on, what was read is committed first."""
    before = {}
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has one of them
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            before[number] = signal.signal(number, lambda *_: ingest.stop.set())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _told(heart: Heart, *, show: bool) -> Iterator[Progress]:
    """Progress in words, here and for those who wait for us."""
    with progress_line(show=show) as draw:

        def tell(text: str) -> None:
            draw(text)
            heart.doing(text)

        yield tell


def _leave_receipt(
    home: paths.Home,
    db: apsw.Connection,
    notes: disk.Notes,
    walked: Survey,
    *,
    seen: int | None,
    before: str | None,
) -> None:
    """So that no other pass is needed to learn that nothing changed."""
    for file in walked.files:  # their facts came with the entries of directories
        at = file.stat
        seen_as = f"{at.inode} {at.size} {at.mtime_ns} {at.ctime_ns} {at.dev}"
        notes.add(receipt.SELF, tail.log_file(file.path), seen_as)
    notes.add_code()
    if os.name != "posix" or not notes.are_certain():
        return
    number = before
    if number is None or not is_in_state(db, number):
        number = os.urandom(8).hex()
        db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (receipt.FACT, number))
    receipt.write(home, number, seen, sorted(notes.environ.asked), notes.looked)


# -- a file over which a process died

_TRIAL = "--try"
_TRIAL_SECONDS = 60  # and one more for each megabyte


def survives(file: Candidate) -> bool:
    """Whether a process that reads the file, and writes nothing, comes to its end."""
    limit = _TRIAL_SECONDS + (file.stat.size >> 20)
    command = [*program.module("sessiond.service.one_pass"), _TRIAL, file.path]
    try:
        return subprocess.run(command, check=False, timeout=limit, **_SILENT).returncode == Exit.OK
    except (OSError, subprocess.TimeoutExpired):
        return False


_SILENT: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def read_alone(path: str) -> int:
    """Read a file to its end; where memory runs out, this process is the one to go."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")
    home = paths.home()
    settings = config.load(home.config_file)
    sources = all_sources(settings)
    places = named_places(sources, Territory(sources, handed_files(home)), [path])
    with closing(open_reader(home.index)) as db:
        known = load_all(db)
        for file in survey(places, frozenset()).files:
            source = known.get(file.path) or Tracked(file.path, file.agent.agent, file.kind)
            for _ in steps_of(file, source, db, settle_all=True, mask=settings.mask):
                pass
    return Exit.OK


def named_places(
    sources: Sequence[Source], territory: Territory, targets: Sequence[str]
) -> list[Place]:
    """What is named on the command line: by place where an agent's files are, else anybody's."""
    places = []
    for target in targets:
        path = os.path.realpath(os.path.expanduser(target))
        around = territory.place_of(tail.log_name(path))
        places.append(
            replace(around, path=path) if around else Place(path, tuple(sources), foreign=True)
        )
    return places


def main(arguments: Sequence[str]) -> int:
    """Take paths. `--roots` only prints the places that are read; `--unless-running` is for

    clients, who know how to wait for another writer.
    """
    unless_running = "--unless-running" in arguments
    try:
        if "--roots" in arguments:
            sources = all_sources(config.load(paths.home().config_file))
            sys.stdout.writelines(f"{place.path}\n" for place in Territory(sources).places)
            return Exit.OK
        if arguments[:1] == [_TRIAL]:
            return read_alone(arguments[1])
        logging.basicConfig(format="sessiond: %(message)s")  # warnings, on stderr
        paths_given = [one for one in arguments if not one.startswith("--")]
        quiet = unless_running or "--quiet" in arguments
        return run(paths_given, quiet=quiet, background=unless_running)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except Exception as error:
        if unless_running and getattr(error, "code", 0) == Exit.ALREADY_RUNNING:
            return Exit.ALREADY_RUNNING
        return program.explain("sessiond", error)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
