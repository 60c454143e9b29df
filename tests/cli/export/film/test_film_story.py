"""Storyboards and pacing: what a film shows, for how long, and what it leaves out."""

from __future__ import annotations

import sys
from itertools import pairwise

import pytest
from tests.at_length import amount
from tests.cli.export.film.filmed import MAIN, Session

from sess_cli.export.film import cast, rows
from sess_cli.export.film.pacing import USUAL_LONGEST
from sess_cli.export.film.rows import Look
from sess_cli.export.film.stage import MOST_CHAPTERS
from sess_cli.export.film.storyboard import Extent


@pytest.fixture
def session(world, monkeypatch):
    return Session(world, monkeypatch)


def screens(film):
    return ["\n".join(rows.plain(line) for line in frame.rows) for frame in film.frames()]


def seen(film):
    """Every row that was on the screen, once, in the order they came."""
    return [*dict.fromkeys(rows.plain(line).strip() for f in film.frames() for line in f.rows)]


def looks(film, text):
    """The looks in which a text appeared on the screen."""
    return {
        look for frame in film.frames() for line in frame.rows for run, look in line if text in run
    }


def work(session, prompts=3, steps=12):
    """A typical session."""
    t = session.transcript
    for prompt in range(1, prompts + 1):
        session.write(t.prompt(f"Task number {prompt}: make it better"))
        for step in range(steps):
            session.write(t.answer(f"Now step {step} of task {prompt}."))
            session.call("Read", "text\n" * 50, file_path=f"/code/demo/file{step}.py")
            session.call("Bash", "line\n" * 40, command=f"make step{step}")
            session.call(
                "Edit", file_path=f"/code/demo/file{step}.py", old_string="a\n", new_string="b\n"
            )
        session.call("Bash", "Exit code 2\nbroken", command=f"make all{prompt}", is_error=True)
        session.write(t.answer(f"Task {prompt} is finished.\n\nIt was **hard**."))


# -- scenes


def test_each_kind_of_event_has_its_scene(session):
    t = session.transcript
    session.write(t.prompt("Please fix the bug"))
    session.write(t.assistant([{"type": "thinking", "thinking": "Hmm, where?"}]))
    session.call("Read", "text", file_path="/code/demo/src/app.py")
    session.call("Grep", "src/app.py:3", pattern="bug")
    session.call("Bash", "\x1b[31mred\x1b[0m", command="make test", description="Run the tests")
    session.call("Bash", "Exit code 1\nboom", command="false", is_error=True)
    session.call("Edit", file_path="/code/demo/src/app.py", old_string="x = 1", new_string="x = 2")
    session.call("Write", file_path="/code/demo/new.py", content="a\nb\n")
    todos = [
        {"content": "find it", "status": "completed"},
        {"content": "fix it", "status": "in_progress"},
        {"content": "rest", "status": "pending"},
    ]
    session.call("TodoWrite", todos=todos)
    session.call("Task", "All is **well**.", description="Check all", prompt="Look at everything")
    session.call("WebSearch", "ten results", query="bugs")
    session.write(t.answer("# Done\n\nFixed `app.py`:\n- one\n- two"))
    film = session.film()
    lines = seen(film)
    for expected in (
        "❯ Please fix the bug", "✻ Hmm, where?", "● Read  src/app.py", "$ make test",
        "# Run the tests", "red", "boom", "● Edit  src/app.py  +1 -1", "- x = 1", "+ x = 2",
        "● Write  new.py  2 lines", "+ a", "● Todos  1 of 3 done", "✓ find it", "▸ fix it",
        "□ rest", "● Agent  Check all", "│ ❯ Look at everything", "│ All is well.",
        "● Done", "Fixed app.py:", "• one",
    ):  # fmt: skip
        assert expected in lines, expected
    assert any(line.startswith("✓ OK") for line in lines)
    assert any(line.startswith("✗ FAILED") for line in lines)
    assert any(line.startswith("● Grep") for line in lines)
    assert looks(film, "red") >= {Look(fg=1)}
    assert looks(film, "app.py:") == set()
    assert Look("peach") in looks(film, "app.py")


