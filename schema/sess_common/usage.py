"""What is wrong with a command line, said as everything else is: one line, then a hint."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

from sess_common.errors import SessError

if TYPE_CHECKING:
    from typing import Any

_SIMILAR = 0.7
_SHORTEST_PART = 3
_COMMAND = re.compile(r"No such command '(.*)'\.(?: Did you mean '([^']*)'.*)?")
_EXTRA = re.compile(r"Got unexpected extra arguments?\(?s?\)? \((.*)\)")
_RANGE = re.compile(r"(\S+) is not in the range (?:(\S+)<=)?x(?:(?:<=|>=)(\S+))?")
_KIND = re.compile(r"'(.*)' is not a valid (int|float).*")
_NUMBERS = {"int": "a whole number", "float": "a number"}


def explained(error: Any, command: str) -> SessError:
    """The parser's complaint about a command line; `command` is used where it does not know."""
    context = error.ctx
    command = context.command_path if context is not None else command
    message, meant = _complaint(error, command)
    suggested = f"did you mean {meant}? " if meant else ""
    return SessError(message, hint=f"{suggested}`{command} --help`")


def _complaint(error: Any, command: str) -> tuple[str, str | None]:
    """What is wrong, and what may have been meant."""
    option, parameter = getattr(error, "option_name", None), getattr(error, "param", None)
    text = error.message.rstrip(".")
    if hasattr(error, "possibilities"):
        return f"no such option: {option}", _meant(option, error.possibilities or ())
    if option is not None:
        return f"{option} {'needs a' if 'requires' in text else 'takes no'} value", None
    if parameter is not None and error.message:
        return f"invalid value for {_name(parameter)}: {_value(text)}", None
    if parameter is not None:
        return f"missing {parameter.param_type_name}: {_name(parameter)}", None
    if found := _COMMAND.fullmatch(error.message):
        return f"no such command: {found[1]}", f"`{command} {found[2]}`" if found[2] else None
    if found := _EXTRA.fullmatch(text):
        return f"unexpected argument{'s' if ' ' in found[1] else ''}: {found[1]}", None
    return _lowered(text), None


def _meant(option: Any, known: tuple[str, ...]) -> str | None:
    part = option.strip("-")
    names = {one.strip("-"): one for one in known}
    close = difflib.get_close_matches(part, names, 1, _SIMILAR)
    parts = [name for name in names if len(part) >= _SHORTEST_PART and part in name]
    return next((names[name] for name in close or parts), None)


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "option":
        return str(parameter.opts[-1])
    return str(parameter.metavar or parameter.name).strip("[].")


def _value(text: str) -> str:
    if kind := _KIND.fullmatch(text):
        return f'"{kind[1]}" is not {_NUMBERS[kind[2]]}'
    if limits := _RANGE.fullmatch(text):
        given, least, most = limits.groups()
        if least and most:
            return f"{given} is not between {least} and {most}"
        return f"{given} is {'less' if '>=' in text else 'more'} than {most}"
    return text


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]
