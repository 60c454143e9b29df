"""Ways out of a damaged index: `sessiond salvage` and `sessiond repair`.

A damaged database is never written to: a new one is built beside it and takes its place in one
step, and the damaged one is kept.
"""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path

import apsw

from sess_common import paths
from sess_common.errors import Exit, SessError
from sess_common.program import counted, say
from sess_common.progress import Progress, progress_line
from sess_schema import archive, backups, soundness, sums
from sess_schema.archive import Loss, Lost
from sess_schema.connection import interrupted_repair, open_reader, open_writer, refuse_links
from sess_schema.ids import SourceId
from sess_schema.marks import Mark
from sess_schema.migrate import PreRelease
from sess_schema.queries.views import digests, parts
from sess_schema.soundness import ArchiveCheck, Finding
from sessiond import config
from sessiond.ingest import Ingest
from sessiond.prices import Pricer
from sessiond.reading import territory
from sessiond.reading.territory import Territory
from sessiond.salvage import finds, load, pre_release, rows
from sessiond.salvage.finds import FoundSource
from sessiond.service.startup import writer_lock
from sessiond.sourcekit.base import Source
from sessiond.sources import all_sources
from sessiond.writing.reread import reread
from sessiond.writing.transaction import Store

_MOST_NAMED = 50
_STOP_FIRST = "run `sessiond stop` first"
_DATABASE = b"SQLite format 3\0"


def salvage(file: str) -> int:
    """Load what is intact in `file` into the index."""
    home = paths.home()
    if not os.path.isfile(file):
        raise SessError(f'"{file}" is not a file', hint="name a damaged index.db")
    with writer_lock(home, "repair", hint=_STOP_FIRST):
        if home.index.exists() and os.path.samefile(file, home.index):
            _refuse_todays(home.index, file)
            kept = interrupted_repair(home.index) or _keep(home, "pre-release")
            lost = _rebuild(home, kept, "from before the first release")
        else:
            lost = _load(home, home.index, file)
    _name_lost([*lost.values()])
    return Exit.SKIPPED_SOME if lost else Exit.OK


def repair(*, accept_losses: bool = False) -> int:
    """Mend what can be mended; 4 if something is lost for good and that is not accepted."""
    home = paths.home()
    with writer_lock(home, "repair", hint=_STOP_FIRST):
        refuse_links(home.index)
        kept = interrupted_repair(home.index)
        if kept is None and not home.index.exists():
            raise SessError(f'no index at "{home.index}"', hint="run `sessiond sync`")
        # A read error may pass: only what is damaged at a second look, too, is built anew.
        broken = kept is not None or (_is_broken(home.index) and _is_broken(home.index))
        if broken:
            _rebuild(home, kept or _keep(home), "damaged")
        lost = _mend(home, accept_losses=accept_losses)
    if lost and accept_losses:
        _name_lost(lost)
        say(f"accepted {counted(len(lost), 'loss')}; `sess check` no longer fails for them")
        return Exit.OK
    if lost:
        _name_lost(lost)
        return Exit.INDEX_UNUSABLE
    say("the index is sound")
    return Exit.OK


def restore_backup(backup: str, at: str | None) -> int:
    """Put a backup in the place of the index, then read what changed since."""
    home = paths.home()
    new = home.index.with_name("index.db.new")
    with writer_lock(home, "repair", hint=_STOP_FIRST):
        new.unlink(missing_ok=True)
        try:
            _write_backup(backup, at, new)
        except BaseException:
            new.unlink(missing_ok=True)
            raise
        if home.index.exists():
            say(f'the present index is kept in "{_keep(home, "replaced").parent}"')
        else:
            _note(home, new)
        _put_in_place(home, new)
        with closing(open_writer(home.index)) as db:
            soundness.keep_size(db, smaller=True)
    say("the backup is the index now; `sessiond sync` reads what changed since")
    return Exit.OK


