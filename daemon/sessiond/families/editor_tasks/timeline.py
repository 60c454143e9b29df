"""What an extension showed its user: when requests were made, and tasks where only that is left.

Times in the list are unique; newer versions count instead of reading the clock.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sessiond.families.editor_tasks.calls import call_event
from sessiond.sourcekit.base import Event, Record, Usage
from sessiond.sourcekit.values import as_count, as_dict, as_dollars, as_list, as_text, as_time

REQUEST, _FINISHED = "api_req_started", "api_req_finished"
COUNTED = frozenset({REQUEST, "deleted_api_reqs", "subagent_usage"})
_NOTICES = frozenset(
    {
        *("error", "api_req_failed", "clineignore_error", "rooignore_error", "diff_error"),
        *("condense_context_error", "mistake_limit_reached", "command_permission_denied"),
    }
)
# Providers whose prompt tokens include the cache, though the extension expects them apart.
_INCLUSIVE = frozenset(
    {
        *("openai", "litellm", "doubao", "fireworks", "hicap", "lmstudio", "qwen", "xai", "zai"),
    }
)
_EARLIEST = 1_000_000_000_000  # below this it is a counter, not a time


def said(message: dict[str, Any]) -> str:
    """What kind of message it is: `say` and `ask` share their names."""
    return as_text(message.get("say")) or as_text(message.get("ask")) or ""


def payload(message: dict[str, Any]) -> dict[str, Any]:
    """The JSON that some messages have as text."""
    text = as_text(message.get("text")) or ""
    if not text.startswith("{"):
        return {}
    try:
        return as_dict(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def whole_requests(shown: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Versions of 2024 noted what a request used in a second message, when it had finished."""
    whole: list[dict[str, Any]] = []
    last: int | None = None
    for message in shown:
        if said(message) == REQUEST:
            last = len(whole)
        elif said(message) == _FINISHED and last is not None:
            facts = payload(whole[last]) | payload(message)
            whole[last] = {**whole[last], "text": json.dumps(facts)}
            last = None
        whole.append(message)
    return whole


def moment(message: dict[str, Any]) -> int | None:
    ts = message.get("ts")
    return as_time(ts) if isinstance(ts, int | float) and ts >= _EARLIEST else None


@dataclass(slots=True, frozen=True)
class Meter:
    """How an extension counts: since when its input includes the cache, if ever."""

    task: str
    inclusive_since: int | None = None

    def usage(
        self, message: dict[str, Any], model: str | None, tokens: dict[str, Any] | None = None
    ) -> Usage | None:
        """Of a request; `tokens` are what the answer itself records."""
        facts = payload(message)
        given, output = as_count(facts.get("tokensIn")), as_count(facts.get("tokensOut"))
        reads, writes = as_count(facts.get("cacheReads")), as_count(facts.get("cacheWrites"))
        cost = facts.get("cost")
        if not (given or output or reads or writes) and tokens:
            reads = as_count(tokens.get("cached"))
            given = max(0, as_count(tokens.get("prompt")) - reads)
            output = as_count(tokens.get("completion"))
        elif self._includes_cache(message, facts, given, reads + writes):
            given = max(0, given - reads - writes)
        if not (given or output or reads or writes or cost):
            return None
        name = f"{self.task}/{message.get('ts')}"
        return Usage(
            message_id=name,
            request_id=name,  # the same in whatever file it is found
            model=model or as_text(as_dict(message.get("modelInfo")).get("modelId")),
            stop_reason=as_text(facts.get("cancelReason")) or "end",
            input_tokens=given,
            output_tokens=output,
            cache_write_tokens=writes,
            cache_read_tokens=reads,
            cost_usd=as_dollars(cost),
        )

    def _includes_cache(
        self, message: dict[str, Any], facts: dict[str, Any], given: int, cached: int
    ) -> bool:
        if given < cached:
            return False
        if self.inclusive_since is None:
            provider = as_text(as_dict(message.get("modelInfo")).get("providerId"))
            return provider in _INCLUSIVE
        protocol = facts.get("apiProtocol") or message.get("apiProtocol")
        return protocol != "anthropic" or (moment(message) or 0) >= self.inclusive_since


