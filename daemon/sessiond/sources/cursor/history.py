"""The whole history of a chat of cursor-agent, of which a summary hides the first part.

A root lists the messages that the model sees. What a summary replaced is in its archives, or, as
protobuf, in the turns; the turns also tell when each of them began and ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher

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
    found: dict[int, int] = {}
    blocks = SequenceMatcher(None, [*map(words_of, prompts)], [*map(words_of, turns)], False)
    for at, turn, size in blocks.get_matching_blocks():
        found.update({at + n: turn + n for n in range(size) if turns[turn + n]})
    return found


def timings_by_turn(timings: Sequence[Timing], turns: int) -> dict[int, Timing]:
    """A turn that is not over has none; neither have those of older versions."""
    missing = turns - len(timings)
    first = missing if missing > 1 else 0
    return dict(zip(range(first, turns), timings, strict=False))


def times_of(
    order: Sequence[str], turn_of: Callable[[str], int | None], timings: dict[int, Timing]
) -> dict[str, int]:
    """Times by key: a turn's prompt at its start, its last record at its end."""
    found: dict[str, int] = {}
    turn: int | None = None
    for number, key in enumerate(order):
        began = turn_of(key)
        turn = began if began is not None else turn
        if turn is None or turn not in timings:
            continue
        following = turn_of(order[number + 1]) if number + 1 < len(order) else -1
        is_last = following is not None and began is None
        found[key] = timings[turn][1 if is_last else 0]
    return found
