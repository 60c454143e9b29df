"""Writes docs/commands.md, docs/schema.md and the map in ARCHITECTURE.md from the sources."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

BIN = Path(sys.executable).parent
TARGET = Path(__file__).parent / "commands.md"
COMMANDS = {
    "sess": [
        "search", "list", "show", "stats", "statusline", "restore", "sql", "doctor", "demo",
        "export", "export html", "export site", "export md", "export json", "export sqlite",
        "export video", "export gif", "export cast", "export tape",
    ],
    "sessiond": [
        "start", "stop", "restart", "status", "sync", "install", "uninstall", "logs", "reprice",
    ],
}  # fmt: skip


def page() -> str:
    parts = [
        "# Commands\n\nMade by `python docs/generate.py`; a test fails when it is out of date.\n"
    ]
    for program, verbs in COMMANDS.items():
        for words in ([program], *([program, *verb.split()] for verb in verbs)):
            title = "##" if len(words) == 1 else "###"
            parts.append(f"{title} {' '.join(words)}\n\n```text\n{help_of(words)}\n```\n")
    return "\n".join(parts)


def help_of(words: list[str]) -> str:
    environment = {**os.environ, "COLUMNS": "90", "TERMINAL_WIDTH": "90"}
    text = printed(words[0], [*words[1:], "--help"], environment)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def printed(program: str, arguments: list[str], environment: dict[str, str]) -> str:
    command = [BIN / program, *arguments]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout


if __name__ == "__main__":
    import module_map
    import schema_page

    TARGET.write_text(page(), "utf-8")
    schema_page.TARGET.write_text(schema_page.page(), "utf-8")
    module_map.TARGET.write_text(module_map.page(), "utf-8")