def test_the_title_of_a_film_has_no_marks(session):
    session.write(session.transcript.prompt("Make `it` **really** fast.\n\n```\nslow()\n```"))
    assert session.board().title == "Make it really fast. …"


def test_changed_lines_have_a_ground_of_their_own(session):
    session.write(session.transcript.prompt("Please double the delay"))
    session.call("Edit", file_path="/code/demo/a.py", old_string="wait(1)", new_string="wait(2)")
    session.call("Write", file_path="/code/demo/new.py", content="fresh = 1\n")
    film = session.film()
    assert {look.bg for look in looks(film, "wait(")} == {"added", "removed"}
    assert {look.bg for look in looks(film, "2")} >= {"added-word"}
    assert {look.bg for look in looks(film, "fresh = 1")} == {"added"}


def test_a_printed_diff_has_the_colours_of_a_diff(session):
    printed = (
        "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@ def f():\n"
        " same\n-old line\n+new line\nafter the diff\n- a point of a list\n"
    )
    session.write(session.transcript.prompt("Please show it"))
    session.call("Bash", printed, command="git diff")
    film = session.film()
    assert {look.bg for look in looks(film, "old line")} == {"removed"}
    assert {look.bg for look in looks(film, "new line")} == {"added"}
    for plain in ("--- a/a.py", "same", "a point of a list"):
        assert {look.bg for look in looks(film, plain)} == {None}, plain
    recording = "".join(cast.lines(film, theme_name="mocha", timestamp=None))
    assert "\\u001b[0;32mnew line" in recording


def test_the_title_card_and_the_end_card_have_the_numbers(session):
    work(session, prompts=2, steps=3)
    first, *_, last = screens(session.film())
    assert "Task number 1: make it better" in first
    assert "claude in /code/demo on main" in first
    assert "2026-02-01 10:00" in first
    assert "claude-opus-4-5" in first
    facts = dict(line.split(None, 2)[:2] for line in last.split("\n") if len(line.split()) >= 2)
    assert facts["prompts"] == "2"
    assert "tool calls     20" in last
    assert facts["failed"] == "2"
    assert facts["tokens"].isdigit()
    assert facts["cost"].startswith("$")


def test_a_commit_is_a_scene_of_its_own(session):
    session.write(session.transcript.prompt("Commit it"))
    session.call(
        "Bash", "[main 1a2b3c4] Teach it to sing\n 1 file changed", command='git commit -m "x"'
    )
    assert any("commit 1a2b3c4 main  Teach it to sing" in line for line in seen(session.film()))


def test_secrets_are_masked_in_films(session):
    session.write(session.transcript.prompt("Use ghp_" + "a1B2" * 9 + " please"))
    assert "ghp_a1B2" not in "".join(screens(session.film()))


def test_a_long_pause_is_shown_as_a_rule_not_as_waiting(session):
    t = session.transcript
    session.write(t.prompt("first"), t.answer("one"))
    t.count += 3 * 3600
    session.write(t.prompt("second"))
    film = session.film()
    assert any(line.endswith("prompt 2 of 2 · 13:00 · 3h0m later ───") for line in seen(film))
    assert film.duration < 20_000


def test_outputs_are_shown_from_both_ends(session):
    session.call("Bash", "\n".join(f"line {n}" for n in range(1, 101)), command="seq 100")
    lines = seen(session.film(options={"max_output": 6}))
    assert "line 1" in lines
    assert "line 100" in lines
    assert "… 94 more lines" in lines
    assert "line 50" not in lines
    assert not any(
        line.startswith("line") for line in seen(session.film(options={"max_output": 0}))
    )


# -- pacing


