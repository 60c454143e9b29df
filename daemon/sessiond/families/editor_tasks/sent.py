"""Reads the messages of a task as they were sent to the model, and what a person typed in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sessiond.families.editor_tasks import calls
from sessiond.families.editor_tasks.calls import call_event, status_of
from sessiond.sourcekit.base import TITLE_PROMPT, Event, Record, Result, Title
from sessiond.sourcekit.folders import absolute
from sessiond.sourcekit.values import (
    NAMELESS,
    as_dict,
    as_text,
    as_time,
    content_blocks,
    prompt_title,
    result_text,
    strings,
)

# Tools whose result is what a person answered.
_ANSWERED = frozenset(
    {
        *("ask_followup_question", "ask_question", "plan_mode_respond", "act_mode_respond"),
        *("attempt_completion", "new_task", "condense", "summarize_task", "report_bug"),
    }
)
_HIDDEN = frozenset({"redacted_thinking", "redacted-reasoning"})


@dataclass(slots=True)
class _Answer:
    """The result of a call that a model wrote as text, while its blocks are read."""

    tool: str
    call_id: str
    texts: list[str] = field(default_factory=list)
    images: int = 0


class Messages:
    """Reads the messages of one task in order."""

    def __init__(self, task: str, *, plain: bool = True) -> None:
        self._task = task
        self._plain = plain  # people's text has no tags around it, or has had none so far
        self._open: list[tuple[str, str]] = []  # (tool, call id) of written calls without a result
        self._tools: dict[str, str] = {}  # by call id
        self.facts = Facts()  # of the last message that had any
        self.calls: list[dict[str, str]] = []  # written ones of the last message, see `_written`

    def read(self, key: str, message: dict[str, Any], place: str) -> Record:
        """`place` is the pointer to the message within its record."""
        self.calls = []
        role = as_text(message.get("role"))
        if role is None and message.get("type") == "reasoning":
            role = "assistant"
        record = Record(role or "message", role=role, native_id=f"{self._task}/{key}")
        record.ts = as_time(message.get("ts"))
        blocks = list(content_blocks(message.get("content"), f"{place}/content", record.warnings))
        if message.get("isSummary") is True or _is_summary(message):
            record.kind = "summary"
            record.say("summary", "\n".join(_texts(blocks)))
        elif message.get("isTruncationMarker") is True:
            record.kind = "truncation"
            record.say("system", "\n".join(_texts(blocks)), "truncation")
        elif role == "assistant":
            self._answer(record, message, blocks, key)
        elif role in ("user", "tool"):
            self._prompt(record, blocks)
        else:
            record.warnings.append(f"message with the role {role or 'none'}")
            record.say("system", "\n".join(strings(message, NAMELESS)), role or "message")
        return record

    # -- from the model

    def _answer(
        self,
        record: Record,
        message: dict[str, Any],
        blocks: list[tuple[str, dict[str, Any]]],
        key: str,
    ) -> None:
        model = as_dict(message.get("modelInfo"))
        record.model = as_text(model.get("modelId")) or as_text(model.get("id")) or self.facts.model
        kinds = {as_text(block.get("type")) for _, block in blocks}
        if not kinds & {"thinking", "reasoning"}:
            for text in _reasoning(message, blocks):
                record.say("thinking", text)
        native = bool(kinds & {"tool_use", "tool-call", "mcp_tool_use"})
        self._open = []
        for pointer, block in blocks:
            self._block(record, pointer, block, key, native=native)

    def _block(
        self, record: Record, pointer: str, block: dict[str, Any], key: str, *, native: bool
    ) -> None:
        kind = as_text(block.get("type"))
        if kind == "text":
            text = as_text(block.get("text")) or ""
            if native:
                record.say("assistant", text)
            else:
                self._written(record, text, key)
        elif kind in ("thinking", "reasoning"):
            record.say("thinking", as_text(block.get("thinking")) or as_text(block.get("text")))
        elif kind in ("tool_use", "tool-call", "mcp_tool_use"):
            call_id = as_text(block.get("id")) or as_text(block.get("toolCallId"))
            tool = as_text(block.get("name")) or as_text(block.get("toolName"))
            if call_id and tool:
                self._tools[call_id] = tool
            record.events.append(call_event(tool, block.get("input"), call_id, f"{pointer}/input"))
        elif kind in ("image", "media"):
            record.events.append(Event("assistant", "[image]", images=1))
        elif kind not in _HIDDEN:
            _other(record, block)

    def _written(self, record: Record, text: str, key: str) -> None:
        for piece in calls.written_pieces(text):
            if piece.kind != "call":
                record.say("thinking" if piece.kind == "thinking" else "assistant", piece.text)
                continue
            call_id = f"{self._task}/{key}/{len(self._open)}"
            self._open.append((piece.tool, call_id))
            self._tools[call_id] = piece.tool
            pointer = f"/calls/{len(self.calls)}"  # where the record is kept with them
            self.calls.append(piece.arguments)
            record.events.append(call_event(piece.tool, piece.arguments, call_id, pointer))

    # -- from the user's side

    def _prompt(self, record: Record, blocks: list[tuple[str, dict[str, Any]]]) -> None:
        answer: _Answer | None = None
        headed = any(result_header(text) for text in _texts(blocks))
        images = 0
        for pointer, block in blocks:
            kind = as_text(block.get("type"))
            if kind == "text":
                answer = self._text(record, block, answer, headed=headed)
            elif kind in ("tool_result", "tool-result"):
                self._result(record, pointer, block)
            elif kind == "image":
                if answer is not None:
                    answer.images += 1
                else:
                    images += 1
            elif kind == "file":
                path, text = as_text(block.get("path")), as_text(block.get("content")) or ""
                record.say("system", f"{path}\n{text}" if path else text, "file")
            else:
                _other(record, block)
        if answer is not None:
            self._close(record, answer)
        self._show(record, images)

    def _text(
        self, record: Record, block: dict[str, Any], answer: _Answer | None, *, headed: bool
    ) -> _Answer | None:
        text = as_text(block.get("text")) or ""
        facts = facts_of(text)
        self.facts = Facts(*(new or old for new, old in zip(facts, self.facts, strict=True)))
        record.git_branch = facts.branch or record.git_branch
        header = result_header(text)
        if header is not None:
            if answer is not None:
                self._close(record, answer)
            answer, text = self._take_open(header[0]), header[1]
        elif answer is not None and answer.texts:
            self._close(record, answer)
            answer = None
        elif answer is None and not headed and self._open and may_be_result(text):
            answer = self._take_open(self._open[0][0])
        if answer is None:
            self._typed(record, text)
            return None
        said = without_details(text)
        if said:
            answer.texts.append(said)
        if said != text.strip():  # what the extension added after the result
            self._typed(record, text.replace(said, "") if said else text)
        return answer

    def _take_open(self, tool: str) -> _Answer:
        """The first open call of this tool, else the first one."""
        call = next((one for one in self._open if one[0] == tool), None)
        call = call or (self._open[0] if self._open else None)
        if call is None:
            return _Answer(tool, "")
        self._open.remove(call)
        return _Answer(*call)

    def _close(self, record: Record, answer: _Answer) -> None:
        output = "\n".join(answer.texts)
        if not answer.call_id:  # its call is not in the history
            record.say("system", output, "result")
            return
        status = status_of(output, answer.tool)
        record.results.append(Result(answer.call_id, output, status, images=answer.images))
        self._said_in(record, answer.tool, output, status)

    def _result(self, record: Record, pointer: str, block: dict[str, Any]) -> None:
        call_id = as_text(block.get("tool_use_id")) or as_text(block.get("toolCallId"))
        content, failed = block.get("content"), block.get("is_error") is True
        at = "content"
        if block.get("type") == "tool-result":
            at = "output"
            content = block.get("output")
            if isinstance(content, dict):
                failed = (as_text(content.get("type")) or "").startswith("error")
                content, at = content.get("value"), "output/value"
        output, images = result_text(content)
        tool = self._tools.get(call_id or "") or as_text(block.get("name"))
        header = result_header(output)
        if header is not None:
            tool, output = tool or header[0], header[1]
        output = without_details(output)
        status = status_of(output, tool, failed=failed)
        if call_id is None:
            record.warnings.append("a result names no call")
            record.say("system", output, "result")
            return
        pointed = f"{pointer}/{at}"
        record.results.append(Result(call_id, output, status, images=images, pointer=pointed))
        self._said_in(record, tool, output, status)

    def _said_in(self, record: Record, tool: str | None, output: str, status: str) -> None:
        if tool in _ANSWERED or status == "denied" or output.startswith("The user "):
            for text in typed_in(output):
                record.say("user", text)
        if (feedback := feedback_in(output)) is not None:
            record.say("user", feedback)

    def _typed(self, record: Record, text: str) -> None:
        typed, injected = split_prompt(text, plain=self._plain)
        self._plain = self._plain and not typed_in(text)
        for one in typed:
            record.say("user", one)
        for one, label in injected:
            record.say("system", one, label)

    @staticmethod
    def _show(record: Record, images: int) -> None:
        asked = [event for event in record.events if event.type == "user"]
        if images and not asked and not record.results:
            asked = [Event("user", "[image]")]
            record.events += asked
        if images and asked:
            asked[0].images = images
        if asked and (title := prompt_title(asked[0].text)):
            record.titles.append(Title(title, TITLE_PROMPT))


def _is_summary(message: dict[str, Any]) -> bool:
    return as_dict(message.get("metadata")).get("kind") == "compaction_summary"


def _texts(blocks: list[tuple[str, dict[str, Any]]]) -> Iterator[str]:
    for _, block in blocks:
        if block.get("type") == "text" and (text := as_text(block.get("text"))):
            yield text


def _reasoning(message: dict[str, Any], blocks: list[tuple[str, dict[str, Any]]]) -> Iterator[str]:
    """Reasoning that stands beside the blocks."""
    if content := as_text(message.get("reasoning_content")) or (
        as_text(message.get("text")) if message.get("type") == "reasoning" else None
    ):
        yield content
        return
    listed = [message.get("summary"), message.get("reasoning_details")]
    listed += [block.get("reasoning_details") for _, block in blocks]
    for details in listed:
        if isinstance(details, list):
            texts = (
                as_text(as_dict(one).get("text")) or as_text(as_dict(one).get("summary"))
                for one in details
            )
            if text := "".join(filter(None, texts)):
                yield text
                return


def _other(record: Record, block: dict[str, Any]) -> None:
    kind = as_text(block.get("type")) or "block"
    if kind == "document":
        title = as_text(block.get("title"))
        record.say("system", f"[document: {title}]" if title else "[document]", kind)
        return
    record.say("system", "\n".join(strings(block, NAMELESS)), kind)


# -- what a person typed, and what the extension put around it

# What people typed stands in one of these; everything else in a message is the extension's.
_TYPED = re.compile(
    r"<(task|user_message|feedback|answer|user_input|user_command)(?: [^>\n]*)?>\n?(.*?)\n?</\1>",
    re.DOTALL,
)
_NOTICE = re.compile(
    r"<(mode_notice|hook_context|recalled_memory|file_content)\b.*?</\1>", re.DOTALL
)
_DETAILS = re.compile(r"<environment_details>.*?(?:</environment_details>|\Z)", re.DOTALL)
_DIRECTORY = re.compile(r"# Current (?:Working|Workspace) Directory \(([^)\n]+)\)")
_MODEL = re.compile(r"# Current Mode\b.*?<model>\s*([^<>\s]+)\s*</model>", re.DOTALL)
_BRANCH = re.compile(r"# Git Status\n(?:.*\n)?## ([^\s.]+(?:\.[^\s.]+)*)")
_RESULT = re.compile(r"\A\[(\w+)(?: .*?)?\] Result:[ \t]*(?:\n|\Z)", re.DOTALL)
_INJECTED = (
    "[TASK RESUMPTION]", "[ERROR]", "[NOTE]", "[[NOTE]", "Missing value for required parameter",
    "<explicit_instructions", "<file_content", "<folder_content", "<url_content",
    "<workspace_diagnostics", "<git_working_state", "<terminal_output", "<hook_context",
    "<slash_command", "<command name", "# task_progress", "The user has made the following",
    "The user made the following", "You seem to be having trouble proceeding",
    "Task was interrupted before this tool call could be completed", "New message to respond to",
    "New instructions for task continuation", "(This is an automated message",
    "The user approved switching to act mode",
)  # fmt: skip
_LONGEST_HEADER = 20_000


class Facts(NamedTuple):
    """What a message says about the place and the model."""

    directory: str | None = None
    model: str | None = None
    branch: str | None = None


class Split(NamedTuple):
    typed: list[str]
    injected: list[tuple[str, str]]  # (text, label)


def result_header(text: str) -> tuple[str, str] | None:
    """The tool whose result this is, and what follows the header."""
    match = _RESULT.match(text[:_LONGEST_HEADER])
    return (match[1], text[match.end() :]) if match else None


def facts_of(text: str) -> Facts:
    details = _DETAILS.search(text)
    if details is None:
        return Facts()
    directory, model = _DIRECTORY.search(details[0]), _MODEL.search(details[0])
    branch = _BRANCH.search(details[0])
    return Facts(
        absolute(directory[1].strip()) if directory else None,
        model[1] if model else None,
        branch[1] if branch else None,
    )


def typed_in(text: str) -> list[str]:
    """What people typed, where it stands inside a result."""
    texts = (_NOTICE.sub("", one[2]).strip() for one in _TYPED.finditer(text))
    return [typed for typed in texts if typed and not typed.startswith(_INJECTED)]


def split_prompt(text: str, *, plain: bool) -> Split:
    """`plain`: text outside of the known tags is a person's too."""
    injected = [(match[0], "context") for match in _DETAILS.finditer(text)]
    rest = _DETAILS.sub("", text).strip()
    typed = typed_in(rest)
    if typed:
        around = [match[0] for match in _NOTICE.finditer(rest)]
        around.append(_NOTICE.sub("", _TYPED.sub("", rest)))
        return Split(typed, [*_labelled(around), *injected])
    if not plain or _TYPED.search(rest) or rest.startswith(_INJECTED):
        return Split([], [*_labelled([rest]), *injected])
    around = [match[0] for match in _NOTICE.finditer(rest)]
    rest = _NOTICE.sub("", rest).strip()
    return Split([rest] if rest else [], [*_labelled(around), *injected])


def without_details(text: str) -> str:
    return _DETAILS.sub("", text).strip()


def _labelled(texts: list[str]) -> list[tuple[str, str]]:
    return [(text, _label(text)) for text in texts if text.strip()]


def _label(text: str) -> str:
    return "resumption" if text.startswith("[TASK RESUMPTION]") else "context"


def may_be_result(text: str) -> bool:
    """Whether a text may be a result: neither typed nor only details."""
    return bool(without_details(text)) and not typed_in(text)


def feedback_in(output: str) -> str | None:
    """What a person typed when they allowed or denied a call."""
    if not output.startswith("{"):
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(output)
    except (ValueError, RecursionError):
        return None
    fields = as_dict(value)
    return as_text(fields.get("feedback")) if "status" in fields else None