def _write_backup(backup: str, at: str | None, new: Path) -> None:
    path = Path(os.path.expanduser(backup))
    if not path.exists():
        raise SessError(f'no backup at "{backup}"', code=Exit.NOTHING_FOUND)
    pieces = backups.pages_of(path, at) if path.is_dir() else backups.pieces_of(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(new, flags, 0o600), "wb") as out:
        out.writelines(pieces)
        out.flush()
        os.fsync(out.fileno())
    with new.open("rb") as written:
        if written.read(len(_DATABASE)) != _DATABASE:
            raise SessError(
                f'"{backup}" is not a backup',
                hint="name what `sess backup` wrote",
                code=Exit.INDEX_UNUSABLE,
            )
    with closing(open_reader(new, any_schema=True)) as db:
        wrong = soundness.structure(db)
    if wrong:
        raise SessError(
            f'"{backup}" is damaged: {wrong[0].message}',
            hint="`sessiond salvage` takes what is intact out of a file",
            code=Exit.INDEX_UNUSABLE,
        )


def _refuse_todays(index: Path, file: str) -> None:
    """The index itself is salvaged only where it is one that cannot be upgraded."""
    with suppress(PreRelease), closing(open_reader(index, any_schema=True)):
        raise SessError(
            f'"{file}" is the index itself', hint="`sessiond repair` salvages it in one go"
        )


def _name_lost(lost: list[str]) -> None:
    for line in lost[:_MOST_NAMED]:
        say(f"lost: {line}")
    if len(lost) > _MOST_NAMED:
        say(f"lost: and {len(lost) - _MOST_NAMED:,} more")


# -- a new index out of a damaged one


def _is_broken(index: Path) -> bool:
    """Whether pages are damaged, so that nothing may be written to the file."""
    if not index.stat().st_size:
        return True
    try:
        with closing(open_reader(index, any_schema=True)) as db, progress_line() as progress:
            progress("checking the pages")
            findings = soundness.structure(db)
    except PreRelease:
        raise
    except SessError:
        return True
    return any(one.about == soundness.STRUCTURE for one in findings)


def _rebuild(home: paths.Home, kept: Path, what: str) -> Lost:
    """Salvage the index, which is kept, into a new one, and put that in its place."""
    say(f'the index is {what}; it is kept in "{kept.parent}"')
    new = home.index.with_name("index.db.new")
    for end in ("", "-wal", "-shm"):
        new.with_name(new.name + end).unlink(missing_ok=True)
    lost = _load(home, new, str(kept))
    _put_in_place(home, new)
    return lost


def _put_in_place(home: paths.Home, new: Path) -> None:
    for end in ("-wal", "-shm"):  # of the old one: they must never meet the new one
        home.index.with_name(home.index.name + end).unlink(missing_ok=True)
    os.replace(new, home.index)
    (home.data / "repairing").unlink()


def _keep(home: paths.Home, why: str = "damaged") -> Path:
    """Keep the present files under another name, and note that a repair is under way."""
    folder = _new_folder(home.data / time.strftime(f"{why}-%Y%m%d-%H%M%S", time.gmtime()))
    for end in ("", "-wal"):
        old = home.index.with_name(home.index.name + end)
        with suppress(FileNotFoundError):
            _link(old, folder / old.name)
    _note(home, folder / home.index.name)
    return folder / home.index.name


def _note(home: paths.Home, kept: Path) -> None:
    """What is in the place of the index must not be written to until this note is gone."""
    part = home.data / "repairing.part"
    part.unlink(missing_ok=True)  # of a killed attempt, or a link that somebody planted
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(os.fsencode(kept))
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, home.data / "repairing")


def _new_folder(wanted: Path) -> Path:
    """One that an attempt a moment ago has not made already."""
    for number in itertools.count(2):
        with suppress(FileExistsError):
            wanted.mkdir(mode=0o700)
            break
        wanted = wanted.with_name(f"{wanted.name.partition('+')[0]}+{number}")
    return wanted


def _link(old: Path, new: Path) -> None:
    try:
        os.link(old, new)
    except FileNotFoundError:
        raise
    except OSError:  # a file system without hard links
        shutil.copyfile(old, new)


def _facts_of(file: str) -> dict[str, str]:
    """What a damaged index says about itself, as far as it can be read."""
    address = f"{Path(file).resolve().as_uri()}?immutable=1"  # nothing is made beside it
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    try:
        with closing(apsw.Connection(address, flags)) as db:
            return dict(db.execute("SELECT name, value FROM facts"))
    except (apsw.Error, UnicodeDecodeError):
        return {}


