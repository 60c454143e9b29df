"""The list of what a pass looked at: it holds until a pass would find something to do."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.golden_home import GoldenWorld, agents
from tests.must import must
from typer.testing import CliRunner

from sess_cli import fresh
from sess_common import lock, paths, receipt
from sess_common.errors import Exit
from sess_schema.connection import open_reader
from sessiond import families, main, sources
from sessiond.service import one_pass
from sessiond.sourcekit import disk
from sessiond.sources import source_classes

runner = CliRunner()


@pytest.fixture
def here(monkeypatch, tmp_path):
    """A home of this process, in which directories may be as new as they like."""
    for made in source_classes():
        for name in made.variables:
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SESSIOND_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(disk, "_TOO_RECENT", -(1 << 62))
    (tmp_path / "home").mkdir(exist_ok=True)
    return tmp_path / "home"


def one(capfd):
    """What a pass had to do."""
    one_pass.run([], as_json=True)
    done = json.loads(capfd.readouterr().out)
    return done["changed"] + done["gone"]


def holds():
    return receipt.number_if_unchanged(paths.home()) is not None


def lay(agent, folder):
    """The files of an agent, in the home below a folder."""
    made = GoldenWorld(folder, agent)
    made.lay_all()
    return [path for path in sorted(made.root.rglob("*")) if path.is_file()]


def other(path):
    data = path.read_bytes()
    path.write_bytes(data + b" ")


def beside(path):
    shutil.copy(path, path.with_name("x" + path.name))
    shutil.copy(path, path.with_name(path.name.replace(path.suffix, "2" + path.suffix)))


@pytest.mark.parametrize("agent", agents())
def test_no_change_that_a_pass_would_see_is_missed(here, tmp_path, capfd, agent):
    """Every file changed, copied and deleted in turn: if the list holds, a pass finds nothing."""
    files = lay(agent, tmp_path)
    for _ in range(50):  # what changed a moment ago is looked at once more
        one(capfd)
        if holds():
            break
    assert holds()
    noticed = 0
    for change in (other, beside, os.unlink):
        for path in files[:: max(1, len(files) // 3)]:
            if path.exists():
                change(path)
                held = holds()
                found = one(capfd)
                assert not (held and found), f"{change.__name__} {path}"
                noticed += found > 0
    # These are read only where settings say so, or when they are handed over.
    assert noticed or agent in ("aider", "chatgpt", "claude-web")


def test_a_place_that_appears_is_noticed(here, capfd):
    """A directory that an agent creates for the first time, whole at once."""
    one(capfd)
    assert holds()
    log = here / ".claude/projects/-code/11111111-1111-4111-8111-111111111111.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text("{}\n")
    assert not holds()


def test_settings_and_variables_are_part_of_it(here, monkeypatch, capfd):
    """Both say where to look."""
    one(capfd)
    assert holds()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(here / "elsewhere"))
    assert not holds()
    monkeypatch.delenv("CLAUDE_CONFIG_DIR")
    assert holds()
    paths.home().config_file.write_text('[roots]\nclaude = ["~/more"]\n')
    assert not holds()


def test_a_directory_that_just_changed_is_not_trusted(here, monkeypatch, capfd):
    """Two changes within one tick of the clock leave the same time."""
    monkeypatch.setattr(disk, "_TOO_RECENT", 60_000_000_000)
    (here / ".claude/projects").mkdir(parents=True)
    one(capfd)
    assert not holds()


def test_every_writer_removes_it(here, capfd):
    """Whoever takes the lock may change what the index has."""
    one(capfd)
    assert holds()
    held = lock.acquire(paths.home().lock)
    assert held is not None
    held.release()
    assert not holds()


def test_an_index_put_in_its_place_is_read_anew(here, tmp_path, capfd, monkeypatch):
    """The list is of one state of the index: an older copy has another number."""
    files = lay("claude", tmp_path)
    one(capfd)
    index = paths.home().index
    shutil.copy(index, tmp_path / "older.db")
    log = next(one for one in files if one.suffix == ".jsonl" and one.parts[-3] == "projects")
    other(log)
    assert one(capfd) == 1
    passes = []

    def sync(*_, **__):
        passes.append(1)
        return Exit.OK

    monkeypatch.setattr(fresh, "_sync", sync)
    with fresh.open_index():
        assert not passes
    shutil.copy(tmp_path / "older.db", index)
    with fresh.open_index():
        assert passes == [1]
    index.unlink()
    assert holds()
    with pytest.raises(Exception, match="no index"), fresh.open_index():
        pass
    assert passes == [1, 1]


def test_a_pass_without_changes_writes_nothing(here, capfd):
    """The number stays, and so does the index."""
    one(capfd)
    home = paths.home()
    before = receipt.last_number(home)
    with open_reader(home.index) as db:
        version = db.pragma("data_version")
        one(capfd)
        assert db.pragma("data_version") == version
    assert receipt.last_number(home) == before
    assert holds()


def test_a_sync_that_would_find_nothing_walks_nowhere(here, tmp_path, capfd):
    """It says what the pass would have said, and leaves the list alone."""
    lay("claude", tmp_path)
    one(capfd)
    one_pass.run([])
    told = capfd.readouterr().out
    before = paths.home().lock.with_name(receipt.NAME).stat()
    assert runner.invoke(main.app, ["sync"]).stdout == told
    assert runner.invoke(main.app, ["sync", "--quiet"]).stdout == ""
    assert paths.home().lock.with_name(receipt.NAME).stat() == before


def test_a_sync_after_one_that_skipped_a_file_says_so_again(here, tmp_path):
    """The number of files is not all that there is to say."""
    files = lay("claude", tmp_path)
    log = next(one for one in files if one.suffix == ".jsonl" and one.parts[-3] == "projects")
    log.unlink()
    os.mkfifo(log)
    for _ in range(2):
        done = runner.invoke(main.app, ["sync"])
        assert done.exit_code == Exit.SKIPPED_SOME
        assert str(log) in done.output


WATCHED = """
import os, sys
seen = set()