@pytest.mark.parametrize("seconds", [5, 20, 60, 200, 1000])
def test_a_film_is_as_long_as_it_was_asked_to_be(session, seconds):
    work(session)
    film = session.film(duration=seconds * 1000)
    assert abs(film.duration - seconds * 1000) <= 20 * seconds
    frames = [*film.frames()]
    assert frames[0].at == 0
    assert frames[-1].at < film.duration
    assert [f.at for f in frames] == sorted({f.at for f in frames})
    assert all(one.rows != other.rows for one, other in pairwise(frames))


def test_a_short_film_keeps_prompts_errors_and_last_answers(session):
    work(session, prompts=3, steps=40)
    shown = "\n".join(seen(session.film(duration=30_000)))
    for prompt in (1, 2, 3):
        assert f"❯ Task number {prompt}" in shown
        assert f"● Task {prompt} is finished." in shown
        assert f"$ make all{prompt}" in shown
    assert " reads, " in shown
    assert "FAILED" in shown


def test_many_reads_in_a_row_are_folded_even_when_there_is_time(session):
    for n in range(15):
        session.call("Read", "text", file_path=f"/code/demo/f{n}.py")
    lines = seen(session.film())
    assert "● Read  f2.py" in lines
    assert "● Read  f3.py" not in lines
    assert "… 12 more reads" in lines


def test_speed(session):
    work(session, prompts=1, steps=2)
    normal, double = session.film(), session.film(speed=2)
    assert 0.45 <= double.duration / normal.duration <= 0.55
    assert seen(double)[-3:] == seen(normal)[-3:]


@pytest.mark.parametrize("fps", [5, 30, 60])
def test_the_frame_rate_does_not_change_how_fast_a_film_is(session, fps):
    session.write(session.transcript.prompt("Print a lot"))
    for _ in range(5):
        session.call("Bash", "\n".join(f"line {n}" for n in range(12)), command="make")
    usual = session.film()
    assert session.film(fps=fps).duration == pytest.approx(usual.duration, rel=0.12)


def test_typing_is_two_or_three_letters_a_frame(session):
    session.write(session.transcript.prompt("An ordinary prompt of some forty letters"))
    typed = [line for line in seen(session.film()) if line.startswith("❯") and line.endswith("▌")]
    lengths = [len(line) for line in typed]
    steps = {after - before for before, after in pairwise(lengths)}
    assert steps <= {2, 3}


@pytest.mark.slow
def test_a_film_of_thousands_of_events_ends_in_time_and_says_so(session, tmp_path):
    t = session.transcript
    records = []
    for n in range(amount(1100, 3300)):
        if n % 30 == 0:
            records.append(t.prompt(f"Prompt {n}"))
        records += [
            t.answer(f"Step {n}"),
            t.call(f"c{n}", command=f"run {n}"),
            t.result(f"c{n}", "output\n" * 20),
            t.call(f"r{n}", "Read", file_path=f"/code/demo/{n}"),
            t.result(f"r{n}", "text"),
        ]
    session.write(*records)
    film = session.film()
    assert film.duration == USUAL_LONGEST
    assert len(film.chapters) <= MOST_CHAPTERS
    path = tmp_path / "film.cast"
    done = session.world.run("sess", "export", "cast", MAIN, "--no-sync", "-o", path, check=0)
    assert "to 5m0s; --duration sets another length" in done.stderr


# -- chapters, progress


def test_chapters_are_the_prompts(session):
    work(session, prompts=4, steps=1)
    film = session.film()
    assert [c.title for c in film.chapters] == [
        f"Task number {n}: make it better" for n in range(1, 5)
    ]
    assert film.chapters[0].at == 0
    frames = [*film.frames()]
    for number, chapter in enumerate(film.chapters[1:], 2):
        shown = [f for f in frames if f.at <= chapter.at + 300][-1]
        text = "\n".join(map(rows.plain, shown.rows))
        assert f"prompt {number} of 4" in text


