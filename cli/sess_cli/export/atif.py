"""Sessions as trajectories in ATIF 1.7, for evaluation, training and their viewers.

A step is a prompt, a notice, or one response of a model with its calls and their results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from sess_cli.export.files import Failures, all_or_nothing
from sess_cli.export.json_values import Image, as_json
from sess_cli.export.story import Item, Spent, Story
from sess_common import times
from sess_schema import __version__
from sess_schema.ids import SessionId

VERSION = "ATIF-v1.7"
_SOURCES = {"user": "user", "system": "system", "summary": "system"}


@dataclass(slots=True)
class Step:
    """Events that belong together; `said` and `thought` are of a model if the source is agent."""

    source: str  # user, system or agent
    first: Item
    said: list[Item] = field(default_factory=list)
    thought: list[Item] = field(default_factory=list)
    calls: list[Item] = field(default_factory=list)
    spent: Spent | None = None

    def takes(self, item: Item) -> bool:
        """Whether the event can be of the same response of a model."""
        if self.source != "agent" or (self.first.copied_from is None) != (item.copied_from is None):
            return False
        if self.spent is not None and item.spent is not None:
            return False
        if item.type != "tool_use":
            return not self.calls and (item.type == "assistant" or not self.said)
        return not any(_was_answered(call, item) for call in self.calls)

    def add(self, item: Item) -> None:
        kinds = {"tool_use": self.calls, "thinking": self.thought}
        kinds.get(item.type, self.said).append(item)
        if item.spent is not None:
            self.spend(item.spent)

    def spend(self, more: Spent) -> None:
        self.spent = self.spent or Spent()
        self.spent.add(more)

    @property
    def items(self) -> list[Item]:
        return [*self.thought, *self.said, *self.calls]

    @property
    def text(self) -> str:
        return "\n\n".join(item.text for item in self.said if item.text)

    @property
    def thoughts(self) -> str:
        return "\n\n".join(item.text for item in self.thought if item.text)


def _was_answered(call: Item, later: Item) -> bool:
    """Whether the result had been written down before `later`, which may then be due to it."""
    place = call.result_place or (call.place if call.status != "pending" else None)
    if place is None or call.record_id == later.record_id:
        return False
    source, _, offset, _ = place
    return source == later.place[0] and offset < later.place[2]


def steps(items: Iterable[Item]) -> Iterator[Step]:
    """What a response used is told with it, or by what is written next: then it counts there."""
    step: Step | None = None
    for item in items:
        if item.is_title:
            if step is not None and item.spent is not None:
                step.spend(item.spent)
            continue
        source = _SOURCES.get(item.type, "agent")
        if step is None or source != "agent" or not step.takes(item):
            if step is not None:
                if source != "agent" and step.source == "agent" and item.spent is not None:
                    step.spend(item.spent)
                    item.spent = None
                yield step
            step = Step(source, item)
        step.add(item)
    if step is not None:
        yield step


# -- documents


def write(story: Story, out: BinaryIO) -> None:
    """One trajectory, those of its subagents inside."""
    _members(story, out, story.row.session, story.row.session)
    out.write(b"\n")


def write_several(stories: Sequence[Story], out: BinaryIO, failures: Failures) -> None:
    """One trajectory per line; a session that cannot be read has none."""
    for story in stories:
        with failures.noted(story), all_or_nothing(out) as part:
            write(story, part)


def _members(story: Story, out: BinaryIO, run: str, name: str) -> None:
    """Written step by step: a session may be too large to hold in memory."""
    names = _names(story.children)
    head = {
        "schema_version": VERSION,
        "extra": {
            "made_by": f"sessiond {__version__}",
            "title": story.title,
            "project": story.project or None,
            "git_branch": story.branch or None,
        },
        "session_id": run,
        "trajectory_id": name,
        "agent": _agent(story),
    }
    out.write(as_json(head).removesuffix(b"}") + b',"steps":[')
    total, count = Spent(), 0
    for count, step in enumerate(steps(story.items()), 1):
        out.write((b"," if count > 1 else b"") + as_json(_step(story, step, count, names)))
        if step.spent is not None:
            total.add(step.spent)
    final = {f"total_{key}": value for key, value in _used(total).items() if key != "extra"}
    final |= {"total_steps": count, "extra": {"unpriced_requests": total.unpriced}}
    out.write(b'],"final_metrics":' + as_json(final))
    if story.children:
        out.write(b',"subagent_trajectories":[')
        for number, child in enumerate(story.children):
            out.write(b"," if number else b"")
            _members(child, out, run, names[child.row.key])
        out.write(b"]")
    out.write(b"}")


def _names(children: Sequence[Story]) -> dict[SessionId, str]:
    """Unlike session IDs, unique among these."""
    names: dict[SessionId, str] = {}
    for child in children:
        name, number = child.row.session, 1
        while name in names.values():
            number += 1
            name = f"{child.row.session}#{number}"
        names[child.row.key] = name
    return names


def _agent(story: Story) -> dict[str, Any]:
    agent: dict[str, Any] = {"name": story.row.agent, "version": story.row.version or "unknown"}
    if story.models:
        agent["model_name"] = story.models[0]
    if story.row.agent_type:
        agent["extra"] = {"agent_type": story.row.agent_type}
    return agent


def _step(story: Story, step: Step, number: int, names: dict[SessionId, str]) -> dict[str, Any]:
    pictures = [image for item in step.said for image in item.pictures]
    made: dict[str, Any] = {"step_id": number, "source": step.source}
    if moment := times.iso(step.first.ts):
        made["timestamp"] = moment
    made["message"] = _content(step.text, pictures)
    if step.source == "agent":
        made |= _response(story, step, names)
    if step.first.copied_from is not None:
        made["is_copied_context"] = True
    labels = [item.label for item in step.items if item.label]
    made["extra"] = {"events": [item.key for item in step.items]}
    if labels:
        made["extra"]["labels"] = labels
    if step.first.copied_from is not None:
        made["extra"]["copied_from"] = step.first.copied_from
    return made


def _response(story: Story, step: Step, names: dict[SessionId, str]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if step.thoughts:
        made["reasoning_content"] = step.thoughts
    if step.calls:
        ids = call_ids(story, step.calls)
        pairs = list(zip(ids, step.calls, strict=True))
        made["tool_calls"] = [
            {
                "tool_call_id": name,
                "function_name": call.tool or "unknown",
                "arguments": arguments(call),
                "extra": {"kind": call.kind, "event": call.key},
            }
            for name, call in pairs
        ]
        results = [
            _result(name, call, names)
            for name, call in pairs
            if call.status != "pending" or call.agent is not None
        ]
        if results:
            made["observation"] = {"results": results}
    if step.spent is not None:
        if step.spent.model:
            made["model_name"] = step.spent.model
        made["metrics"] = {key: value for key, value in _used(step.spent).items() if value}
        made["llm_call_count"] = step.spent.requests
    return made


def call_ids(story: Story, calls: Sequence[Item]) -> list[str]:
    """The agent's own; that of the event where it has none, or one twice."""
    ids: list[str] = []
    for call in calls:
        own = story.cleaned(call.call_id or "")
        ids.append(own if own and own not in ids else call.key)
    return ids


