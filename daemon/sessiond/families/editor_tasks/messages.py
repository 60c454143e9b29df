"""Reads the messages of a task as they were sent to the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sessiond.families.editor_tasks import prompts, written_calls
from sessiond.families.editor_tasks.tools import call_event, status_of
from sessiond.sourcekit.base import TITLE_PROMPT, Event, Record, Result, Title
from sessiond.sourcekit.content import NAMELESS, elements, result_text
from sessiond.sourcekit.titles import prompt_title
from sessiond.sourcekit.values import as_dict, as_text, as_time, strings

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
        self.facts = prompts.Facts()  # of the last message that had any
        self.calls: list[dict[str, str]] = []  # written ones of the last message, see `_written`

    def read(self, key: str, message: dict[str, Any], place: str) -> Record:
        """`place` is the pointer to the message within its record."""
        self.calls = []
        role = as_text(message.get("role"))
        if role is None and message.get("type") == "reasoning":
            role = "assistant"
        record = Record(role or "message", role=role, native_id=f"{self._task}/{key}")
        record.ts = as_time(message.get("ts"))
        blocks = list(elements(message.get("content"), f"{place}/content", record.warnings))
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
        for piece in written_calls.pieces(text):
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
        headed = any(prompts.result_header(text) for text in _texts(blocks))
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
        found = prompts.facts_of(text)
        self.facts = prompts.Facts(
            *(new or old for new, old in zip(found, self.facts, strict=True))
        )
        record.git_branch = found.branch or record.git_branch
        header = prompts.result_header(text)
        if header is not None:
            if answer is not None:
                self._close(record, answer)
            answer, text = self._opened(header[0]), header[1]
        elif answer is not None and answer.texts:
            self._close(record, answer)
            answer = None
        elif answer is None and not headed and self._open and prompts.may_be_result(text):
            answer = self._opened(self._open[0][0])
        if answer is None:
            self._typed(record, text)
            return None
        said = prompts.without_details(text)
        if said:
            answer.texts.append(said)
        if said != text.strip():  # what the extension added after the result
            self._typed(record, text.replace(said, "") if said else text)
        return answer

    def _opened(self, tool: str) -> _Answer:
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
        header = prompts.result_header(output)
        if header is not None:
            tool, output = tool or header[0], header[1]
        output = prompts.without_details(output)
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
            for text in prompts.typed_in(output):
                record.say("user", text)
        if (feedback := prompts.feedback(output)) is not None:
            record.say("user", feedback)

    def _typed(self, record: Record, text: str) -> None:
        typed, injected = prompts.split(text, plain=self._plain)
        self._plain = self._plain and not prompts.typed_in(text)
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
