"""`sess rm`: the files of a session go together, and come back together."""

from __future__ import annotations

import json
import os
import signal
import stat
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.continuing.continuing_worlds import SESSION, recorder
from tests.cli.edit.conftest import in_child, rest
from tests.golden_home import clean

from sess_cli.edit import live, whole_files
from sess_cli.recording import Recorder
from sess_schema.connection import open_reader
from sess_schema.queries import sessions

OTHER = "0711"


@pytest.fixture
def tea(world):
    """A session with a teammate and a long output, and another session beside it."""
    with recorder(world) as record:
        record.user("boil the samovar")
        record.tool_call("execute", {"command": "seq"}, "c1")
        record.tool_result("execute", "row\n" * 3000 + "marmalade", "c1")
    with Recorder.teammate(SESSION, "fork", folder=record.folder) as member:
        member.user("fetch a spoon")
    with recorder(world, OTHER) as other:
        other.user("unrelated")
    folder = Path(record.folder)
    for path in folder.rglob("*.*"):
        rest(path)
    return folder


def rm(world, *arguments, session=SESSION, check=0):
    return world.run("sess", "rm", session, *arguments, check=check)


def content(folder):
    """All files by path, with their modes."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        for path in folder.rglob("*")
        if path.is_file()
    }


FILES = [f"{SESSION}.json", f"{SESSION}/subagents/agent-fork.jsonl", f"overflow/{SESSION}/c1.txt"]


def test_the_whole_family_goes_and_comes_back(world, tea):
    """Transcripts, outputs and the entry in the list; undo brings back every byte and mode."""
    before = content(tea)
    done = rm(world, "--yes")
    left = content(tea)
    assert sorted(before.keys() - left.keys()) == FILES
    assert not (tea / SESSION).exists()
    assert not (tea / "overflow" / SESSION).exists()
    listed = json.loads(left["session.json"][0])["sessions"]["/code/tea"]
    assert [one["uuid"] for one in listed] == [OTHER]
    assert done.stderr.startswith("deleted 3 files; the index keeps the session\nundo: sess undo ")
    world.run("sess", "undo", done.stderr.split()[-1], check=0)
    assert content(tea) == before
    world.run("sess", "undo", "--redo", check=0)
    assert content(tea) == left


def test_the_index_keeps_it(world, tea):
    """It is found as one whose source is gone, and restored as any other."""
    rm(world, "--yes")
    world.run("sess", "search", "samovar", check=0)
    assert [len(world.found(word)) for word in ("spoon", "marmalade")] == [1, 1]
    rows = map(json.loads, world.run("sess", "list", "--json", check=0).stdout.splitlines())
    assert {row["session"]: row["source_gone"] for row in rows} == {SESSION: True, OTHER: False}
    done = rm(world, "--yes", check=1)
    assert done.stderr.startswith(f'sess: the transcript of "{SESSION}" is gone already\n')


def test_only_shown_until_agreed(world, tea):
    """A dry run lists the files; in a pipe, --yes is needed."""
    before = content(tea)
    shown = rm(world, "--dry-run").stdout
    assert shown == f"{SESSION} jcode boil the samovar\n" + "".join(
        f"  ~/.jcode/sessions/{name}\n" for name in FILES
    )
    assert (
        rm(world, check=2).stderr == "sess: nobody to ask\nhint: `--yes` deletes without asking\n"
    )
    (found,) = map(json.loads, rm(world, "--dry-run", "--json").stdout.splitlines())
    assert found == {
        "session": SESSION,
        "agent": "jcode",
        "files": [str(tea / name) for name in FILES],
        "done": False,
        "edit": None,
    }
    assert content(tea) == before


def test_one_file_in_use_keeps_all(world, tea):
    """What was deleted before it is put back."""
    before = content(tea)
    with (tea / FILES[1]).open("ab"):
        done = rm(world, "--yes", check=2)
    assert "is open for writing in" in done.stderr
    assert content(tea) == before


@pytest.mark.parametrize("agent", ["goose", "claude-web"])
def test_a_file_with_other_sessions_is_not_deleted(tmp_path, agent):
    """A database, or an export of many conversations: the agent itself must delete one of them."""
    world = clean(tmp_path, agent)
    before = content(world.root)
    session = world.sql("SELECT native_id FROM sessions WHERE records > 0 ORDER BY id")[0][0]
    done = world.run("sess", "rm", session, "--yes", check=2)
    assert done.stderr.startswith(f'sess: "{session}" has no file of its own: "')
    assert content(world.root) == before


@pytest.mark.parametrize("survived", [0, 1, 2, 3])
def test_a_crash_in_between_can_be_undone(world, tea, monkeypatch, survived):
    """Killed before any of the deletions: what is gone has a snapshot, and undo brings it back."""
    world.run("sessiond", "sync", check=0)
    before = content(tea)
    monkeypatch.setenv("SESSIOND_HOME", str(world.state))

    def die_later():
        steps = iter([*[None] * survived, "die"])

        def reached(step):
            if step == "entered" and next(steps) == "die":
                os.kill(os.getpid(), signal.SIGKILL)

        live.reached = reached
        with closing(open_reader(world.state / "index.db")) as db:
            removal = whole_files.planned_removal(db, sessions.resolve(db, SESSION))
        whole_files.remove_session(removal, force=False)

    assert in_child(die_later) == -signal.SIGKILL
    assert sum(name not in content(tea) for name in FILES) == survived
    done = world.run("sess", "undo", "--force")
    assert done.returncode == (0 if survived else 1)
    after = content(tea)
    assert {name: after.get(name) for name in before} == before


def test_a_file_with_one_conversation_is_deleted(tmp_path):
    """Also if it is one document instead of lines."""
    world = clean(tmp_path, "continue")
    ((session, path),) = world.sql(
        "SELECT s.native_id, w.path FROM sessions s JOIN session_sources m ON m.session_id = s.id"
        " JOIN sources p ON p.id = m.source_id JOIN sources w ON w.id = p.part_of"
        " WHERE s.records > 0 AND w.path LIKE '%' || s.native_id || '.json' ORDER BY s.id LIMIT 1"
    )
    before = content(world.root)
    rest(path)
    world.run("sess", "rm", session, "--yes", check=0)
    assert before.keys() - content(world.root).keys() == {str(Path(path).relative_to(world.root))}
    world.run("sess", "undo", check=0)
    assert content(world.root) == before


def test_claude_code(world):
    """A transcript and nothing else."""
    log = world.transcript()
    log.append(log.prompt("hello"))
    rest(log.path)
    before = log.path.read_bytes()
    world.run("sess", "rm", log.session, "--yes", check=0)
    assert not log.path.exists()
    world.run("sess", "undo", log.session, check=0)
    assert log.path.read_bytes() == before
