"""Mistral Vibe: the log of each session, and what is described beside it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from sess_common.decode import decode
from sess_schema import kinds, labels
from sess_schema.chains import Chain
from sessiond.sourcekit.base import (
    SOURCE_CODE,
    Conversation,
    Item,
    NotReady,
    Record,
    Result,
    SessionSpec,
    Source,
    Usage,
    borrowed_times,
)
from sessiond.sourcekit.disk import small_json
from sessiond.sourcekit.folders import absolute
from sessiond.sourcekit.toolbox import Toolbox, arguments_in
from sessiond.sourcekit.values import as_count, as_dict, as_list, as_text, as_time, result_text

_MESSAGES, _META = "messages.jsonl", "meta.json"
_LARGEST = 64 << 20
_OWN = re.compile(rb'\A\s*\{"role"\s*:\s*"(?:user|assistant)".*"message_id"\s*:', re.DOTALL)


class _Sessions:
    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:
        folder = os.path.dirname(path)
        facts = small_json(os.path.join(folder, _META), _LARGEST)
        name = as_text(facts.get("session_id"))
        if name is None:  # Vibe writes it after the messages
            raise NotReady("has no meta.json with the session's id yet")
        config, began = as_dict(facts.get("config")), as_time(facts.get("start_time"))
        items = [*_items(name, data)]
        if not items:
            raise NotReady("has no messages yet")
        items += _spent(name, facts, items)
        manual = facts.get("title_source") == "manual"
        yield Conversation(
            SessionSpec(
                name,
                title=as_text(facts.get("title")) if manual else None,
                resume=("vibe", "--resume", name),
            ),
            items=items,
            times=borrowed_times(items, began),
            project=absolute(as_dict(facts.get("environment")).get("working_directory")),
            project_rank=1,
            git_branch=as_text(facts.get("git_branch")),
            mode=as_text(as_dict(facts.get("agent_profile")).get("name")),
            model=_model(config),
            created_at=began,
            updated_at=as_time(facts.get("end_time")),
        )


class VibeSource(Source):
    agent = "vibe"
    title = "Mistral Vibe"
    variables = ("VIBE_HOME",)
    reads = "Sessions with what describes them. Vibe counts only the tokens of a whole session."
    leaves = (
        (".env, config.toml, trusted_folders.toml", "credentials and settings"),
        ("vibehistory, logs/vibe.log", "prompts that the sessions have; the program's own log"),
    )
    known_from = SOURCE_CODE
    chain = Chain("message_id")
    documents = _Sessions()

    def places(self) -> list[str]:
        home = self.moved("VIBE_HOME") or os.path.join(self.folders.home(), ".vibe")
        return [os.path.join(home, "logs", "session")]

    def classify(self, path: str) -> str | None:
        name = os.path.basename(path)
        if name == _META:
            return "sidecar"
        return "document" if name == _MESSAGES else None

    def claims(self, path: str, head: bytes) -> bool:
        beside = os.path.basename(path) == _MESSAGES
        return beside and _OWN.match(head.partition(b"\n")[0]) is not None

    def sidecars(self, path: str) -> Sequence[str]:
        return (os.path.join(os.path.dirname(path), _META),)

    def owner(self, sidecar: str) -> str:
        return os.path.join(os.path.dirname(sidecar), _MESSAGES)


# -- one session: messages as a model gets them, one in each line

_TOOLS = Toolbox(
    {
        kinds.SHELL: ("bash", "bash_output", "kill_shell", "git_bash"),
        kinds.READ: ("read_file", "read", "memory_read"),
        kinds.WRITE: ("write_file", "write", "memory_write"),
        kinds.EDIT: ("search_replace", "edit", "notebook_edit"),
        kinds.SEARCH: ("grep", "glob", "ls", "ast_grep"),
        kinds.FETCH: ("web_fetch", "web_search"),
        kinds.AGENT: ("task",),
        kinds.PLAN: ("todo", "exit_plan_mode", "enter_plan_mode", "think"),
        kinds.QUESTION: ("ask_user_question",),
    }
)
_FAILED, _STOPPED = "<tool_error>", "<user_cancellation>"
_TAG = re.compile(r"</?(?:tool_error|user_cancellation|vibe_warning|vibe_stop_event)>")


def _items(session: str, data: bytes) -> Iterator[Item]:
    lines = data.split(b"\n")
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            value, _ = decode(line)
        except ValueError:
            if number == len(lines) - 1:
                break  # it is being written
            value = {"role": "system", "content": line.decode("utf-8", "replace")}
        message = value if isinstance(value, dict) else {"role": "system", "content": str(value)}
        yield Item(f"{number}", number, value=message, record=_record(session, number, message))


def _record(session: str, number: int, message: dict[str, Any]) -> Record:
    role = as_text(message.get("role")) or "system"
    name = as_text(message.get("message_id")) or f"{session}/{number}"
    record = Record(role, role="user" if role == "tool" else role, native_id=name)
    text, images = result_text(message.get("content"))
    if role == "user" and message.get("injected") is True:
        record.say("system", _TAG.sub("", text), labels.CONTEXT)
    elif role == "user":
        record.ask(text.strip(), images)
    elif role == "assistant":
        record.say("thinking", message.get("reasoning_content"))
        record.say("assistant", _TAG.sub("", text))
        for place, call in enumerate(map(as_dict, as_list(message.get("tool_calls")))):
            function = as_dict(call.get("function"))
            given = arguments_in(function.get("arguments"))
            pointer = f"/tool_calls/{place}/function/arguments"
            tool, call_id = as_text(function.get("name")), as_text(call.get("id"))
            record.events.append(_TOOLS.call(tool, given, call_id, pointer))
        record.usage = Usage(name, stop_reason="end")
    elif role == "tool" and (call_id := as_text(message.get("tool_call_id"))):
        status = "error" if text.startswith(_FAILED) else "ok"
        status = "denied" if text.startswith(_STOPPED) else status
        record.results.append(
            Result(call_id, _TAG.sub("", text), status, images=images, pointer="/content")
        )
    else:
        record.say("system", text, role)
    return record


def _spent(session: str, facts: dict[str, Any], items: list[Item]) -> Iterator[Item]:
    """What all responses used: each has a row of its own, but the first one, which has the sum."""
    answers = [item.record for item in items if item.record and item.record.usage]
    if not answers:
        return
    answers[0].usage = None
    stats, ended = as_dict(facts.get("stats")), as_time(facts.get("end_time"))
    counts = [as_count(stats.get(f"session_{name}_tokens")) for name in ("prompt", "completion")]
    record = Record("usage", native_id=f"{session}/usage", ts=ended)
    record.usage = Usage(record.native_id, stop_reason="end", sum_of=len(answers))
    record.usage.input_tokens, record.usage.output_tokens = counts
    value = {"used": [*counts, len(answers)], "ended": ended}
    yield Item("usage", len(items), value=value, record=record)


def _model(config: dict[str, Any]) -> str | None:
    """The name of the model that the settings call by another."""
    active = as_text(config.get("active_model"))
    known = map(as_dict, as_list(config.get("models")))
    return next((as_text(one.get("name")) for one in known if one.get("alias") == active), active)


SOURCE = VibeSource
