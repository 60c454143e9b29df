"""Every key of config.toml: what it means, what it is without the file, and an example."""

from __future__ import annotations

from typing import Any, NamedTuple


class Key(NamedTuple):
    section: str
    name: str  # in capitals if people choose it
    default: Any
    example: str  # as TOML
    meaning: str

    @property
    def path(self) -> str:
        return f"{self.section}.{self.name}"


KEYS = (
    Key(
        "roots", "AGENT", {}, 'claude = ["~/backup/claude/projects"]',
        "Directories to read besides an agent's own, by the agent's name in `sessiond agents`."
        " A service does not see your shell's variables, so name moved directories here.",
    ),
    Key(
        "exclude", "agents", [], 'agents = ["aider"]',
        "Agents that are not read. What is in the index already stays until you `sess forget` it.",
    ),
    Key(
        "exclude", "projects", [], 'projects = ["~/private", "/srv/*/secret"]',
        "Projects that are not read, by their folder; `*` matches anything.",
    ),
    Key(
        "exclude", "paths", [], 'paths = ["~/.claude/projects/-home-me-scratch"]',
        "Files and folders that are not read; `*` matches anything.",
    ),
    Key(
        'prices."MODEL"', "input", {}, "input = 3.0",
        "Dollars per million tokens of a model, instead of the built-in price; needs `output` too.",
    ),
    Key('prices."MODEL"', "output", {}, "output = 15.0", "The same for what the model writes."),
    Key(
        'prices."MODEL"', "cache_write", {}, "cache_write = 3.75",
        "The same for what is written to the cache for five minutes.",
    ),
    Key(
        'prices."MODEL"', "cache_write_1h", {}, "cache_write_1h = 6.0",
        "The same for what is written to the cache for an hour.",
    ),
    Key(
        'prices."MODEL"', "cache_read", {}, "cache_read = 0.3",
        "The same for what is read from the cache.",
    ),
    Key(
        "search", "history", False, "history = true",
        "Note searches, for `sess search --history`.",
    ),
    Key(
        "output", "pager", None, 'pager = "less -S"',
        "The pager for long output on a terminal; `false` for none. Without it, `PAGER` or `less`."
        " The variable `SESS_PAGER` comes before it.",
    ),
    Key(
        "redact", "patterns", [], "patterns = ['ACME-[0-9]{6}', 'badge no\\. ([0-9]+)']",
        "Regular expressions of what exports mask besides secrets; if one has a group, only that.",
    ),
    Key(
        "redact", "at_ingest", False, "at_ingest = true",
        "Mask secrets with `*` before anything is written: in the texts and in the archive, which"
        " then restores masked bytes. What is in the index already stays until you `sess forget`"
        " it.",
    ),
    Key(
        "edit", "keep_days", 30, "keep_days = 30",
        "Days for which `sess undo` can undo an edit of a transcript.",
    ),
    Key(
        "daemon", "reconcile_seconds", 120, "reconcile_seconds = 120",
        "Seconds between full scans of all files; changes are noticed at once without them.",
    ),
)  # fmt: skip


def sections() -> list[str]:
    return [*dict.fromkeys(key.section.partition(".")[0] for key in KEYS)]


def names(section: str) -> list[str]:
    return [key.name for key in KEYS if key.section == section]


def example(*, commented: bool = False) -> str:
    """A file with every key."""
    lines: list[str] = []
    for section in dict.fromkeys(key.section for key in KEYS):
        lines += ["", f"[{section}]".replace("MODEL", "my-model")]
        for key in KEYS:
            if key.section == section:
                lines += [*_wrapped(key.meaning), key.example]
    if commented:
        lines = [f"#{line}" if line and not line.startswith("#") else line for line in lines]
    return "\n".join(lines[1:]) + "\n"


def _wrapped(text: str) -> list[str]:
    import textwrap  # rarely needed

    return textwrap.wrap(text, 96, initial_indent="# ", subsequent_indent="# ")
