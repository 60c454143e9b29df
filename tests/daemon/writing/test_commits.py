from __future__ import annotations

import pytest

from sess_schema import kinds
from sessiond.writing.event_rows import find_commits, may_commit


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("[main abc1234] Add knots", [("abc1234", "main", "Add knots")]),
        ("[main (root-commit) abc1234] Begin", [("abc1234", "main", "Begin")]),
        ("[detached HEAD abc1234] Fix", [("abc1234", None, "Fix")]),
        (
            "[feat/v1.2-x 0123456789abcdef] Tie [tight]",
            [("0123456789abcdef", "feat/v1.2-x", "Tie [tight]")],
        ),
        (
            "[odd]name abc1234] Branches may hold a bracket",
            [("abc1234", "odd]name", "Branches may hold a bracket")],
        ),
        ("[main abc1234] Windows\r\n 1 file changed", [("abc1234", "main", "Windows")]),
        (
            "lint ok\n[a abc1234] One\n[b def5678] Two\n",
            [("abc1234", "a", "One"), ("def5678", "b", "Two")],
        ),
        ("[main abc1234] Twice\n[main abc1234] Twice", [("abc1234", "main", "Twice")]),
        ("[debug abc1234] Log less\n 1 file changed", [("abc1234", "debug", "Log less")]),
        ("[main 1234567] All digits\n 1 file changed", [("1234567", "main", "All digits")]),
    ],
)
def test_reports_of_git(output: str, expected: list[tuple[str, str | None, str]]) -> None:
    """Every form in which git reports a commit gives its sha, branch and subject."""
    assert find_commits(output) == expected


@pytest.mark.parametrize(
    "output",
    [
        "",
        "said [main abc1234] in passing",
        "  [main abc1234] indented",
        "[main abc123] too short",
        "[main ABC1234] no sha",
        "[abc1234] no branch",
        "[worker 12345678] started\n[worker 12345678] stopped",
        "[INFO] fine",
        "[ERROR deadbeef] the pot is empty",
        "[ERROR deadbeef] the pot is empty\n 1 file changed",
        "[warn deadbeef] the pot is old\n[debug deadbeef] and small",
    ],
)
def test_other_brackets(output: str) -> None:
    """Brackets that are no report at the start of a line give no commit."""
    assert find_commits(output) == []


def test_large_outputs() -> None:
    """Megabytes of bracketed lines are read once, not once per line."""
    noise = "[" * 1_000_000 + "\n" + "[x" * 500_000 + "\n[" * 500_000 + "\n[y " * 300_000
    assert find_commits(noise + "\n[main abc1234] Last") == [("abc1234", "main", "Last")]


@pytest.mark.parametrize(
    "command",
    [
        "git commit -m 'Add knots'",
        "cd /w/rope && git commit -qm x",
        "cd rope; git -C ../other commit",
        'git -c user.name="Ann B" -c commit.gpgsign=false commit -am x',
        "GIT_AUTHOR_DATE='2026-01-01 10:00' FOO=1 git commit",
        "git --no-pager --git-dir=/w/.git commit",
        "/usr/bin/git commit",
        "sudo -u ann git commit || true; sudo git commit",
        "(git commit -m x)",
        "if true; then git commit; fi",
        "for x in a b; do git commit -m $x; done",
        "git add . &&\n  git commit",
        "git log | head; git cherry-pick abc1234",
        "git rebase --continue",
        "git revert --no-edit HEAD",
        "git am < patch",
        "git merge --no-ff topic",
        "git pull --rebase",
        "bash\n-lc\ngit commit -m x",
        "bash -lc 'git commit -m x'",
        "git ci -m x",
        "git.exe commit",
    ],
)
def test_commands_that_commit(command: str) -> None:
    """Wherever in a command line, with options, variables and directories before."""
    assert may_commit(kinds.SHELL, command)
    assert may_commit(kinds.MCP, command)


@pytest.mark.parametrize(
    "command",
    [
        "git log --oneline | grep commit",
        "git log | grep ERROR",
        "git show commit",
        "git config commit.gpgsign false",
        "grep -r 'git commit' logs",
        "echo git commit",
        "legit commit",
        "git commit-graph write",
        "git -C commit log",
        "cat commit",
        "gh pr merge 7",
        "",
    ],
)
def test_commands_that_do_not_commit(command: str) -> None:
    """What they print in brackets is none of theirs."""
    assert not may_commit(kinds.SHELL, command)


def test_other_tools_do_not_commit() -> None:
    """A file about commits, for example."""
    assert not may_commit(kinds.WRITE, "notes.md\ngit commit")
    assert not may_commit(kinds.AGENT, "git commit everything")


@pytest.mark.parametrize(
    "piece",
    ["git -C ", 'git -c "', "A=1 ", "git --x=", "a/", "\n", "; ", "git ", "-c '", "git -c 'a' "],
)
def test_hostile_commands(piece: str) -> None:
    """A megabyte of anything is searched once."""
    assert not may_commit(kinds.SHELL, piece * (1_000_000 // len(piece)) + "git")


def test_commits_are_those_of_commands_that_commit(world) -> None:
    """A log that mentions something like a commit has none."""
    t = world.transcript()
    t.append(
        t.call("c1", command="git log | grep deadbeef"),
        t.result("c1", "[ERROR deadbeef] the pot is empty\n 1 file changed"),
        t.call("c2", command="cd rope && git commit -am 'Add knots'"),
        t.result("c2", "[ERROR deadbeef] a hook\n[main abc1234] Add knots\n 1 file changed"),
    )
    world.ingest()
    assert world.sql("SELECT sha, subject FROM commits") == [("abc1234", "Add knots")]