def test_the_last_row_shows_the_progress_of_film_and_session(session):
    work(session, prompts=2, steps=4)
    film = session.film()
    last = [rows.plain(frame.rows[-1]) for frame in film.frames()]
    done = [line.count("━") for line in last]
    assert done == sorted(done)
    assert done[0] == 0
    assert "─" not in last[-1]
    assert last[-1].strip().startswith("prompt 2 of 2")
    clock = last[-1].split()[-3:]
    assert clock[0] == clock[2]
    assert {len(line) for line in last} == {len(last[0])}


def test_progress_through_days_does_not_look_like_a_time_of_day(session):
    session.write(session.transcript.prompt("first"))
    session.transcript.count += 49 * 3600
    session.write(session.transcript.prompt("second"))
    last = [rows.plain(frame.rows[-1]) for frame in session.film().frames()]
    assert last[0].endswith("    0s of 2d1h")
    assert last[-1].endswith("  2d1h of 2d1h")
    assert {len(line) for line in last} == {len(last[0])}


@pytest.mark.parametrize("columns", [20, 38, 60])
def test_on_a_narrow_screen_cards_and_progress_are_not_cut_off(session, columns):
    session.write(session.transcript.prompt("Go"))
    session.call("Bash", command="make")
    film = session.film(columns=columns)
    first, *_, last = [[rows.plain(line) for line in frame.rows] for frame in film.frames()]
    assert "…" not in last[-1]
    assert last[-1].endswith("  2s" if columns < 56 else "  2s of 2s")
    assert "1 tool call" in " ".join(" ".join(first).split())


def test_frames_can_be_asked_for_again_and_are_the_same(session):
    work(session, prompts=1, steps=2)
    film = session.film()
    assert [*film.frames()] == [*film.frames()]
    assert [*session.film().frames()] == [*film.frames()]


# -- extent


def test_from_and_to_take_events_numbers_and_times(session):
    t = session.transcript
    for n in range(10):
        session.write(t.prompt(f"prompt-{n}"))
    with session.opened() as story:
        events = [item.key for item in story.items()]

        def told(begin, end=None):
            chosen = Extent(begin, end, utc=True)
            return [item.text for item in chosen.items(story)]

        everything = [f"prompt-{n}" for n in range(10)]
        assert told(f"#{events[3]}", f"#{events[5]}") == everything[3:6]
        assert told("3", "5") == everything[3:6]
        assert told("10:00:04", "10:00:06") == everything[3:6]
        assert told("+3s", "+5s") == everything[3:6]
        assert told("2026-02-01T10:00:04", "2026-02-01T10:00:06") == everything[3:6]
        assert told("2026-02-01") == everything
        assert told(None, "2") == everything[:3]
        assert told("8") == everything[8:]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--from", "#abcdef99"], 1, "has no event #abcdef99"),
        (["--to", "99"], 1, "has no event 99"),
        (["--from", "soon"], 2, 'no such event or time: "soon"'),
        (["--duration", "soon"], 2, 'invalid duration: "soon"'),
        (["--duration", "1s"], 2, "duration out of range: 1s"),
        (["--only", "errors"], 1, "nothing to film"),
        (["--theme", "none"], 2, 'no such theme: "none"'),
    ],
)
def test_what_cannot_be_filmed_is_an_error_of_one_line(session, arguments, code, words):
    session.write(session.transcript.prompt("hello"))
    session.world.ingest()
    done = session.world.run("sess", "export", "cast", MAIN, "--no-sync", "-o", "-", *arguments)
    assert done.returncode == code
    assert words in done.stderr.splitlines()[0]
    assert done.stdout == ""


def test_only_one_kind(session):
    work(session, prompts=1, steps=1)
    kinds = {
        kind: {scene.kind for scene in session.board(only_kind=kind).scenes}
        for kind in ("tools", "conversation", "errors")
    }
    assert kinds["tools"] == {"read", "shell", "edit"}
    assert kinds["conversation"] == {"prompt", "answer"}
    assert kinds["errors"] == {"shell"}
    assert all(scene.failed for scene in session.board(only_kind="errors").scenes)


