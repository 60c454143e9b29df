"""`sess resume`: the agent's own command, in the right directory."""

from __future__ import annotations

import json

import pytest

SESSION = "11111111-1111-4111-8111-111111111111"


@pytest.fixture
def project(world):
    """A session in a directory that exists, with a space in its name."""
    folder = world.root / "my code"
    folder.mkdir()
    log = world.transcript()
    log.append(log.prompt("hello", cwd=str(folder)))
    world.ingest()
    return folder


def resume(world, *arguments, check=0):
    return world.run("sess", "resume", SESSION[:8], "--no-sync", *arguments, check=check)


def test_it_prints_what_to_type(world, project):
    """Quoted for a shell, on stdout, and nothing else."""
    done = resume(world)
    assert (done.stdout, done.stderr) == (f"cd '{project}' && claude --resume {SESSION}\n", "")


def test_it_runs_the_agent_there(world, project):
    """In the place of this process, with the session as an argument."""
    programs = world.root / "bin"
    programs.mkdir()
    agent = programs / "claude"
    agent.write_text('#!/bin/sh\npwd\necho "$@"\nexit 7\n', "utf-8")
    agent.chmod(0o755)
    world.env["PATH"] = f"{programs}:{world.env['PATH']}"
    done = resume(world, "--exec", check=7)
    assert done.stdout == f"{project}\n--resume {SESSION}\n"


def test_a_missing_agent_is_named(world, project):
    """With the exit code for a missing program."""
    world.env["PATH"] = str(world.root)
    done = resume(world, "--exec", check=69)
    assert done.stderr == (
        f"sess: claude is not on PATH\nhint: `cd '{project}' && claude --resume {SESSION}`\n"
    )


def test_a_vanished_directory_is_told(world, project):
    """One line, and what to try; as JSON it is a field."""
    project.rmdir()
    for arguments in ((), ("--exec",)):
        done = resume(world, *arguments, check=1)
        assert (done.stdout, done.stderr) == (
            "",
            (
                f'sess: the directory of this session no longer exists: "{project}"\n'
                f"hint: create it, or try elsewhere: `claude --resume {SESSION}`\n"
            ),
        )
    found = json.loads(resume(world, "--json").stdout)
    assert found == {
        "session": SESSION,
        "agent": "claude",
        "command": ["claude", "--resume", SESSION],
        "directory": str(project),
        "directory_gone": True,
        "program": found["program"],
    }


def test_an_agent_that_cannot_resume_is_told(world):
    """Here, one whose transcript is gone."""
    log = world.transcript()
    log.append(log.prompt("hello"))
    world.ingest()
    log.path.unlink()
    world.ingest()
    done = resume(world, check=1)
    assert done.stderr == (
        "sess: the transcript of this session is gone\n"
        f"hint: `sess restore {SESSION} --in-place` writes it back for the agent\n"
    )
