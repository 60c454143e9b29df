"""Finds commits that `git commit` reported in the output of any agent's tool."""

from __future__ import annotations

import re
from collections.abc import Iterator

# A branch name may contain `]` but not `[` or a space; the bounds keep matching fast.
_REPORT = re.compile(
    r"\[(?:detached HEAD|(?P<branch>[^\s\[]{1,250}))(?: \([^()\n]{1,40}\))?"
    r" (?P<sha>[0-9a-f]{7,64})\] (?P<subject>[^\r\n]*)"
)


def find_commits(output: str) -> list[tuple[str, str | None, str]]:
    """(sha, branch, subject) of every commit reported at the start of a line, each sha once."""
    found: dict[str, tuple[str, str | None, str]] = {}
    for at in _bracketed_lines(output):
        report = _REPORT.match(output, at)
        if report is None:
            continue
        sha = report["sha"]
        # `[worker 12345678] started` is a log line; git's next line is indented.
        if not sha.isdigit() or output.startswith(("\n ", "\r\n "), report.end()):
            found.setdefault(sha, (sha, report["branch"], report["subject"].strip()))
    return list(found.values())


def _bracketed_lines(output: str) -> Iterator[int]:
    if output.startswith("["):
        yield 0
    at = output.find("\n[")
    while at >= 0:
        yield at + 1
        at = output.find("\n[", at + 1)
