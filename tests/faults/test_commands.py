"""Every command that writes, killed or failing at any call: the next run ends as if nothing were.

A kill or fault strikes at one call of SQLite (write, sync, truncate, read) or of the program itself
(create, rename, link or delete a file). `make faults` tries many more calls of each.
"""

from __future__ import annotations

import io
import json
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext

import apsw
import pytest
from tests.at_length import AT_LENGTH, amount, spread
from tests.faults import damage, disk
from tests.faults.disk import FILES, KILL, READS, WRITES, Trouble
from tests.schema.upgrading import later

from sess_common.errors import Exit
from sess_schema import page_sums
from sess_schema.connection import open_reader
from sessiond.service import requests

FIRST, SECOND = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
SECRET = "quinquireme"
KINDS = {
    "killed": (KILL, WRITES | FILES),
    "full": (apsw.FullError, WRITES | FILES),
    "failing": (apsw.IOError, WRITES | FILES),
    "unreadable": (apsw.IOError, READS),
}


def two_sessions(world):
    for session, words in ((FIRST, SECRET), (SECOND, "coaster")):
        t = world.transcript(session)
        t.append(t.prompt(f"{words} {'of Nineveh ' * 300}"), t.call("c1", command=words))
        t.append(t.result("c1", "ivory"), t.answer("apes"))


def facts(world):
    """What the index says and holds, whatever numbers its rows have."""
    with closing(open_reader(world.state / "index.db")) as db:
        paths = [path for (path,) in db.execute("SELECT path FROM sources ORDER BY path")]
    return world.dump(), [world.restored(path) for path in paths]


class Sync:
    """A first load, which makes the index."""

    during: Callable[..., AbstractContextManager[object]] = staticmethod(
        nullcontext
    )  # what is true while it works

    def prepare(self, world):
        two_sessions(world)

    def work(self, world, trouble):
        return disk.run(world, trouble, "sessiond", "sync")

    def finish(self, world):
        assert self.work(world, Trouble()).code == 0

    def facts(self, world):
        return facts(world)


class Growth(Sync):
    """A file that grew, one that was rewritten, and one that is gone."""

    def prepare(self, world):
        two_sessions(world)
        third = world.transcript("33333333-1111-4111-8111-111111111111")
        third.append(third.prompt("gone"))
        world.ingest()
        third.path.unlink()
        first, second = world.transcript(FIRST), world.transcript(SECOND)
        first.append(first.prompt("more", uuid="d" * 36))
        second.path.write_bytes(second.encode(second.prompt("anew")))


class Upgrade(Sync):
    """An index of the version before: the transcripts are gone."""

    during = staticmethod(later)

    def prepare(self, world):
        two_sessions(world)
        world.ingest()
        shutil.rmtree(world.projects)
        world.projects.mkdir()

    def facts(self, world):
        return facts(world), world.sql("SELECT native_id, words FROM sessions ORDER BY 1")


class Mend(Sync):
    """`repair` of rows: lost records, wrong sums and full text, with the transcripts gone."""

    def prepare(self, world):
        two_sessions(world)
        world.ingest()
        shutil.rmtree(world.projects)
        world.projects.mkdir()
        world.ingest()
        with closing(page_sums.opened(str(world.state / "index.db"))) as db:
            triggers = list(db.execute("SELECT name, sql FROM sqlite_schema WHERE type='trigger'"))
            for name, _ in triggers:
                db.execute(f"DROP TRIGGER {name}")
            db.execute("DELETE FROM records WHERE line = 2")
            db.execute("UPDATE event_sums SET prompts = 9")
            for _, made in triggers:
                db.execute(made)

    def work(self, world, trouble):
        return disk.run(world, trouble, "sessiond", "repair")


