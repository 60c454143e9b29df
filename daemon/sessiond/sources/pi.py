"""Pi: where its sessions are and which one each log belongs to."""

from __future__ import annotations

import os
import re
from typing import Any

from sessiond.families import entry_log
from sessiond.sourcekit.base import SOURCE_CODE, Parser, SessionSpec, Source

# What agents write that keep sessions in the same form.
_OTHER = re.compile(
    rb'\{"type":"session_init"|"cwd":"[^"]*[/\\]\.openclaw\b|"customType":"openclaw[.:]'
)


class PiSource(Source):
    agent = "pi"
    title = "Pi"
    variables = ("PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR")
    reads = "Sessions of all versions, with every branch; forks count once."
    leaves = (
        ("auth.json, settings.json, models.json", "credentials and settings"),
        ("--session-dir, sessionDir", "name the folder in config.toml: each run may have its own"),
    )
    known_from = SOURCE_CODE
    chain = entry_log.CHAIN

    def places(self) -> list[str]:
        moved = self.moved("PI_CODING_AGENT_DIR") or os.path.join(
            self.folders.home(), ".pi", "agent"
        )
        return [self.moved("PI_CODING_AGENT_SESSION_DIR") or os.path.join(moved, "sessions")]

    def classify(self, path: str) -> str | None:
        return "transcript" if path.endswith(".jsonl") else None

    def claims(self, path: str, head: bytes) -> bool:
        header = entry_log.header_of(head)
        other = head.startswith(b'{"type":"title"') or _OTHER.search(head)
        return path.endswith(".jsonl") and "cwd" in header and not other

    def identify(self, path: str, head: bytes) -> SessionSpec:
        session, _ = entry_log.session_of(path, head)
        return SessionSpec(session, resume=("pi", "--session", session))

    def parser(self, spec: SessionSpec, state: dict[str, Any]) -> Parser:
        from sessiond.families.entry_log import EntryParser  # when something changed

        return EntryParser(spec, state)


SOURCE = PiSource
