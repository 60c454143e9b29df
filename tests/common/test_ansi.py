"""Escape sequences: what is taken out of a text, and what stays."""

from __future__ import annotations

import pytest

from sess_common import escape
from sess_common.escape import safe


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ("\x1b[31mFAILED\x1b[0m", "FAILED"),
        ("\x1b[38;2;255;0;0mred\x1b[K", "red"),
        ("\x9b1mbold\x9b0m", "bold"),
        ("\x1b]0;a title\x07text", "text"),
        ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0\x1b\\sixel", "sixel"),
        ("\x1b(Bcharset\x1b=", "charset"),
        ("nothing to do\t\n\r\b", "nothing to do\t\n\r\b"),
        ("naïve 测试", "naïve 测试"),
        ("an open \x1b]0;title\nswallows nothing", "an open 0;title\nswallows nothing"),
        ("cut off \x1b", "cut off \x1b"),
        ("cut off \x1b[3", "cut off 3"),
    ],
)
def test_sequences_go_and_text_stays(given, left):
    """Whole sequences are taken out; of one that is not whole only its beginning."""
    assert escape.without_sequences(given) == left


@pytest.mark.parametrize(
    "given", ["\x1b[31mred", "\x1b]0;t\x07x", "\x9b1mx", "\x1bPq\x1b\\y", "\x1b"]
)
def test_nothing_that_a_terminal_obeys_is_left_in_safe_text(given):
    """What is no sequence is made visible."""
    assert not set(safe(given)) & {chr(code) for code in (*range(32), *range(127, 160))}


def test_a_coloured_word_is_found_as_that_word(world):
    """The full text has no trace of colours."""
    t = world.transcript()
    t.append(t.call("c1", command="make"), t.result("c1", "\x1b[31mFAILED\x1b[0m \x1b]0;t\x07over"))
    world.ingest()
    assert world.found("FAILED over") == ["makeFAILED over"]
