"""Transcripts in plain JSON, and what steps in databases share with them: prompts and calls."""

from __future__ import annotations

import re
from typing import Any

from sess_schema import kinds, labels
from sess_schema.edits import Edit
from sessiond.sourcekit.base import Event, Record, Result, Retire, SessionSpec
from sessiond.sourcekit.folders import absolute
from sessiond.sourcekit.toolbox import Toolbox, event_of
from sessiond.sourcekit.values import (
    as_dict,
    as_list,
    as_milliseconds,
    as_text,
    as_time,
    decoded,
    without_empty,
)

_TIMES = re.compile(r"\A(?:(?:Created|Completed) At: (\S+)\s*\n){1,2}")
_STAMP = re.compile(r"^(Created|Completed) At: (\S+)", re.MULTILINE)
_FAILED = frozenset({"ERROR", "INVALID"})
_STOPPED = frozenset({"CANCELED", "CANCELLED", "INTERRUPTED"})
_UNFINISHED = frozenset({"PENDING", "RUNNING", "GENERATING", "WAITING", "QUEUED"})
_NOTICES = {
    "SYSTEM_MESSAGE": "system",
    "EPHEMERAL_MESSAGE": labels.REMINDER,
    "ERROR_MESSAGE": labels.API_ERROR,
}
_SILENT = frozenset({"CONVERSATION_HISTORY", "CHECKPOINT", "KNOWLEDGE_ARTIFACTS"})
# Which tools a step of another name answers; the others bear the name of their tool.
_CHANGES = ("write_to_file", "replace_file_content", "multi_replace_file_content", "edit_file")
_ANSWERS = {"CODE_ACTION": _CHANGES, "LIST_DIRECTORY": ("list_dir",)}
_BAD_CALL = re.compile(r"invalid tool call|tool call denied", re.IGNORECASE)
_TASK = re.compile(
    r"\bsender=\S*/task-(\d+)\b[^\n]*?\bcontent=(.*?)\s*(?:</SYSTEM_MESSAGE>|\Z)", re.DOTALL
)
_FINISHED = re.compile(r"\ATask id \S+ finished with result:\s*")
_RUNNING = 64  # tasks in the background


class TranscriptParser:
    """A step answers a call of the last response, in order, without naming it.

    What still runs then is answered by a later message, which names its step.
    """

    def __init__(self, spec: SessionSpec, state: dict[str, Any]) -> None:
        self._session = spec.native_id
        self._model: str | None = state.get("model")
        self._waiting: list[list[str]] = state.get("waiting", [])  # calls with their tools
        self._running: dict[str, str] = dict(state.get("running", {}))  # calls by step
        self._last: list[str] = state.get("last", [])  # the last answer: its step and call

    def state(self) -> dict[str, Any]:
        return without_empty(
            model=self._model,
            waiting=list(self._waiting),
            running=dict(self._running),
            last=list(self._last),
        )

    def parse(self, value: dict[str, Any]) -> Record:
        kind = as_text(value.get("type")) or "other"
        step = value.get("step_index")
        record = Record(kind, ts=as_time(value.get("created_at")))
        if isinstance(step, int):
            # An error takes the number of a step that is already there.
            record.native_id = f"{self._session}/{step}" + "/error" * (kind == "ERROR_MESSAGE")
            record.retires.append(Retire(record.native_id))
        text = as_text(value.get("content")) or as_text(value.get("error")) or ""
        if kind == "USER_INPUT":
            self._model = chosen_model(text) or self._model
            read_prompt(record, text)
        elif kind == "PLANNER_RESPONSE":
            self._answer(record, value, text)
        elif kind == "SYSTEM_MESSAGE" and self._ended(record, text):
            record.role = "user"
        elif kind in _NOTICES and not (self._waiting and _BAD_CALL.search(text[:_HEAD])):
            record.say("system", text, _NOTICES[kind])
        elif kind not in _SILENT:
            self._result(record, value, text)
        return record

    def _answer(self, record: Record, value: dict[str, Any], text: str) -> None:
        record.role, record.model = "assistant", self._model
        record.say("thinking", value.get("thinking"))
        record.say("assistant", text)
        self._waiting = []
        for number, one in enumerate(map(as_dict, as_list(value.get("tool_calls")))):
            name = as_text(one.get("name"))
            call_id = as_text(one.get("id")) or f"{record.native_id}.{number}"
            given = unwrapped(one.get("args"))
            record.events.append(call(name, given, call_id, f"/tool_calls/{number}/args"))
            record.cwd = folder_of(given) or record.cwd
            self._waiting.append([call_id, name or ""])
        if as_text(value.get("status")) in _STOPPED:
            record.say("system", "Canceled", labels.INTERRUPTED)

    def _result(self, record: Record, value: dict[str, Any], text: str) -> None:
        record.role, status = "user", as_text(value.get("status"))
        step = str(value.get("step_index"))
        call_id = self._answered(record.kind, step)
        if status in _UNFINISHED:
            if call_id:
                self._running = dict([*self._running.items(), (step, call_id)][-_RUNNING:])
            return
        output = _TIMES.sub("", text)
        if call_id is None:
            record.say("system", output, labels.TOOL_RESULT)
            return
        self._last = [step, call_id]
        failed = status in _FAILED or record.kind == "ERROR_MESSAGE"
        told = status_of(output, failed=failed)
        stamps = {name: as_time(at) for name, at in _STAMP.findall(text[:200])}
        began, ended = stamps.get("Created"), stamps.get("Completed")
        took = as_milliseconds(ended - began) if began and ended else None
        told = "denied" if status in _STOPPED else told
        pointer = "/content" if as_text(value.get("content")) else "/error"
        record.results.append(Result(call_id, output, told, took, pointer=pointer))

    def _answered(self, kind: str, step: str) -> str | None:
        """The call that a step answers: that of the same step before, else one of its tool."""
        if call_id := self._running.pop(step, None):
            return call_id
        if self._last[:1] == [step] and kind != "ERROR_MESSAGE":
            return self._last[1]
        tools = _ANSWERS.get(kind, (kind.lower(),))
        waiting = self._waiting
        found = next((one for one in waiting if one[1] in tools), waiting[0] if waiting else None)
        if found is None:
            return None
        self._waiting = [one for one in waiting if one is not found]
        return found[0]

    def _ended(self, record: Record, text: str) -> bool:
        """Whether a message tells how a call in the background ended."""
        told = _TASK.search(text)
        call_id = self._running.pop(told[1], None) if told else None
        if told is None or call_id is None:
            return False
        output = _FINISHED.sub("", told[2])
        status = status_of(output, failed=False)
        record.results.append(Result(call_id, output, status, pointer="/content"))
        return True


