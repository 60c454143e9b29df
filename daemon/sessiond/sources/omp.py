"""OMP (oh-my-pi): where its sessions are, and which subagents belong to them."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from sessiond.families import entry_log
from sessiond.sourcekit.base import SOURCE_CODE, Parser, SessionSpec, Source

_LOG, _OUTPUT = ".jsonl", ".log"


class OmpSource(Source):
    """A session's folder, named like its log, has outputs and the logs of its subagents."""

    agent = "omp"
    title = "OMP"
    variables = ("OMP_CODING_AGENT_DIR", "PI_CONFIG_DIR")
    reads = "Sessions with every branch, their subagents, and outputs that were stored apart."
    leaves = (
        ("blobs/", "images"),
        ("history.db", "prompts that the sessions have"),
        ("agent.db, auth files", "credentials and settings"),
        ("*.md beside subagents", "their last answers, which their logs have"),
    )
    known_from = SOURCE_CODE
    chain = replace(entry_log.CHAIN, heads=("session", "title"))

    def places(self) -> list[str]:
        folder = self.environ.get("PI_CONFIG_DIR", "").strip() or ".omp"
        agent = os.path.join(self.folders.home(), folder, "agent")
        return [os.path.join(self.moved("OMP_CODING_AGENT_DIR") or agent, "sessions")]

    def classify(self, path: str) -> str | None:
        if path.endswith(_LOG):
            return "transcript"
        return "attachment" if path.endswith(_OUTPUT) and _main_log(path) else None

    def claims(self, path: str, head: bytes) -> bool:
        return path.endswith(_LOG) and head.startswith(b'{"type":"title"')

    def identify(self, path: str, head: bytes) -> SessionSpec:
        session, _ = entry_log.session_of(path, head)
        if _main_log(path):
            folder = os.path.dirname(path)
            parent = os.path.basename(folder).rpartition("_")[2]
            return SessionSpec(
                os.path.basename(path).removesuffix(_LOG),
                home=parent,
                kind="subagent",
                parent=parent,
                attachments=folder,
            )
        attachments = path.removesuffix(_LOG)
        return SessionSpec(session, attachments=attachments, resume=("omp", "--resume", session))

    def parser(self, spec: SessionSpec, state: dict[str, Any]) -> Parser:
        from sessiond.families.entry_log import EntryParser  # when something changed

        return EntryParser(spec, state)


def _main_log(path: str) -> str | None:
    """The log of the session whose folder a file is in."""
    folder = os.path.dirname(path)
    return folder + _LOG if "_" in os.path.basename(folder) and _dated(folder) else None


def _dated(folder: str) -> bool:
    """Folders of sessions begin with a time, those of projects with a dash."""
    return os.path.basename(folder)[:1].isdigit()


SOURCE = OmpSource