def match_requests(
    messages: Sequence[dict[str, Any]], shown: Sequence[dict[str, Any]]
) -> dict[int, int]:
    """By number of an answer in `messages`: the number of its request in `shown`.

    A request notes how many messages there were before its prompt was added; else times
    decide, else the order.
    """
    answers = [n for n, one in enumerate(messages) if one.get("role") == "assistant"]
    requests = [n for n, one in enumerate(shown) if said(one) == REQUEST]
    times = [as_time(messages[n].get("ts")) or 0 for n in answers]
    pairs: dict[int, int] = {}
    for order, request in enumerate(requests):
        index = shown[request].get("conversationHistoryIndex")
        when = moment(shown[request])
        answer: int | None = None
        if isinstance(index, int) and not isinstance(index, bool):
            answer = index + 2
        elif when is not None and any(times):
            following = [shown[n] for n in requests[order + 1 : order + 2]]
            until = moment(following[0]) if following else None
            at = bisect_left(times, when)
            if at < len(answers) and (until is None or times[at] < until):
                answer = answers[at]
        elif order < len(answers):
            answer = answers[order]
        if answer is not None and answer in answers:
            pairs[answer] = request
    return pairs


def date_messages(
    messages: Sequence[dict[str, Any]],
    shown: Sequence[dict[str, Any]],
    matched: dict[int, int],
) -> dict[int, int]:
    """Times of messages that have none: a prompt was sent with its request, and an answer
    began with what is shown next."""
    times: dict[int, int] = {}
    for answer, request in matched.items():
        sent = moment(shown[request])
        if sent is None:
            continue
        later = (moment(one) for one in shown[request + 1 : request + 2] if said(one) != REQUEST)
        times[answer] = next((when for when in later if when is not None), sent)
        if answer and messages[answer - 1].get("role") != "assistant":
            times[answer - 1] = sent
    return times


def notice(message: dict[str, Any], meter: Meter) -> Record | None:
    """A record of what is only shown: requests without an answer, failures, other costs."""
    kind = said(message)
    condensed = as_dict(message.get("contextCondense"))
    record = Record(kind, role="system", native_id=f"{meter.task}/shown/{message.get('ts')}")
    record.ts = moment(message)
    if kind in COUNTED:
        record.usage = meter.usage(message, None)
        failure = as_text(payload(message).get("streamingFailedMessage"))
        if failure:
            record.events.append(Event("system", failure, label="error"))
        return record if record.usage or failure else None
    if condensed.get("cost"):
        cost = {"cost": condensed["cost"]}
        record.usage = meter.usage({"ts": message.get("ts"), "text": json.dumps(cost)}, None)
        return record
    if kind in _NOTICES and (text := as_text(message.get("text"))):
        record.events.append(Event("system", text, label=kind))
        return record
    return None


# -- tasks of which only what was shown is left: no messages to the model

_TYPED = frozenset({"task", "user_feedback"})
_ANSWERS = frozenset({"text", "completion_result", "plan_completion_result", "subtask_result"})
_OUTPUTS = frozenset(
    {
        *("command_output", "mcp_server_response", "browser_action_result"),
        *("codebase_search_result",),
    }
)
_FAILURES = {
    "diff_error": "error",
    "clineignore_error": "error",
    "rooignore_error": "error",
    "command_permission_denied": "denied",
}
_SILENT = COUNTED | {
    *("checkpoint_created", "checkpoint_saved", "api_req_finished", "api_req_retried"),
    *("resume_task", "resume_completed_task", "mcp_server_request_started"),
    *("shell_integration_warning", "completion_result", "user_feedback_diff"),
    *("command_output", "api_req_deleted", "task_progress"),
}
_TOOLS = {
    "newFileCreated": "write_to_file",
    "editedExistingFile": "replace_in_file",
    "appliedDiff": "apply_diff",
    "insertContent": "insert_content",
    "searchAndReplace": "search_and_replace",
    "fileDeleted": "delete_file",
    "readFile": "read_file",
    "listFiles": "list_files",
    "listFilesTopLevel": "list_files",
    "listFilesRecursive": "list_files",
    "listCodeDefinitionNames": "list_code_definition_names",
    "searchFiles": "search_files",
    "codebaseSearch": "codebase_search",
    "webFetch": "web_fetch",
    "webSearch": "web_search",
    "newTask": "new_task",
    "switchMode": "switch_mode",
    "updateTodoList": "update_todo_list",
    "useSkill": "use_skill",
    "skill": "skill",
}
_OUTPUT = "\nOutput:"


