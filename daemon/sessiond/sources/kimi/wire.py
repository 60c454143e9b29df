"""Parses the records of a session, in the form of either program."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Any

from sess_schema import kinds, labels
from sess_schema.edits import Edit
from sessiond.sourcekit.base import Event, Record, Result, Retire, SessionSpec, Usage
from sessiond.sourcekit.toolbox import Toolbox, arguments_in, event_of, run_by_user
from sessiond.sourcekit.values import (
    as_count,
    as_dict,
    as_line,
    as_list,
    as_text,
    as_time,
    strings,
    without_empty,
)


class WireParser:
    """Tells the programs apart record by record: a log may have been carried over."""

    def __init__(self, spec: SessionSpec, state: dict[str, Any]) -> None:
        self._cli = CliRecords(spec, state)
        self._code = CodeRecords(spec, state)

    def state(self) -> dict[str, Any]:
        return self._cli.state() | self._code.state()

    def parse(self, value: dict[str, Any]) -> Record:
        # A fork has the same lines, and records have no ids. Their time makes them unique.
        dated = value.get("timestamp") or value.get("time")
        native_id = blake2b(as_line(value), digest_size=16).hexdigest() if dated else None
        if "message" in value and as_text(value.get("type")) is None:
            return self._cli.event(value, native_id)
        if "role" in value:
            return self._cli.message(value)
        return self._code.read(value, native_id)


# -- Kimi CLI: events of its wire protocol, else messages of the model's context

_SILENT_CLI = frozenset(
    {
        *("ApprovalRequest", "ApprovalRequestResolved", "ApprovalResponse", "CompactionBegin"),
        *("HookResolved", "HookTriggered", "MCPLoadingBegin", "MCPLoadingEnd", "QuestionRequest"),
        *("QuestionResponse", "StepBegin", "ToolCallRequest", "TurnEnd"),
    }
)
_PLACE = "/message/payload"
_OPEN = 64


class CliRecords:
    """Keeps what one record needs of those before it."""

    def __init__(self, spec: SessionSpec, state: dict[str, Any]) -> None:
        self._home = spec.home or spec.native_id  # of subagents: the session
        # The last call of each stream, whose arguments may grow: of the session (an empty name)
        # and of the subagents without a log of their own, which work side by side.
        self._open: dict[str, Any] = as_dict(state.get("streams"))

    def state(self) -> dict[str, Any]:
        return without_empty(streams=dict(self._open))

    def event(self, value: dict[str, Any], native_id: str | None) -> Record:
        message = as_dict(value.get("message"))
        kind, payload = as_text(message.get("type")) or "unknown", as_dict(message.get("payload"))
        record = Record(kind, native_id=native_id, ts=as_time(value.get("timestamp")))
        place = _PLACE
        if kind == "SubagentEvent":
            inner = as_dict(payload.get("event"))
            self._enter(record, payload)
            if not record.sidechain:
                return record
            kind, payload = as_text(inner.get("type")) or "unknown", as_dict(inner.get("payload"))
            place = f"{_PLACE}/event/payload"
        self._read(record, kind, payload, place)
        return record

    def _enter(self, record: Record, payload: dict[str, Any]) -> None:
        """A subagent with an id has a log of its own; an earlier one has only these events."""
        agent = as_text(payload.get("agent_id"))
        started = as_text(payload.get("parent_tool_call_id") or payload.get("task_tool_call_id"))
        if started:
            record.link(agent or started, started, home=self._home)
        if agent is None and started:
            record.sidechain, record.subagent = True, started

    def _read(self, record: Record, kind: str, payload: dict[str, Any], place: str) -> None:
        if kind in ("TurnBegin", "SteerInput"):
            self._prompt(record, payload.get("user_input"), queued=kind == "SteerInput")
        elif kind == "ContentPart":
            self._say(record, payload)
        elif kind == "ToolCall":
            function = as_dict(payload.get("function"))
            given = as_text(function.get("arguments")) or ""
            facts = [record.native_id, payload.get("id"), function.get("name"), given]
            begun = dict(zip(("record", "id", "name", "given"), facts, strict=True))
            self._call(record, begun, f"{place}/function/arguments")
        elif kind == "ToolCallPart":
            begun = as_dict(self._open.get(record.subagent or ""))
            if begun and (more := as_text(payload.get("arguments_part"))):
                record.retires.append(Retire(as_text(begun.get("record"))))
                given = (as_text(begun.get("given")) or "") + more
                begun = begun | {"record": record.native_id, "given": given}
                self._call(record, begun, None)  # no single record has the input
        elif kind == "ToolResult":
            self._result(record, payload, place)
        elif kind == "StatusUpdate":
            key = as_text(payload.get("message_id")) or record.native_id or ""
            window = as_count(payload.get("max_context_tokens")) or None
            record.usage = usage_of(key, counts_of(payload.get("token_usage")), None, window)
        elif kind == "CompactionEnd":
            record.say("system", "Conversation compacted", labels.COMPACT)
        elif kind == "StepInterrupted":
            record.say("system", "Interrupted", labels.INTERRUPTED)
        elif kind == "Notification":
            texts = (as_text(payload.get(name)) for name in ("title", "body"))
            record.say("system", "\n".join(filter(None, texts)), labels.TASK)
        elif kind == "PlanDisplay":
            record.say("system", payload.get("content"), "plan")
        elif kind not in _SILENT_CLI:
            record.say("system", "\n".join(strings(payload)), kind)
            record.warnings.append("record of an unknown type")

    def _prompt(self, record: Record, given: Any, *, queued: bool = False) -> None:
        record.role = "user"
        text, images = content(given)
        if text or images:
            label = labels.QUEUED if queued else None
            record.ask(text, images, label=label)

    def _say(self, record: Record, part: dict[str, Any]) -> None:
        record.role = "assistant"
        thought, text = as_text(part.get("think")), as_text(part.get("text"))
        if thought and thought.strip():
            record.events.append(Event("thinking", thought.strip()))
        elif text and text.strip():
            record.events.append(Event("assistant", text.strip()))

    def _call(self, record: Record, begun: dict[str, Any], pointer: str | None) -> None:
        record.role, stream = "assistant", record.subagent or ""
        others = [(name, one) for name, one in self._open.items() if name != stream]
        self._open = dict([*others, (stream, begun)][-_OPEN:])
        record.events.append(call(begun.get("name"), begun.get("given"), begun.get("id"), pointer))

    def _result(self, record: Record, payload: dict[str, Any], place: str) -> None:
        record.role = "user"
        call_id = as_text(payload.get("tool_call_id"))
        returned = as_dict(payload.get("return_value") or payload.get("result"))
        failed = returned.get("is_error") is True
        output, images = content(returned.get("output"))
        message = as_text(returned.get("message")) or ""
        if not output or (failed and message not in output):
            output = f"{output}\n{message}".strip()
        if call_id:
            pointer = f"{place}/return_value"
            record.results.append(
                result(call_id, output, failed=failed, images=images, pointer=pointer)
            )

    # -- the model's context, where no events were written

    def message(self, value: dict[str, Any]) -> Record:
        role = as_text(value.get("role")) or "unknown"
        record = Record(role, role=role if not role.startswith("_") else None)
        given = value.get("content")
        if role == "user":
            self._prompt(record, given)
        elif role == "assistant":
            for part in given if isinstance(given, list) else [{"text": given}]:
                self._say(record, as_dict(part))
            for number, one in enumerate(as_list(value.get("tool_calls"))):
                function = as_dict(as_dict(one).get("function"))
                pointer = f"/tool_calls/{number}/function/arguments"
                name, arguments = function.get("name"), function.get("arguments")
                record.events.append(call(name, arguments, as_dict(one).get("id"), pointer))
        elif role == "tool":
            output, images = content(given)
            failed = output.startswith("<system>ERROR")
            if call_id := as_text(value.get("tool_call_id")):
                record.results.append(
                    result(call_id, output, failed=failed, images=images, pointer="/content")
                )
        elif not role.startswith("_"):
            record.warnings.append("record of an unknown type")
        return record


# -- Kimi Code: what changed the model's context, and each step of the agent

_SILENT_CODE = (
    *("metadata", "forked", "turn.", "permission.", "full_compaction.", "micro_compaction."),
    *("plan_mode.", "swarm_mode.", "tools.", "goal.", "llm.", "mcp.", "token_counting."),
    *("runtime.", "plugin.", "background.", "context.update_token_count", "wolfpack.", "cron."),
    *("file_history.", "interaction.", "interruptionReminder.", "plan.", "prompt.", "stale_guard."),
    *("task.", "tower_mode."),
)
_MOST_REFUSED = 16  # calls that wait for their result
_STEP = "context.append_loop_event"
_CONTEXT = re.compile(r"\A<git-context>.*?(?:</git-context>\s*|\Z)", re.DOTALL)


class CodeRecords:
    """Keeps what one record needs of those before it."""

    def __init__(self, spec: SessionSpec, state: dict[str, Any]) -> None:
        self._is_subagent = spec.kind == "subagent"
        self._home = spec.home or spec.native_id  # of subagents: the session
        self._model = as_text(state.get("model"))
        step, refused = state.get("step"), state.get("refused")
        self._step: list[Any] = as_list(step)  # its id and its tokens
        self._refused = [*filter(as_text, as_list(refused))]
        self._calls = as_dict(state.get("calls"))  # by the id in the log: in any session

    def state(self) -> dict[str, Any]:
        return without_empty(
            model=self._model,
            step=self._step,
            refused=list(self._refused),
            calls=dict(self._calls),
        )

    def read(self, value: dict[str, Any], native_id: str | None) -> Record:
        kind = as_text(value.get("type")) or "unknown"
        record = Record(kind, native_id=native_id)
        record.ts = as_time(value.get("time") or value.get("created_at"))
        if kind == "context.append_message":
            self._read_message(record, as_dict(value.get("message")))
        elif kind == _STEP:
            self._read_step(record, as_dict(value.get("event")))
        elif kind in ("config.update", "profile.bind"):
            shown = as_dict(value.get("environmentDisclosure"))
            record.cwd = as_text(value.get("cwd")) or as_text(shown.get("cwd"))
            self._choose(record, value.get("modelAlias"))
        elif kind == "llm.request":
            self._choose(record, value.get("model"))
        elif kind == "usage.record":
            self._read_usage(record, value)
        elif kind == "context.undo":
            if count := as_count(value.get("count")):
                record.retires.append(Retire(prompts=count))
        elif kind == "context.apply_compaction":
            record.say("system", "Conversation compacted", labels.COMPACT)
            if summary := as_text(value.get("summary")):
                record.events.append(Event("summary", summary, label=labels.COMPACT))
        elif kind == "context.clear":
            record.say("system", "Context cleared", "clear")
        elif kind == "turn.cancel":
            record.say("system", "Canceled", labels.INTERRUPTED)
        elif kind == "permission.record_approval_result":
            self._note_refusal(value)
        elif not kind.startswith(_SILENT_CODE):
            record.say("system", "\n".join(strings(value)), kind)
            record.warnings.append("record of an unknown type")
        return record

    def _choose(self, record: Record, model: Any) -> None:
        if name := as_text(model):
            record.model = self._model = name.rpartition("/")[2]

    def _note_refusal(self, value: dict[str, Any]) -> None:
        decision = as_text(as_dict(value.get("result")).get("decision")) or ""
        call_id = as_text(value.get("toolCallId"))
        if call_id and decision.startswith(("reject", "den", "cancel")):
            self._refused = [*self._refused, call_id][-_MOST_REFUSED:]

    # -- messages

    def _read_message(self, record: Record, message: dict[str, Any]) -> None:
        record.role = as_text(message.get("role"))
        origin = as_dict(message.get("origin"))
        source = as_text(origin.get("kind")) or "user"
        text, images = content(message.get("content"))
        if source == "shell_command":
            ran = origin.get("phase") == "input"
            record.events += run_by_user(text, "") if ran else run_by_user("", text)
            return
        is_slash = origin.get("trigger") == "user-slash"
        brief = self._is_subagent and source == "system_trigger"
        if brief and (context := _CONTEXT.match(text)):
            record.say("system", context[0], labels.CONTEXT)
            text = text[context.end() :]
        if record.role == "user" and (source == "user" or is_slash or brief):
            if text or images:
                record.ask(text, images)
        elif source != "compaction_summary":
            label = labels.REMINDER if source == "injection" else source
            record.say("system", text, label)

    # -- steps

    def _read_step(self, record: Record, event: dict[str, Any]) -> None:
        kind = as_text(event.get("type")) or "unknown"
        record.kind, record.role = kind, "assistant"
        if kind == "content.part":
            part = as_dict(event.get("part"))
            thought, text = as_text(part.get("think")), as_text(part.get("text"))
            if thought and thought.strip():
                record.events.append(Event("thinking", thought.strip()))
            elif text and text.strip():
                record.events.append(Event("assistant", text.strip()))
        elif kind == "tool.call":
            call_id = self._begin(event)
            record.events.append(call(event.get("name"), event.get("args"), call_id, "/event/args"))
        elif kind == "tool.result":
            self._read_result(record, event)
        elif kind == "step.end":
            counts = counts_of(event.get("usage"))
            key = as_text(event.get("uuid")) or record.native_id or ""
            record.usage = usage_of(key, counts, self._model, None)
            self._step = [key, *counts]
        elif kind != "step.begin":
            record.warnings.append("step of an unknown type")

    def _begin(self, event: dict[str, Any]) -> str | None:
        """Ids of calls are numbers within a session; the id of the step makes them unique."""
        number, step = as_text(event.get("toolCallId")), as_text(event.get("stepUuid"))
        if number and step:
            self._calls = {**self._calls, number: f"{step}/{number}"}
            if len(self._calls) > _OPEN:
                del self._calls[next(iter(self._calls))]
        return self._named(number)

    def _named(self, number: str | None) -> str | None:
        return (as_text(self._calls.get(number)) or number) if number else None

    def _read_result(self, record: Record, event: dict[str, Any]) -> None:
        record.role = "user"
        number = as_text(event.get("toolCallId"))
        call_id = self._named(number)
        returned = as_dict(event.get("result")) or event
        output, images = content(returned.get("output"))
        if number is None or call_id is None:
            return
        failed = returned.get("isError") is True or returned.get("is_error") is True
        outcome = result(call_id, output, failed=failed, images=images, pointer="/event/result")
        if number in self._refused:
            outcome.status = "denied"
            self._refused = [one for one in self._refused if one != number]
        record.results.append(outcome)
        if agent := subagent_of(output):
            record.link(agent, call_id, home=self._home)

    def _read_usage(self, record: Record, value: dict[str, Any]) -> None:
        """The end of a step and the record after it report the same response."""
        counts = counts_of(value.get("usage"))
        self._choose(record, value.get("model"))
        same = self._step[1:] == counts
        key = as_text(self._step[0]) if same else None
        record.usage = usage_of(key or record.native_id or "", counts, self._model, None)
        self._step = []


# -- the content that both programs write

_TOOLS = Toolbox(
    {
        kinds.SHELL: ("Shell", "Bash", "TaskOutput", "TaskStop", "TaskList"),
        kinds.READ: ("ReadFile", "Read", "ReadMediaFile"),
        kinds.WRITE: ("WriteFile", "Write"),
        kinds.EDIT: ("StrReplaceFile", "Edit", "PatchFile"),
        kinds.SEARCH: ("Grep", "Glob"),
        kinds.FETCH: ("SearchWeb", "WebSearch", "FetchURL"),
        kinds.AGENT: ("Task", "Agent", "AgentSwarm", "CreateSubagent"),
        kinds.PLAN: (
            *("SetTodoList", "TodoList", "EnterPlanMode", "ExitPlanMode", "CreateGoal", "GetGoal"),
            *("UpdateGoal", "SetGoalBudget"),
        ),
        kinds.QUESTION: ("AskUserQuestion",),
    }
)
_REFUSED = re.compile(r"(?:tool call (?:is|was) )?(?:rejected|denied) by the user", re.IGNORECASE)
_NEAR = 200
_AGENT = re.compile(r"\Aagent_id: ([\w-]{1,100})$", re.MULTILINE)
_COUNTS = (
    ("input_other", "inputOther"),
    ("output", "output"),
    ("input_cache_read", "inputCacheRead"),
    ("input_cache_creation", "inputCacheCreation"),
)


def call(name: Any, given: Any, call_id: Any, pointer: str | None) -> Event:
    """Kimi CLI writes arguments as JSON in a string."""
    given = arguments_in(given, "")
    tool, fields = as_text(name), as_dict(given)
    described = _TOOLS.describe(tool, given, edits=_replaced(fields))
    return event_of(described, tool, given, as_text(call_id), pointer)


def _replaced(fields: dict[str, Any]) -> tuple[Edit, ...]:
    """What Kimi CLI replaces in a file: one text or several."""
    path, given = as_text(fields.get("path")), fields.get("edit")
    listed = given if isinstance(given, list) else [given]
    return tuple(
        Edit(path, as_text(edit.get("old")) or "", as_text(edit.get("new")) or "")
        for edit in listed
        if path and isinstance(edit, dict)
    )


def result(call_id: str, output: str, *, failed: bool, images: int, pointer: str) -> Result:
    refused = failed and _REFUSED.search(output[:_NEAR]) is not None
    status = "denied" if refused else "error" if failed else "ok"
    return Result(call_id, output, status, images=images, pointer=pointer)


def subagent_of(output: str) -> str | None:
    """The subagent that a call started, judging by its result."""
    match = _AGENT.search(output)
    return match[1] if match else None


def content(parts: Any) -> tuple[str, int]:
    """The text of content in any form, and how many images it has."""
    if isinstance(parts, str):
        return parts.strip(), 0
    listed = [as_dict(part) for part in (parts if isinstance(parts, list) else [parts])]
    texts = [text for part in listed if (text := as_text(part.get("text")))]
    images = sum(str(part.get("type")).startswith(("image", "media")) for part in listed)
    return "\n".join(texts).strip(), images


def counts_of(usage: Any) -> list[int]:
    fields = as_dict(usage)
    return [max(as_count(fields.get(name)) for name in names) for names in _COUNTS]


def usage_of(key: str, counts: list[int], model: str | None, window: int | None) -> Usage | None:
    entered, output, read, written = counts
    if not any(counts):
        return None
    return Usage(
        message_id=key,
        request_id=key,
        model=model,
        input_tokens=entered,
        output_tokens=output,
        cache_write_tokens=written,
        cache_read_tokens=read,
        context_window=window,
    )
