"""Which prompts and failures a film tells, its title and its captions."""

from __future__ import annotations

import re

import pytest
from tests.cli.export.film.filmed import Session

from sess_cli.export.film import encode, rows
from sess_cli.export.film.pacing import Pacing
from sess_cli.export.film.storyboard import Extent, parse_prompts
from sess_common.errors import SessError


@pytest.fixture
def session(world, monkeypatch):
    return Session(world, monkeypatch)


def test_only_these_prompts_are_filmed(session):
    for number in range(1, 5):
        session.write(session.transcript.prompt(f"number {number}"))
        session.call("Bash", command=f"echo {number}")
    for given, wanted in (("2-3", [2, 3]), ("2", [2]), ("3-", [3, 4]), ("-1", [1])):
        board = session.board(extent=Extent(prompts=parse_prompts(given)))
        assert board.chapters == [f"number {number}" for number in wanted]
        told = [rows.plain(scene.head.rows[0]) for scene in board.scenes if scene.kind == "shell"]
        assert told == [f"$ echo {number}" for number in wanted]


@pytest.mark.parametrize("given", ["", "x", "0", "7-3", "-", "1-2-3"])
def test_prompts_that_are_no_range_are_one_line(given):
    with pytest.raises(SessError, match="invalid prompts"):
        parse_prompts(given)


def test_the_same_failure_is_told_once_with_how_often_it_came_again(session):
    session.write(session.transcript.prompt("go"))
    for number in range(3):
        session.call("Edit", "not read yet", is_error=True, file_path=f"/f{number}", old_string="a",
                     new_string="b")  # fmt: skip
    session.call("Bash", "not read yet", is_error=True, command="x")
    session.write(session.transcript.prompt("again"))
    session.call("Edit", "not read yet", is_error=True, file_path="/f", old_string="a",
                 new_string="b")  # fmt: skip
    scenes = [scene for scene in session.board().scenes if scene.failed]
    assert [scene.kind for scene in scenes] == ["edit", "shell", "edit"]
    assert rows.plain(scenes[0].tail).strip() == "2 more times the same"
    assert "the same" not in rows.plain(scenes[2].tail)


def test_no_prompt_is_folded_while_a_call_is_shown(session):
    """However short the film, what was asked comes before what was done."""
    for number in range(12):
        session.write(session.transcript.prompt(f"please do the thing number {number}"))
        for _ in range(8):
            session.call("Bash", "line\n" * 20, command=f"make {number}")
    for seconds in (15, 25, 40):
        board = session.board()
        plan = Pacing(duration=seconds * 1000).plan(board)
        shown = [shot for shot in plan.shots if not shot.folded]
        asked = sum(bool(shot.said) for shot in shown)
        assert asked == 12 or asked == len(shown)


def test_a_prompt_of_a_few_rows_is_whole_in_the_shortest_film(session):
    said = " ".join(f"word{number:02}" for number in range(30))
    session.write(session.transcript.prompt(said))
    for number in range(40):
        session.call("Bash", "done", command=f"make {number}")
    plan = Pacing(duration=5_000).plan(session.board(columns=44))
    [prompt] = [shot for shot in plan.shots if shot.said]
    shown = " ".join(map(rows.plain, prompt.head))
    assert re.findall(r"word\d\d", shown) == said.split()
    assert "more lines" not in shown


def test_a_title_and_an_outcome_are_large_and_end_inside_the_screen(session):
    session.write(session.transcript.prompt("a title of several words " * 9))
    session.call("Bash", command="x")
    for columns, lines in ((120, 40), (60, 20), (30, 12)):
        film = session.film(columns=columns, lines=lines)
        frames = [*film.frames()]
        for frame in (frames[0], frames[-1]):
            assert any(rows.half_of(row) == 1 for row in frame.rows) or lines < 20
            assert all(rows.breadth(row) <= columns for row in frame.rows)
            halves = [rows.half_of(row) for row in frame.rows if rows.half_of(row)]
            assert halves == [1, 2] * (len(halves) // 2)
            assert len(frame.rows) == lines


def test_a_portrait_has_all_facts_in_large_letters(session):
    """Rows that are too long for that are wrapped."""
    session.write(session.transcript.prompt("go", cwd="/code/a-project-with-a-long-name"))
    session.call("Bash", command="x")
    frames = [*session.film(columns=64, lines=50).frames()]
    for frame in (frames[0], frames[-1]):
        assert {rows.half_of(row) for row in frame.rows[:-1] if row} == {1, 2}
    shown = " ".join(" ".join(map(rows.plain, frames[0].rows[::2])).split())
    assert "2026-02-01 10:00" in shown


def test_captions_leave_out_the_bar_beside_code(session):
    t = session.transcript
    session.write(t.prompt("how?"), t.answer("So:\n\n```\nmake all\n```"))
    assert session.film().captions[1].text == "So: make all"


def test_captions_of_a_prompt_have_no_marks(session):
    session.write(session.transcript.prompt("Be **quick**:\n\n```sh\nmake all\n```"))
    assert session.film().captions[0].text == "Be quick: make all"


def test_captions_say_what_people_and_models_said_while_it_is_shown(session):
    t = session.transcript
    session.write(t.prompt("why <b> --> & so?"), t.answer("Because.\n\nIt is."))
    film = session.film()
    assert [caption.text for caption in film.captions] == ["why <b> --> & so?", "Because. It is."]
    first, second = film.captions
    assert 0 < first.at < first.end == second.at < second.end < film.duration
    told = "".join(encode.webvtt(film))
    assert told.startswith("WEBVTT\n\n1\n00:00:0")
    assert "\nwhy &lt;b&gt; --&gt; &amp; so?\n" in told