def _load(home: paths.Home, index: Path, file: str) -> Lost:
    """Load what is intact in a file, read the files that still exist, then the rest of it."""
    settings = config.load(home.config_file)
    if index != home.index and settings.mask is None:
        lost = _copy_rows(home, index, file, settings)
        if lost is not None:
            return lost
    if settings.mask is None and pre_release.is_sound(file):
        copied = _copy(home, index, file, settings)
        if copied is not None:
            say(f"copied {counted(copied, 'session')}")
            return {}
    own_marks = set[Mark]()
    with progress_line() as progress:
        salvaged = finds.find(file, progress, own_marks=own_marks)
    # A rebuilt one is made of the files that still exist.
    if not salvaged and not own_marks and index == home.index:
        raise SessError(
            f'nothing of an index was found in "{file}"',
            hint="name a damaged index, or one that was moved aside",
            code=Exit.NOTHING_FOUND,
        )
    lost = _load_pieces(home, index, salvaged, settings, _facts_of(file))
    with closing(open_writer(index)) as db:
        noted = load.load_marks(Store(db), own_marks)
    if noted:
        what = "title, label or pin" if noted == 1 else "titles, labels or pins"
        say(f"loaded {noted:,} {what}")
    return lost


# Rows of conversations that nothing is made again from, where their files are gone.
_ONLY_ROWS = frozenset(
    {
        *("sessions", "session_sources", "records", "events", "event_texts"),
        *("files", "edits", "commits", "usage", "leaf_titles"),
    }
)


def _copy_rows(home: paths.Home, index: Path, file: str, settings: config.Config) -> Lost | None:
    """Copy what is on sound pages; the repair goes on with what it lacks. None: it cannot."""
    agents = {source.agent: source for source in all_sources(settings)}
    with closing(open_writer(index)) as db, progress_line() as progress:
        progress("copying what is intact")
        damaged = rows.copy(db, file)
        if damaged is None:
            return None
        store, own_marks = Store(db, Pricer(settings.prices)), set[Mark]()
        pieces = finds.find(file, progress, own_marks=own_marks)
        lost = load.add_pieces(store, pieces, agents, str(home.data))
        load.load_marks(store, own_marks)
        parts = db.execute("SELECT count(*) FROM sources WHERE part_of IS NOT NULL").get
        for table in sorted(damaged & _ONLY_ROWS) if parts else ():
            told = f"index.db: {table} of conversations whose file is gone may be"
            lost[Loss(f"index.db: {table}", archive.UNPLACED, 0, 0)] = told
        with db:
            rows.drop_orphans(db)
            archive.note_losses(db, lost)
            if damaged & _ONLY_ROWS:
                db.execute("UPDATE sources SET edition = 0 WHERE part_of IS NULL")
        say(f"copied {counted(db.execute('SELECT count(*) FROM records').get, 'record')}")
        return lost


def _copy(home: paths.Home, index: Path, file: str, settings: config.Config) -> int | None:
    """Copy the rows of an older index and read everything again that can be read."""
    sources = all_sources(settings)
    with closing(open_writer(index)) as db, progress_line() as progress:
        progress("copying the rows")
        copied = pre_release.copy(db, file)
        if copied is not None:
            store = Store(db, Pricer(settings.prices))
            reread(store, {source.agent: source for source in sources}, progress)
            progress("reading the files that still exist")
            _read_files(home, settings, store, sources)
    return copied


def _load_pieces(
    home: paths.Home,
    index: Path,
    salvaged: list[FoundSource],
    settings: config.Config,
    facts: Mapping[str, str],
) -> Lost:
    """Load the archive alone. `facts`: what the damaged index says about itself."""
    sources = all_sources(settings)
    agents = {source.agent: source for source in sources}
    folder, mask = str(home.data), settings.mask
    if mask is not None:
        finds.mask_all(salvaged, mask)
    with closing(open_writer(index)) as db:
        if archive.MASKS_FACT in facts or mask is not None:
            archive.note_masks(db)
        archive.remember_losses(db, facts)
        store = Store(db, Pricer(settings.prices))
        files = load.load_files(store, salvaged, agents, folder, mask)
        with progress_line() as progress:
            reread(store, agents, progress, mask=mask)
            progress("reading the files that still exist")
            _read_files(home, settings, store, sources)
        conversations = load.load_conversations(store, salvaged, agents, folder, mask)
        lost = files.lost | conversations.lost
        archive.note_losses(db, lost)
        lost = archive.losses(db)
    loaded = files.sources + conversations.sources
    pieces = files.pieces + conversations.pieces
    known = files.known + conversations.known
    say(
        f"loaded {counted(loaded, 'file')} with {counted(pieces, 'archived piece')}"
        + (f"; {known} had nothing new" if known else "")
    )
    return lost


