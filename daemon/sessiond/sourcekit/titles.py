"""A prompt as the title of its session, where nothing better names it."""

from __future__ import annotations

# Commands about the session itself: they say nothing of what it is about.
_HOUSEKEEPING = frozenset(
    {
        "add-dir",
        "agents",
        "clear",
        "compact",
        "config",
        "context",
        "cost",
        "doctor",
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
        "mcp",
        "memory",
        "model",
        "permissions",
        "plugin",
        "rename",
        "resume",
        "rewind",
        "status",
        "usage",
        "vim",
    }
)
_TITLE_LENGTH = 200


def command_title(text: str) -> str | None:
    """The title that a slash command can give: it must be one's own and say something."""
    name, _, rest = text.removeprefix("/").partition(" ")
    return prompt_title(text) if rest.strip() and name not in _HOUSEKEEPING else None


def prompt_title(text: str) -> str | None:
    """A prompt in one line; none for a warm-up or a command about the session itself."""
    title = " ".join(text[: 10 * _TITLE_LENGTH].split())[:_TITLE_LENGTH]
    if title.casefold() == "warmup":
        return None
    if title.startswith("/") and title[1:].partition(" ")[0] in _HOUSEKEEPING:
        return None
    return title or None
