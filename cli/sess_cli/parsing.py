"""Command lines are parsed by typer, with two additions.

Building the parsers of all commands takes longer than running most commands, so only the requested
one is built (`keep_only`). A search is mostly words, which may start with a dash, so its command
line is split before typer sees it (`WordsCommand`). `start.py` goes further: a search of plain
words and the status line need no typer at all.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

from sess_schema.errors import SessError

_NUMBERED = ("-A", "-B", "-C")  # options only before a number


def keep_only(app: typer.Typer, given: list[str]) -> None:
    """Drop every command but the one a command line names."""
    verb = next((word for word in given if word != "--debug"), None)
    commands = [command for command in app.registered_commands if command.name == verb]
    groups = [group for group in app.registered_groups if group.name == verb]
    if commands or groups:
        app.registered_commands, app.registered_groups = commands, groups


class WordsCommand(TyperCommand):
    """Only known options are options; `-word` excludes, a pasted `--flag` is searched for."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args == ["-h"]:  # with other words it excludes `h`
            args = ["--help"]
        options, words = self.expanded(*self._divide(args))
        ctx.meta["typed"] = [*options, "--", *words]
        return super().parse_args(ctx, [*options, "--", *words])

    def expanded(self, options: list[str], words: list[str]) -> tuple[list[str], list[str]]:
        """With saved searches filled in."""
        return options, words

    def _divide(self, args: list[str]) -> tuple[list[str], list[str]]:
        takes_value = {"--help": False}
        for parameter in self.params:
            if parameter.param_type_name == "option":
                for name in (*parameter.opts, *parameter.secondary_opts):
                    takes_value[name] = not getattr(parameter, "is_flag", False)
        options: list[str] = []
        words: list[str] = []
        at = 0
        while at < len(args):
            word, at = args[at], at + 1
            name, equals, _ = word.partition("=")
            if word == "--":
                words += args[at:]
                break
            if word[:2] in _NUMBERED and word[2:].isdigit():
                options += [word[:2], word[2:]]
            elif word in _NUMBERED:
                if at < len(args) and args[at].isdigit():
                    options += [word, args[at]]
                    at += 1
                else:
                    words.append(word)
            elif name not in takes_value or (equals and not takes_value[name]):
                _refuse_slip(name, list(takes_value))
                words.append(word)
            elif takes_value[name] and not equals:
                if at == len(args):
                    raise SessError(
                        f"{name} needs a value", hint=f"`-- {name}` searches for it as a word"
                    )
                options += [word, args[at]]
                at += 1
            else:
                options.append(word)
        return options, words


def _refuse_slip(name: str, known: list[str]) -> None:
    """A mistyped option must not silently become a word that matches nothing."""
    if not name.startswith("--") or len(name) == len("--"):
        return
    import difflib  # noqa: PLC0415

    if close := difflib.get_close_matches(name, known, 1, 0.75):
        raise SessError(
            f"no such option: {name}",
            hint=f"did you mean {close[0]}? `-- {name}` searches for it as a word",
        )
