"""Command lines are parsed by typer, with three additions.

Building the parsers of all commands takes longer than running most commands, so only the requested
one is built (`keep_only`). A search is mostly words, which may start with a dash, so its command
line is split before typer sees it (`WordsCommand`). `start.py` goes further: a search of plain
words and the status line need no typer at all. Options that belong together are one parameter of a
command, a dataclass (`expanded`).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from itertools import takewhile
from typing import Any, get_type_hints

import typer
from typer.core import TyperCommand

from sess_cli import fresh
from sess_cli.options import Wait
from sess_common.errors import SessError, no_such

_BEFORE = ("--debug",)  # options of `sess` itself that a command may follow
_OWN = (
    "--help",
    "-h",
    "--version",
    "--print-id",
    "--print-command",
    "--install-completion",
    "--show-completion",
)
_SHORTEST_SLIP = 3
_ID = re.compile(r"(?=.*\d)[\w-]{4,}|[0-9a-f]{4,}")
_SHORT = re.compile(r"-[A-Za-z]{1,2}")  # longer ones exclude a word
# What other search programs call it.
_ELSEWHERE = {
    "--max-count": "-n N", "-m": "-n N", "--head": "-n N", "--word-regexp": "-w", "-E": "--regex",
    "-P": "--regex", "-e": "--regex", "--regexp": "--regex", "-v": '-"WORD"', "--reverse":
    "--sort oldest", "--invert-match": '-"WORD"', "--after": "--since", "--before": "--until",
    "--list": "-l", "-k": "-n N", "-f": "--file",
}  # fmt: skip
_SIMILAR, _SAME = 0.7, 0.85  # how close an option must be to be meant
# What people type by habit, where it has another name here.
_VERBS_ELSEWHERE = {
    "ls": "sess list", "sessions": "sess list", "view": "sess show",
    "cat": "sess show", "open": "sess show", "read": "sess show", "find": "sess search",
    "grep": "sess search", "query": "sess search", "cost": "sess stats", "usage": "sess stats",
    "delete": "sess rm", "remove": "sess rm", "edit": "sess pick", "version": "sess --version",
    "tail": "sessiond logs --follow", "logs": "sessiond logs", "index": "sessiond sync",
    "rollback": "sess undo", "redo": "sess undo --redo", "ping": "sess doctor", "turns":
    "sess records", "local": "sess export site", "daemon": "sessiond status",
    "completion": "sess --install-completion",
    **{verb: f"sessiond {verb}" for verb in (
        "agents", "config", "install", "repair", "reprice", "restart", "salvage", "start",
        "status", "stop", "sync", "uninstall",
    )},
}  # fmt: skip
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


def with_verb(app: typer.Typer, arguments: list[str]) -> list[str]:
    """A command line that names a command: words that are none are searched for."""
    before = [*takewhile(_BEFORE.__contains__, arguments)]
    rest = arguments[len(before) :]
    verbs = [str(command.name) for command in app.registered_commands]
    verbs += [str(group.name) for group in app.registered_groups]
    if not rest or rest[0] in verbs:
        return arguments
    if rest[0].startswith("-") and rest[0] != "--":
        return _before_a_verb(arguments, rest)
    if rest[0] == "help":
        return [*before, *rest[1:], "--help"]
    meant = _VERBS_ELSEWHERE.get(rest[0]) if _is_for_a_command(rest[1:]) else None
    if rest[0] not in _VERBS_ELSEWHERE:  # no slip of the pen, whatever it looks like
        meant = next((f"sess {verb}" for verb in verbs if _one_slip(rest[0], verb)), None)
    if meant is not None:
        raise SessError(
            f"no such command: {rest[0]}",
            hint=f"did you mean `{meant}`? `{_search_for(rest)}` searches for it",
        )
    return [*before, "search", *rest]


def _is_for_a_command(words: list[str]) -> bool:
    """Nothing, an ID or options: no words to search for."""
    return all(word == "last" or word.startswith("-") or _ID.fullmatch(word) for word in words[:1])


def check_colour(arguments: list[str]) -> None:
    """`start` takes the values of `--color` that there are; words after `--` may be anything."""
    for word in takewhile(lambda word: word != "--", arguments):
        name, equals, when = word.partition("=")
        if name == "--color" and equals and arguments[0] != "search":
            raise no_such("value for --color", when, ("auto", "always", "never"))


def _before_a_verb(arguments: list[str], rest: list[str]) -> list[str]:
    """Options of `sess` itself stay; those of a search need the word."""
    if rest[0].partition("=")[0] in _OWN or all(word.startswith("-") for word in rest):
        return arguments
    raise SessError(
        f"no such option: {rest[0]}", hint=f"did you mean `{_search_for(rest)}`? `sess --help`"
    )


def _search_for(words: list[str]) -> str:
    import shlex

    return shlex.join(["sess", "search", *words])


def _one_slip(typed: str, verb: str) -> bool:
    """Whether one letter is missing, wrong or too many, or two are swapped."""
    if abs(len(typed) - len(verb)) > 1 or typed == verb or len(typed) < _SHORTEST_SLIP:
        return False
    same = next((n for n, (a, b) in enumerate(zip(typed, verb, strict=False)) if a != b), None)
    if same is None:
        return True
    a, b = typed[same:], verb[same:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])


def keep_only(app: typer.Typer, arguments: list[str]) -> None:
    """Drop every command but the one a command line names."""
    verb = next((word for word in arguments if word not in _BEFORE), None)
    commands = [command for command in app.registered_commands if command.name == verb]
    groups = [group for group in app.registered_groups if group.name == verb]
    if commands or groups:
        app.registered_commands, app.registered_groups = commands, groups


class WordsCommand(TyperCommand):
    """Options and words in any order: `-word` excludes, and a pasted command is words."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        options, words = self.expanded(*_Division(self.params, args).made())
        ctx.meta["typed"] = [*options, "--", *words]
        return super().parse_args(ctx, [*options, "--", *words])

    def expanded(self, options: list[str], words: list[str]) -> tuple[list[str], list[str]]:
        """With saved searches filled in."""
        return options, words


