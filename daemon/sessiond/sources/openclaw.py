"""OpenClaw: where the sessions of its agents are."""

from __future__ import annotations

import os
import re
from typing import Any

from sessiond.families import entry_log
from sessiond.sourcekit.base import DOCUMENTATION, Parser, SessionSpec, Source

_AGENTS, _SESSIONS, _LOG = "agents", "sessions", ".jsonl"
_FORMER = (".clawdbot", ".moltbot")
# Written by its gateway, not by a session.
_ASIDE = re.compile(r"\.(?:checkpoint|trajectory)\b")
_OWN = re.compile(rb'"cwd"\s*:\s*"[^"]*[/\\]\.openclaw\b|"customType"\s*:\s*"openclaw[.:]')


class OpenClawSource(Source):
    agent = "openclaw"
    title = "OpenClaw"
    variables = ("OPENCLAW_STATE_DIR",)
    reads = "Sessions of all its agents, with every branch; forks count once."
    leaves = (
        ("openclaw.json, credentials/, auth-profiles.json", "credentials and settings"),
        ("sessions.json", "which chat goes on with which session"),
        ("*.jsonl.reset.*, *.jsonl.deleted.*", "sessions that were put away: read before they are"),
    )
    known_from = DOCUMENTATION
    chain = entry_log.CHAIN

    def places(self) -> list[str]:
        home = self.folders.home()
        moved = self.moved("OPENCLAW_STATE_DIR") or os.path.join(home, ".openclaw")
        states = (moved, *(os.path.join(home, name) for name in _FORMER))
        return [os.path.join(state, _AGENTS) for state in states]

    def classify(self, path: str) -> str | None:
        folder, name = os.path.split(path)
        kept = os.path.basename(folder) == _SESSIONS and name.endswith(_LOG)
        return "transcript" if kept and not _ASIDE.search(name) else None

    def claims(self, path: str, head: bytes) -> bool:
        return path.endswith(_LOG) and bool(entry_log.header_of(head)) and bool(_OWN.search(head))

    def enters(self, directory: str) -> bool:
        """Only AGENT/sessions: beside it are credentials and workspaces."""
        above, name = os.path.split(directory)
        return name == _SESSIONS or os.path.basename(above) == _AGENTS

    def identify(self, path: str, head: bytes) -> SessionSpec:
        session, _ = entry_log.session_of(path, head)
        return SessionSpec(session)

    def parser(self, spec: SessionSpec, state: dict[str, Any]) -> Parser:
        from sessiond.families.entry_log import EntryParser  # when something changed

        return EntryParser(spec, state)


SOURCE = OpenClawSource
