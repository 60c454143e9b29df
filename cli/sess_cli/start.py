"""The entry point of `sess`.

Loading the option parser takes longer than most of what is asked most often: a search for words,
the status line, the version, the list of commands, the finder. These do without.
"""

from __future__ import annotations

import gc
import os
import sys

_PLAIN_OPTIONS = ("--no-sync", "--json")
_HELP_COLUMNS = 80


# Most commands end before there is any garbage; looking for it takes 10% of their time.
_OBJECTS_BEFORE_COLLECTING = 200_000


def run() -> None:
    gc.set_threshold(_OBJECTS_BEFORE_COLLECTING)
    if "_SESS_COMPLETE" not in os.environ and (text := _known_text(sys.argv[1:])) is not None:
        from sess_common import program

        program.run_plain("sess", lambda: _print(text))
        return
    if sys.argv[1:] == ["statusline"] and "_SESS_COMPLETE" not in os.environ:
        _statusline()
        return
    if sys.argv[1:] in ([], ["--print-id"]) and "_SESS_COMPLETE" not in os.environ:
        from sess_cli import finder

        if sys.argv[1:] or finder.has_screen():
            _find(print_id=bool(sys.argv[1:]))
            return
    plain = plain_search(sys.argv[1:])
    if plain is None:
        from sess_cli.main import run as run_command

        run_command()
        return
    from sess_common import program

    def search() -> None:
        from sess_cli.search.run import for_words

        for_words(*plain)

    program.run_plain("sess", search)


def _known_text(given: list[str]) -> str | None:
    """What is printed whatever the index has."""
    if given == ["--version"]:
        from sess_schema import __version__

        return f"sess {__version__}\n"
    if given in (["--help"], ["-h"]) and _columns() >= _HELP_COLUMNS:
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


def _statusline() -> None:
    from sess_common import program

    def show() -> None:
        from sess_cli.statusline import show

        show()

    program.run_plain("sess", show)


def _find(*, print_id: bool) -> None:
    from sess_cli import finder
    from sess_common import program

    def find() -> None:
        raise program.Ended(finder.start(print_id=print_id))

    program.run_plain("sess", find)


def plain_search(given: list[str]) -> tuple[list[str], list[str]] | None:
    """The options and the words of `sess search WORDS`; None if anything in it is unusual."""
    if given[:1] != ["search"] or "_SESS_COMPLETE" in os.environ:
        return None
    words = [word for word in given[1:] if word not in _PLAIN_OPTIONS]
    options = [word for word in given[1:] if word in _PLAIN_OPTIONS]
    if not words or any(not word or word[0] in "-@" for word in words):
        return None
    return options, words
