"""Completion in bash, zsh and fish, for both programs.

The shell's script (`shells.py`) runs the program with `_SESS_COMPLETE` or `_SESSIOND_COMPLETE` set
and the words so far as arguments, the unfinished one last. The answer is one `value<TAB>text` per
line, or `:files`. Values may come from transcripts: no script evaluates them.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from sess_common.escape import safe

if TYPE_CHECKING:
    import typer

FILES = ":files"
_MOST = 200
_LONGEST_TEXT = 70
_OF_FILES = ("FILE", "DIR", "PATH", "GLOB")
_BREAKS = re.compile(r"[=:]+")  # where bash ends a word
_UNQUOTED = re.compile(r"([^\w@%+=:,./~-])")


class Candidate(NamedTuple):
    value: str
    text: str = ""


# (option or metavar of the argument, what was typed of it) → candidates; None: not known
Values = Callable[[str, str], Iterable[Candidate | str] | None]


def wanted(name: str) -> bool:
    return variable(name) in os.environ


def variable(name: str) -> str:
    return f"_{name.upper()}_COMPLETE"


def answer(app: typer.Typer, name: str, given: list[str], values: Values) -> None:
    """Print the candidates for the last of the words."""
    from typer.main import get_command  # the caller has paid for it

    shell = os.environ.pop(variable(name))
    words = _glued(given) if shell == "bash" else given
    *before, typed = words or [""]
    found = _Completer(get_command(app), before, values).candidates(typed)
    lines = [FILES] if found is None else _lines(found, typed, shell)
    sys.stdout.write("".join(f"{line}\n" for line in lines))


class _Completer:
    """What may follow the words so far."""

    def __init__(self, command: Any, before: list[str], values: Values) -> None:
        self._values = values
        self._path: list[str] = []
        at = 0
        while at < len(before) and hasattr(command, "commands"):
            if not before[at].startswith("-"):
                if before[at] not in command.commands:
                    break
                self._path.append(before[at])
                command = command.commands[before[at]]
            at += 1
        self._command = command
        self._options = {
            name: one
            for one in command.params
            if one.param_type_name == "option" and not one.hidden
            for name in (*one.opts, *one.secondary_opts)
        }
        self._awaited: Any = None  # the option whose value comes next
        self._given = 0  # arguments
        self._only_words = False
        for word in before[at:]:
            self._pass(word)

    def _pass(self, word: str) -> None:
        if self._awaited is not None:
            self._awaited = None
        elif word == "--" and not self._only_words:
            self._only_words = True
        elif word.startswith("-") and not self._only_words:
            one = self._options.get(word)
            self._awaited = one if one is not None and not one.is_flag else None
        else:
            self._given += 1

    def candidates(self, typed: str) -> list[Candidate] | None:
        """None for files."""
        if self._awaited is not None:
            return self._of(self._awaited, typed)
        name, equals, value = typed.partition("=")
        if equals and name in self._options and not self._only_words:
            found = self._of(self._options[name], value)
            return found and [one._replace(value=f"{name}={one.value}") for one in found]
        if typed.startswith("-") and not self._only_words:
            return [
                Candidate(name, (one.help or "").partition(".")[0])
                for name, one in self._options.items()
                if name.startswith(typed)
                and (name.startswith("--") or len(one.opts) == 1 or len(typed) > 1)
            ]
        if hasattr(self._command, "commands"):
            return [
                Candidate(name, one.get_short_help_str(_LONGEST_TEXT))
                for name, one in self._command.commands.items()
                if name.startswith(typed) and not one.hidden
            ]
        arguments = [one for one in self._command.params if one.param_type_name == "argument"]
        for one in arguments:
            if one.nargs == -1 or self._given == 0:
                return self._of(one, typed)
            self._given -= one.nargs
        return []

    def _of(self, one: Any, typed: str) -> list[Candidate] | None:
        if choices := getattr(one.type, "choices", None):
            return _starting([Candidate(str(choice)) for choice in choices], typed)
        names = [*one.opts] if one.param_type_name == "option" else [one.metavar or ""]
        for name in names:
            for key in (" ".join([*self._path, name]), name):
                found = self._values(key, typed)
                if found is not None:
                    return _starting(
                        [Candidate(one) if isinstance(one, str) else one for one in found], typed
                    )
        metavar = re.findall("[A-Z]+", (one.metavar or one.name or "").upper())
        return None if any(word in _OF_FILES or word == "PATHS" for word in metavar) else []


def _starting(found: list[Candidate], typed: str) -> list[Candidate]:
    """Those that begin with what was typed, whatever its case."""
    return [one for one in found if one.value.lower().startswith(typed.lower())]


def _lines(found: list[Candidate], typed: str, shell: str) -> Iterable[str]:
    cut = 0
    if shell == "bash":  # it replaces only what is after the last break
        cut = max((end.end() for end in _BREAKS.finditer(typed)), default=0)
    for value, text in found[:_MOST]:
        if not value.isprintable():
            continue
        if shell == "bash":
            yield _UNQUOTED.sub(r"\\\1", value)[cut:]
        else:
            about = " ".join(safe(text).split())
            yield f"{value}\t{about[:_LONGEST_TEXT]}" if about else value


def _glued(words: list[str]) -> list[str]:
    """bash passes `--tool=Ba` as three words."""
    made: list[str] = []
    open_ended = False
    for word in words:
        broken = bool(_BREAKS.fullmatch(word))
        if made and (broken or open_ended) and made[-1]:
            made[-1] += word
        else:
            made.append(word)
        open_ended = broken
    return made
