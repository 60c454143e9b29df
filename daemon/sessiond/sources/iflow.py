"""iFlow CLI: one log for each session, of messages in Anthropic's blocks with Gemini's results."""

from __future__ import annotations

import os
import re
from typing import Any

from sess_schema import kinds, labels
from sess_schema.chains import Chain
from sessiond.sourcekit.base import (
    ONE_READER,
    Event,
    Parser,
    Record,
    Result,
    SessionSpec,
    Source,
    Usage,
)
from sessiond.sourcekit.disk import first_object
from sessiond.sourcekit.folders import absolute
from sessiond.sourcekit.toolbox import Toolbox
from sessiond.sourcekit.values import (
    NAMELESS,
    as_count,
    as_dict,
    as_list,
    as_text,
    as_time,
    content_blocks,
    result_text,
    strings,
)

_PREFIX, _LOG = "session-", ".jsonl"
_OWN = re.compile(rb'"sessionId"\s*:\s*"session-[0-9a-f]{8}-')


class IflowSource(Source):
    agent = "iflow"
    title = "iFlow CLI"
    reads = "Sessions with their calls and results, and the tokens that were recorded."
    leaves = (
        ("oauth_creds.json, iflow_accounts.json, settings.json", "credentials and settings"),
        ("tmp/*/logs.json, log/", "previews of messages; the program's own log"),
    )
    known_from = ONE_READER
    chain = Chain("uuid", "parentUuid")

    def places(self) -> list[str]:
        return [os.path.join(self.folders.home(), ".iflow", "projects")]

    def classify(self, path: str) -> str | None:
        name = os.path.basename(path)
        return "transcript" if name.startswith(_PREFIX) and name.endswith(_LOG) else None

    def claims(self, path: str, head: bytes) -> bool:  # noqa: ARG002 - the content decides
        return _OWN.search(head) is not None and b'"parentUuid"' in head

    def identify(self, path: str, head: bytes) -> SessionSpec:
        named = as_text(first_object(head).get("sessionId"))
        session = named or os.path.basename(path).removesuffix(_LOG)
        return SessionSpec(session, resume=("iflow", "--resume", session))

    def parser(self, spec: SessionSpec, state: dict[str, Any]) -> Parser:  # noqa: ARG002
        return LineParser()


_TOOLS = Toolbox(
    {
        kinds.SHELL: ("run_shell_command", "bash"),
        kinds.READ: ("read_file", "read_many_files", "image_read"),
        kinds.WRITE: ("write_file",),
        kinds.EDIT: ("replace", "multi_edit"),
        kinds.SEARCH: ("list_directory", "glob", "search_file_content"),
        kinds.FETCH: ("web_fetch", "web_search", "google_web_search"),
        kinds.AGENT: ("task",),
        kinds.PLAN: ("todo_write", "todo_read", "exit_plan_mode", "save_memory"),
        kinds.QUESTION: ("ask_user_question",),
    }
)
_ENDS = {"error": "error", "failed": "error", "cancelled": "denied", "canceled": "denied"}


class LineParser:
    """Parses one record at a time: nothing is remembered."""

    def state(self) -> dict[str, Any]:
        return {}

    def parse(self, value: dict[str, Any]) -> Record:
        kind, message = as_text(value.get("type")) or "other", as_dict(value.get("message"))
        role = kind if kind in ("user", "assistant") else "system"
        record = Record(
            kind,
            role=role,
            native_id=as_text(value.get("uuid")),
            parent_id=as_text(value.get("parentUuid")),
            ts=as_time(value.get("timestamp")),
            sidechain=value.get("isSidechain") is True,
            cwd=absolute(value.get("cwd")),
            git_branch=as_text(value.get("gitBranch")),
            version=as_text(value.get("version")),
        )
        if record.ts is None and value.get("timestamp") is not None:
            record.warnings.append("bad timestamp")
        if role == "system":
            record.warnings.append("record of an unknown type")
            record.say("system", "\n".join(strings(message or value, NAMELESS)), kind)
        elif role == "assistant":
            self._answer(record, message)
        else:
            self._prompt(record, value, message)
        return record

    @staticmethod
    def _answer(record: Record, message: dict[str, Any]) -> None:
        record.model = as_text(message.get("model"))
        blocks = content_blocks(message.get("content"), "/message/content", record.warnings)
        for pointer, block in blocks:
            kind = block.get("type")
            if kind == "text":
                record.say("assistant", block.get("text"))
            elif kind == "tool_use":
                call_id, tool = as_text(block.get("id")), as_text(block.get("name"))
                place = f"{pointer}/input"
                record.events.append(_TOOLS.call(tool, block.get("input"), call_id, place))
            else:
                record.say("thinking", block.get("thinking"))
        used = message.get("usage")
        if isinstance(used, dict):
            record.usage = Usage(
                message_id=as_text(message.get("id")) or record.native_id,
                request_id=record.native_id,
                model=record.model,
                stop_reason="end",
                input_tokens=as_count(used.get("input_tokens")),
                output_tokens=as_count(used.get("output_tokens")),
                cache_write_tokens=as_count(used.get("cache_creation_input_tokens")),
                cache_read_tokens=as_count(used.get("cache_read_input_tokens")),
            )

    @staticmethod
    def _prompt(record: Record, value: dict[str, Any], message: dict[str, Any]) -> None:
        typed, images = list[str](), 0
        content = message.get("content")
        for pointer, block in content_blocks(content, "/message/content", record.warnings):
            kind, text = block.get("type"), as_text(block.get("text"))
            if kind == "tool_result":
                _read_result(record, value, block, pointer)
            elif text:
                typed.append(text)
            else:
                images += kind == "image"
        said = "\n".join(typed).strip()
        if value.get("isMeta") is True:
            record.say("system", said, labels.CONTEXT)
        elif said or (images and not record.results):
            record.ask(said, images)


def _read_result(
    record: Record, value: dict[str, Any], block: dict[str, Any], pointer: str
) -> None:
    call_id = as_text(block.get("tool_use_id"))
    output, images = _output(block.get("content"))
    if call_id is None:
        record.warnings.append("a result names no call")
        record.events.append(Event("system", output, label=labels.TOOL_RESULT))
        return
    ended = as_text(as_dict(value.get("toolUseResult")).get("status")) or ""
    status = "error" if block.get("is_error") is True else _ENDS.get(ended, "ok")
    record.results.append(
        Result(call_id, output, status, images=images, pointer=f"{pointer}/content")
    )


def _output(content: Any) -> tuple[str, int]:
    """What the model got, inside one or two wrappers; plain text where there are none."""
    if not isinstance(content, dict):
        return result_text(content)
    parts = content.get("responseParts", content)
    texts = list[str]()
    for part in map(as_dict, as_list(parts) or [parts]):
        response = as_dict(as_dict(part.get("functionResponse")).get("response"))
        texts += filter(None, (as_text(response.get(n)) for n in ("output", "error")))
        texts += filter(None, [as_text(part.get("text"))])
    return "\n".join(texts) or "\n".join(strings(content, NAMELESS)), 0


SOURCE = IflowSource
