"""Tells a command line that somebody pasted, to find where it was run, from words and options."""

from __future__ import annotations

_OPERATORS = ("|", "||", "&&", ";", ">", ">>", "<", "2>&1")
# Not those on PATH: `timeout`, `test` and `time` are words that people look for.
_PROGRAMS = frozenset(
    """
    ansible apt aws az bash brew bun bundle cargo cat cd chmod claude cmake codex composer cp curl
    deno docker dotnet find gcloud gh git go gradle grep helm java jq kubectl ls make mkdir mv mvn
    mypy node npm npx php pip pip3 pnpm podman poetry psql pytest python python3 rails rg rm rsync
    ruby ruff rustc rustup scp sed sqlite3 ssh sudo swift systemctl tar terraform tmux tox tsc uv
    uvx wget yarn zig
    """.split()  # noqa: SIM905 - to be read
)


def is_command(words: list[str]) -> bool:
    """Whether it begins with a program or has an operator of the shell in it."""
    if any(word in _OPERATORS for word in words):
        return True
    first = words[0] if words else ""
    return first in _PROGRAMS or first.startswith(("./", "/", "$"))