# -- prompts: what a person wrote, and what the program adds to it

_REQUEST = re.compile(r"<USER_REQUEST>\s*(.*?)\s*</USER_REQUEST>", re.DOTALL)
_MODEL = re.compile(r"setting `Model Selection` from .+? to (.+?)\.(?:\s|\Z)", re.DOTALL)


def read_prompt(record: Record, text: str, images: int = 0, *, queued: bool = False) -> None:
    record.role = "user"
    asked = _REQUEST.search(text)
    added = _REQUEST.sub("", text).strip() if asked else ""
    text = (asked[1] if asked else text).strip()
    if text or images:
        label = labels.COMMAND if text.startswith("/") else labels.QUEUED if queued else None
        record.ask(text, images, label=label)
    if added:
        record.events.append(Event("system", added, label=labels.CONTEXT))


def chosen_model(text: str) -> str | None:
    """The model that a prompt says was selected, by its display name."""
    models = _MODEL.findall(text)
    return models[-1].strip() if models else None


# -- calls

_TOOLS = Toolbox(
    {
        kinds.SHELL: ("run_command", "command_status", "send_command_input", "read_terminal"),
        kinds.READ: (
            *("view_file", "view_file_outline", "view_code_item", "view_content_chunk"),
            *("read_resource", "view_image"),
        ),
        kinds.WRITE: ("write_to_file",),
        kinds.EDIT: ("replace_file_content", "multi_replace_file_content", "edit_file"),
        kinds.SEARCH: (
            *("list_dir", "find_by_name", "grep_search", "codebase_search", "search_in_file"),
            "list_resources",
        ),
        kinds.FETCH: ("read_url_content", "search_web", "open_browser_url", "read_browser_page"),
        kinds.AGENT: ("browser_subagent", "invoke_subagent", "define_subagent"),
        kinds.PLAN: ("task_boundary", "manage_task", "write_todos"),
        kinds.QUESTION: ("notify_user", "ask_question", "ask_permission"),
    }
)
_SHOWN = ("toolAction", "toolSummary")  # what the program shows of a call
_REFUSED = re.compile(
    r"\buser\b.{0,40}\b(?:denied|rejected|declined|cancel+ed)"
    r"|(?:denied|rejected|declined|cancel+ed) by (?:the )?user|tool call denied",
    re.IGNORECASE,
)
_EXIT = re.compile(r"^\s*The command (?:exited|failed) with (?:exit )?code:? (-?\d+)", re.MULTILINE)
_HEAD = 2000  # characters that tell how a call ended


def call(name: str | None, given: Any, call_id: str | None, pointer: str) -> Event:
    fields = {key: value for key, value in as_dict(given).items() if key not in _SHOWN}
    described = _TOOLS.describe(name, fields, edits=tuple(_edits(fields)))
    return event_of(described, name, fields, call_id, pointer)


def folder_of(given: Any) -> str | None:
    """Where a command runs."""
    return absolute(as_dict(given).get("Cwd"))


def unwrapped(given: Any) -> dict[str, Any]:
    """Arguments in a transcript: each is JSON in a string."""
    arguments: dict[str, Any] = {}
    for name, value in as_dict(given).items():
        inner = decoded(value) if isinstance(value, str) else None
        arguments[name] = value if inner is None else inner
    return arguments


def status_of(text: str, *, failed: bool) -> str:
    if failed and _REFUSED.search(text[:_HEAD]):
        return "denied"
    ended = _EXIT.search(text[:_HEAD])
    return "error" if failed or (ended is not None and ended[1] != "0") else "ok"


def _edits(given: dict[str, Any]) -> list[Edit]:
    path = as_text(given.get("TargetFile")) or ""
    chunks = given.get("ReplacementChunks")
    chunks = decoded(chunks) if isinstance(chunks, str) else chunks
    edits = []
    for chunk in [given, *map(as_dict, as_list(chunks))]:
        old, new = chunk.get("TargetContent"), chunk.get("ReplacementContent")
        if path and isinstance(old, str) and isinstance(new, str):
            edits.append(Edit(path, old, new))
    whole = given.get("CodeContent")
    if path and isinstance(whole, str):
        edits.append(Edit(path, new=whole))
    return edits
