"""The map in ARCHITECTURE.md: every folder but those of single agents, and its subject."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "ARCHITECTURE.md"
PACKAGES = (
    "cli/sess_cli",
    "daemon/sessiond",
    "schema/sess_common",
    "schema/sess_redaction",
    "schema/sess_schema",
)
BEGIN = "<!-- The map is made by `python docs/generate.py` from the packages themselves. -->\n"
END = "<!-- end of the map -->"


def page() -> str:
    """The whole file with its map renewed."""
    before, _, rest = TARGET.read_text("utf-8").partition(BEGIN)
    return before + BEGIN + "".join(rows()) + END + rest.partition(END)[2]


def rows() -> Iterator[str]:
    yield "\n| folder | what is in it |\n|---|---|\n"
    for package in PACKAGES:
        top = ROOT / package
        for init in sorted(top.rglob("__init__.py"), key=lambda file: file.parent.parts):
            folder = init.parent
            if folder.parent.name in ("sources", "families"):
                continue  # docs/agents.md describes each agent
            subject = ast.get_docstring(ast.parse(init.read_text("utf-8"))) or ""
            line = " ".join(subject.partition("\n\n")[0].split())
            yield f"| `{folder.relative_to(ROOT)}/` | {line} |\n"
    yield "\n"


if __name__ == "__main__":
    TARGET.write_text(page(), "utf-8")