def saw(path):
    if isinstance(path, (str, bytes, os.PathLike)):
        seen.add(os.path.abspath(os.fsdecode(path)))

def hook(event, arguments):  # it has no events for `stat` and its kind
    if event in ("open", "os.listdir", "os.scandir"):
        saw(arguments[0])

def watched(look):
    def watch(path, *given, **named):
        saw(path)
        return look(path, *given, **named)
    return watch

from sessiond import config
from sessiond.reading.survey import survey
from sessiond.reading.territory import Territory, handed_files
from sessiond.sourcekit import disk
from sessiond.sources import all_sources, source_classes
from sess_common import paths
source_classes()
sys.addaudithook(hook)
for name in ("stat", "lstat", "readlink", "access"):
    setattr(os, name, watched(getattr(os, name)))
with disk.Notes() as notes:
    settings = config.load(paths.home().config_file)
    territory = Territory(all_sources(settings, notes.environ), handed_files(paths.home()))
    there = [place for place in territory.places if disk.lexists(place.path)]
    files = survey(there, territory.roots).files

def plain(paths):
    folders = {path: os.path.dirname(path) for path in paths}
    return {os.path.join(os.path.realpath(folder), os.path.basename(path))
            for path, folder in folders.items() if os.path.lexists(folder)}

missed = plain(list(seen)) - plain(where[1:] for where in notes.looked)
code = tuple(os.path.dirname(module.__file__) for name, module in list(sys.modules.items())
             if name in ("sessiond", "sess_schema", "os"))
print(len(files), sorted(one for one in missed if not one.startswith((*code, sys.prefix))))
"""


def test_nothing_is_looked_at_behind_its_back(here, tmp_path):
    """With the files of all agents in one home, reached by a link, nothing else is looked at."""
    for agent in agents():
        (tmp_path / agent).mkdir()
        lay(agent, tmp_path / agent)
        shutil.copytree(tmp_path / agent / "home", here, dirs_exist_ok=True)
    here.rename(tmp_path / "real")
    here.symlink_to(tmp_path / "real")
    done = subprocess.run(
        [sys.executable, "-c", WATCHED], capture_output=True, text=True, check=False
    )
    number, _, missed = done.stdout.partition(" ")
    assert (missed, done.stderr) == ("[]\n", "")
    assert int(number) > len(agents())


def test_a_link_on_the_way_that_leads_elsewhere_is_noticed(here, tmp_path, capfd):
    """The directory that it led to is as it was."""
    for name in ("old", "new"):
        (tmp_path / name / "projects").mkdir(parents=True)
    (here / ".claude").symlink_to(tmp_path / "old")
    one(capfd)
    assert holds()
    (here / ".claude").unlink()
    (here / ".claude").symlink_to(tmp_path / "new")
    assert not holds()


def test_agents_open_no_file_by_themselves():
    """The linter holds the same for the functions of `os`, and cannot for this one."""
    for package in (families, sources):
        for path in Path(must(package.__file__)).parent.rglob("*.py"):
            names = {node.id for node in ast.walk(ast.parse(path.read_bytes()))
                     if isinstance(node, ast.Name)}  # fmt: skip
            assert "open" not in names, path
