"""What sessions and events can be chosen by, for whoever offers it.

`fields` turns each into SQL, which takes more to load than a command needs for its help.
"""

from __future__ import annotations

from collections.abc import Sequence

from sess_common.classes import dataclass

TYPES = ("user", "assistant", "thinking", "tool_use", "system", "summary")
STATES = ("error", "denied", "pending", "ok", "failed", "subagent")
THINGS = ("image", "commit")
ROLES = {
    "user": ("user",),
    "assistant": ("assistant", "thinking", "tool_use"),
    "tool": ("tool_use",),
    "system": ("system", "summary"),
}


@dataclass(frozen=True, slots=True)
class Field:
    """`name:value` among the words of a search, and the option `--name VALUE`."""

    metavar: str
    help: str
    values: Sequence[str] = ()  # all there are; others are looked up
    several: bool = True  # given more than once, either will do


def _or(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


FIELDS = {
    "agent": Field("NAME", "Only this agent's sessions."),
    "project": Field("PATH", "Only projects below PATH, such as `.`, or with PATH in their path."),
    "tool": Field("NAME", "Only calls of this tool; mcp__* works."),
    "kind": Field("KIND", "Only calls of this kind: shell, read, edit, ..."),
    "type": Field("TYPE", f"Only this type: {_or([*TYPES, 'error'])}.", (*TYPES, "error")),
    "role": Field("ROLE", f"Only this role: {_or([*ROLES])}.", (*ROLES,)),
    "is": Field(
        "STATE",
        "Only this state: error, denied, failed (either), pending, ok or subagent.",
        STATES,
    ),
    "has": Field("THING", f"Only events with this: {_or(THINGS)}.", THINGS),
    "file": Field("GLOB", "Only calls that touched this path."),
    "model": Field("NAME", "Only sessions that used this model."),
    "branch": Field("NAME", "Only sessions on this git branch."),
    "title": Field("TEXT", "Only sessions with this in the title."),
    "session": Field("ID", "Only this session."),
    "since": Field(
        "TIME",
        "From this time on: 7d, yesterday, monday, 'last week', 12:00, 2026-02-20.",
        several=False,
    ),
    "until": Field("TIME", "Up to this time; a date includes the whole day.", several=False),
}
