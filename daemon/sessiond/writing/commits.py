"""Finds commits that git reported in the output of commands that commit, of any agent."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sess_schema import kinds

# A branch name may contain `]` but not `[` or a space; the bounds keep matching fast.
_REPORT = re.compile(
    r"\[(?:detached HEAD|(?P<branch>[^\s\[]{1,250}))(?: \([^()\n]{1,40}\))?"
    r" (?P<sha>[0-9a-f]{7,64})\] (?P<subject>[^\r\n]*)"
)
# Bounds, atomic groups and possessive repeats keep hostile commands from taking long.
_LONGEST = 1 << 16
_WORD = r"""(?:"[^"\n]{0,200}+"|'[^'\n]{0,200}+'|[^\s"';&|]){1,300}+"""
_COMMITS = re.compile(
    rf"""
    (?:^|[;&|(){{`!]|\b(?:then|do|else|sudo|env|time|command|exec|xargs)\b|\s-\w{{0,3}}c[ \t]*["'])
    [ \t]*
    (?>[A-Za-z_]\w{{0,99}}=(?:{_WORD})?[ \t]+){{0,9}}+
    (?>[\w.~-]*/){{0,30}}git(?:\.exe)?
    (?>[ \t]+(?>-[Cc][ \t]+{_WORD}|--?[\w-]{{1,30}}+(?:={_WORD})?)){{0,9}}+
    [ \t]+(?:am|cherry-pick|ci|commit|merge|pull|rebase|revert)(?![\w-])
    """,
    re.VERBOSE | re.MULTILINE,
)
_RUN = frozenset({kinds.SHELL, kinds.MCP, kinds.OTHER, None})


def may_commit(kind: str | None, command: str) -> bool:
    """Whether the input of a call, one value a line, runs a git command that makes commits."""
    return kind in _RUN and "git" in command and bool(_COMMITS.search(command[:_LONGEST]))


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
