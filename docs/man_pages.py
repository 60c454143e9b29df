"""Writes man/*.1: one manual page for each program, from its own help."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from sess_common.program import EXIT_CODES
from sess_schema import __version__

TARGET = Path(__file__).parent.parent / "man"
ENVIRONMENT = {
    "SESSIOND_HOME": "Keeps index, configuration, log and lock below this directory.",
    "NO_COLOR, FORCE_COLOR": "No colour, or colour also in a pipe, as --color=never and always.",
    "PAGER, SESS_PAGER": "Shows long output; without one, less.",
    "VISUAL, EDITOR": "Opens config.toml for `sessiond config --edit`.",
}
ALSO = {"sess": "sessiond", "sessiond": "sess"}


def programs() -> dict[str, Any]:
    from typer.main import get_command

    asked, sys.argv = sys.argv, ["sess"]  # all commands are loaded if none is named
    try:
        from sess_cli.main import app
    finally:
        sys.argv = asked
    from sessiond.main import app as daemon

    return {"sess": get_command(app), "sessiond": get_command(daemon)}


def page(name: str, command: Any) -> str:
    return "\n".join(_lines(name, command)) + "\n"


def _lines(name: str, command: Any) -> Iterator[str]:
    brief = _first_sentence(command.help)
    yield '.\\" Made by `python docs/generate.py` from the help of the commands.'
    yield f'.TH {name.upper()} 1 "" "sessiond {__version__}" "User Commands"'
    yield ".SH NAME"
    yield f"{name} \\- {_text(brief[:1].lower() + brief[1:].rstrip('.'))}"
    yield ".SH SYNOPSIS"
    yield f".B {name}"
    yield "[\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIARGS\\fR]..."
    yield ".SH DESCRIPTION"
    yield from _prose(command.help)
    yield ".SH OPTIONS"
    yield from _options(command)
    yield ".SH COMMANDS"
    for words, one in _commands([name], command):
        yield f".SS {_text(' '.join(words[1:]))}"
        yield from _synopsis(words, one)
        yield from _prose(one.help)
        yield from _options(one)
    yield ".SH EXIT STATUS"
    for line in EXIT_CODES.splitlines():
        number, _, meaning = line.strip().partition("  ")
        if number.isdigit():
            yield from (".TP", f".B {number}", _text(meaning.strip()))
    yield ".SH ENVIRONMENT"
    for variable, meaning in ENVIRONMENT.items():
        yield from (".TP", f".B {variable}", _text(meaning))
    yield ".SH SEE ALSO"
    yield f".BR {ALSO[name]} (1)"


def _commands(words: list[str], command: Any) -> Iterator[tuple[list[str], Any]]:
    for verb, one in command.commands.items():
        if one.hidden:
            continue
        yield [*words, verb], one
        if hasattr(one, "commands"):
            yield from _commands([*words, verb], one)


def _synopsis(words: list[str], command: Any) -> Iterator[str]:
    context = typer.Context(command, info_name=words[-1])
    arguments = " ".join(command.collect_usage_pieces(context))
    yield f"\\fB{_text(' '.join(words))}\\fR {_text(arguments)}"


def _prose(text: str | None) -> Iterator[str]:
    for number, paragraph in enumerate((text or "").replace("\b\n", "").split("\n\n")):
        if number:
            yield ".PP"
        else:
            yield ".br"
        yield _text(" ".join(paragraph.split()))


def _options(command: Any) -> Iterator[str]:
    context = typer.Context(command)
    for parameter in command.params:
        if getattr(parameter, "hidden", False):
            continue
        record = parameter.get_help_record(context)
        if record is None:
            continue
        yield ".TP"
        yield f"\\fB{_text(record[0])}\\fR"
        yield _text(" ".join(record[1].split()))


def _first_sentence(text: str | None) -> str:
    return " ".join((text or "").split("\n\n")[0].split())


def _text(text: str) -> str:
    """Nothing in it is a request of roff; a dash stays one that can be copied."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def write() -> None:
    TARGET.mkdir(exist_ok=True)
    for name, command in programs().items():
        (TARGET / f"{name}.1").write_text(page(name, command), "utf-8")