class Rebuild(Sync):
    """`repair` of damaged pages: a new index out of the old one, with the transcripts gone."""

    lost = (0, Exit.INDEX_UNUSABLE)

    def prepare(self, world):
        two_sessions(world)
        world.ingest()
        shutil.rmtree(world.projects)
        world.projects.mkdir()
        index = world.state / "index.db"
        with closing(page_sums.opened(str(index))) as db:
            db.execute("VACUUM")
            db.pragma("journal_mode", "delete")
        raw = bytearray(index.read_bytes())
        untouched = set().union(*(pages for _, pages in damage.whereabouts(index).values()))
        page = max(set(range(2, len(raw) // damage.PAGE)) - untouched)
        raw[page * damage.PAGE : (page + 1) * damage.PAGE] = bytes(damage.PAGE)
        raw[:100] = bytes(100)
        index.write_bytes(raw)

    def work(self, world, trouble):
        return disk.run(world, trouble, "sessiond", "repair")

    def finish(self, world):
        assert self.work(world, Trouble()).code in self.lost
        assert list(world.state.glob("damaged-*/index.db"))


class Salvage(Rebuild):
    """`salvage` of a damaged file into a new index."""

    lost = (0, Exit.SKIPPED_SOME)

    def prepare(self, world):
        super().prepare(world)
        (world.state / "index.db").rename(world.root / "old.db")

    def work(self, world, trouble):
        return disk.run(world, trouble, "sessiond", "salvage", world.root / "old.db")

    def finish(self, world):
        assert self.work(world, Trouble()).code in self.lost


class History(Salvage):
    """`salvage` into an index that has only the last content of a file that was rewritten twice."""

    def prepare(self, world):
        two_sessions(world)
        world.ingest()
        t = world.transcript(FIRST)
        content = t.path.read_bytes()
        for lines in (1, 3):
            t.path.write_bytes(b"".join(content.splitlines(keepends=True)[-lines:]))
            world.ingest()
        with closing(page_sums.opened(str(world.state / "index.db"))) as db:
            db.pragma("journal_mode", "delete")
        (world.state / "index.db").rename(world.root / "old.db")
        world.ingest()


class Accept(Mend):
    """`repair --accept-losses` of a piece that nothing can bring back."""

    def prepare(self, world):
        two_sessions(world)
        world.ingest()
        shutil.rmtree(world.projects)
        world.projects.mkdir()
        world.ingest()
        with closing(page_sums.opened(str(world.state / "index.db"))) as db:
            db.execute("UPDATE chunks SET data = zeroblob(99) WHERE id = 1")

    def work(self, world, trouble):
        return disk.run(world, trouble, "sessiond", "repair", "--accept-losses")

    def facts(self, world):
        assert world.run("sess", "check").returncode == 0
        return facts(world)


class Forget(Sync):
    """`forget`, as the process that does it for `sess`: nothing is left in any page."""

    def prepare(self, world):
        two_sessions(world)
        world.ingest()
        ((self.key,),) = world.sql("SELECT id FROM sessions WHERE native_id = ?", FIRST)

    def work(self, world, trouble):
        request = {"what": "forget", "sessions": [self.key]}

        def work():
            sys.stdin = io.StringIO(json.dumps(request))
            return requests.main()

        return disk.in_child(world, trouble, work)

    def finish(self, world):
        assert self.work(world, Trouble()).code == 0

    def facts(self, world):
        raw = b"".join(path.read_bytes() for path in world.state.glob("index.db*"))
        assert raw.count(SECRET.encode()) == 0
        return facts(world)


class Backup(Sync):
    """`backup FILE`: a whole copy, or none."""

    def prepare(self, world):
        two_sessions(world)
        world.ingest()

    def work(self, world, trouble):
        return disk.run(world, trouble, "sess", "backup", "--no-sync", world.root / "copy.db")

    def finish(self, world):
        expected = 2 if (world.root / "copy.db").exists() else 0
        assert self.work(world, Trouble()).code == expected

    def facts(self, world):
        world.state = world.root / "other"
        world.env["SESSIOND_HOME"] = str(world.state)
        assert disk.run(world, Trouble(), "sessiond", "restore-backup", self.made(world)).code == 0
        return facts(world)

    def made(self, world):
        return world.root / "copy.db"


class Folder(Backup):
    """`backup DIR`, the second one in it: all of it, or none."""

    def prepare(self, world):
        super().prepare(world)
        (world.root / "backups").mkdir()
        assert self.work(world, Trouble()).code == 0
        for path in (world.root / "backups").iterdir():
            path.rename(path.with_stem("20200101T000000Z"))
        t = world.transcript(FIRST)
        t.append(t.prompt("late", uuid="e" * 36))
        world.ingest()

    def work(self, world, trouble):
        return disk.run(world, trouble, "sess", "backup", "--no-sync", world.root / "backups")

    def finish(self, world):
        code = self.work(world, Trouble()).code
        assert code == 0 or len(list((world.root / "backups").glob("*.manifest"))) == 2

    def made(self, world):
        return world.root / "backups"


class Restore(Backup):
    """`restore-backup`: the index is the old one or the backup, and nothing is between."""

    def prepare(self, world):
        super().prepare(world)
        super().work(world, Trouble())
        t = world.transcript(FIRST)
        t.path.write_bytes(t.encode(t.prompt("another")))
        world.ingest()

    def work(self, world, trouble):
        return disk.run(world, trouble, "sessiond", "restore-backup", world.root / "copy.db")

    def finish(self, world):
        assert self.work(world, Trouble()).code == 0

    def facts(self, world):
        return facts(world)


OPERATIONS = {
    "sync": Sync(),
    "growth": Growth(),
    "mend": Mend(),
    "rebuild": Rebuild(),
    "salvage": Salvage(),
    "history": History(),
    "accept": Accept(),
    "forget": Forget(),
    "backup": Backup(),
    "folder": Folder(),
    "restore": Restore(),
    "upgrade": Upgrade(),
}


class Stage:
    """A world that can be set up again and again, always at the same place."""

    def __init__(self, make_world, folder, operation):
        self._make, self._home, self._kept = make_world, folder / "home", folder / "kept"
        operation.prepare(self._make(self._home))
        shutil.copytree(self._home, self._kept, symlinks=True)

    def again(self):
        shutil.rmtree(self._home)
        world = self._make(self._home)
        shutil.rmtree(self._home)
        shutil.copytree(self._kept, self._home, symlinks=True)
        return world


def chosen(kinds):
    """Each command with each kind of trouble; a few in the short form."""
    short = {("sync", "killed"), ("mend", "failing"), ("rebuild", "killed"), ("forget", "killed")}
    short |= {("backup", "full"), ("restore", "killed"), ("upgrade", "unreadable")}
    every = [(name, kind) for name in OPERATIONS for kind in kinds]
    return every if AT_LENGTH else [one for one in every if one in short]


@pytest.mark.parametrize(("name", "kind"), chosen(KINDS))
def test_trouble_at_any_call_ends_as_no_trouble(world, tmp_path, name, kind):
    """Killed or failing at call N, then run again: the same index as without."""
    operation = OPERATIONS[name]
    what, calls = KINDS[kind]
    stage = Stage(type(world), tmp_path, operation)
    with operation.during():
        undisturbed = stage.again()
        quiet = Trouble(calls=calls)
        done = operation.work(undisturbed, quiet)
        assert done.code in (0, Exit.INDEX_UNUSABLE, Exit.SKIPPED_SOME), done
        expected = operation.facts(undisturbed)
        struck = 0
        for call in spread(quiet.calls, amount(4, 16)):
            told = f"{name}, {kind} at call {call} of {quiet.calls}"
            other = stage.again()
            trouble = Trouble(what, call, calls)
            done = operation.work(other, trouble)
            struck += trouble.struck
            assert "Traceback" not in done.stderr, (told, done.stderr)
            if kind == "killed" and trouble.struck:
                assert done.code == -signal.SIGKILL, (told, done)
            operation.finish(other)
            assert operation.facts(other) == expected, told
            other.check()
        assert struck > 0
