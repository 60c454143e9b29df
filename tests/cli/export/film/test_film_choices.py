"""Which prompts and failures a film tells, its title and its captions."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from tests.cli.export.film.filmed import Session

from sess_cli.export.film import encode, rows
from sess_cli.export.film.pacing import Pacing
from sess_cli.export.film.storyboard import Extent, parse_prompts
from sess_common.errors import SessError

PROJECT = Path(__file__).parents[4] / "pyproject.toml"


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


def test_a_short_film_tells_what_came_of_the_prompts_it_shows(session):
    """Not the first prompts, but the first, the last and those with the most work, and results."""
    t = session.transcript
    for number in range(12):
        session.write(t.prompt(f"please do the thing number {number}"))
        for _ in range(8 if number in (4, 8) else 1):
            session.call("Bash", "line\n" * 20, command=f"make {number}")
        session.call("Edit", file_path=f"/f{number}", old_string="a", new_string="b")
        session.write(t.answer(f"It is done: {number}."))
    for seconds in (20, 30, 45):
        plan = Pacing(duration=seconds * 1000).plan(session.board())
        shown = [shot for shot in plan.shots if not shot.folded]
        asked = {shot.chapter for shot in shown if shot.said.startswith("please")}
        ended = {shot.chapter for shot in shown if shot.said.startswith("It is done")}
        assert {1, 12} <= ended <= asked
        assert 5 in ended or seconds == 20


def test_nothing_passes_faster_than_it_can_be_read(session):
    """However short the film: of what is said eight words a second, of outputs sixteen."""
    t = session.transcript
    for number in range(9):
        session.write(t.prompt("please explain this at length " * 12))
        session.call("Bash", "a line of some words\n" * 30, command=f"make {number}")
        session.write(t.answer("and this is what came of it " * 20))
    for duration in (15_000, 40_000, 120_000, None):
        plan = Pacing(duration=duration).plan(session.board())
        for shot in plan.shots:
            words = sum(len(rows.plain(row).split()) for row in (*shot.head, *shot.body))
            pace = 8 if shot.said else 16
            assert words <= pace * shot.length / 15 + 2 or shot.folded


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
        card = [row for row in frame.rows[:-1] if row and "made with" not in rows.plain(row)]
        assert {rows.half_of(row) for row in card if rows.half_of(row) or frame is frames[0]} == {
            1,
            2,
        }
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


def test_the_last_card_names_the_session_and_what_made_the_film(session):
    """Whoever sees it posted knows what it shows, and where to get one."""
    session.write(session.transcript.prompt("boil water"))
    session.call("Bash", command="x")
    for columns, lines in ((136, 36), (64, 50)):
        frames = [*session.film(columns=columns, lines=lines).frames()]
        first, last = frames[0], frames[-1]
        said = " ".join(" ".join(map(rows.plain, last.rows)).split())
        assert "boil water" in said
        assert f"claude session {session.transcript.session[:8]} · made with sess" in said
        homepage = tomllib.loads(PROJECT.read_text())["project"]["urls"]["Homepage"]
        assert homepage.removeprefix("https://") in said
        starts = [
            next(len(t) - len(t.lstrip()) for t in map(rows.plain, frame.rows) if t.strip())
            for frame in (first, last)
        ]
        assert starts[0] == starts[1]
