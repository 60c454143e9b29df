"""What Cursor stores about a conversation besides its bubbles, and the order that it gives them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sessiond.engines.steps import hash64
from sessiond.sourcekit.base import Item
from sessiond.sourcekit.folders import folder_of_window
from sessiond.sourcekit.foreign import Foreign, KnownRow, KnownRows
from sessiond.sourcekit.values import as_dict, as_line, as_list, as_text
from sessiond.sources.cursor.bubbles import Note, is_user, mode_of, model_of, notes_of, time_of
from sessiond.sources.cursor.changes import HEADER, digest
from sessiond.sources.cursor.richtext import unwrap
from sessiond.sources.cursor.tool_calls import first_line

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
        repos=_ids(
            [as_dict(repo).get("repoPath") for repo in as_list(facts.get("trackedGitRepos"))]
        ),
        costs=_costs(facts.get("usageData")),
        notes=notes_of(facts, composer_id),
    )
    _read_order(composer, facts.get("fullConversationHeadersOnly"))
    composer.inline = [*_inline(facts, composer.order)]
    composer.prompts |= {name for name, bubble, _ in composer.inline if is_user(bubble.get("type"))}
    return composer


def _words(value: Any) -> str | None:
    return as_text((as_text(value) or "").strip())


def _ids(*lists: Any) -> list[str]:
    """The strings of the lists, each once."""
    texts = (as_text(item) for items in lists for item in as_list(items))
    return [*dict.fromkeys(text for text in texts if text)]


def _branch(facts: dict[str, Any]) -> str | None:
    """The branch that was used last, or the one at the start."""
    dated = [
        (time_of(branch.get("lastInteractionAt")) or 0, name)
        for repo in as_list(facts.get("trackedGitRepos"))
        for branch in map(as_dict, as_list(as_dict(repo).get("branches")))
        if (name := _words(branch.get("branchName")))
    ]
    newest = max((time for time, _ in dated), default=0)
    last = [name for time, name in dated if time == newest]
    return last[-1] if last else _words(facts.get("createdOnBranch"))


def _costs(usage: Any) -> dict[str, float]:
    costs: dict[str, float] = {}
    for name, facts in as_dict(usage).items():
        cents = as_dict(facts).get("costInCents")
        if isinstance(cents, (int, float)) and not isinstance(cents, bool) and 0 < cents < _DEAREST:
            model = model_of(name) or ""
            costs[model] = costs.get(model, 0.0) + cents / 100
    return costs


def _model(facts: dict[str, Any]) -> str | None:
    model = model_of(as_dict(facts.get("modelConfig")).get("modelName"))
    used = [*as_dict(facts.get("usageData"))]
    return model or (model_of(used[0]) if len(used) == 1 else None)


def _read_order(composer: Composer, headers: Any) -> None:
    known: dict[str, None] = {}
    for header in as_list(headers):
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
    for number, bubble in enumerate(as_list(facts.get("conversation"))):
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
    for capability in as_list(facts.get("capabilities")):
        if isinstance(capability, dict) and capability.get("type") == _TOOLS:
            calls = unwrap(as_dict(capability.get("data")).get("bubbleDataMap"))
            tools.update({k: call for k, call in as_dict(calls).items() if isinstance(call, dict)})
    return tools


# -- the list of conversations: a table, in older versions one large value
# `ItemTable` also contains credentials; only the keys named here are ever read.

_TABLE = "composerHeaders"
_LIST = "composer.composerHeaders"
_BY_TABLE, _BY_LIST = 4, 3  # how certain the project of each is


class Headers:
    """The headers of one database; the table takes precedence over the list of older versions."""

    def __init__(self, foreign: Foreign, known: KnownRows, state: dict[str, Any]) -> None:
        self._foreign = foreign
        self._known = known
        self._state = state
        self._has_table = foreign.has_table(_TABLE)
        self._rows: dict[str, tuple[Composer, int, bool] | None] = {}
        self._list: dict[str, tuple[Composer, int]] | None = None

    def changed(self, *, complete: bool) -> Iterator[str]:
        """Conversations whose header changed since it was last read."""
        rowid = self._place_of_list()
        if rowid != self._state.get("headers"):
            self._state["headers"] = rowid
            yield from self._differing(
                {composer_id: now for composer_id, (_, now) in self._entries().items()}
            )
        if complete and self._has_table:
            rows = self._foreign.rows(f"SELECT composerId, value FROM {_TABLE}")
            named = ((key, value) for key, value in rows if isinstance(key, str))
            yield from self._differing({key: digest(value) for key, value in named})

    def _differing(self, digests: dict[str, int]) -> Iterator[str]:
        known = self._known.under(HEADER)
        for composer_id, now in digests.items():
            before = known.get(HEADER + composer_id)
            if (before is None or before.digest != now) and self._current(composer_id) == now:
                yield composer_id

    def _header(self, composer_id: str) -> tuple[Composer, int] | None:
        row = self._row(composer_id)
        return row[:2] if row else self._entries().get(composer_id)

    def _current(self, composer_id: str) -> int | None:
        header = self._header(composer_id)
        return header[1] if header else None

    def item(self, composer_id: str) -> Item | None:
        """What to remember about a header."""
        now = self._current(composer_id)
        return Item(HEADER + composer_id, 0, now) if now is not None else None

    def get(self, composer_id: str) -> Composer:
        header = self._header(composer_id)
        return header[0] if header else Composer(composer_id)

    def is_subagent(self, composer_id: str) -> bool:
        row = self._row(composer_id)
        return row is not None and row[2]

    def folder(self, composer_id: str) -> str | None:
        return folder_of_window(self.get(composer_id).workspace)

    def rank(self, composer_id: str) -> int:
        return _BY_TABLE if self._row(composer_id) else _BY_LIST

    def _row(self, composer_id: str) -> tuple[Composer, int, bool] | None:
        if not self._has_table:
            return None
        if composer_id not in self._rows:
            self._rows[composer_id] = None
            for value, subagent in self._foreign.rows(
                f"SELECT value, isSubagent FROM {_TABLE} WHERE composerId = ?", (composer_id,)
            ):
                header = read_header(value) or Composer(composer_id)
                self._rows[composer_id] = header, digest(value), bool(subagent)
        return self._rows[composer_id]

    def _place_of_list(self) -> int | None:
        if not self._foreign.has_table("ItemTable"):
            return None
        rows = self._foreign.rows("SELECT rowid FROM ItemTable WHERE key = ?", (_LIST,))
        return rows[0][0] if rows else None

    def _entries(self) -> dict[str, tuple[Composer, int]]:
        if self._list is None:
            self._list = {}
            if self._foreign.has_table("ItemTable"):
                for (value,) in self._foreign.rows(
                    "SELECT value FROM ItemTable WHERE key = ?", (_LIST,)
                ):
                    self._read_list(value)
        return self._list

    def _read_list(self, value: Any) -> None:
        assert self._list is not None
        for entry in as_list(as_dict(unwrap(value)).get("allComposers")):
            composer_id = as_text(as_dict(entry).get("composerId"))
            header = read_header(entry) if composer_id else None
            if composer_id and header:
                self._list[composer_id] = header, hash64(as_line(entry))


# -- the order of records: by the headers, and those that these leave out by time


def arrange(
    listed: Sequence[str], present: Mapping[str, int], times: Mapping[str, int]
) -> list[str]:
    """Every key once; `present` has their rowids, used where times are missing."""
    order = list(dict.fromkeys(listed))
    named = set(order)
    left_out = sorted(
        (key for key in present if key not in named),
        key=lambda key: (key not in times, times.get(key, 0), present[key]),
    )
    if not left_out:
        return order
    dated = [key for key in left_out if key in times]
    merged: list[str] = []
    for key in order:
        while dated and key in times and times[dated[0]] < times[key]:
            merged.append(dated.pop(0))
        merged.append(key)
    return merged + dated + [key for key in left_out if key not in times]


class Arranged:
    """The keys of a conversation, in the order of its headers where known."""

    def __init__(
        self,
        composer: Composer,
        prefix: str,
        known: dict[str, KnownRow],
        present: dict[str, int],
        inline: dict[str, Any],
    ) -> None:
        self._composer = composer
        self._prefix = prefix
        self._present = present
        self._inline = {value[0]: key for key, value in inline.items()}
        self._aliases = {one.alias: key for key, one in known.items() if one.alias is not None}
        self._times = {key: one.ts for key, one in known.items() if one.ts is not None}
        self._stored: list[str] | None = None

    def stay(self, stored: list[str]) -> None:
        """Keep the stored order: the composer, which has the order, is gone."""
        self._stored = stored or None

    def keys(self, items: Sequence[Item] = ()) -> list[str]:
        for item in items:
            if item.alias is not None:
                self._aliases[item.alias] = item.key
            self._times.pop(item.key, None)
            if item.ts is not None:
                self._times[item.key] = item.ts
        notes = {note.bubble_id for note in self._composer.notes}
        listed = []
        for bubble_id in self._composer.order or self._inline:
            key = self._key(bubble_id)
            if key and bubble_id not in notes:
                listed.append(key)
        inline = {key: 0 for bubble_id, key in self._inline.items() if bubble_id not in notes}
        order = arrange(listed, {**self._present, **inline}, self._times)
        self._insert_notes(order)
        if self._stored is None:
            return order
        return list(dict.fromkeys(self._stored + order))

    def _insert_notes(self, order: list[str]) -> None:
        for bubble_id, _, after in self._composer.notes:
            key = self._inline.get(bubble_id)
            before = self._key(after) if after else None
            if key is not None:
                order.insert(order.index(before) + 1 if before in order else len(order), key)

    def _key(self, bubble_id: str) -> str | None:
        """The key of a bubble that is there."""
        key = self._prefix + bubble_id
        if key in self._present:
            return key
        alias = self._aliases.get(bubble_id, "")
        return self._inline.get(bubble_id) or (alias if alias in self._present else None)

    def times(self, order: Sequence[str]) -> dict[str, int]:
        """Times by key of records that have none.

        They are in the headers. Older versions date only answers, by the moment of the request:
        then a prompt has the time of its answer, and anything else that of what precedes it.
        """
        times = {}
        for bubble_id, ts in self._composer.header_times.items():
            if key := self._key(bubble_id):
                times[key] = ts
        dated = times | self._times
        prompts = set(map(self._key, self._composer.prompts))
        previous = None
        for key, following in zip(order, [*order[1:], ""], strict=True):
            if key in dated:
                previous = dated[key]
                continue
            time = dated.get(following, previous) if key in prompts else previous
            if time is not None:
                times[key] = time
        return times