# -- a database whose pages are sound


def _mend(home: paths.Home, *, accept_losses: bool) -> list[str]:
    settings = config.load(home.config_file)
    sources = all_sources(settings)
    with progress_line() as progress, closing(open_writer(home.index, progress)) as db:
        findings = _archive_findings(db, progress)
        _mend_rows(db, progress)
        affected = sorted({one.source for one in findings if one.source is not None})
        _compare_again(db, affected)
        store = Store(db, Pricer(settings.prices))
        agents = {source.agent: source for source in sources}
        reread(store, agents, progress, mask=settings.mask)
        progress("reading the files that still exist")
        _read_files(home, settings, store, sources)
        _drop_replaced(db, affected)
        _sum_up(db)
        remaining = _archive_findings(db, progress, affected)
        lost = {one.loss: one.message for one in remaining if one.loss is not None}
        with db:
            archive.note_losses(db, lost)
        if accept_losses:
            archive.accept_losses(db, lost)
        return [one.message for one in remaining]


def _read_files(
    home: paths.Home, settings: config.Config, store: Store, sources: Sequence[Source]
) -> None:
    places = Territory(sources, territory.handed_files(home)).places
    Ingest(store, exclude=settings.exclude, mask=settings.mask).reconcile(places)


def _archive_findings(
    db: apsw.Connection, progress: Progress, sources: list[SourceId] | None = None
) -> list[Finding]:
    def draw(done: int, of: int) -> None:
        progress(f"checking the archive, {done:,} of {of:,} pieces")

    findings = [*ArchiveCheck(db, only=sources).findings(draw)]
    archive.met.clear()
    return findings


def _mend_rows(db: apsw.Connection, progress: Progress) -> None:
    """Make derived rows again from what they derive from."""
    dangling = soundness.dangling(db)
    if dangling:
        progress("removing rows that lead nowhere")
        with db:
            soundness.remove_dangling(db)
        say(f"removed {counted(dangling, 'row')} that led nowhere; all logs are read again")
    if dangling or soundness.full_text(db):
        progress("building the full-text index again")
        with db:
            db.execute("INSERT INTO event_index (event_index) VALUES ('rebuild')")
            # The archive has all records: what was lost or altered comes back out of it.
            db.execute("UPDATE sources SET edition = 0 WHERE kind = 'transcript'")
        say("built the full-text index again")


def _sum_up(db: apsw.Connection) -> None:
    if any(sums.differences(db).values()):
        with db:
            sums.renew_all(db)
        say("summed everything up again")
    if digests.differences(db):
        with db:
            parts.clear(db)
        say("summed up every session again")


def _compare_again(db: apsw.Connection, sources: list[SourceId]) -> None:
    """Make the next pass compare these files with the archive: with another inode it must."""
    with db:
        db.executemany(
            "UPDATE sources SET inode = -1, ctime_ns = max(ctime_ns, 1) WHERE id = ?",
            [(source,) for source in sources],
        )


def _drop_replaced(db: apsw.Connection, sources: list[SourceId]) -> None:
    """Drop damaged pieces whose bytes were archived again from a file that still has them."""
    for source in sources:
        text: bytes | None = None
        for number, chunks in archive.earlier(db, source).items():
            retired = [chunk for chunk in chunks if chunk.retired == number + 1]
            if all(_is_intact(db, chunk) for chunk in retired):
                continue
            if text is None:
                try:
                    text = b"".join(archive.laid_out(db, archive.current(db, source)))
                except archive.Damaged:
                    break
            if all(
                chunk.end <= len(text)
                and (
                    not _is_intact(db, chunk)
                    or archive.chunk_bytes(db, chunk) == text[chunk.offset : chunk.end]
                )
                for chunk in retired
            ):
                with db:
                    db.executemany(
                        "DELETE FROM chunks WHERE id = ?", [(chunk.id,) for chunk in retired]
                    )
    archive.met.clear()


def _is_intact(db: apsw.Connection, chunk: archive.Chunk) -> bool:
    try:
        archive.chunk_bytes(db, chunk)
    except archive.Damaged:
        return False
    return True
