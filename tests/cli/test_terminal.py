"""What may reach a terminal, and how it is laid out."""

from __future__ import annotations

import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sess_cli.render import amounts, layout
from sess_cli.terminal import Terminal
from sess_common.escape import safe

BIDI = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("a\tb\nc", "a\tb\nc"),
        ("a\r\nb", "a\nb"),
        ("10%\r20%", "10%\n20%"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]52;c;aGk=", "52;c;aGk="),
        ("\x1b", "␛"),
        ("\x9b31mred", "red"),
        ("\x9d0;title", "<U+009D>0;title"),
        ("bell\x07", "bell␇"),
        ("del\x7f", "del␡"),
        ("\u202egnp.exe", "<U+202E>gnp.exe"),
        ("tag\U000e0041", "tag<U+E0041>"),
        ("naïve 日本 👩‍💻", "naïve 日本 👩‍💻"),
    ],
)
def test_text_is_shown_and_not_obeyed(text, expected):
    """Sequences vanish, what is left of control characters becomes visible, words stay."""
    assert safe(text) == expected


@given(st.one_of(st.text(), st.text(alphabet="\x1b[]0;m\x07\x9b\x9d\\P^_a\r\u202e\n")))
def test_no_control_character_passes(text):
    """Only newlines and tabs keep their meaning, whatever the text."""
    for character in safe(text):
        assert character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cs")
        assert character not in BIDI


def test_a_pipe_gets_the_text_as_it_is(monkeypatch):
    """Escaping is for terminals; a pipe has no colour and no width."""
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    pipe = Terminal(io.StringIO())
    assert (pipe.text("\x1b[31m"), pipe.style("x", "red"), pipe.width) == ("\x1b[31m", "x", None)


@pytest.mark.parametrize(
    ("env", "paged", "expected"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
    ],
)
def test_colour_follows_the_terminal_and_the_environment(monkeypatch, env, paged, expected):
    """NO_COLOR wins, FORCE_COLOR forces, else only a terminal has colour."""
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert Terminal(io.StringIO(), paged=paged).colour is expected


@pytest.mark.parametrize(
    ("milliseconds", "expected"),
    [
        (0, "0ms"),
        (500, "500ms"),
        (1500, "1.5s"),
        (59_999, "59.9s"),
        (150_000, "2m30s"),
        (3_900_000, "1h5m"),
        (180_000_000, "2d2h"),
    ],
)
def test_durations(milliseconds, expected):
    """Each range has its own form."""
    assert amounts.duration(milliseconds) == expected


@pytest.mark.parametrize(
    ("passed", "expected"),
    [
        (-10_000, "just now"),
        (59_000, "just now"),
        (60_000, "1m ago"),
        (3 * 3_600_000, "3h ago"),
        (26 * 3_600_000, "1d ago"),
        (13 * 86_400_000, "13d ago"),
        (15 * 86_400_000, "2w ago"),
        (60 * 86_400_000, "2025-12-22"),
        (-86_400_000, "2026-02-21"),
    ],
)
def test_how_long_ago(passed, expected):
    """Near times are relative, far ones and future ones are dates."""
    now = 1_771_597_800_000
    assert amounts.ago(now - passed, now, utc=True) == expected
    assert amounts.ago(None, now) == "no date"


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, "0 bytes"), (1, "1 byte"), (1500, "1.5 kB"), (999_960, "1.0 MB"), (7 * 10**12, "7.0 TB")],
)
def test_sizes(count, expected):
    """Sizes are said in decimal units."""
    assert amounts.size(count) == expected


@given(st.text(alphabet="ab 日é́\u200d-", max_size=80), st.integers(4, 40))
def test_lines_fit(text, width):
    """What is cut or wrapped never takes more columns than there are."""
    assert layout.cells(layout.cut(text, width)) <= width
    assert layout.cells(layout.cut_start(text, width)) <= width
    for line in layout.wrap(text, width, "  "):
        assert layout.cells(line) <= width


@given(st.text(alphabet="ab 日-", max_size=80), st.integers(4, 40))
def test_wrapping_keeps_every_word(text, width):
    """Nothing but white space changes."""
    assert "".join("".join(layout.wrap(text, width)).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("path", "width", "expected"),
    [
        ("/home/ada/teapot", 20, "~/teapot"),
        ("/home/ada", 20, "~"),
        ("/home/adam/x", 20, "/home/adam/x"),
        ("/srv/one/two/three", 12, "…/two/three"),
        ("/srv/averylongname", 8, "…ongname"),
        (None, 20, "no project"),
    ],
)
def test_paths_keep_their_end(monkeypatch, path, width, expected):
    """Of a path the last directories tell most."""
    monkeypatch.setenv("HOME", "/home/ada")
    assert layout.tail_of(path, width) == expected
