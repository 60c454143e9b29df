"""Casts: valid asciinema files whose replay shows the frames, cell by cell."""

from __future__ import annotations

import json
import re
import unicodedata
from contextlib import contextmanager
from typing import Any

import pyte
import pytest

from sess_cli.commands.export import shared
from sess_cli.export.film import cast, rows, themes
from sess_cli.export.film.pacing import Pacing
from sess_cli.export.film.stage import staged
from sess_cli.export.film.storyboard import storyboard
from sess_cli.options import Masks
from sess_cli.render import layout
from sess_common import installation

MAIN = "11111111-1111-4111-8111-111111111111"
COLOURS = {
    0: "black", 1: "red", 2: "green", 3: "brown", 4: "blue", 5: "magenta", 6: "cyan", 7: "white",
    8: "brightblack", 11: "brightbrown", 12: "brightblue", 14: "brightcyan",
}  # fmt: skip


@contextmanager
def opened(world, monkeypatch, session=MAIN):
    monkeypatch.setenv("HOME", str(world.root))
    monkeypatch.setenv("SESSIOND_HOME", str(world.state))
    monkeypatch.setenv("TZ", "UTC")
    with shared.opened(session, Masks().redactor, sync=False) as story:
        yield story


def film_of(world, monkeypatch, columns=100, lines=24, **pacing):
    with opened(world, monkeypatch) as story:
        board = storyboard(story, columns, utc=True)
        return staged(board, Pacing(**pacing).plan(board), columns, lines)


def cells(line, columns):
    """Character, colour and weight of every cell of a row, as a terminal has them."""
    found: list[list[Any]] = []
    for text, look in () if rows.half_of(line) == 2 else line:
        for character in text:
            width = layout.cells(character)
            if width == 0:
                found[-1 if found[-1][0] else -2][0] += character
                continue
            found.append([character, look])
            if width == 2:
                found.append(["", look])
    found += [[" ", None]] * (columns - len(found))
    return found


def same(shown, wanted):
    character, look = wanted
    if unicodedata.normalize("NFC", shown.data) != unicodedata.normalize("NFC", character):
        return False
    if look is None:
        return True
    if shown.bold != look.bold or shown.italics != look.italic:
        return False
    if look.bg in themes.TINTS:
        return shown.fg == themes.TINTS[look.bg][0]
    if look.fg == "text":
        return shown.fg == "default"
    if isinstance(look.fg, str):
        return shown.fg == COLOURS[cast._NUMBERS[look.fg]]
    return True


@pytest.fixture
def told(world):
    """A session with everything that is hard to draw."""
    t = world.transcript(MAIN)
    t.append(
        t.prompt("修正 the café\u0301 menu 🎉 and שלום\nsecond line " + "wide " * 60),
        t.answer(
            "# Plan\n\nI will **fix** `menu.py`:\n\n1. look\n2. change\n\n"
            "| name | wert |\n|---|---|\n| 日本 | 2 |\n\n```python\nprint('x')\n```\n"
            + "A long line of prose. " * 30
        ),
        t.call("c1", command="pytest -q\necho done", description="Run the tests"),
        t.result("c1", "\x1b[31mFAILED\x1b[0m tests\n\x1b[1;32mok\x1b[0m\ttab\n\x07\x1b]0;t\x07x"),
        *[
            record
            for n in range(30)
            for record in (t.call(f"l{n}", command=f"seq {n}"), t.result(f"l{n}", "1\n2\n3"))
        ],
        t.call("e1", "Edit", file_path="/code/demo/menu.py", old_string="a = 1", new_string="a"),
        t.result("e1", "done"),
        t.prompt("thanks"),
        t.answer("Done: \x1b[2J\x1b[H \u202egnp.exe"),
    )  # fmt: skip
    world.ingest()
    return world


