"""Records of Kimi Code: what changed the model's context, and each step of the agent."""

from __future__ import annotations

import re
from typing import Any

from sess_schema import labels
from sessiond.sourcekit.base import (
    LINK_RESULT,
    TITLE_PROMPT,
    Event,
    Link,
    Record,
    Retire,
    SessionSpec,
    Title,
)
from sessiond.sourcekit.titles import prompt_title
from sessiond.sourcekit.toolbox import run_by_user
from sessiond.sourcekit.values import as_count, as_dict, as_text, as_time, strings
from sessiond.sources.kimi.tools import call, content, counts_of, result, started, usage_of

_SILENT = (
    *("metadata", "forked", "turn.", "permission.", "full_compaction.", "micro_compaction."),
    *("plan_mode.", "swarm_mode.", "tools.", "goal.", "llm.", "mcp.", "token_counting."),
    *("runtime.", "plugin.", "background.", "context.update_token_count", "wolfpack.", "cron."),
    *("file_history.", "interaction.", "interruptionReminder.", "plan.", "prompt.", "stale_guard."),
    *("task.", "tower_mode."),
)
_REFUSED = 16  # calls that wait for their result
_OPEN = 64
_STEP = "context.append_loop_event"
_CONTEXT = re.compile(r"\A<git-context>.*?(?:</git-context>\s*|\Z)", re.DOTALL)


class CodeRecords:
    """Keeps what one record needs of those before it."""

    def __init__(self, spec: SessionSpec, state: dict[str, Any]) -> None:
        self._is_subagent = spec.kind == "subagent"
        self._home = spec.home or spec.native_id  # of subagents: the session
        self._model = as_text(state.get("model"))
        step, refused = state.get("step"), state.get("refused")
        self._step: list[Any] = step if isinstance(step, list) else []  # its id and its tokens
        self._refused = [*filter(as_text, refused)] if isinstance(refused, list) else []
        self._calls = as_dict(state.get("calls"))  # by the id in the log: in any session

    def state(self) -> dict[str, Any]:
        kept = {
            "model": self._model,
            "step": self._step,
            "refused": list(self._refused),
            "calls": dict(self._calls),
        }
        return {name: value for name, value in kept.items() if value}

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
            record.events.append(Event("system", "Conversation compacted", label=labels.COMPACT))
            if summary := as_text(value.get("summary")):
                record.events.append(Event("summary", summary, label=labels.COMPACT))
        elif kind == "context.clear":
            record.events.append(Event("system", "Context cleared", label="clear"))
        elif kind == "turn.cancel":
            record.events.append(Event("system", "Canceled", label=labels.INTERRUPTED))
        elif kind == "permission.record_approval_result":
            self._note_refusal(value)
        elif not kind.startswith(_SILENT):
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
            self._refused = [*self._refused, call_id][-_REFUSED:]

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
                record.events.append(Event("user", text or "[image]", images=images))
                if title := prompt_title(text):
                    record.titles.append(Title(title, TITLE_PROMPT))
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
        found = result(call_id, output, failed=failed, images=images, pointer="/event/result")
        if number in self._refused:
            found.status = "denied"
            self._refused = [one for one in self._refused if one != number]
        record.results.append(found)
        if agent := started(output):
            record.links.append(Link(agent, call_id, LINK_RESULT, home=self._home))

    def _read_usage(self, record: Record, value: dict[str, Any]) -> None:
        """The end of a step and the record after it report the same response."""
        counts = counts_of(value.get("usage"))
        self._choose(record, value.get("model"))
        same = self._step[1:] == counts
        key = as_text(self._step[0]) if same else None
        record.usage = usage_of(key or record.native_id or "", counts, self._model, None)
        self._step = []
