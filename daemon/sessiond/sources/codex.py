"""Codex CLI."""

from __future__ import annotations

from sessiond.families.rollouts import RolloutSource
from sessiond.sourcekit.base import SOURCE_CODE


class CodexSource(RolloutSource):
    agent = "codex"
    title = "Codex"
    variables = ("CODEX_HOME", "CODEX_SQLITE_HOME")
    reads = "Rollouts, archived and compressed ones included, and the names of threads."
    leaves = (
        ("history.jsonl", "prompts only; the rollouts have them"),
        ("logs_*.sqlite", "the program's own log"),
    )
    known_from = SOURCE_CODE
    home_variable = "CODEX_HOME"
    home_folder = (".codex",)
    database_variable = "CODEX_SQLITE_HOME"
    resume_command = ("codex", "resume")


SOURCE = CodexSource