def test_a_replay_shows_the_frames_cell_by_cell(told, monkeypatch):
    film = film_of(told, monkeypatch)
    events = [json.loads(line) for line in cast.lines(film, theme_name="mocha", timestamp=0)][1:]
    screen = pyte.Screen(film.columns, film.lines)
    stream = pyte.Stream(screen)
    drawn = iter(event for event in events if event[1] == "o")
    frames = 0
    for frame in film.frames():
        at, _, data = next(drawn)
        assert at == frame.at / 1000
        stream.feed(data)
        for number, line in enumerate(frame.rows):
            for column, wanted in enumerate(cells(line, film.columns)):
                assert same(screen.buffer[number][column], wanted), (at, number, column, wanted)
        frames += 1
    assert frames > 100
    assert next(drawn)[0] == film.duration / 1000  # the end card stays until the end
    assert next(drawn, None) is None


def test_the_file_is_asciinema_version_2_with_a_mark_for_each_prompt(told, tmp_path):
    path = tmp_path / "a.cast"
    told.run("sess", "export", "cast", MAIN, "--no-sync", "-o", path, check=0)
    text = path.read_text()
    header, *events = [json.loads(line) for line in text.splitlines()]
    assert (header["version"], header["width"], header["height"]) == (2, 136, 36)
    assert header["title"].startswith("修正 the caf")
    assert header["theme"]["bg"] == "#1e1e2e"
    assert len(header["theme"]["palette"].split(":")) == 16
    assert [event[0] for event in events] == sorted(event[0] for event in events)
    assert {event[1] for event in events} == {"o", "m"}
    marks = [event for event in events if event[1] == "m"]
    assert [mark[2] for mark in marks][1] == "thanks"
    assert marks[0][0] == 0
    assert abs(events[-1][0] - header["duration"]) < 0.001
    assert path.stat().st_mode & 0o777 == 0o600
    again = tmp_path / "b.cast"
    told.run("sess", "export", "cast", MAIN, "--no-sync", "-o", again, check=0)
    assert again.read_bytes() == path.read_bytes()


def test_no_escape_of_the_transcript_reaches_the_file(told):
    text = told.run("sess", "export", "cast", MAIN, "--no-sync", "-o", "-", check=0).stdout
    data = "".join(event[2] for event in map(json.loads, text.splitlines()[1:]) if event[1] == "o")
    rest = data
    for known in ("\x1b[?25l\x1b[?7l\x1b[0m\x1b[2J", "\x1b[0m\x1b[?7h\x1b[?25h"):
        assert data.count(known) == 1
        rest = rest.replace(known, "")
    rest = re.sub(r"\x1b\[(?:[0-9;]*[mHr]|K)|\n", "", rest)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e]", rest)
    assert "<U+202E>" in rest


def test_casts_and_tapes_need_no_library_for_pictures(told):
    code = (
        "import sys\n"
        "class No:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name.split('.')[0] in ('av', 'PIL', 'numpy'):\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, No())\n"
        "from sess_cli.start import run\n"
        "run()\n"
    )
    for format_ in ("cast", "tape"):
        done = told.run(
            "python", "-c", code, "export", format_, MAIN, "--no-sync", "-o", "-", check=0
        )
        assert len(done.stdout) > 1000


def test_without_the_extra_a_hint_names_what_to_install(told):
    code = (
        "import importlib.util as u, sys\n"
        "real = u.find_spec\n"
        "u.find_spec = lambda n, *r: None if n in ('av', 'PIL') else real(n, *r)\n"
        "from sess_cli.start import run\n"
        "run()\n"
    )
    done = told.run("python", "-c", code, "export", "video", MAIN, "--no-sync")
    assert done.returncode == 69
    assert done.stderr == (
        "sess: films need PyAV and Pillow\n"
        f"hint: `{installation.adding('video')}`; `sess export cast` and `tape` work without\n"
    )


def test_rows_fit_whatever_the_text(told, monkeypatch):
    for columns, lines in ((20, 5), (40, 10), (200, 60)):
        film = film_of(told, monkeypatch, columns, lines)
        for frame in film.frames():
            assert len(frame.rows) == lines
            assert max(map(rows.width, frame.rows)) <= columns
