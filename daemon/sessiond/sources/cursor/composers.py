"""Reads what Cursor stores about a conversation besides its bubbles (messages)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sessiond.sourcekit.values import as_dict, as_text
from sessiond.sources.cursor.bubbles import is_user, mode_of, model_of, time_of
from sessiond.sources.cursor.notes import Note, notes_of
from sessiond.sources.cursor.richtext import unwrap
from sessiond.sources.cursor.tools import first_line

__all__ = ["Composer", "Inline", "read_composer", "read_header", "unwrap"]

_DEAREST = 10**8  # cents
_TOOLS = 15  # the capability that has the calls of the oldest composers

Inline = tuple[str, dict[str, Any], dict[str, Any] | None]  # bubble id, bubble, its tool call


@dataclass(slots=True)
class Composer:
    """One conversation; what is missing is None or empty."""

    composer_id: str
    title: str | None = None
    created_at: int | None = None
    updated_at: int | None = None
    mode: str | None = None
    model: str | None = None
    branch: str | None = None
    order: list[str] = field(default_factory=list)  # bubble ids
    header_times: dict[str, int] = field(default_factory=dict)
    inline: list[Inline] = field(default_factory=list)  # bubbles without their own rows
    parent: str | None = None
    parent_call: str | None = None
    agent_type: str | None = None
    subagents: list[str] = field(default_factory=list)
    workspace: Any = None
    repos: list[str] = field(default_factory=list)
    costs: dict[str, float] = field(default_factory=dict)  # dollars by model
    prompts: set[str] = field(default_factory=set)  # bubble ids
    notes: list[Note] = field(default_factory=list)


def read_composer(value: Any, composer_id: str) -> Composer | None:
    """The composer in the value of a `composerData:` row, if there is one."""
    facts = unwrap(value)
    return _read(facts, composer_id) if isinstance(facts, dict) else None


def read_header(value: Any) -> Composer | None:
    """The composer in a row of `composerHeaders` or an entry of the older list."""
    facts = unwrap(value)
    composer_id = as_text(facts.get("composerId")) if isinstance(facts, dict) else None
    return _read(facts, composer_id) if composer_id else None


def _read(facts: dict[str, Any], composer_id: str) -> Composer:
    info = as_dict(facts.get("subagentInfo"))
    composer = Composer(
        composer_id,
        title=_words(facts.get("name")),
        created_at=time_of(facts.get("createdAt")),
        updated_at=time_of(facts.get("lastUpdatedAt"))
        or time_of(facts.get("conversationCheckpointLastUpdatedAt")),
        mode=mode_of(facts.get("unifiedMode")) or mode_of(facts.get("forceMode")),
        model=_model(facts),
        branch=_branch(facts),
        parent=as_text(info.get("parentComposerId")),
        parent_call=first_line(info.get("toolCallId")),
        agent_type=as_text(info.get("subagentTypeName")),
        subagents=_ids(facts.get("subagentComposerIds"), facts.get("subComposerIds")),
        workspace=facts.get("workspaceIdentifier"),
        repos=_repos(facts.get("trackedGitRepos")),
        costs=_costs(facts.get("usageData")),
        notes=notes_of(facts, composer_id),
    )
    _read_order(composer, facts.get("fullConversationHeadersOnly"))
    composer.inline = [*_inline(facts, composer.order)]
    composer.prompts |= {name for name, bubble, _ in composer.inline if is_user(bubble.get("type"))}
    return composer


def _words(value: Any) -> str | None:
    return as_text((as_text(value) or "").strip())


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _ids(*lists: Any) -> list[str]:
    """The strings of the lists, each once."""
    texts = (as_text(item) for items in lists for item in _listed(items))
    return [*dict.fromkeys(text for text in texts if text)]


def _repos(value: Any) -> list[str]:
    return _ids([as_dict(repo).get("repoPath") for repo in _listed(value)])


def _branch(facts: dict[str, Any]) -> str | None:
    """The branch that was used last, or the one at the start."""
    found = [
        (time_of(branch.get("lastInteractionAt")) or 0, name)
        for repo in _listed(facts.get("trackedGitRepos"))
        for branch in map(as_dict, _listed(as_dict(repo).get("branches")))
        if (name := _words(branch.get("branchName")))
    ]
    newest = max((time for time, _ in found), default=0)
    last = [name for time, name in found if time == newest]
    return last[-1] if last else _words(facts.get("createdOnBranch"))


def _costs(usage: Any) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, facts in as_dict(usage).items():
        cents = as_dict(facts).get("costInCents")
        if isinstance(cents, (int, float)) and not isinstance(cents, bool) and 0 < cents < _DEAREST:
            model = model_of(name) or ""
            found[model] = found.get(model, 0.0) + cents / 100
    return found


def _model(facts: dict[str, Any]) -> str | None:
    model = model_of(as_dict(facts.get("modelConfig")).get("modelName"))
    used = [*as_dict(facts.get("usageData"))]
    return model or (model_of(used[0]) if len(used) == 1 else None)


def _read_order(composer: Composer, headers: Any) -> None:
    known: dict[str, None] = {}
    for header in _listed(headers):
        bubble_id = _bubble_id(header) if isinstance(header, dict) else as_text(header)
        if bubble_id is None or bubble_id in known:
            continue
        known[bubble_id] = None
        if is_user(as_dict(header).get("type")):
            composer.prompts.add(bubble_id)
        time = time_of(as_dict(header).get("createdAt"))
        if time is not None:
            composer.header_times[bubble_id] = time
    composer.order = [*known]


def _bubble_id(bubble: dict[str, Any]) -> str | None:
    return as_text(bubble.get("bubbleId")) or as_text(bubble.get("id"))


def _inline(facts: dict[str, Any], order: list[str]) -> Iterator[Inline]:
    tools = _tools(facts)
    listed: set[str] = set()
    for number, bubble in enumerate(_listed(facts.get("conversation"))):
        if not isinstance(bubble, dict):
            continue
        bubble_id = _bubble_id(bubble) or f"bubble-{number}"
        if bubble_id not in listed:
            listed.add(bubble_id)
            yield bubble_id, bubble, tools.get(bubble_id)
    bubbles = as_dict(facts.get("conversationMap"))
    for bubble_id in order if bubbles else ():
        bubble = bubbles.get(bubble_id)
        if isinstance(bubble, dict) and bubble_id not in listed:
            yield bubble_id, bubble, tools.get(bubble_id)


def _tools(facts: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Tool calls by the id of their bubble."""
    tools: dict[str, dict[str, Any]] = {}
    for capability in _listed(facts.get("capabilities")):
        if isinstance(capability, dict) and capability.get("type") == _TOOLS:
            calls = unwrap(as_dict(capability.get("data")).get("bubbleDataMap"))
            tools.update({k: call for k, call in as_dict(calls).items() if isinstance(call, dict)})
    return tools