# -- hard cases


def test_a_session_without_events_has_a_title_and_an_end(session):
    t = session.transcript
    session.write({"type": "file-history-snapshot", "sessionId": MAIN, "snapshot": {}})
    film = session.film()
    assert film.duration > 3000
    assert len(screens(film)) >= 2
    assert film.chapters == []
    assert t.count == 0


def test_a_huge_output_costs_little(session):
    session.call("Bash", "x" * 5_000_000 + "\n" + "y\n" * 2_500_000, command="yes")
    film = session.film()
    lines = seen(film)
    assert "y" in lines
    assert "… 2,499,989 more lines" in lines
    assert (
        sum(sys.getsizeof(text) for line in session.board().scenes[0].body.rows for text, _ in line)
        < 10_000
    )


def test_nothing_hostile_reaches_a_frame(session):
    evil = "a\x1b[2Jb\x1b]0;title\x07c\x00d\x07e\u202ef\x9b31mg\r\nh\ti\u2028j"
    t = session.transcript
    session.write(t.prompt(evil), t.answer(f"**{evil}** `{evil}`\n| {evil} | b |\n|---|---|"))
    for tool in ("Bash", "Read", "Edit", "Write", "TodoWrite", "Task", evil):
        session.call(
            tool, evil, command=evil, description=evil, file_path=evil, old_string=evil,
            new_string=evil + "x", content=evil, prompt=evil, todos=[{"content": evil}],
        )  # fmt: skip
    for frame in session.film().frames():
        for line in frame.rows:
            text = rows.plain(line)
            assert text.isprintable(), text
            assert "\u202e" not in text


def test_wide_characters_take_two_cells_and_marks_none(session):
    session.write(session.transcript.prompt("日本語" * 60 + " e\u0301" * 90 + " 🎉" * 70 + " שלום"))
    film = session.film(columns=60)
    for frame in film.frames():
        assert max(map(rows.width, frame.rows)) <= 60
    shown = "".join(seen(film))
    assert "日本語日本語" in shown
    assert "שלום" in shown


# -- prose


def test_markdown_becomes_colours():
    found = rows.markdown_rows(
        "# Head\ntext **bold** *slanted* ~~gone~~ `code` [link](https://x.example)\n> quoted\n"
        "- [x] done\n- [ ] open\n  - deeper\n1. first\n\n---\n```py\nx = '**1**'\n```\nend",
        60,
    )
    plain = [rows.plain(line) for line in found]
    assert plain == [
        "Head", "text bold slanted gone code link", "│ quoted", "✓ done", "□ open", "  • deeper",
        "1. first", "", "─" * 60, "", "│ x = '**1**'", "", "end",
    ]  # fmt: skip
    assert ("bold", Look(bold=True)) in found[1]
    assert ("code", Look("peach")) in found[1]
    assert ("gone", Look(strike=True)) in found[1]


def test_tables_stand_in_columns():
    found = rows.markdown_rows("| a | long name |\n|---|---|\n| 日本 | `x` |", 60)
    assert [rows.plain(line) for line in found] == [
        "a    │ long name",
        "─────┼──────────",
        "日本 │ x        ",
    ]


@pytest.mark.parametrize(
    "text",
    ["[a](" * 5000, "**a " * 5000, "`" * 20000, "# " + " " * 20000, "|" * 20000, "- " * 10000,
     "|-" * 10000 + "\n" + "|-" * 10000, "*" * 20000, "~~" * 9000, "[" * 20000],
)  # fmt: skip
def test_hostile_markdown_is_drawn_at_once(text):
    assert len(rows.markdown_rows(text, 80)) < 5000


def test_wrapping_keeps_every_word_and_indents():
    line = rows.row(("- ", Look("accent")), ("one two three four five six", Look()))
    found = [rows.plain(one) for one in rows.wrap(line, 12, rows.row(("  ", Look())))]
    assert found == ["- one two", "  three four", "  five six"]
