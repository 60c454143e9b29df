"""Cards of a page: the first in plain HTML, the rest packed, with facts about each."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import zstandard

# The first screens are plain HTML.
_FIRST_CARDS = 40
_FIRST_NODES = 1200
_FIRST_CHARACTERS = 200_000
# A session that is only a little longer is not packed.
_REST_NODES = 1500
_REST_CHARACTERS = 600_000
_PACK_CHARACTERS = 1_000_000
_BETWEEN_CARDS = "\0"  # never occurs in HTML
_LEVEL = 8
_SQUEEZER = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=False)


@dataclass(slots=True)
class Facts:
    """What filters, links and the list need to know about cards not drawn yet, in columns."""

    keys: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    levels: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
    prompts: list[int] = field(default_factory=list)  # index of its prompt; -1 before the first
    times: list[int | None] = field(default_factory=list)
    days: list[str] = field(default_factory=list)  # empty where no time is known
    places: list[int] = field(default_factory=list)  # on the strip
    nodes: list[int] = field(default_factory=list)
    heights: list[int] = field(default_factory=list)  # estimated, in pixels
    inner: dict[str, int] = field(default_factory=dict)  # keys of cards inside cards

    def as_json(self, packs: list[int]) -> str:
        kinds = [*dict.fromkeys(self.kinds)]
        tools = [*dict.fromkeys(self.tools)]
        days = {day: number for number, day in enumerate(dict.fromkeys(filter(None, self.days)))}
        return json.dumps(
            {
                "keys": "".join(self.keys),
                "kindNames": kinds,
                "kinds": [kinds.index(kind) for kind in self.kinds],
                "toolNames": tools,
                "tools": [tools.index(tool) for tool in self.tools],
                "levels": self.levels,
                "failed": self.failed,
                "prompts": self.prompts,
                "times": [*_differences(self.times)],
                "dayNames": [*days],
                "days": [days.get(day, -1) for day in self.days],
                "places": self.places,
                "nodes": self.nodes,
                "heights": self.heights,
                "inner": self.inner,
                "packs": packs,
            },
            separators=(",", ":"),
        )


class Chunks:
    """Takes cards one by one; packs in a thread, because compression releases the GIL."""

    def __init__(self, *, all_plain: bool = False) -> None:
        self._all_plain = all_plain
        self.plain: list[str] = []  # cards of the first screens
        self._plain_nodes = 0
        self._plain_characters = 0
        self._waiting: list[str] = []
        self._waiting_nodes = 0
        self._waiting_characters = 0
        self._packed: list[tuple[int, Future[str]]] = []
        self._packer = ThreadPoolExecutor(1)  # compressors are not thread-safe
        self._squeezer: zstandard.ZstdCompressor | None = None  # of all packs after the first

    def add(self, card: str, nodes: int) -> bool:
        """Return whether the card is in the first screens."""
        card = card.replace(_BETWEEN_CARDS, "\ufffd")
        if self._all_plain or self._fits_first(nodes, len(card)):
            self.plain.append(card)
            self._plain_nodes += nodes
            self._plain_characters += len(card)
            return True
        self._waiting.append(card)
        self._waiting_nodes += nodes
        self._waiting_characters += len(card)
        if self._waiting_characters >= _PACK_CHARACTERS:
            self._pack()
        return False

    def finish(self) -> None:
        small = self._waiting_nodes <= _REST_NODES and self._waiting_characters <= _REST_CHARACTERS
        if self._waiting and small and not self._packed:
            self.plain += self._waiting
            self._waiting = []
        elif self._waiting:
            self._pack()
        self._packer.shutdown()

    @property
    def counts(self) -> list[int]:
        """Cards in each pack."""
        return [count for count, _ in self._packed]

    def blocks(self) -> Iterator[str]:
        """Packs as data blocks that browsers do not run."""
        for _, data in self._packed:
            yield _block("pack", data.result())

    def _fits_first(self, nodes: int, characters: int) -> bool:
        if self._waiting or self._packed or len(self.plain) >= _FIRST_CARDS:
            return False
        few = self._plain_nodes + nodes <= _FIRST_NODES
        short = self._plain_characters + characters <= _FIRST_CHARACTERS
        return not self.plain or (few and short)

    def _pack(self) -> None:
        text = _BETWEEN_CARDS.join(self._waiting)
        self._packed.append((len(self._waiting), self._packer.submit(self._squeezed, text)))
        self._waiting = []
        self._waiting_nodes = self._waiting_characters = 0

    def _squeezed(self, text: str) -> str:
        """A session repeats itself: what the first pack has, the others refer to."""
        raw = text.encode("utf-8", "replace")
        if self._squeezer is not None:
            return b64encode(_framed(raw, self._squeezer)).decode()
        first = zstandard.ZstdCompressionDict(raw, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
        first.precompute_compress(level=_LEVEL)
        self._squeezer = zstandard.ZstdCompressor(
            level=_LEVEL, dict_data=first, write_checksum=False
        )
        return b64encode(_framed(raw, _SQUEEZER)).decode()


def facts_block(facts: Facts, counts: list[int]) -> str:
    return _block("facts", packed(facts.as_json(counts)))


def packed(text: str) -> str:
    return b64encode(squeezed(text)).decode()


def squeezed(text: str) -> bytes:
    return _framed(text.encode("utf-8", "replace"), _SQUEEZER)


def _framed(raw: bytes, squeezer: zstandard.ZstdCompressor) -> bytes:
    """The unpacked size in four bytes, then a Zstandard frame."""
    return len(raw).to_bytes(4, "little") + squeezer.compress(raw)


def _block(name: str, data: str) -> str:
    return f'<script type="application/octet-stream" data-what="{name}">{data}</script>\n'


def _differences(times: list[int | None]) -> Iterator[int | None]:
    """Differences between times: small numbers compress well."""
    last = 0
    for time in times:
        yield None if time is None else time - last
        last = last if time is None else time
