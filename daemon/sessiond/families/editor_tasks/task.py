"""Makes one conversation of what was sent to the model and what was shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sessiond.families.editor_tasks import timeline
from sessiond.families.editor_tasks.calls import NEW_TASK
from sessiond.families.editor_tasks.sent import Messages
from sessiond.families.editor_tasks.timeline import Meter, read_shown
from sessiond.sourcekit.base import LINK_META, Conversation, Item, Record, SessionSpec, Usage
from sessiond.sourcekit.folders import absolute
from sessiond.sourcekit.values import as_dict, as_dollars, as_list, as_text, as_time

Rows = Sequence[dict[str, Any]]
_RECORDED, _MENTIONED = 2, 1  # how sure the project is


def sent_conversation(
    spec: SessionSpec, sent: Rows, shown: Rows, facts: dict[str, Any], meter: Meter
) -> Conversation:
    """`facts` are what the extension's index says about the task."""
    matched = timeline.match_requests(sent, shown)
    times = timeline.date_messages(sent, shown, matched)
    reader = Messages(meter.task)
    children = iter(as_list(facts.get("childIds")))
    items: list[Item] = []
    project = None
    for number, message in enumerate(sent):
        request = shown[matched[number]] if number in matched else None
        key = as_text(message.get("id")) or str(message.get("ts") or number)
        record = reader.read(key, message, "/message")
        value: dict[str, Any] = {"message": message}
        if record.ts is None and number in times:
            record.ts = value["ts"] = times[number]
        project = project or reader.facts.directory
        if record.role == "assistant":
            record.model = record.model or _model(facts, request, record.ts)
            if not shown:
                record.usage = _recorded(meter, message, record)
        if record.model:
            value["model"] = record.model
        if reader.calls:
            value["calls"] = reader.calls
        value |= _children(record, children)
        items.append(Item(key, number, value=value, record=record))
    models = {str(shown[at].get("ts")): items[answer].record for answer, at in matched.items()}
    _insert(items, shown, meter, models, facts)
    return _conversation(spec, items, facts, project)


def shown_conversation(
    spec: SessionSpec, shown: Rows, facts: dict[str, Any], meter: Meter
) -> Conversation:
    items = []
    for number, (key, record, messages) in enumerate(read_shown(shown, meter)):
        if record.usage is not None and record.usage.model is None:
            record.usage.model = _model(facts, None, record.ts)
        items.append(Item(key, number, value=messages, record=record))
    return _conversation(spec, items, facts, None)


def _conversation(
    spec: SessionSpec, items: list[Item], facts: dict[str, Any], mentioned: str | None
) -> Conversation:
    recorded = absolute(facts.get("workspace")) or absolute(facts.get("cwdOnTaskInitialization"))
    branches = [item.record.git_branch for item in items if item.record and item.record.git_branch]
    started = as_time(facts.get("started")) or as_time(facts.get("ts"))
    return Conversation(
        spec,
        items=items,
        project=recorded or mentioned,
        project_rank=_RECORDED if recorded else _MENTIONED if mentioned else 0,
        git_branch=branches[-1] if branches else None,
        mode=as_text(facts.get("mode")),
        created_at=started,
    )


def _insert(
    items: list[Item],
    shown: Rows,
    meter: Meter,
    answers: dict[str, Record | None],
    facts: dict[str, Any],
) -> None:
    """Put what was only shown before the first message that is later."""
    at = since = 0
    for message in shown:
        record = timeline.notice(message, meter)
        if record is None:
            continue
        answer = answers.get(str(message.get("ts")))
        if record.usage is not None and record.usage.model is None:
            record.usage.model = answer.model if answer else _model(facts, message, record.ts)
        if record.ts is not None:  # what is shown is in order: the search goes on where it stopped
            at = at if record.ts >= since else 0
            since = record.ts
            while at < len(items) and not _is_later(items[at], since):
                at += 1
        value = {"shown": message, "model": record.usage.model if record.usage else None}
        key = f"shown/{message.get('ts')}"
        items.insert(
            at if record.ts is not None else len(items), Item(key, value=value, record=record)
        )


def _is_later(item: Item, than: int) -> bool:
    return item.record is not None and (item.record.ts or 0) > than


def _recorded(meter: Meter, message: dict[str, Any], record: Record) -> Usage | None:
    """What an answer records itself, for tasks of which nothing else is left."""
    metrics = as_dict(message.get("metrics"))
    usage = meter.usage({}, record.model, as_dict(metrics.get("tokens")))
    if usage is not None:
        usage.message_id, usage.request_id = record.native_id, None
        cost = metrics.get("cost")
        usage.cost_usd = as_dollars(cost)
    return usage


def _model(facts: dict[str, Any], request: dict[str, Any] | None, when: int | None) -> str | None:
    """The model of a request, from what is recorded beside the messages."""
    model = as_text(as_dict((request or {}).get("modelInfo")).get("modelId"))
    used = facts.get("model_usage")
    for entry in reversed(used) if isinstance(used, list) and not model else ():
        since = as_time(as_dict(entry).get("ts"))
        if since is None or when is None or since <= when:
            model = as_text(as_dict(entry).get("model_id"))
            break
    return model or as_text(facts.get("modelId"))


def _children(record: Record, children: Iterator[Any]) -> dict[str, Any]:
    """The n-th call that starts a task started the n-th child."""
    started: list[str] = []
    for event in record.events:
        if event.tool == NEW_TASK and event.call_id:
            child = as_text(next(children, None))
            if child:
                started.append(child)
                record.link(child, event.call_id, LINK_META, home="")
    return {"children": started} if started else {}
