"""Tasks of VS Code extensions: one folder each, with what was sent and what was shown.

`api_conversation_history.json` is what was sent to the model and came back; `ui_messages.json`
knows when, and what it used. Both are rewritten whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sess_common.decode import decode
from sessiond.sourcekit.base import Conversation, NotReady, SessionSpec, Source, whole_json
from sessiond.sourcekit.disk import KeptFile, small_file, small_json
from sessiond.sourcekit.values import as_list, as_text

SENT, SHOWN = "api_conversation_history.json", "ui_messages.json"
_ITEM, _METADATA, _INDEX = "history_item.json", "task_metadata.json", "_index.json"
_HISTORY = os.path.join("state", "taskHistory.json")
_SENT_RANK, _SHOWN_RANK = 0, 1
_LARGEST_SHOWN, _LARGEST_INDEX, _LARGEST_FACTS = 256 << 20, 16 << 20, 1 << 20


class EditorTaskSource(Source):
    """An extension; each editor has a storage for it."""

    extension: str
    inclusive_since: int | None = None  # see `timeline.Meter`

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.documents = _Tasks(self)

    def places(self) -> list[str]:
        storages = self.folders.extension_storages(self.extension)
        return [os.path.join(storage, "tasks") for storage in storages]

    def classify(self, path: str) -> str | None:
        return "document" if os.path.basename(path) in (SENT, SHOWN) else None

    def claims(self, path: str, head: bytes) -> bool:  # noqa: ARG002 - nothing inside names it
        return self.extension in path.split(os.sep)

    def sidecars(self, path: str) -> Sequence[str]:
        folder, name = os.path.split(path)
        beside = (SHOWN, _ITEM, _METADATA) if name == SENT else (_ITEM, _METADATA)
        return [os.path.join(folder, one) for one in beside]

    def readers(self, path: str) -> Sequence[str]:
        folder, name = os.path.split(path)
        return () if name == SENT else (os.path.join(folder, SENT),)

    def spec(self, task: str, facts: Mapping[str, Any], rank: int) -> SessionSpec:
        parent = as_text(facts.get("parentTaskId"))
        kind = "subagent" if parent else "main"
        return SessionSpec(task, kind=kind, parent=parent, fallback=rank)


class _Tasks:
    """Reads the files of task folders."""

    def __init__(self, source: EditorTaskSource) -> None:
        self._source = source
        self._indexes = KeptFile(_tasks_in, _LARGEST_INDEX)

    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:
        from sessiond.families.editor_tasks import task as tasks  # when something changed
        from sessiond.families.editor_tasks.timeline import Meter, whole_requests

        folder, name = os.path.split(path)
        task = os.path.basename(folder)
        meter, facts = Meter(task, self._source.inclusive_since), self._facts(folder, task)
        messages = _listed(whole_json(data))
        if name == SENT:
            shown = whole_requests(_beside(os.path.join(folder, SHOWN)))
            spec = self._source.spec(task, facts, _SENT_RANK)
            yield tasks.sent_conversation(spec, messages, shown, facts, meter)
        else:  # hidden where the messages to the model are
            spec = self._source.spec(task, facts, _SHOWN_RANK)
            yield tasks.shown_conversation(spec, whole_requests(messages), facts, meter)

    def _facts(self, folder: str, task: str) -> dict[str, Any]:
        """What is recorded about a task, beside its messages and in the extension's index."""
        tasks = os.path.dirname(folder)
        facts = dict(self._indexes.of(os.path.join(os.path.dirname(tasks), _HISTORY)).get(task, {}))
        facts |= self._indexes.of(os.path.join(tasks, _INDEX)).get(task, {})
        facts |= small_json(os.path.join(folder, _METADATA), _LARGEST_FACTS)
        facts |= small_json(os.path.join(folder, _ITEM), _LARGEST_FACTS)
        if task.isdecimal():
            facts["started"] = int(task)  # older versions name tasks by their time
        return facts


def _tasks_in(data: bytes) -> dict[str, Any]:
    """The tasks of an index by their ids."""
    try:
        value, _ = decode(data)
    except ValueError:
        return {}
    listed = as_list(value.get("entries") if isinstance(value, dict) else value)
    return {str(one["id"]): one for one in listed if isinstance(one, dict) and "id" in one}


def _listed(value: Any) -> list[dict[str, Any]]:
    messages = value.get("messages") if isinstance(value, dict) else value
    if not isinstance(messages, list):
        raise NotReady("is not a list of messages")
    return [one if isinstance(one, dict) else {"content": one} for one in messages]


def _beside(path: str) -> list[dict[str, Any]]:
    """The messages of the other file, or none while it is being written."""
    try:
        return _listed(whole_json(small_file(path, _LARGEST_SHOWN)))
    except NotReady:
        return []
