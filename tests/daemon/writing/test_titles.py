"""What a session is called."""

from __future__ import annotations

from itertools import permutations

import pytest

OLD = "aaaaaaaa-1111-4111-8111-111111111111"
NEW = "bbbbbbbb-1111-4111-8111-111111111111"
PLAN = "Implement the following plan:\n\n# Plan: Warm the *teapot*\n\n## Context\n\nIt is cold."


def title(world, *prompts):
    """The title of a session with these prompts."""
    t = world.transcript()
    t.append(*map(t.prompt, prompts))
    world.ingest()
    return world.sql("SELECT title FROM sessions")[0][0]


def command(name, arguments=""):
    return f"<command-name>/{name}</command-name><command-args>{arguments}</command-args>"


@pytest.mark.parametrize(
    ("weak", "shown"),
    [
        *(("y", "y"), ("1", "1"), ("?", "?"), ("好", "好")),
        (command("clear"), "/clear"),
        (command("compact", "keep it short"), "/compact keep it short"),
        (command("review"), "/review"),
        ("Implement the following plan:", "Implement the following plan:"),
    ],
)
def test_a_weak_title_gives_way_to_the_next_prompt(world, weak, shown):
    """Also in another pass; a later weak one does not come back."""
    assert title(world, weak) == shown
    t = world.transcript()
    t.count = 5
    t.append(t.prompt("brew the tea"), t.prompt(weak), t.prompt("and serve it"))
    world.ingest()
    assert world.sql("SELECT title, first_prompt FROM sessions") == [("brew the tea",) * 2]


def test_weak_titles_are_better_than_none(world):
    """The first of them stays while nothing better follows."""
    assert title(world, command("clear"), "n") == "/clear"


def test_a_command_with_a_subject_is_a_title(world):
    assert title(world, command("review", "the parser"), "go on") == "/review the parser"


def test_a_plan_gives_the_title(world):
    """Its first words do, not the sentence that hands it over."""
    assert title(world, PLAN, "go on") == "Plan: Warm the *teapot"


@pytest.mark.parametrize("silent", ["<bash-input>ls</bash-input>", "Warmup"])
def test_what_names_no_subject_is_no_title(world, silent):
    assert title(world, silent) is None


@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_a_summary_titles_only_the_session_that_has_its_record(world, order):
    """Whatever is read first; one of a record that nobody has titles no session."""
    old, new = world.transcript(OLD), world.transcript(NEW)
    leaf = old.answer("the end")
    pieces = [
        (old, [old.prompt("old words"), leaf]),
        (new, [{"type": "summary", "summary": "About the old one", "leafUuid": leaf["uuid"]}]),
        (new, [{"type": "summary", "summary": "Lost", "leafUuid": "x"}, new.prompt("new words")]),
    ]
    for number in order:
        transcript, lines = pieces[number]
        transcript.append(*lines)
        world.ingest()
    assert dict(world.sql("SELECT native_id, title FROM sessions")) == {
        OLD: "About the old one",
        NEW: "new words",
    }


def test_an_error_is_no_title(world):
    """The client wrote what the service answered where a summary should be; it is still found."""
    t = world.transcript()
    asked = t.prompt("brew the tea")
    failure = "Invalid API key · Please run /login"
    t.append(asked, {"type": "summary", "summary": failure, "leafUuid": asked["uuid"]})
    world.ingest()
    assert world.sql("SELECT title FROM sessions") == [("brew the tea",)]
    assert world.found("invalid") == [failure]
