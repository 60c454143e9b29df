"""`sess pick`: marks, what goes with them, and what is left, as somebody at the screen sees it."""

from __future__ import annotations

import asyncio
from contextlib import closing

import pytest
from tests.cli.edit.conftest import rest

from sess_cli.commands.cut import _marks
from sess_cli.edit import cutting
from sess_cli.picker_screen import Picker
from sess_schema.connection import open_reader
from sess_schema.queries import transcripts

SESSION = "11111111-1111-4111-8111-111111111111"


@pytest.fixture
def talk(world):
    """Seven records; the answer before the correction is suggested."""
    t = world.transcript()
    t.append(
        t.prompt("look at the mud"),
        t.call("c1", command="cat mud"),
        t.result("c1", "m" * 400),
        t.answer("It is water."),
        t.prompt("that is not what I asked"),
        t.answer("It is mud."),
        t.prompt("thanks"),
    )
    rest(t.path)
    world.ingest()
    return t


def pick(world, script, *, suggest=False, size=(100, 20)):
    """Run a script at the picker; return the app."""

    async def main(db):
        chosen = cutting.find_target(db, SESSION)
        marks = _marks(db, chosen, transcripts.read(db, chosen.source), suggest=suggest)
        app = Picker(marks, utc=True)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await script(app, pilot)
        return app

    with closing(open_reader(world.state / "index.db")) as db:
        return asyncio.run(main(db))


def rows(app):
    return [app.rows.render_line(y).text.rstrip() for y in range(app.rows.size.height)]


def gutter(app):
    return "".join(row[1] for row in rows(app) if row)


def test_marks_and_what_goes_with_them(world, talk):
    """A marked call takes its result with it, at once, in the rows and in the numbers above."""

    async def script(app, pilot):
        assert gutter(app) == " " * 7
        assert app.head.render().plain == "7 records, about 128 tokens; nothing is marked"
        await pilot.press("j", "space")
        assert gutter(app) == " x+    "
        assert app.head.render().plain == "7 records → 5, about 128 tokens → 18"
        await pilot.press("j")
        assert app.why.render().plain == "goes with 2, whose call it answers"
        await pilot.press("k", "x")
        assert gutter(app) == " " * 7
        await pilot.press("d", "d")
        assert app.marks.chosen == {2, 3}
        assert app.rows.cursor == 3
        await pilot.press("c")
        assert app.marks.chosen == set()

    pick(world, script)


def test_the_cursor_stays_within_the_records(world, talk):
    """Up from the first and down from the last do nothing; g and G go to the ends."""

    async def script(app, pilot):
        await pilot.press("k")
        assert app.rows.cursor == 0
        await pilot.press("G", "j")
        assert app.rows.cursor == 6
        await pilot.press("g")
        assert app.rows.cursor == 0
        await pilot.press("pagedown")
        assert app.rows.cursor == app.rows.size.height - 1 or app.rows.cursor == 6

    pick(world, script)
    pick(world, script, size=(80, 8))


def test_suggestions_are_pointed_out_with_their_reasons(world, talk):
    """The cursor starts at the first. Enter cuts nothing that nobody marked; `s` marks them."""

    async def script(app, pilot):
        assert gutter(app) == "   ◆   "
        assert app.rows.cursor == 3
        assert app.why.render().plain == "suggested: corrected in 5: “not what i asked”"
        assert app.legend.render().plain.split() == ["◆", "suggested"]
        await pilot.press("j")
        assert not app.why.display
        assert app.marks.chosen == set()
        await pilot.press("enter")
        assert app.is_running
        await pilot.press("s")
        assert gutter(app) == "   x   "
        assert app.marks.chosen == {4}
        await pilot.press("c", "s", "enter")

    assert pick(world, script, suggest=True).return_value is True


def test_warnings_are_shown_before_the_cut(world, talk):
    """A result without its call."""

    async def script(app, pilot):
        await pilot.press("j", "j", "space")
        told = app.trouble.render().plain
        assert told == "1 warning: 2 calls Bash, and its result in 3 goes"

    pick(world, script)


def test_enter_with_warnings_keeps_the_marks(world, talk):
    """It says why nothing is cut and which key cuts anyway; that key is the option."""

    async def script(app, pilot):
        await pilot.press("j", "j", "space", "enter")
        assert app.is_running
        assert app.trouble.render().plain.startswith("not cut: 1 warning: 2 calls Bash")
        assert app.trouble.render().plain.endswith("f cuts anyway")
        assert app.marks.chosen == {3}
        await pilot.press("f", "enter")

    app = pick(world, script)
    assert (app.return_value, app.marks.force) == (True, True)


def test_escape_keeps_the_marks(world, talk):
    """Without any, it ends the picker."""

    async def script(app, pilot):
        await pilot.press("space", "escape")
        assert app.is_running
        assert app.trouble.render().plain == "c clears the marks, q quits without cutting"
        await pilot.press("j")
        assert not app.trouble.display
        await pilot.press("c", "escape")

    assert pick(world, script).return_value is False


def test_marks_that_are_not_cut_are_told(world, talk):
    """As a command that cuts them."""
    marked = f"marked: sess cut {SESSION} 3 --dry-run\n"
    done = world.run("sess", "pick", SESSION, "--yes", "--no-suggest", input="3\n", check=2)
    assert marked in done.stderr
    assert "not cut because of 1 warning" in done.stderr
    done = world.run("sess", "pick", SESSION, "--yes", "--force", input="3\n", check=0)
    assert "marked:" not in done.stderr


@pytest.mark.parametrize(("key", "agreed"), [("enter", True), ("q", False), ("ctrl+c", False)])
def test_only_enter_cuts(world, talk, key, agreed):
    """Everything else that ends the picker changes nothing."""

    async def script(app, pilot):
        await pilot.press("space", key)

    assert pick(world, script).return_value is agreed


def test_without_a_screen_numbers_are_asked_for(world, talk):
    """Numbers that do not exist are asked for again; an empty line cuts nothing."""
    before = talk.path.read_bytes().splitlines(keepends=True)
    done = world.run("sess", "pick", SESSION, "--yes", input="99\n2\n", check=0)
    assert "sess: no record 99: there are 1 to 7" in done.stderr
    assert talk.path.read_bytes().splitlines(keepends=True) == [before[0], *before[3:]]
    world.run("sess", "undo", check=0)
    done = world.run("sess", "pick", SESSION, "--yes", input="", check=0)
    assert done.stderr.endswith("nothing was changed\n")
    done = world.run("sess", "pick", SESSION, "--yes", input="\n", check=0)
    assert done.stderr.endswith("nothing was changed\n")
    assert talk.path.read_bytes().splitlines(keepends=True) == before
    world.run("sess", "pick", SESSION, "--yes", input="s\n", check=0)
    assert talk.path.read_bytes().splitlines(keepends=True) == [*before[:3], *before[4:]]
