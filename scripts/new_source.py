# ruff: noqa: INP001
"""Lays out a new agent: its source, its golden folder, and therewith a failing test.

`make new-source NAME=teapot` runs it. docs/add-an-agent.md says how to go on.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = '''\
"""{title}: where its sessions are, and what they say."""

from __future__ import annotations

import os
from typing import Any

from sessiond.sourcekit.base import ONE_READER, Parser, Record, SessionSpec, Source
from sessiond.sourcekit.values import as_text, as_time


class {class_}Source(Source):
    agent = "{agent}"
    title = "{title}"
    reads = "Sessions."
    leaves = ()  # (what is there and not read, why) pairs
    known_from = ONE_READER

    def places(self) -> list[str]:
        return [os.path.join(self.folders.home(), ".{agent}", "sessions")]

    def classify(self, path: str) -> str | None:
        return "transcript" if path.endswith(".jsonl") else None

    def claims(self, path: str, head: bytes) -> bool:  # noqa: ARG002 - the content decides
        return b'"{agent}"' in head

    def identify(self, path: str, head: bytes) -> SessionSpec:  # noqa: ARG002 - the name decides
        return SessionSpec(os.path.basename(path).removesuffix(".jsonl"))

    def parser(self, spec: SessionSpec, state: dict[str, Any]) -> Parser:
        return _Parser(spec, state)


class _Parser:
    """What a record says; a package of its own if it grows beyond some 450 lines."""

    def __init__(self, spec: SessionSpec, state: dict[str, Any]) -> None:
        self._spec = spec
        self._state = state  # what it must remember from one record to the next

    def state(self) -> dict[str, Any]:
        return self._state

    def parse(self, value: dict[str, Any]) -> Record:
        record = Record(as_text(value.get("type")) or "other", ts=as_time(value.get("time")))
        if record.kind == "user":
            record.role = "user"
            record.ask((as_text(value.get("text")) or "").strip())
        return record


SOURCE = {class_}Source
'''
RECORDS = (
    {"type": "user", "agent": "{agent}", "time": "2026-03-01T10:00:00Z", "text": "warm the pot"},
    {"type": "assistant", "time": "2026-03-01T10:00:02Z", "text": "It is warm."},
)
# What a person would expect of the records above: the source does not read answers yet.
FACTS = {
    "sessions": {
        "first": {
            "kind": "main",
            "title": "warm the pot",
            "started": "2026-03-01T10:00:00.000Z",
            "ended": "2026-03-01T10:00:02.000Z",
            "prompts": 1,
            "events": {"assistant": 1, "user": 1},
        }
    }
}


def lay_out(name: str, root: Path = ROOT) -> list[Path]:
    """Write the files of a new agent; refuse a name that is taken or no name."""
    if not re.fullmatch(r"[a-z][a-z0-9-]{1,30}", name):
        sys.exit("usage: make new-source NAME=teapot (small letters, digits and hyphens)")
    module = name.replace("-", "_")
    source = root / "daemon" / "sessiond" / "sources" / f"{module}.py"
    golden = root / "tests" / "golden" / name
    if source.exists() or source.with_suffix("").exists() or golden.exists():
        sys.exit(f"{name} exists already")
    class_ = "".join(word.capitalize() for word in name.split("-"))
    title = " ".join(word.capitalize() for word in name.split("-"))
    log = golden / "home" / f".{name}" / "sessions" / "first.jsonl"
    log.parent.mkdir(parents=True)
    source.write_text(SOURCE.format(agent=name, class_=class_, title=title))
    lines = (json.dumps(record).replace("{agent}", name) for record in RECORDS)
    log.write_text("".join(f"{line}\n" for line in lines))
    facts = golden / "facts.json"
    facts.write_text(json.dumps(FACTS, indent=1) + "\n")
    return [source, log, facts]


if __name__ == "__main__":
    for path in lay_out(sys.argv[1] if len(sys.argv) > 1 else ""):
        print(f"made {path.relative_to(ROOT)}")
    print(f"\nnow: .venv/bin/pytest tests/daemon/sources/test_homes.py -k {sys.argv[1]}")
    print("it fails, because answers are not read yet; docs/add-an-agent.md says how to go on")
