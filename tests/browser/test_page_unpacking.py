"""The page's own Zstandard decoder, tested against the real encoder."""

from __future__ import annotations

import random
import re
from base64 import b64encode

import pytest
import zstandard
from tests.browser.attacks import chromium
from tests.must import must

from sess_cli.export.html import chunks, shell

READ = "(data) => unsqueezed(fromBase64(data))"


@pytest.fixture(scope="module")
def tab():
    with chromium() as browser:
        tab = browser.new_page()
        tab.add_script_tag(content=shell.asset("page/zstd.js"))
        yield tab


def texts():
    chance = random.Random(7)
    words = [f"word{number} " for number in range(400)]
    yield from ("", "a", "abcabcabc", "x" * 300_000)
    yield "".join(chance.choice("ab") for _ in range(5000))
    yield "".join(chr(chance.randrange(32, 0x2FFF)) for _ in range(20_000))
    for size in (1, 3, 10, 60, 300, 1000, 5000, 40_000, 200_000):
        yield "".join(chance.choices(words, k=size))
    page = shell.style() + shell.script()
    yield page
    yield page * 12  # matches beyond the window of deflate


@pytest.mark.parametrize("level", [1, 3, 8, 12, 19])
def test_data_compressed_at_any_level_is_read_back(tab, level):
    squeezer = zstandard.ZstdCompressor(level=level, write_checksum=False)
    for text in texts():
        raw = text.encode()
        data = len(raw).to_bytes(4, "little") + squeezer.compress(raw)
        assert tab.evaluate(READ, b64encode(data).decode()) == text


def test_packs_are_read_back_that_refer_to_the_first(tab):
    chance = random.Random(5)
    words = [f"{chance.getrandbits(40):x} é " for _ in range(60_000)]
    cards = ["".join(chance.choices(words, k=40_000)) for _ in range(6)]
    made = chunks.Chunks()
    for card in cards:
        made.add(card, nodes=2)
    made.finish()
    packs = [must(re.search(r">([^<]*)<", block))[1] for block in made.blocks()]
    assert made.plain == cards[:1]
    assert made.counts == [2, 2, 1]
    read = """(packs) => {
        const [first, ...rest] = packs.map(fromBase64);
        const before = unframed(first);
        return [before, ...rest.map((one) => unframed(one, before))]
            .map((one) => new TextDecoder().decode(one)); }"""
    assert [card for pack in tab.evaluate(read, packs) for card in pack.split("\0")] == cards[1:]


def test_a_damaged_pack_is_an_error_not_a_hang(tab):
    raw = shell.style().encode()
    data = len(raw).to_bytes(4, "little") + zstandard.ZstdCompressor().compress(raw)
    chance = random.Random(3)
    outcome = (
        "(data) => { try { return unsqueezed(fromBase64(data)).length; } catch { return -1; } }"
    )
    for _ in range(200):
        broken = bytearray(data)
        broken[chance.randrange(12, len(data))] ^= 1 << chance.randrange(8)
        assert tab.evaluate(outcome, b64encode(bytes(broken)).decode()) >= -1
