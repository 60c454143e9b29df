"""The page's own Zstandard decoder, tested against the real encoder."""

from __future__ import annotations

import random
from base64 import b64encode

import pytest
import zstandard
from tests.browser.attacks import chromium

from sess_cli.export.html import shell

READ = "(data) => unsqueezed(fromBase64(data))"


@pytest.fixture(scope="module")
def tab():
    with chromium() as browser:
        tab = browser.new_page()
        tab.add_script_tag(content=shell._read("page/zstd.js"))
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
