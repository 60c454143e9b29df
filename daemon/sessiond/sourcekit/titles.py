"""Makes a title from a prompt, for sessions without a better one."""

from __future__ import annotations

import re

from sess_schema import labels

# Commands about the session itself, which do not describe its subject.
_HOUSEKEEPING = frozenset(
    {
        "add",
        "add-dir",
        "agents",
        "clear",
        "compact",
        "config",
        "context",
        "cost",
        "doctor",
        "drop",
        "effort",
        "exit",
        "export",
        "fast",
        "help",
        "hooks",
        "ide",
        "init",
        "login",
        "logout",
        "ls",
        "mcp",
        "memory",
        "model",
        "permissions",
        "plugin",
        "quit",
        "read-only",
        "rename",
        "reset",
        "resume",
        "rewind",
        "status",
        "tokens",
        "undo",
        "usage",
        "vim",
    }
)
_TITLE_LENGTH = 200
_MOST_READ = 10 * _TITLE_LENGTH  # characters of a prompt
_PLAN = re.compile(r"implement the following plan:\s*", re.IGNORECASE)
_UNTITLED = frozenset({labels.BASH, labels.MEMORY})


def prompt_title(text: str, label: str | None = None) -> str | None:
    """A prompt in one line; None if it says nothing about the subject of its session."""
    text = text.strip()
    plan = _PLAN.match(text)
    if plan is not None:
        text = _first_words(text[plan.end() : _MOST_READ]) or text
    title = title_line(text)
    if label in _UNTITLED or title in ("", "[image]") or title.casefold() == "warmup":
        return None
    return title


def title_line(text: str) -> str:
    """A text on one line, with an ellipsis where it is cut."""
    line = " ".join(text[:_MOST_READ].split())
    if len(line) <= _TITLE_LENGTH and len(text) <= _MOST_READ:
        return line
    return line[: _TITLE_LENGTH - 1].rstrip() + "…"


def _first_words(plan: str) -> str:
    lines = (line.strip("#*_- \t") for line in plan.splitlines())
    return next((line for line in lines if _has_words(line)), "")


def _has_words(text: str) -> bool:
    return sum(map(str.isalnum, text)) > 1


def is_weak(title: str) -> bool:
    """Whether the title of any other prompt is better."""
    if title.startswith("/"):
        name, _, rest = title[1:].partition(" ")
        return not rest or name in _HOUSEKEEPING
    return not _has_words(title) or _PLAN.fullmatch(title) is not None