def arguments(call: Item) -> dict[str, Any]:
    if isinstance(call.given, dict):
        return call.given
    return {} if call.given is None else {"input": call.given}


def _result(name: str, call: Item, names: dict[SessionId, str]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "source_call_id": name,
        "extra": {"status": call.status, "duration_ms": call.duration_ms},
    }
    if call.status != "pending":
        made["content"] = _content(call.output, call.pictures)
    if call.agent is not None:
        child = call.agent.row
        made["subagent_trajectory_ref"] = [
            {"trajectory_id": names[child.key], "session_id": child.session}
        ]
    return made


def _content(text: str, pictures: Sequence[Image]) -> str | list[dict[str, Any]]:
    """A text; with images, parts whose images are inside the document."""
    if not pictures:
        return text
    parts: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    for image in pictures:
        path = f"data:{image.media};base64,{image.data}"
        parts.append({"type": "image", "source": {"media_type": image.media, "path": path}})
    return parts


def _used(spent: Spent) -> dict[str, Any]:
    """Prompt tokens include what came from the cache and what went into it."""
    cached = spent.cache_read_tokens
    return {
        "prompt_tokens": spent.input_tokens + spent.cache_write_tokens + cached,
        "completion_tokens": spent.output_tokens,
        "cached_tokens": cached,
        "cost_usd": spent.cost_nano / 1e9 if spent.unpriced < spent.requests else None,
        "extra": {"cache_write_tokens": spent.cache_write_tokens},
    }
