"""Makes a title from a prompt, for sessions without a better one."""

from __future__ import annotations

# Commands about the session itself, which do not describe its subject.
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
    """The title from a slash command with arguments that is not housekeeping."""
    name, _, rest = text.removeprefix("/").partition(" ")
    return prompt_title(text) if rest.strip() and name not in _HOUSEKEEPING else None


def prompt_title(text: str) -> str | None:
    """A prompt in one line; None for a warm-up or a housekeeping command."""
    title = " ".join(text[: 10 * _TITLE_LENGTH].split())[:_TITLE_LENGTH]
    if title.casefold() == "warmup":
        return None
    if title.startswith("/") and title[1:].partition(" ")[0] in _HOUSEKEEPING:
        return None
    return title or None
