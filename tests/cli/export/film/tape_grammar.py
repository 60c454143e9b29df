"""A strict parser of VHS tapes: it rejects whatever VHS rejects or only guesses about.

Tokens are separated by blanks and never span lines. A string is between two equal quotes of
three kinds, without any escape, and ends with its line at the latest, which is an error here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""[ \t]*(?:
    (?P<string>"[^"]*"|'[^']*'|`[^`]*`)
    |/(?P<regex>[^/]*)/
    |(?P<number>\d+(?:\.\d+)?)
    |(?P<word>[A-Za-z.][A-Za-z0-9._/%-]*)
    |(?P<sign>[+@])
    )""",
    re.VERBOSE,
)
_KEYS = {"Enter", "Backspace", "Space", "Tab", "Up", "Down", "Left", "Right", "Escape"}
_UNITS = {"ms", "s", "m"}
_SETTINGS = {
    "Shell": "text", "FontFamily": "text", "FontSize": "number", "Width": "number",
    "Height": "number", "TypingSpeed": "time", "Theme": "text", "PlaybackSpeed": "number",
    "Padding": "number", "Framerate": "number", "WaitTimeout": "time",
}  # fmt: skip


class Refused(Exception):
    """VHS would reject this line."""


@dataclass(frozen=True)
class Command:
    name: str
    value: str = ""
    setting: str = ""


def read(tape: str) -> list[Command]:
    """Every command in order; comments and empty lines are ignored."""
    found = []
    if any(character in tape for character in "\x00\r"):
        raise Refused("a character that ends a tape or a line")
    for number, line in enumerate(tape.split("\n"), 1):
        stripped = line.strip(" \t")
        if stripped and not stripped.startswith("#"):
            try:
                found.append(_command(_tokens(stripped)))
            except Refused as error:
                raise Refused(f"line {number}: {error}: {line!r}") from None
    return found


def keys(commands: list[Command]) -> list[str]:
    """What is typed, key by key, as a terminal receives it."""
    pressed: list[str] = []
    for command in commands:
        if command.name == "Type":
            pressed += command.value
        elif command.name == "Enter":
            pressed.append("\r")
        elif command.name in _KEYS:
            raise Refused(f"no tape of ours presses {command.name}")
    return pressed


def _tokens(line: str) -> list[tuple[str, str]]:
    found = []
    at = 0
    while at < len(line):
        token = _TOKEN.match(line, at)
        if token is None or token.lastgroup is None:
            raise Refused(f"no token at {at}")
        text = token[token.lastgroup]
        found.append((token.lastgroup, text[1:-1] if token.lastgroup == "string" else text))
        at = token.end()
    return found


def _command(tokens: list[tuple[str, str]]) -> Command:
    kind, name = tokens[0]
    rest = tokens[1:]
    if kind != "word":
        raise Refused("a line begins with a command")
    if name == "Type":
        if rest[:1] == [("sign", "@")]:
            rest = rest[_time(rest[1:])[1] + 1 :]
        # Several strings would be joined by spaces that nobody wrote.
        if len(rest) != 1 or rest[0][0] != "string":
            raise Refused("Type takes one string")
        return Command(name, rest[0][1])
    if name == "Output":
        if len(rest) != 1 or rest[0][0] not in ("string", "word") or "." not in rest[0][1]:
            raise Refused("Output takes the name of a film")
        return Command(name, rest[0][1])
    if name == "Set":
        return _setting(rest)
    if name == "Sleep":
        value, used = _time(rest)
        _nothing_after(rest[used:])
        return Command(name, value)
    if name == "Wait":
        return _wait(rest)
    if name in {"Hide", "Show"} | _KEYS:
        _nothing_after(rest)
        return Command(name)
    raise Refused(f"unknown command {name}")


def _setting(rest: list[tuple[str, str]]) -> Command:
    if not rest or rest[0][1] not in _SETTINGS:
        raise Refused("unknown setting")
    name, wanted = rest[0][1], _SETTINGS[rest[0][1]]
    if wanted == "time":
        value, used = _time(rest[1:])
        _nothing_after(rest[1 + used :])
        return Command("Set", value, name)
    kinds = ("string", "word") if wanted == "text" else ("number",)
    if len(rest) != 2 or rest[1][0] not in kinds:
        raise Refused(f"{name} takes a {wanted}")
    return Command("Set", rest[1][1], name)


def _wait(rest: list[tuple[str, str]]) -> Command:
    if rest[:1] == [("sign", "+")]:
        if rest[1:2] not in ([("word", "Screen")], [("word", "Line")]):
            raise Refused("Wait+ takes Screen or Line")
        rest = rest[2:]
    if rest[:1] == [("sign", "@")]:
        rest = rest[_time(rest[1:])[1] + 1 :]
    if len(rest) != 1 or rest[0][0] != "regex":
        raise Refused("Wait takes a regular expression")
    re.compile(rest[0][1])
    return Command("Wait", rest[0][1])


def _time(rest: list[tuple[str, str]]) -> tuple[str, int]:
    if not rest or rest[0][0] != "number":
        raise Refused("no time")
    if len(rest) > 1 and rest[1][0] == "word" and rest[1][1] in _UNITS:
        return rest[0][1] + rest[1][1], 2
    raise Refused("a time without a unit")


def _nothing_after(rest: list[tuple[str, str]]) -> None:
    if rest:
        raise Refused("something after the command")
