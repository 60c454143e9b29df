from __future__ import annotations

import pytest

from sessiond.writing.commits import find_commits


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
    ],
)
def test_other_brackets(output: str) -> None:
    """Brackets that are no report at the start of a line give no commit."""
    assert find_commits(output) == []


def test_large_outputs() -> None:
    """Megabytes of bracketed lines are read once, not once per line."""
    noise = "[" * 1_000_000 + "\n" + "[x" * 500_000 + "\n[" * 500_000 + "\n[y " * 300_000
    assert find_commits(noise + "\n[main abc1234] Last") == [("abc1234", "main", "Last")]
