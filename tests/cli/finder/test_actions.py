"""What can be done with a hit: copy, export, resume."""

from __future__ import annotations

import os
import re
from contextlib import closing

import pytest
from tests.cli.finder.screen import drive, program

from sess_cli import resuming
from sess_cli.finder import actions
from sess_common.errors import SessError
from sess_schema.connection import open_reader
from sess_schema.queries import sessions

MAIN = "11111111-1111-4111-8111-111111111111"
THIRD = "33333333-3333-4333-8333-333333333333"


def test_the_id_of_a_hit_is_copied(shop):
    """`y` copies what `sess show` takes: the session, and the event of a hit."""

    async def script(screen):
        await screen.press("ctrl+y")
        await screen.until(lambda: screen.app.clipboard == "33333333")
        await screen.type("socket")
        await screen.press("tab", "y")
        event = screen.cite()
        await screen.until(lambda: screen.app.clipboard == f"agent-abc12345#{event}")
        await screen.until(lambda: screen.said() == [f"copied agent-abc12345#{event}"])

    drive(shop, script)


def test_markdown_is_copied(shop):
    """`m` copies the event of a hit, and the whole conversation of a session."""

    async def script(screen):
        await screen.press("tab", "m")
        await screen.until(lambda: screen.app.clipboard.startswith("# rename the timeout setting"))
        await screen.press("slash")
        await screen.type("FAILED")
        await screen.press("tab", "m")
        await screen.until(lambda: screen.app.clipboard.startswith("**Bash** failed, 1.0s"))
        assert "```text\nFAILED: gateway timeout after 30 s\n```" in screen.app.clipboard
        assert f"From `{MAIN}#{screen.cite()}" in screen.app.clipboard

    drive(shop, script)


def test_an_export_never_overwrites(shop):
    """`e` writes files named after the id, each a new one, readable only by their owner."""
    kept, made = shop.root / "33333333.md", shop.root / "33333333-3.md"
    kept.write_text("mine")
    os.symlink("/nowhere", shop.root / "33333333-2.md")

    async def script(screen):
        await screen.press("tab", "e")
        await screen.until(lambda: screen.said() == [f"wrote {made}"])
        await screen.press("e")
        await screen.until((shop.root / "33333333-4.md").exists)

    drive(shop, script)
    assert kept.read_text() == "mine"
    assert made.read_text().startswith("# rename the timeout setting\n")
    assert made.stat().st_mode & 0o777 == 0o600


def test_an_export_that_fails_says_so(shop):
    """A directory that cannot be written to is told of."""
    locked = shop.root / "gone"
    locked.mkdir()
    os.chdir(locked)
    locked.rmdir()

    async def script(screen):
        await screen.press("tab", "e")
        await screen.until(screen.said)
        assert "No such file" in screen.said()[0]

    drive(shop, script)


def test_a_hostile_id_never_names_a_file_elsewhere(world):
    """Whatever a transcript is called, the export stays in this directory."""
    t = world.transcript("..;$(x) \x1b[31m")
    t.append(t.prompt("go"))
    world.ingest()
    with closing(open_reader(world.state / "index.db")) as db:
        (row,) = sessions.Listing().rows(db)
        made = actions.export_session(db, row.key, world.root, utc=True)
    assert made.parent == world.root
    assert re.fullmatch(r"[0-9A-Za-z_-]+\.md", made.name)


def resume_of(world, native_id):
    with closing(open_reader(world.state / "index.db")) as db:
        return resuming.resume(db, sessions.resolve(db, native_id).key)


def test_resuming_means_the_agent_in_its_project(world):
    """The command is a list of arguments; it runs in the project if that still exists."""
    project = world.root / "a project"
    project.mkdir()
    t = world.transcript()
    t.append(t.prompt("go", cwd=str(project)))
    world.ingest()
    resume = resume_of(world, MAIN)
    assert resume.arguments == ("claude", "--resume", MAIN)
    assert resume.directory == str(project)
    assert resume.as_typed() == f"cd '{project}' && claude --resume {MAIN}"
    project.rmdir()
    assert resume_of(world, MAIN).directory is None


def test_resuming_in_a_directory_that_is_gone_says_so(shop, monkeypatch):
    """The agent is not started somewhere else; the finder stays."""
    program(shop.root / "bin" / "claude", "")
    monkeypatch.setenv("PATH", str(shop.root / "bin"))

    async def script(screen):
        await screen.press("tab", "r")
        await screen.until(screen.said)
        gone = 'the directory of this session no longer exists: "/code/other"'
        assert screen.said() == [f"{gone}; create it, or try: claude --resume {THIRD}"]

    drive(shop, script)


def test_a_subagent_resumes_its_parent(shop):
    """A subagent cannot be resumed; the session that started it can."""
    assert resume_of(shop, "agent-abc12345").arguments[-1] == MAIN


def test_what_cannot_be_resumed_is_refused(shop):
    """An id that would be an option, and a transcript that the agent has deleted."""
    t = shop.transcript("--dangerously-skip-permissions", "-code-evil")
    t.append(t.prompt("go"))
    shop.transcript(THIRD, "-code-other").path.unlink()
    shop.ingest()
    with pytest.raises(SessError, match="no ID to resume"):
        resume_of(shop, "--dangerously-skip-permissions")
    with pytest.raises(SessError, match="transcript of this session is gone"):
        resume_of(shop, THIRD)


def test_a_missing_agent_is_told_with_its_command(shop, monkeypatch):
    """Without the program on PATH, the command to run is shown and the finder stays."""
    monkeypatch.setenv("PATH", str(shop.root))

    async def script(screen):
        await screen.press("tab", "r")
        await screen.until(screen.said)
        assert screen.said() == [f"claude is not on PATH; run: claude --resume {THIRD}"]

    drive(shop, script)