class _Division:
    """Divides a command line into options and words."""

    def __init__(self, parameters: list[Any], args: list[str]) -> None:
        self._takes_value = {"--help": False, "-h": False}
        for parameter in parameters:
            if parameter.param_type_name == "option":
                for name in (*parameter.opts, *parameter.secondary_opts):
                    self._takes_value[name] = not getattr(parameter, "is_flag", False)
        self._args = args
        self._at = 0
        self._options: list[str] = []
        self._words: list[str] = []

    @property
    def _pasted(self) -> bool:
        return is_pasted_command([*self._words[:1], *self._args[self._at :]])

    def made(self) -> tuple[list[str], list[str]]:
        while self._at < len(self._args):
            word = self._args[self._at]
            self._at += 1
            if word == "--":
                self._words += self._args[self._at :]
                break
            if word[:2] == "--" and word[2:3].isalpha():
                self._long(word)
            elif word[:1] == "-" and word[1:2].isalpha():
                self._short(word)
            else:
                self._words.append(word)
        return self._options, self._words

    def _long(self, word: str) -> None:
        name, equals, _ = word.partition("=")
        if name not in self._takes_value:
            self._unknown(word, name)
        elif not self._takes_value[name]:
            if equals:
                raise SessError(f"{name} takes no value")
            self._options.append(word)
        elif equals:
            self._options.append(word)
        elif self._at == len(self._args):
            raise SessError(f"{name} needs a value", hint=_as_word(name))
        else:
            self._options += [word, self._args[self._at]]
            self._at += 1

    def _short(self, word: str) -> None:
        """`-n 3`, `-n3`, `-w`, `-lw`; the values of short options are numbers."""
        name, rest = word[:2], word[2:]
        if self._takes_value.get(name) and (rest.isdigit() or not rest):
            value = rest or "".join(self._args[self._at : self._at + 1])
            if value.isdigit():
                self._options += [name, value]
                self._at += not rest
            elif self._pasted:
                self._words.append(word)
            else:
                raise SessError(f"{name} needs a number", hint=_as_word(word))
        elif word == "-h" and self._pasted:
            self._words.append(word)
        elif all(self._takes_value.get(f"-{letter}") is False for letter in word[1:]):
            self._options += ["--help" if letter == "h" else f"-{letter}" for letter in word[1:]]
        elif _SHORT.fullmatch(word):
            self._unknown(word, word)
        else:
            self._words.append(word)

    def _unknown(self, word: str, name: str) -> None:
        """An error, because as a word it would silently match nothing; a pasted one is a word."""
        options = [option for option in self._takes_value if option.startswith("--")]
        pasted = self._pasted
        close = difflib.get_close_matches(name, options, 1, _SAME if pasted else _SIMILAR)
        if pasted and not close:
            self._words.append(word)
            return
        suggested = _ELSEWHERE.get(name) or (close[0] if close and len(name) > 2 else None)
        raise SessError(
            f"no such option: {name}",
            hint=(f"did you mean {suggested}? " if suggested else "") + _as_word(word),
        )


def is_pasted_command(words: list[str]) -> bool:
    """Whether somebody pasted a command line, to find where it was run.

    It begins with a program, or has an operator of the shell in it.
    """
    if any(word in _OPERATORS for word in words):
        return True
    first = words[0] if words else ""
    return first in _PROGRAMS or first.startswith(("./", "/", "$"))


def _as_word(word: str) -> str:
    return f"`{_search_for(['--', word])}` searches for it as a word"


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """The command with every dataclass among its parameters replaced by its fields.

    Where it may update the index, --wait is added.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {
        name: (kind, get_type_hints(kind, include_extras=True))
        for name, kind in hints.items()
        if _is_dataclass(kind)
    }
    updates = "no_sync" in hints
    if not groups and not updates:
        return command

    @wraps(command)
    def run(**values: Any) -> None:
        fresh.Answer.whole = bool(updates and values.pop("wait", False))
        for name, (kind, fields) in groups.items():
            values[name] = kind(**{field: values.pop(field) for field in fields if field in values})
        command(**values)

    parameters: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        kind, fields = groups.get(parameter.name, (None, {}))
        parameters += [
            Parameter(name, Parameter.KEYWORD_ONLY, default=getattr(kind, name), annotation=hint)
            for name, hint in fields.items()
        ] or [parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[parameter.name])]
        if parameter.name == "no_sync":
            parameters.append(
                Parameter("wait", Parameter.KEYWORD_ONLY, default=False, annotation=Wait)
            )
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    del run.__wrapped__  # it has another signature
    return run


def _is_dataclass(kind: Any) -> bool:
    """Also one of `sess_common.classes`: to ask it for its fields would load `dataclasses`."""
    return any("__dataclass_fields__" in vars(above) for above in getattr(kind, "__mro__", ()))
