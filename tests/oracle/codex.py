"""Codex CLI: one rollout per thread; forks and subagents begin with lines of their parent."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import zstandard
from tests.oracle.lines import in_line, moment
from tests.oracle.model import Session, Tokens

_ADDED = re.compile(
    r"\s*(# AGENTS\.md instructions|<user_instructions>|<environment_context>|<permissions"
    r"|<skills_instructions>|<turn_aborted>|<goal_context|<user_action>|<INSTRUCTIONS>)"
)
_CALLS = (
    "function_call", "custom_tool_call", "local_shell_call", "tool_search_call", "tool_call",
    "web_search_call", "image_generation_call",
)  # fmt: skip


def read(root: Path) -> dict[str, Session]:
    """Threads below a CODEX_HOME that a person started, by id.

    Of failures only exit codes in outputs are read; titles stand in other files.
    """
    found: dict[str, Session] = {}
    for path in sorted([*root.rglob("*.jsonl"), *root.rglob("*.jsonl.zst")]):
        one = _Reading(path)
        if one.session.id and not one.is_subagent and not one.is_fork:
            found.setdefault(one.session.id, one.session)
    return found


def _values(path: Path) -> list[dict[str, Any]]:
    raw = path.read_bytes()
    if path.suffix == ".zst":
        raw = zstandard.ZstdDecompressor().decompressobj().decompress(raw)
    return [value for line in raw.decode("utf-8", "replace").split("\n") for value in in_line(line)]


class _Reading:
    def __init__(self, path: Path) -> None:
        self.session = Session("")
        self.is_subagent = self.is_fork = False
        self._first: set[str] = set()  # calls before any prompt
        self._failed: set[str] = set()
        self._turns: list[set[str]] = []  # the calls after each prompt; a rollback takes turns back
        self._total: dict[str, int] | None = None
        values = _values(path)
        self._has_items = any(_is_message(value) for value in values)
        for value in values:
            self._take(value)
        self.session.prompts = len(self._turns)
        calls = self._first.union(*self._turns)
        self.session.calls = len(calls)
        self.session.failed = len(self._failed & calls)

    def _take(self, value: dict[str, Any]) -> None:
        payload = value.get("payload")
        payload = payload if isinstance(payload, dict) else {}
        kind, inner = value.get("type"), payload.get("type")
        self.session.date(moment(value.get("timestamp")))
        if kind == "session_meta" and not self.session.id:
            self.session.id = str(payload.get("id") or "")
            source = payload.get("source")
            self.is_subagent = isinstance(source, dict) and "subagent" in source
            self.is_fork = bool(payload.get("forked_from_id") or payload.get("parent_thread_id"))
        elif kind == "response_item":
            self._item(payload, str(inner))
        elif kind == "event_msg":
            self._event(payload, str(inner))

    def _item(self, payload: dict[str, Any], inner: str) -> None:
        if payload.get("role") == "user":
            hints = payload.get("internal_chat_message_metadata_passthrough")
            kinds = hints.get("content_item_kinds") if isinstance(hints, dict) else None
            if isinstance(kinds, list) and not any(str(one).startswith("user.") for one in kinds):
                return
            text = "\n".join(
                str(block.get("text") or "")
                for block in payload.get("content") or []
                if isinstance(block, dict)
            )
            pictures = any(
                isinstance(block, dict) and block.get("type") == "input_image"
                for block in payload.get("content") or []
            )
            if (text.strip() or pictures) and not _ADDED.match(text):
                self._turns.append(set())
        elif inner in _CALLS:
            calls = self._turns[-1] if self._turns else self._first
            calls.add(str(payload.get("call_id") or f"unnamed {len(calls)}"))
        elif inner.endswith("_call_output") and _has_failed(payload.get("output")):
            self._failed.add(str(payload.get("call_id")))

    def _event(self, payload: dict[str, Any], inner: str) -> None:
        if inner == "user_message" and not self._has_items:
            self._turns.append(set())
        elif inner == "thread_rolled_back":
            number = payload.get("num_turns")
            if isinstance(number, int) and number > 0:
                del self._turns[-number:]
        elif inner == "token_count":
            info = payload.get("info")
            if isinstance(info, dict):
                self._count(_numbers(info.get("total_token_usage")), info)

    def _count(self, total: dict[str, int], info: dict[str, Any]) -> None:
        """Totals grow over the thread; one that falls begins anew. Else each event counts."""
        before = self._total or {}
        if total.get("total_tokens", 0) < before.get("total_tokens", 0):
            before = {}
        grown = {name: number - before.get(name, 0) for name, number in total.items()}
        if total:
            self._total = total
        else:
            grown = _numbers(info.get("last_token_usage"))
        cached = grown.get("cached_input_tokens", 0)
        written = grown.get("cache_write_input_tokens", 0)
        self.session.tokens.add(
            Tokens(
                grown.get("input_tokens", 0) - cached - written,
                written,
                cached,
                grown.get("output_tokens", 0),
            )
        )


def _numbers(usage: Any) -> dict[str, int]:
    usage = usage if isinstance(usage, dict) else {}
    return {name: number for name, number in usage.items() if isinstance(number, int)}


def _is_message(value: dict[str, Any]) -> bool:
    payload = value.get("payload")
    return value.get("type") == "response_item" and isinstance(payload, dict) and "role" in payload


def _has_failed(output: Any) -> bool:
    """By exit code, in the forms of old and new versions."""
    text = output if isinstance(output, str) else json.dumps(output)
    if isinstance(output, dict) and output.get("success") is False:
        return True
    try:
        code = json.loads(text)["metadata"]["exit_code"]
    except (ValueError, TypeError, KeyError):
        found = re.search(r"(?:exited with code|Exit code:) (-?\d+)", text)
        code = int(found[1]) if found else 0
    return bool(code != 0)
