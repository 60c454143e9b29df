"""Aider: the histories of the projects that config.toml names; Aider keeps no list of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from sessiond.sourcekit import disk
from sessiond.sourcekit.base import SOURCE_CODE, Conversation, Item, SessionSpec, Source
from sessiond.sourcekit.values import as_local_time

__all__ = ["SOURCE", "AiderSource"]

_HISTORY = ".aider.chat.history.md"
_STARTED = "# aider chat started at "
_DEEPEST = 2  # a folder of projects may be named instead of each
_NEVER = frozenset({"node_modules", "venv", "target", "dist", "build", "vendor"})


class AiderSource(Source):
    agent = "aider"
    title = "Aider"
    variables = ("AIDER_CHAT_HISTORY_FILE",)
    reads = (
        "The chat history of each project that `[roots] aider` in config.toml names; each run is"
        " a session. Aider writes no times but the start of a run, and rounds its counts."
    )
    leaves = (
        (".aider.input.history", "prompts that the chat history has"),
        (".aider.llm.history", "the same conversation again, if it was asked for"),
        ("~/.aider/", "caches and analytics"),
    )
    known_from = SOURCE_CODE

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.documents = _Histories(self)

    def places(self) -> list[str]:
        moved = self.folders.expand(self.environ.get("AIDER_CHAT_HISTORY_FILE", "").strip())
        return [moved] if os.path.isabs(moved) else []

    def classify(self, path: str) -> str | None:
        named = os.path.basename(path) == _HISTORY or path in self.places()
        return "document" if named else None

    def claims(self, path: str, head: bytes) -> bool:  # noqa: ARG002 - its first words are enough
        return _STARTED.encode() in head[:1000]

    def enters(self, directory: str) -> bool:
        name = os.path.basename(directory)
        if name.startswith(".") or name in _NEVER:
            return False
        above = [root for root in self._roots if directory.startswith(root + os.sep)]
        below = [directory[len(root) + 1 :].split(os.sep) for root in above]
        return any(len(names) <= _DEEPEST for names in below) or not above

    @cached_property
    def _roots(self) -> tuple[str, ...]:
        return tuple(map(disk.real, self.roots()))


class _Histories:
    """Splits a history into runs."""

    def __init__(self, source: AiderSource) -> None:
        self._source = source

    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:
        from sessiond.sources.aider.history import Run, read_run  # when something changed

        project = os.path.dirname(path)
        seen: dict[str, int] = {}
        runs: list[Run] = []
        for line in data.decode("utf-8", "replace").splitlines():
            if line.startswith(_STARTED) or not runs:
                started = line.removeprefix(_STARTED).strip() if line.startswith(_STARTED) else ""
                runs.append(Run(started, []))
                if started:
                    continue
            runs[-1].lines.append(line)
        for run in runs:
            stamp = "".join(filter(str.isdigit, run.started)) or "0"
            seen[stamp] = seen.get(stamp, 0) + 1
            again = f"-{seen[stamp]}" if seen[stamp] > 1 else ""
            session = f"{os.path.basename(project) or 'root'}-{stamp}{again}"
            items = [
                Item(key, number, value=block, record=record)
                for number, (key, block, record) in enumerate(read_run(run, session))
            ]
            if run.started or items:
                yield Conversation(
                    SessionSpec(session, home=project),  # unique only in its project
                    items=items,
                    project=project,
                    project_rank=1,
                    created_at=as_local_time(run.started, self._source.folders.zone()),
                )


SOURCE = AiderSource
