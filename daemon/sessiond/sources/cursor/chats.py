"""Reads a chat of cursor-agent as one conversation: its root lists messages by hash."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

from sessiond.engines.steps import hash64
from sessiond.sourcekit.base import Conversation, Item, SessionSpec
from sessiond.sourcekit.foreign import Foreign, KnownRow, KnownRows
from sessiond.sourcekit.values import strings
from sessiond.sources.cursor import envelope
from sessiond.sources.cursor.agent_messages import is_summary
from sessiond.sources.cursor.storedb import (
    Root,
    has_role,
    message_ids,
    read_chat,
    read_message,
    read_meta,
    read_prompt,
    read_root,
    read_turn,
)

_MESSAGE, _TURN, _SUMMARY = "message:", "turn:", "summary:"
_BY_META = 5
_TELLING = 200  # characters of a summary that tell it from prompts
META = "meta.json"


def chat(foreign: Foreign, known: KnownRows, state: dict[str, Any]) -> Iterator[Conversation]:
    """The chat with its new messages."""
    facts = read_chat(foreign)
    if facts is None:
        return
    folder = os.path.dirname(foreign.path)
    meta = read_meta(os.path.join(folder, META))
    agent_id = facts.agent_id or os.path.basename(folder)
    now = [facts.root, facts.title, meta.cwd, meta.title]
    if now == state.get("chat"):
        return
    root = read_root(foreign, facts.root or "")
    created = facts.created_at or meta.created_at
    change = Conversation(
        SessionSpec(
            agent_id,
            title=meta.title or facts.title,
            fallback=1,
            resume=("cursor-agent", "--resume", agent_id),
        ),
        project=meta.cwd or root.folder,
        project_rank=_BY_META,
        git_branch=root.branch,
        mode=facts.mode,
        model=facts.model,
        created_at=created,
        updated_at=meta.updated_at or created,
    )
    # A later root no longer says which of the older messages are summaries.
    history = _History(foreign, known, root, change, set(state.get("summaries", ())))
    history.read(facts.root)
    yield change
    state["chat"], state["summaries"] = now, sorted(history.summaries)


class _History:
    """One read of a chat, into its change."""

    def __init__(
        self,
        foreign: Foreign,
        known: KnownRows,
        root: Root,
        change: Conversation,
        summaries: set[str],
    ) -> None:
        self._foreign = foreign
        self._root = root
        self._change = change
        self._agent_id = change.spec.native_id
        self._before = known.under(_MESSAGE)
        self._made = known.under(_TURN) | known.under(_SUMMARY)
        self.summaries = summaries  # keys of messages

    def read(self, root_id: str | None) -> None:
        order = self._messages(root_id) if root_id else []
        order = kept(sorted(self._before, key=lambda key: self._before[key].place), order)
        prompts = self._prompts(order) if self._root.turns else {}
        asked = [read_prompt(self._foreign, turn) for turn in self._root.turns]
        pairs = matched([*prompts.values()], asked)
        starts = {key: pairs[at] for at, key in enumerate(prompts) if at in pairs}
        made = self._lost(order, [*prompts], pairs)
        starts |= {key: number for number, key in _first_of_turns(made)}
        self._change.order = order
        self._add(order, made)
        timings = timings_by_turn(self._root.timings, len(asked))
        self._change.times = times_of(order, starts.get, timings)

    def _messages(self, root_id: str) -> list[str]:
        """The keys of all messages, those that summaries replaced first."""
        seen = {key.split(":")[1] for key in self._before}
        current = message_ids(self._foreign, root_id, seen)
        first = [one for one in current[:1] if has_role(self._foreign, one, "system")]
        listed: list[str] = []
        for archive in self._root.archives:
            ids = archive.messages
            listed = kept(listed, _keys(ids if first == ids[:1] else [*first, *ids]))
        return kept(listed, _keys(current))

    def _prompts(self, order: Iterable[str]) -> dict[str, str]:
        """What people typed, by key, in order."""
        prompts: dict[str, str] = {}
        for key in order:
            blob_id = key.split(":")[1]
            if not has_role(self._foreign, blob_id, "user"):
                continue
            message = read_message(self._foreign, blob_id)
            if message is None or self._is_summary(key, message):
                continue
            record = envelope.read({"bubble": message})
            typed = [event.text for event in record.events if event.type == "user"]
            if typed:
                prompts[key] = "\n".join(typed)
        return prompts

    def _is_summary(self, key: str, message: dict[str, Any]) -> bool:
        """Whether a message of the user is a summary that the agent wrote."""
        said = words_of("\n".join(strings(message.get("content"))))
        summaries = [self._root.summary, *(archive.text for archive in self._root.archives)]
        replaced = {archive.message for archive in self._root.archives}
        tells = any(words_of(one)[:_TELLING] in said for one in summaries if one)
        if is_summary(message) or key.split(":")[1] in replaced or tells:
            self.summaries.add(key)
        return key in self.summaries

    def _lost(
        self, order: list[str], prompts: list[str], pairs: dict[int, int]
    ) -> dict[str, dict[str, Any]]:
        """Put the turns that no message has into the order; return them as messages by key."""
        turns = self._root.turns
        first, turn = min(pairs.items(), default=(len(prompts), len(turns)))
        lost = turn - first if self._root.summarized or self.summaries else 0
        made: dict[str, dict[str, Any]] = {}
        for number in range(max(0, lost)):
            name = f"{self._agent_id}-turn-{number}"
            for part, message in enumerate(read_turn(self._foreign, turns[number], name)):
                made[f"{_TURN}{number}:{part}"] = message
        places = {key: at for at, key in enumerate(order)}
        end = places[prompts[first]] if first < len(prompts) else len(order)
        start = min((places[key] for key in self.summaries), default=end)
        if made:  # the messages after a summary may begin with the rest of a turn
            shown = {*self._before, *self.summaries}
            order[start:end] = [key for key in order[start:end] if key in shown]
        if self._root.summary and not self.summaries:
            made[f"{_SUMMARY}1"] = {"type": "summary", "text": self._root.summary}
        order[start:start] = made
        return made

    # -- records

    def _add(self, order: list[str], made: dict[str, dict[str, Any]]) -> None:
        change = self._change
        change.removed = [key for key in self._made if key not in made]
        known: dict[str, KnownRow] = self._before | self._made
        for place, key in enumerate(order):
            before = known.get(key)
            item = None
            if before is None or before.is_stale or key in made:
                item = self._item(key, place, made.get(key))
            if before is None or (item and item.record and item.digest != before.digest):
                change.items += filter(None, [item])
            elif before.place != place:
                change.moved.append((key, place))

    def _item(self, key: str, place: int, made: dict[str, Any] | None) -> Item:
        native_id = f"{self._agent_id}:{key.removeprefix(_MESSAGE)}"
        blob_id = key.split(":")[1]
        message = made or read_message(self._foreign, blob_id)
        item = Item(key, place, hash64(blob_id.encode()))
        if message is not None:
            asked = made is None and message.get("role") == "user"
            summary = asked and self._is_summary(key, message)
            item.raw = envelope.pack(self._agent_id, message, bubble_id=native_id, summary=summary)
            value = {"bubble": message, "bubbleId": native_id, "summary": summary}
            item.record = envelope.read(value)
        if made is not None:
            item.digest = hash64(item.raw)
        return item


def _keys(blob_ids: Iterable[str]) -> list[str]:
    """Equal messages have equal ids, so they are numbered."""
    times: Counter[str] = Counter()
    keys = []
    for blob_id in blob_ids:
        times[blob_id] += 1
        keys.append(f"{_MESSAGE}{blob_id}:{times[blob_id]}")
    return keys


def _first_of_turns(made: Iterable[str]) -> Iterator[tuple[int, str]]:
    for key in made:
        kind, number, part = f"{key}:".split(":")[:3]
        if f"{kind}:" == _TURN and part == "0":
            yield int(number), key


# -- the whole history, of which a summary hides the first part
# A root lists the messages that the model sees. What a summary replaced is in its archives, or, as
# protobuf, in the turns; the turns also tell when each of them began and ended.

Timing = tuple[int, int]  # start and end


def kept(before: Sequence[str], listed: Sequence[str]) -> list[str]:
    """Keep what is no longer listed, after what preceded it."""
    followers: dict[str, list[str]] = {"": []}
    current = set(listed)
    anchor = ""
    for key in before:
        if key in current:
            anchor = key
        else:
            followers.setdefault(anchor, []).append(key)
    return followers[""] + [one for key in listed for one in (key, *followers.get(key, ()))]


def words_of(text: str) -> str:
    return " ".join(text.split())


def matched(prompts: Sequence[str], turns: Sequence[str]) -> dict[int, int]:
    """By the number of a prompt, the turn that it began."""
    pairs: dict[int, int] = {}
    blocks = SequenceMatcher(None, [*map(words_of, prompts)], [*map(words_of, turns)], False)
    for at, turn, size in blocks.get_matching_blocks():
        pairs.update({at + n: turn + n for n in range(size) if turns[turn + n]})
    return pairs


def timings_by_turn(timings: Sequence[Timing], turns: int) -> dict[int, Timing]:
    """A turn that is not over has none; neither have those of older versions."""
    missing = turns - len(timings)
    first = missing if missing > 1 else 0
    return dict(zip(range(first, turns), timings, strict=False))


def times_of(
    order: Sequence[str], turn_of: Callable[[str], int | None], timings: dict[int, Timing]
) -> dict[str, int]:
    """Times by key: a turn's prompt at its start, its last record at its end."""
    times: dict[str, int] = {}
    turn: int | None = None
    for number, key in enumerate(order):
        began = turn_of(key)
        turn = began if began is not None else turn
        if turn is None or turn not in timings:
            continue
        following = turn_of(order[number + 1]) if number + 1 < len(order) else -1
        is_last = following is not None and began is None
        times[key] = timings[turn][1 if is_last else 0]
    return times
