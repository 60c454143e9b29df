"""Named searches, and the opt-in search history."""

from __future__ import annotations

import os

from sess_cli import settings
from sess_common import paths
from sess_common.classes import TYPE_CHECKING, later
from sess_common.errors import SessError
from sess_common.program import say

if TYPE_CHECKING:
    from pathlib import Path

_NAME = later(r"\w[\w.-]{0,59}")
_MOST_REMEMBERED = 1000


def names() -> dict[str, list[str]]:
    """Every saved search with its words and options."""
    import json  # most searches are not saved

    try:
        searches = json.loads(_file().read_bytes().decode("utf-8", "surrogateescape"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise SessError(f'saved searches "{_file()}": {error}', hint="fix or remove it") from error
    if not isinstance(searches, dict):
        raise SessError(f'saved searches "{_file()}": not an object', hint="fix or remove it")
    return {
        name: args
        for name, args in searches.items()
        if isinstance(args, list) and all(isinstance(arg, str) for arg in args)
    }


def check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise SessError(
            f'invalid name for a search: "{name}"', hint="use letters, digits, dots and dashes"
        )


def save(name: str, args: list[str]) -> None:
    _write({**names(), name: args})


def remove(name: str) -> None:
    searches = names()
    if name not in searches:
        raise SessError(f'no such saved search: "{name}"', hint="`sess search --saved` lists them")
    del searches[name]
    _write(searches)


def expanded(options: list[str], words: list[str]) -> tuple[list[str], list[str]]:
    """With each `@name` replaced by what is saved under it; an unknown name stays a word."""
    if not any(word.startswith("@") and _NAME.fullmatch(word[1:]) for word in words):
        return options, words
    searches = names() if _file().exists() else {}
    made: list[str] = []
    for word in words:
        saved = searches.get(word[1:]) if word.startswith("@") else None
        if saved is None:
            made.append(word)
            if word.startswith("@") and _NAME.fullmatch(word[1:]):
                say(f"note: no saved search {word}; searching for the word")
            continue
        at = saved.index("--") if "--" in saved else len(saved)
        options = [*saved[:at], *options]
        made += saved[at + 1 :]
    return options, made


def manage(*, listed: bool, unsave: str | None, past: bool) -> bool:
    """List or remove saved searches, or list past ones; False if none of these was requested."""
    from sess_cli.terminal import Terminal

    if unsave is not None:
        remove(unsave)
        return True
    terminal = Terminal()
    if listed:
        for name, args in sorted(names().items()):
            terminal.write(f"@{terminal.line(name)}  {terminal.line(as_typed(args))}")
    if past:
        for line in history():
            terminal.write(terminal.line(line))
    return listed or past


def as_typed(args: list[str]) -> str:
    """Options and words as one would type them."""
    import shlex

    at = args.index("--") if "--" in args else len(args)
    options, words = args[:at], args[at + 1 :]
    if any(word.startswith("-") for word in words):
        return shlex.join(args)
    return shlex.join([*words, *options])


def without(args: list[str], *options: str) -> list[str]:
    """A command line without some options and their values."""
    kept: list[str] = []
    rest = iter(args)
    for arg in rest:
        if arg == "--":
            return [*kept, arg, *rest]
        if arg in options:
            next(rest, None)
        elif not arg.startswith(tuple(f"{option}=" for option in options)):
            kept.append(arg)
    return kept


def remember(args: list[str]) -> None:
    """Record a search, if the configuration has `[search] history = true`."""
    if not settings.read().history:
        return
    typed = as_typed(args).replace("\n", " ")
    lines = [line for line in history() if line != typed]
    _private(_history_file(), "\n".join([*lines, typed][-_MOST_REMEMBERED:]) + "\n")


def history() -> list[str]:
    """Past searches, the newest last."""
    try:
        text = _history_file().read_bytes().decode("utf-8", "surrogateescape")
        return text.split("\n")[:-1]
    except (OSError, ValueError):
        return []


def _file() -> Path:
    return paths.home().config / "searches.json"


def _history_file() -> Path:
    return paths.home().data / "search-history"


def _write(searches: dict[str, list[str]]) -> None:
    import json

    _private(_file(), json.dumps(searches, indent=2, ensure_ascii=False) + "\n")


def _private(path: Path, text: str) -> None:
    """Replace a file atomically; only its owner can read it."""
    paths.make_private(path.parent)
    new = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(new, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        os.replace(new, path)
    except OSError as error:
        raise SessError(f'cannot write "{path}": {error.strerror}') from error
