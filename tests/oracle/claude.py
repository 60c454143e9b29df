"""Claude Code: one file per session, subagents in files of their own or as sidechains."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.oracle.lines import moment, objects
from tests.oracle.model import Session, Tokens

# Text that the program adds in the name of the person.
_ADDED = re.compile(
    r"\[Request interrupted by user[^\]]*\]"
    r"|<(system-reminder|ide_opened_file|ide_selection|ide_diagnostics|local-command-stdout"
    r"|local-command-stderr|local-command-caveat|bash-stdout|bash-stderr|task-notification"
    r"|teammate-message|command-contents|user-prompt-submit-hook)\b[^>]*>.*?(</\1>|\Z)",
    re.DOTALL,
)
_NOT_TYPED = (
    "Caveat: ", "This session is being continued", "Stop hook feedback:",
    "<task-notification>", "<teammate-message", "[SUGGESTION MODE",
    "Your task is to create a detailed summary of",
)  # fmt: skip


def read(root: Path) -> dict[str, Session]:
    """Main sessions below a `projects` folder, by id."""
    readings = {
        path.stem: _Reading(path)
        for path in sorted(root.rglob("*.jsonl"))
        if "subagents" not in path.parts
        and not path.name.startswith("agent-")
        and path.name not in ("journal.jsonl", "history.jsonl")
    }
    _spend([*readings.values()])
    return {name: one.session for name, one in readings.items() if one.speaks}


class _Reading:
    """One main session."""

    def __init__(self, path: Path) -> None:
        self.session = Session(path.stem)
        self.speaks = False  # more than metadata
        self.opened: str | None = None
        self.usage: dict[tuple[str, str | None], dict[str, Any]] = {}
        self._titles: dict[str, str] = {}
        self._summaries: list[tuple[str | None, str]] = []
        self._ids: set[str] = set()
        self._seen: set[tuple[str | None, str]] = set()
        self._prompts: list[str] = []
        self._asked: dict[str, str] = {}  # by moment
        self._calls: set[str] = set()
        self._answers: dict[str, bool] = {}
        self._queue: list[str] = []
        self._taken: list[str] = []  # from the queue into a running turn
        for value in objects(path):
            self._take(value)
        self._finish()

    def _take(self, value: dict[str, Any]) -> None:
        kind = value.get("type")
        if kind in ("custom-title", "ai-title"):
            text = value.get("customTitle") or value.get("aiTitle") or value.get("title")
            if isinstance(text, str) and text.strip():
                self._titles[kind] = " ".join(text.split())
        elif kind == "summary" and isinstance(value.get("summary"), str):
            self._summaries.append((value.get("leafUuid"), " ".join(value["summary"].split())))
        elif kind == "queue-operation":
            self._queued(value)
        at = moment(value.get("timestamp"))
        if value.get("isSidechain"):
            return
        if isinstance(value.get("uuid"), str):
            self._ids.add(value["uuid"])
        if at:
            self.session.date(at)
            self.opened = self.opened or at
        # A compaction may write messages once more, with new ids and their old times.
        said = json.dumps(value.get("message") or value.get("attachment"), sort_keys=True)
        if (at, f"{kind} {said}") in self._seen and at:
            return
        self._seen.add((at, f"{kind} {said}"))
        match kind:
            case "user":
                self._user(value)
            case "assistant":
                self._assistant(value)
            case "attachment":
                self._attachment(value)
            case "system":
                self.speaks = True
                if value.get("subtype") == "local_command" and "<command-name>" in str(value):
                    self._prompts.append(str(value.get("content")))
            case "tool_use":  # as early versions wrote calls
                self.speaks = True
                self._calls.add(str(value.get("uuid")))

    def _attachment(self, value: dict[str, Any]) -> None:
        attached = value.get("attachment")
        if not isinstance(attached, dict) or attached.get("type") != "queued_command":
            return
        self.speaks = True
        text = _text(attached.get("prompt"))
        if attached.get("commandMode") != "task-notification" and _typed(text):
            self._prompts.append(text)

    def _user(self, value: dict[str, Any]) -> None:
        message = value.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        self.speaks = True
        blocks = content if isinstance(content, list) else []
        for block in blocks:
            if isinstance(block, dict) and block.get("type") == "tool_result":
                self._answers.setdefault(str(block.get("tool_use_id")), bool(block.get("is_error")))
        origin = value.get("origin")
        by_person = not isinstance(origin, dict) or origin.get("kind") in (None, "human")
        if value.get("isMeta") or value.get("isCompactSummary") or not by_person:
            return
        text = _text(content)
        pictures = any(
            isinstance(block, dict) and block.get("type") in ("image", "document")
            for block in blocks
        )
        at = moment(value.get("timestamp"))
        # A message may be written whole and once more in pieces, all at the same moment.
        said = self._asked.setdefault(at or f"undated {len(self._prompts)}", "")
        if (_typed(text) or pictures) and not (said and text in said):
            self._prompts.append(text)
            self._asked[at or ""] = said + text

    def _queued(self, value: dict[str, Any]) -> None:
        text = _text(value.get("content"))
        match value.get("operation"):
            case "enqueue":
                self._queue.append(text)
            case "remove" if self._queue:
                self._taken.append(
                    self._queue.pop(self._queue.index(text) if text in self._queue else 0)
                )
            case "dequeue" if self._queue:
                self._queue.pop(0)
            case "popAll":
                self._queue.clear()

    def _assistant(self, value: dict[str, Any]) -> None:
        message = value.get("message")
        if not isinstance(message, dict):
            return
        self.speaks = True
        content = message.get("content")
        for block in content if isinstance(content, list) else []:
            if isinstance(block, dict) and block.get("type") in ("tool_use", "server_tool_use"):
                self._calls.add(str(block.get("id")))
        usage = message.get("usage")
        if isinstance(usage, dict) and message.get("model") != "<synthetic>":
            # Without an id every line is a response of its own.
            key = str(message.get("id") or value.get("uuid")), value.get("requestId")
            old = self.usage.get(key)
            if old is None or _number(usage, "output_tokens") > _number(old, "output_tokens"):
                self.usage[key] = usage

    def _finish(self) -> None:
        told = {" ".join(text.split()) for text in self._prompts}
        # A message of the queue that stands in a record of its own counts there.
        alone = [one for one in self._taken if _typed(one) and " ".join(one.split()) not in told]
        self.session.prompts = len(self._prompts) + len(alone)
        self.speaks = self.speaks or bool(alone)
        self.session.calls = len(self._calls)
        self.session.failed = sum(self._answers.get(call, False) for call in self._calls)
        own = [text for leaf, text in self._summaries if leaf in self._ids and text]
        self.session.title = (
            self._titles.get("custom-title")
            or self._titles.get("ai-title")
            or (own[-1] if own else None)
        )


def _spend(readings: list[_Reading]) -> None:
    """Each response counts once, in the session that began first."""
    owners: dict[tuple[str, str | None], _Reading] = {}
    best: dict[tuple[str, str | None], dict[str, Any]] = {}
    for one in sorted(readings, key=lambda r: (r.opened or "9", r.session.id)):
        for key, usage in one.usage.items():
            owners.setdefault(key, one)
            if key not in best or _number(usage, "output_tokens") > _number(
                best[key], "output_tokens"
            ):
                best[key] = usage
    for one in readings:
        one.session.shared = any(owners[key] is not one for key in one.usage)
    for key, one in owners.items():
        usage = best[key]
        one.session.shared |= sum(key in other.usage for other in readings) > 1
        one.session.tokens.add(
            Tokens(
                _number(usage, "input_tokens"),
                _number(usage, "cache_creation_input_tokens"),
                _number(usage, "cache_read_input_tokens"),
                _number(usage, "output_tokens"),
            )
        )


def _number(usage: dict[str, Any], name: str) -> int:
    """Counts may be strings or floats."""
    try:
        return max(0, int(float(usage.get(name) or 0)))
    except (TypeError, ValueError):
        return 0


def _typed(text: str) -> bool:
    """Whether a person typed any of it. A command typed after a slash or `!` is typed, too."""
    if text.lstrip().startswith(_NOT_TYPED):
        return False
    return bool(_ADDED.sub("", text).strip())


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    pieces = []
    for block in content if isinstance(content, list) else []:
        if isinstance(block, str):
            pieces.append(block)
        elif isinstance(block, dict) and isinstance(block.get("text"), str):
            pieces.append(block["text"])
    return "\n".join(pieces)