class Shown(NamedTuple):
    key: str
    record: Record
    messages: list[dict[str, Any]]  # with the outputs of a call


def read_shown(messages: Sequence[dict[str, Any]], meter: Meter) -> list[Shown]:
    """A call takes the outputs and errors that follow it."""
    read: list[Shown] = []
    call: Event | None = None
    asked: tuple[str, str] | None = None  # the call that was last asked about
    for number, message in enumerate(messages):
        kind, text = said(message), as_text(message.get("text")) or ""
        if call is not None and (kind in _OUTPUTS or kind in _FAILURES):
            call.output = "\n".join(filter(None, (call.output, text)))
            call.status = _FAILURES.get(kind, call.status)
            read[-1].messages.append(message)
            continue
        record = Record(kind or "message", native_id=_name(meter, message))
        record.ts = moment(message)
        made = _call(kind, text, message)
        if made is not None:
            if message.get("type") == "say" and asked == (kind, text):
                continue  # allowed: shown again
            asked = (kind, text) if message.get("type") == "ask" else None
            record.role = "assistant"
            record.events.append(made)
        elif noted := notice(message, meter):
            record, noted.native_id = noted, record.native_id
        elif not _say(record, kind, text, message, first=not read):
            continue
        call = made
        read.append(Shown(str(message.get("ts") or number), record, [message]))
    return read


def _name(meter: Meter, message: dict[str, Any]) -> str:
    """Not the name of the same message beside those to the model: neither copies the other."""
    return f"{meter.task}/only-shown/{message.get('ts')}"


def _say(record: Record, kind: str, text: str, message: dict[str, Any], *, first: bool) -> bool:
    """Add the event of a message; False if it says nothing."""
    count = len(as_list(message.get("images")))
    if kind in _TYPED or (first and kind == "text"):
        record.role = "user"
        record.ask(text, count)
        return bool(text or count)
    if kind == "reasoning":
        thought = text or as_text(message.get("reasoning")) or ""
        record.role = "assistant"
        record.events.append(Event("thinking", thought))
        return bool(thought)
    if kind in ("plan_mode_respond", "act_mode_respond"):
        text, kind = as_text(payload(message).get("response")) or text, "text"
    if kind in _ANSWERS and text:
        record.role = "assistant"
        record.events.append(Event("assistant", text))
        return True
    if kind in _SILENT or not text:
        return False
    record.role = "system"
    record.events.append(Event("system", text, label=kind or "message"))
    return True


def _call(kind: str, text: str, message: dict[str, Any]) -> Event | None:
    facts = payload(message)
    given: dict[str, Any]
    output = ""
    if kind == "command":
        command, _, output = text.partition(_OUTPUT)
        tool, given = "execute_command", {"command": command}
    elif kind == "tool":
        name = as_text(facts.pop("tool", None)) or ""
        tool, given = _TOOLS.get(name, name), facts
        output = as_text(given.pop("content", None)) or "" if tool == "read_file" else ""
        if tool == "replace_in_file" and "diff" not in given and "content" in given:
            given["diff"] = given.pop("content")
    elif kind == "use_mcp_server":
        tool = "use_mcp_tool"
        given = {"server_name": facts.get("serverName"), "tool_name": facts.get("toolName")}
        given |= {"arguments": facts.get("arguments"), "uri": facts.get("uri")}
        given = {name: value for name, value in given.items() if value}
    elif kind in ("browser_action_launch", "browser_action"):
        tool, given = "browser_action", facts or {"action": "launch", "url": text}
    elif kind == "followup":
        tool, given = "ask_followup_question", facts or {"question": text}
    elif kind == "use_subagents":
        tool, given = "use_subagents", facts
    else:
        return None
    event = call_event(tool, given, None, None)
    event.status, event.output = "ok", output.strip()
    return event
