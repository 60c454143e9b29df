"""What a call runs: the program of a shell command, the server of an MCP tool."""

from __future__ import annotations

from sess_common.patterns import later
from sess_schema import kinds

_SEARCH_PROGRAMS = frozenset({
    "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "find", "fd", "fdfind", "ls", "tree",
    "locate",
})  # fmt: skip
# Words that may precede the actual program.
_BEFORE = frozenset({
    "sudo", "env", "time", "nohup", "command", "exec", "builtin", "then", "do", "if", "while", "!",
    "{", "(",
})  # fmt: skip
_PREPARING = frozenset({"cd", "pushd", "source", ".", "set", "export"})
_NOT_ALONE = _BEFORE | _PREPARING
_BETWEEN = frozenset({"&&", "||", ";", "&", "|"})
_ASSIGNMENT = later(r"[A-Za-z_]\w*=")
_WORD = later(r"""(?:[^\s;&|'"]|'[^']*'|"[^"]*")+|&&|\|\||[;&|]""")
_MCP = later(r"mcp__(.+?)__(.+)")


def is_search(kind: str | None, summary: str | None) -> bool:
    """A search tool, or a shell command that runs a search program."""
    return kind == kinds.SEARCH or (kind == kinds.SHELL and program(summary) in _SEARCH_PROGRAMS)


def program(command: str | None) -> str:
    """The first program of a command line, skipping `cd`, `sudo` and assignments."""
    first = (command or "")[:1000].split(None, 1)
    if first and first[0].isalnum() and first[0] not in _NOT_ALONE:
        return first[0]
    words = (match[0] for match in _WORD.finditer((command or "")[:1000]))
    found = ""
    for word in words:
        if word in _BETWEEN or word in _BEFORE or _ASSIGNMENT.match(word):
            continue
        found = word.lstrip("({").strip("'\"").rsplit("/", 1)[-1] or word
        if found not in _PREPARING:
            return found
        next((word for word in words if word in ("&&", "||", ";", "&")), None)
    return found or "unknown"


def mcp(tool: str) -> tuple[str, str] | None:
    """Server and tool of `mcp__server__tool`."""
    names = _MCP.fullmatch(tool)
    return (names[1], names[2]) if names else None
