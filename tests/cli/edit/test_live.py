"""Files are replaced whole or not at all, and nothing that is written meanwhile is lost."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import time

import pytest
from tests.cli.edit.conftest import (
    AFTER,
    BEFORE,
    CUT,
    KEEP,
    LINES,
    cut,
    dying_at,
    in_child,
    leftovers,
    rest,
    states,
)
from tests.must import must
from tests.rights import obey_permissions

from sess_cli.edit import live, log, undoing, writers
from sess_common.errors import SessError
from sessiond import config

STEPS = ("begin", "snapshot", "written", "entered", "before rename", "renamed")
MORE = b'{"line":9}\n'


def test_the_kept_pieces_and_nothing_else(file):
    """Kept lines are the same bytes in the same order; the entry tells what went."""
    edit = cut(file)
    assert file.read_bytes() == AFTER
    assert (edit.cut, edit.pulled, edit.state) == (("3",), ("4",), "done")
    assert b"".join(log.snapshot(edit)) == BEFORE
    assert leftovers(file) == []


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o640])
def test_the_mode_is_kept_and_our_files_are_private(file, mode):
    """The transcript keeps its mode; snapshot, entry and folder are for their owner only."""
    file.chmod(mode)
    rest(file)
    cut(file)
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert stat.S_IMODE(log.folder().stat().st_mode) == 0o700
    assert {stat.S_IMODE(one.stat().st_mode) for one in log.folder().iterdir()} == {0o600}


def test_a_link_stays_a_link(file):
    """What it points to is replaced, and undone."""
    link = file.parent / "link.jsonl"
    link.symlink_to(file.name)
    edit = cut(link)
    assert link.is_symlink()
    assert file.read_bytes() == AFTER
    undoing.undo(edit)
    assert link.is_symlink()
    assert file.read_bytes() == BEFORE


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step(file, monkeypatch, step):
    """The file is the old or the new one; the log says which, and what happened is undone."""

    def body():
        monkeypatch.setattr(live, "reached", dying_at(step))
        cut(file)

    assert in_child(body) == -signal.SIGKILL
    happened = step == "renamed"
    assert file.read_bytes() == (AFTER if happened else BEFORE)
    with live.editing():
        pass
    assert states() == ([("cut", "done")] if happened else [])
    if happened:
        undoing.undo(undoing.last(), force=True)
        assert file.read_bytes() == BEFORE
    else:
        cut(file)  # also removes what was left beside it
        assert file.read_bytes() == AFTER
    assert leftovers(file) == []


@pytest.mark.parametrize("step", [*STEPS[:-1], "renamed"])
def test_lines_appended_at_any_step_survive(file, monkeypatch, step):
    """They follow the kept lines, and the old ones after undo."""
    old = os.open(file, os.O_RDONLY)

    def append(name):
        if name == step:
            # After the rename: somebody who opened the old file before it.
            to = f"/proc/self/fd/{old}" if name == "renamed" else file
            with open(to, "ab") as out:
                out.write(MORE)

    if step == "renamed" and not os.path.exists("/proc/self/fd"):
        pytest.skip("needs /proc")
    monkeypatch.setattr(live, "reached", append)
    edit = cut(file)
    monkeypatch.undo()
    os.environ["SESSIOND_HOME"] = str(file.parent.parent / "state")
    try:
        assert file.read_bytes() == AFTER + MORE
        (done,) = undoing.undo(edit, force=True)
        assert file.read_bytes() == BEFORE + MORE
        assert done.kept in (len(MORE), 0)  # 0: it was there before the snapshot
    finally:
        del os.environ["SESSIOND_HOME"]
        os.close(old)


@pytest.mark.slow
def test_nothing_is_lost_while_an_agent_appends(file):
    """It opens the file for each line, as fast as it can, while edits go on."""
    count = 400

    def agent():
        for number in range(count):
            with open(file, "ab") as out:
                out.write(b'{"new":%d}\n' % number)
            time.sleep(0.001)

    pid = os.fork()
    if pid == 0:
        agent()
        os._exit(0)
    edits, refused = 0, []
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        try:
            with live.opened(str(file), force=True) as opened:
                opened.rewrite([(0, opened.size)], CUT, opened.content())
                edits += 1
        except live.Changed:
            refused.append("changed")
        except SessError as error:
            refused.append(error.message)
    busy = f'"{file}" is open for writing in '
    assert [why for why in refused if why != "changed" and not why.startswith(busy)] == []
    added = [line for line in file.read_bytes().splitlines() if line.startswith(b'{"new"')]
    assert sorted(added) == sorted(b'{"new":%d}' % number for number in range(count))
    assert edits


def test_an_appended_line_that_ends_an_unfinished_one(file):
    """The rest of the last line is joined with it in the cut file and after undo."""
    with file.open("ab") as out:
        out.write(b'{"unfin')
    rest(file)
    edit = cut(file, [*KEEP, (len(BEFORE), len(BEFORE) + 7)])
    with file.open("ab") as out:
        out.write(b'ished":1}\n')
    assert file.read_bytes() == AFTER + b'{"unfinished":1}\n'
    undoing.undo(edit, force=True)
    assert file.read_bytes() == BEFORE + b'{"unfinished":1}\n'


def test_a_line_after_a_cut_unfinished_one_is_not_glued_to_it(file):
    """Undo puts a newline between them."""
    file.write_bytes(BEFORE + b'{"whole":1}')
    rest(file)
    edit = cut(file, [(0, len(BEFORE))])
    with file.open("ab") as out:
        out.write(MORE)
    undoing.undo(edit, force=True)
    assert file.read_bytes() == BEFORE + b'{"whole":1}\n' + MORE


@pytest.mark.parametrize("step", ["snapshot", "entered"])
def test_a_file_that_is_rewritten_meanwhile_is_left_alone(file, monkeypatch, step):
    """In place or by another file; nothing is left of the attempt."""
    other = b'{"rewritten":1}\n' * 40

    def rewrite(name):
        if name == step:
            if step == "entered":
                file.write_bytes(other)
            else:
                new = file.with_suffix(".new")
                new.write_bytes(other)
                new.rename(file)

    monkeypatch.setattr(live, "reached", rewrite)
    with pytest.raises(live.Changed):
        cut(file)
    assert file.read_bytes() == other
    assert states() == []
    assert leftovers(file) == []


def test_a_plan_for_other_bytes_is_refused(file):
    """The digest of what was planned for decides."""
    with live.opened(str(file)) as opened:
        planned = log.Content(len(BEFORE), "0" * 64)
        with pytest.raises(live.Changed):
            opened.rewrite(KEEP, CUT, planned)
    assert file.read_bytes() == BEFORE


def test_a_file_that_was_just_written_to_is_refused(file):
    """Unless it was an edit that wrote it, or --force."""
    rest(file, 1)
    with pytest.raises(SessError, match="was written to 1 seconds ago"):
        cut(file)
    edit = cut(file, force=True)
    assert undoing.undo(edit)[0].kept == 0
    assert file.read_bytes() == BEFORE


def test_a_file_that_somebody_has_open_for_writing_is_refused(file):
    """Also with --force: what is written to the old file after the rename would be lost."""
    program = "import sys; f = open(sys.argv[1], 'ab'); print(1, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        must(other.stdout).readline()
        with pytest.raises(
            SessError, match=rf"is open for writing in python.* \(pid {other.pid}\)"
        ):
            cut(file, force=True)
        stdin = must(other.stdin)
        stdin.write(b"\n")
        stdin.flush()
    cut(file, force=True)


def test_what_lsof_says_is_understood():
    """Readers do not count; `u` is reading and writing."""
    told = "p12\ncless\nf3\nar\np34\nccodex\nf7\nau\n"
    assert writers.writer_told_by_lsof(told) == "codex (pid 34)"
    assert writers.writer_told_by_lsof("p12\ncless\nf3\nar\n") is None
    assert writers.writer_told_by_lsof("") is None


def test_a_full_disk_changes_nothing(file, monkeypatch):
    """Wherever it is noticed before the rename."""
    real = os.fsync
    for failing in (1, 2, 4):  # 3 only makes the name of the entry durable
        calls: list[int] = []

        def fsync(fd, failing=failing, calls=calls):
            calls.append(fd)
            if len(calls) == failing:
                raise OSError(errno.ENOSPC, "No space left on device")
            real(fd)

        monkeypatch.setattr(os, "fsync", fsync)
        with pytest.raises(SessError, match=r"cannot rewrite .* no space left on device"):
            cut(file)
        assert file.read_bytes() == BEFORE
        assert leftovers(file) == []
        assert states() == []
    assert list(log.folder().glob("*.zst")) == []


def test_a_directory_that_is_read_only_changes_nothing(file):
    """One clear line; the file stays, and no snapshot is left."""

    def body():
        obey_permissions()
        with pytest.raises(
            SessError, match=r'cannot rewrite ".*session\.jsonl": permission denied'
        ):
            cut(file)

    file.parent.chmod(0o500)
    try:
        assert in_child(body) == 0
    finally:
        file.parent.chmod(0o700)
    assert file.read_bytes() == BEFORE
    assert states() == []


def test_a_removed_file_comes_back(file):
    """With its bytes and its mode; removing it again is redo."""
    file.chmod(0o640)
    rest(file)
    with live.opened(str(file)) as opened:
        edit = opened.remove(log.Change("rm"))
    assert not file.exists()
    (done,) = undoing.undo(edit)
    assert file.read_bytes() == BEFORE
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    undoing.undo(done.by)
    assert not file.exists()


def test_several_files_of_one_command_are_undone_together(file):
    """They share a group."""
    second = file.with_name("second.jsonl")
    second.write_bytes(LINES[0])
    rest(second)
    change = log.Change("rm", group=log.new_id())
    for path in (file, second):
        with live.opened(str(path)) as opened:
            opened.remove(change)
    assert len(undoing.undo(undoing.last())) == 2
    assert (file.read_bytes(), second.read_bytes()) == (BEFORE, LINES[0])
    assert len(undoing.undo(undoing.last(redo=True))) == 2
    assert not file.exists()
    assert not second.exists()


def test_edits_are_undone_in_reverse_order(file):
    """An earlier one names the later one; after undo and redo the file is what it was."""
    first = cut(file)
    second = cut(file, [(0, len(LINES[0]))])
    with pytest.raises(SessError, match="was edited again") as refused:
        undoing.undo(first)
    assert refused.value.hint == f"undo the later one first: `sess undo {second.id}`"
    undoing.undo(undoing.last())
    undoing.undo(undoing.last())
    assert file.read_bytes() == BEFORE
    with pytest.raises(SessError, match="nothing to undo"):
        undoing.last()
    undoing.undo(undoing.last(redo=True))
    assert file.read_bytes() == AFTER
    undoing.undo(undoing.last(redo=True))
    assert file.read_bytes() == LINES[0]


def test_a_cut_of_the_last_lines_is_not_undone_twice(file):
    """When the file is whole again, the cut lines are not taken for appended ones."""
    edit = cut(file, [(0, len(LINES[0]))])
    file.write_bytes(BEFORE)
    with pytest.raises(SessError, match="is as it was before edit"):
        undoing.undo(edit, force=True)
    assert file.read_bytes() == BEFORE


def test_snapshots_expire(file, home):
    """After the days that config.toml says; the entry stays."""
    edit = cut(file)
    (home / "state" / "config.toml").write_text("[edit]\nkeep_days = 2\n")
    os.utime(log.folder() / f"{edit.id}.zst", (time.time() - 3 * 86_400,) * 2)
    cut(file, [(0, len(AFTER))])
    found = must(log.by_id(edit.id))
    assert found.expired
    with pytest.raises(SessError, match="was removed after 2 days"):
        undoing.undo(found)


def test_an_edit_is_named_by_a_beginning_that_no_other_has(file, monkeypatch):
    """One that several have names none of them; a whole id is never one of several."""
    ids = iter(["beef0001", "beef0002", "beef00011"])
    monkeypatch.setattr(log, "new_id", lambda: next(ids))
    for keep in (KEEP, [(0, len(AFTER))], [(0, len(LINES[0]))]):
        cut(file, keep)
    assert must(log.by_id("beef0002")).id == "beef0002"
    assert must(log.by_id("beef0001")).id == "beef0001"
    with pytest.raises(SessError, match=r'^"beef0" matches 3 edits: '):
        log.by_id("beef0")
    assert log.by_id("beef1") is None


def test_a_damaged_snapshot_is_not_written_back(file):
    """The file stays as it is."""
    edit = cut(file)
    path = log.folder() / f"{edit.id}.zst"
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    path.write_bytes(raw)
    with pytest.raises(SessError, match=r"the snapshot of edit \w+ is damaged"):
        undoing.undo(edit)
    assert file.read_bytes() == AFTER
    assert leftovers(file) == []


@pytest.mark.parametrize("text", ["edit = 1", "[edit]\nkeep = 1", "[edit]\nkeep_days = 0"])
def test_a_wrong_section_of_the_configuration_is_named(tmp_path, text):
    """By the daemon; edits go on with the default."""
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(SessError, match="edit"):
        config.load(file)
