"""The entry point of `sess`.

Loading the option parser takes longer than most of what is asked most often: a search for words,
the status line, the version, the list of commands, the finder. These do without.
"""

from __future__ import annotations

import gc
import os
import sys
from functools import partial

TYPE_CHECKING = False  # as in `typing`, whose import takes long
if TYPE_CHECKING:
    from collections.abc import Callable

_PLAIN_OPTIONS = ("--no-sync", "--wait", "--json")
_HELP_COLUMNS = 80
_COLOURS = {"auto": "", "always": "FORCE_COLOR", "never": "NO_COLOR"}
# Most commands end before there is any garbage; looking for it takes 10% of their time.
_OBJECTS_BEFORE_COLLECTING = 200_000


def run() -> None:
    gc.set_threshold(_OBJECTS_BEFORE_COLLECTING)
    if any(word.startswith("--color") for word in sys.argv[1:]):
        sys.argv[1:] = without_colour(sys.argv[1:])
    answer = None if "_SESS_COMPLETE" in os.environ else _answer(sys.argv[1:])
    if answer is None:
        from sess_cli.main import run as run_command

        run_command()
        return
    from sess_common import program

    program.run_plain("sess", answer)


def _answer(words: list[str]) -> Callable[[], None] | None:
    """What answers a command line without the option parser."""
    if (text := _known_text(words)) is not None:
        return lambda: _print(text)
    if words == ["statusline"]:
        return _show_statusline
    if words[:2] == ["statusline", "--budget"] and len(words) == 3:
        return partial(_show_statusline, words[2])
    if words[:2] == ["brief", "--hook"]:
        from sess_cli import hooks

        return (lambda: hooks.run(words)) if hooks.is_plain(words) else None
    if words == ["mcp"]:
        return _serve_agents
    if words in ([], ["--print-id"], ["--print-command"]):
        from sess_cli import finder

        return (lambda: _find(*words)) if words or finder.has_screen() else None
    for verb, perform in (("search", _search), ("recall", _recall)):
        if (plain := plain_search(words, verb)) is not None:
            return partial(perform, *plain)
    return None


def without_colour(words: list[str]) -> list[str]:
    """A command line without `--color`, which works before and after every command.

    What it says goes into the variables that every program reads. A command that was pasted to be
    searched for keeps its own.
    """
    end = words.index("--") if "--" in words else len(words)
    kept = list[str]()
    when = ""
    for at, word in enumerate(words[:end]):
        name, equals, value = word.partition("=")
        if name == "--color" and (value in _COLOURS or not equals):
            when = value or next((one for one in words[at + 1 : at + 2] if one in _COLOURS), "")
            when = when or "always"
        elif word not in _COLOURS or words[at - 1 : at] != ["--color"]:
            kept.append(word)
    if not when or _is_pasted(kept):
        return words
    for variable in _COLOURS.values():
        os.environ.pop(variable, None)
    if _COLOURS[when]:
        os.environ[_COLOURS[when]] = "1"
    return [*kept, *words[end:]]


def _is_pasted(words: list[str]) -> bool:
    from sess_cli.parsing import is_pasted_command

    plain = [word for word in words if not word.startswith("-")]
    return is_pasted_command(plain[1:] if plain[:1] == ["search"] else plain)


def _known_text(words: list[str]) -> str | None:
    """What is printed whatever the index has."""
    if words == ["--version"]:
        from sess_schema import __version__

        return f"sess {__version__}\n"
    if words in (["--help"], ["-h"]) and _columns() >= _HELP_COLUMNS:
        # Written by docs/generate.py; for a narrower terminal the parser lays it out anew.
        with open(os.path.join(os.path.dirname(__file__), "help.txt"), encoding="utf-8") as file:
            return file.read()
    return None


def _print(text: str) -> None:
    sys.stdout.write(text)


def _columns() -> int:
    """The width of the terminal, as the parser would find it out."""
    chosen = os.environ.get("COLUMNS", "")
    if chosen.isdecimal() and int(chosen):
        return int(chosen)
    try:
        return os.get_terminal_size(1).columns or _HELP_COLUMNS
    except (ValueError, OSError):  # no terminal
        return _HELP_COLUMNS


def _show_statusline(budget: str | None = None) -> None:
    from sess_cli.statusline import show

    show(budget=budget)


def _serve_agents() -> None:
    from sess_cli.mcp.server import serve

    serve()


def _find(*options: str) -> None:
    from sess_cli import finder
    from sess_common.program import Ended

    chosen = {"print_id": "--print-id" in options, "print_command": "--print-command" in options}
    raise Ended(finder.start(**chosen))


def _search(options: list[str], words: list[str]) -> None:
    from sess_cli.search.run import for_words

    for_words(options, words)


def _recall(options: list[str], words: list[str]) -> None:
    from sess_cli.recalling import for_words

    for_words(options, words)


def plain_search(arguments: list[str], verb: str = "search") -> tuple[list[str], list[str]] | None:
    """The options and the words of `sess VERB WORDS`; None if anything in it is unusual."""
    if arguments[:1] != [verb] or "_SESS_COMPLETE" in os.environ:
        return None
    words = [word for word in arguments[1:] if word not in _PLAIN_OPTIONS]
    options = [word for word in arguments[1:] if word in _PLAIN_OPTIONS]
    if not words or any(not word or word[0] in "-@" for word in words):
        return None
    return options, words
