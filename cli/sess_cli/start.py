"""The entry point of `sess`: plain searches and the status line need no option parser."""

from __future__ import annotations

import gc
import os
import sys

_NO_SYNC = "--no-sync"


# Most commands end before there is any garbage; looking for it takes 10% of their time.
_OBJECTS_BEFORE_COLLECTING = 200_000


def run() -> None:
    gc.set_threshold(_OBJECTS_BEFORE_COLLECTING)
    if sys.argv[1:] == ["statusline"] and "_SESS_COMPLETE" not in os.environ:
        _statusline()
        return
    words = plain_words(sys.argv[1:])
    if words is None:
        from sess_cli.main import run as run_command  # noqa: PLC0415

        run_command()
        return
    from sess_schema import program  # noqa: PLC0415

    def search() -> None:
        from sess_cli.search.run import for_words  # noqa: PLC0415

        for_words(words, sync=_NO_SYNC not in sys.argv)

    program.run_plain("sess", search)


def _statusline() -> None:
    from sess_schema import program  # noqa: PLC0415

    def show() -> None:
        from sess_cli.statusline import show  # noqa: PLC0415

        show()

    program.run_plain("sess", show)


def plain_words(given: list[str]) -> list[str] | None:
    """The words of `sess search WORDS`; None for anything else."""
    if given[:1] != ["search"] or "_SESS_COMPLETE" in os.environ:
        return None
    words = [word for word in given[1:] if word != _NO_SYNC]
    if not words or any(not word or word[0] in "-@" for word in words):
        return None
    return words
