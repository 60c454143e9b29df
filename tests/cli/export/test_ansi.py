"""Texts with escape sequences, as a terminal would show them in the end."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.at_length import amount

from sess_cli.export.ansi import PLAIN, Style, plain, runs


@pytest.mark.parametrize(
    ("codes", "style"),
    [
        ("31", Style(fg=1)), ("97", Style(fg=15)), ("42", Style(bg=2)), ("103", Style(bg=11)),
        ("38;5;200", Style(fg=200)), ("48;5;7", Style(bg=7)), ("38;2;1;2;3", Style(fg=(1, 2, 3))),
        ("38:5:200", Style(fg=200)), ("38:2:1:2:3", Style(fg=(1, 2, 3))),
        ("48:2::9:8:7", Style(bg=(9, 8, 7))),
        ("1;3;4;9", Style(bold=True, italic=True, underline=True, strike=True)),
        ("2;7", Style(dim=True, inverse=True)), ("4:3", Style(underline=True)), ("4:0", PLAIN),
        ("1;31;0", PLAIN), ("31;", PLAIN), ("1;2;22", PLAIN), ("31;39;41;49", PLAIN),
        ("01;031", Style(fg=1, bold=True)), ("38;5;1;1", Style(fg=1, bold=True)),
        ("38;5;999", PLAIN), ("38;2;1;2;300", PLAIN), ("38", PLAIN), ("38;5", PLAIN),
        ("999", PLAIN),
        ("6;8;73", PLAIN),
    ],
)  # fmt: skip
def test_colours_and_weights_in_every_notation(codes, style):
    assert list(runs(f"\x1b[{codes}mx")) == [("x", style)]
    assert list(runs(f"\x9b{codes}mx")) == [("x", style)]


def test_styles_last_over_lines_until_they_are_reset():
    assert list(runs("a\x1b[31mb\nc\x1b[0md")) == [
        ("a", PLAIN),
        ("b\nc", Style(fg=1)),
        ("d", PLAIN),
    ]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("10%\r50%\r100%\ndone", "100%\ndone"), ("abcdef\rxy", "xycdef"), ("a\r\nb\r\n", "a\nb\n"),
        ("a\r\r\nb", "a\nb"), ("end\r", "end"), ("loading\r\x1b[Kok", "ok"), ("abc\x1b[2Kok", "ok"),
        ("ab\x08c", "ac"), ("\x08a", "a"), ("_\x08a_\x08b", "ab"), ("abc\x1b[2Dx", "axc"),
        ("a\x1b[3Cb", "a   b"), ("abc\x1b[1Gx", "xbc"), ("a\x1b[99999Cb", "a" + " " * 80 + "b"),
        ("\x1b]8;;http://x.example\x1b\\link\x1b]8;;\x07!", "link!"), ("\x1b]0;title\x07x", "x"),
        ("\x1bPq#0\x1b\\x", "x"), ("\x1b_Gi=1;AAAA\x1b\\x", "x"), ("\x1b(Bx\x1b=", "x"),
        ("\x1b[?25lx\x1b[2J\x1b[10;10Hy\x1b[1A", "xy"), ("a\x1b", "a"), ("a\x1b[", "a"),
        ("a\x1b[31", "a"), ("a\x1b]0;never ends\nb", "a\nb"), ("a\x1b[3é", "aé"),
        ("a\x1b[>4;2mb", "ab"),
        ("a\x00\x07\x0b\x0c\x7f\x85b", "ab"), ("a\tb\nc", "a\tb\nc"), ("", ""), ("\x1b[31m", ""),
    ],
)  # fmt: skip
def test_only_the_final_state_stays(given, shown):
    assert plain(given) == shown


def test_written_over_characters_take_the_new_style():
    assert list(runs("abc\r\x1b[31mx")) == [("x", Style(fg=1)), ("bc", PLAIN)]


@pytest.mark.parametrize(
    "hostile",
    ["\x1b[", "\x1b", "\x1b]", "\x1bP", "\x1b[1;", "\r", "a\x08", "\x1b[2Kx", "\x1b[80Cx\x1b[2K"],
)
def test_a_long_hostile_text_ends(hostile):
    """Each of these takes minutes if the time is quadratic."""
    assert len(plain(hostile * 50_000)) <= 100


def test_moves_make_no_text_much_longer():
    assert len(plain("\x1b[99C" * 10_000 + "x")) <= 81


PIECES = st.one_of(
    st.text(max_size=8),
    st.sampled_from([
        "\x1b", "\x1b[", "\x9b", "31", ";", ":", "m", "K", "2K", "5C", "3D", "1G", "\r", "\n",
        "\r\n",
        "\x08", "\x1b]8;;x", "\x07", "\x1b\\", "\x9c", "\x1bP", "\x90", "\x85", "\u2028", "é",
        "\x1b[1m",
    ]),
)  # fmt: skip


@settings(max_examples=amount(133, 1200), deadline=None)
@given(st.lists(PIECES, max_size=20).map("".join))
def test_no_control_character_stays_and_runs_join_to_the_plain_text(text):
    shown = plain(text)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown)
    found = list(runs(text))
    assert "".join(piece for piece, _ in found) == shown
    assert all(piece for piece, _ in found)
    assert all(a[1] != b[1] for a, b in pairwise(found))
    assert plain(shown) == shown
