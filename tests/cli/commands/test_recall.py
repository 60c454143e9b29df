"""`sess recall`: a question in plain words."""

import json

import pytest

MAIN = "11111111-1111-4111-8111-111111111111"
OTHER = "33333333-3333-4333-8333-333333333333"


@pytest.fixture
def asked(world, sess):
    """Two conversations; only the first is about the question."""
    t = world.transcript(MAIN)
    t.append(
        t.prompt("Deploying the website does not fetch the nested repository"),
        t.call("c1", command="git submodule status"),
        t.result("c1", "-3f2a9c1 public/tokenizer"),
        t.answer("The host does not check out submodules; enable recursive clones in its settings"),
        t.prompt("thanks"),
    )
    other = world.transcript(OTHER)
    other.append(
        other.prompt("paint the teapot blue", timestamp="2026-02-02T10:00:00.000Z"),
        other.answer("It is blue now.", timestamp="2026-02-02T10:00:05.000Z"),
    )
    world.ingest()
    return sess


def test_finds_other_forms_of_the_words(asked):
    best = asked.json("recall", "why do deployments of websites never fetched nested repositories")[
        0
    ]
    assert best["session"] == MAIN
    assert best["quote"].startswith("Deploying the website")
    assert "enable recursive clones" in best["answer"]
    assert best["outcome"] == "done"
    assert best["found"] is True
    assert 0 < best["confidence"] <= 1
    shown = asked.json("show", f"{MAIN}#{best['event']}")
    assert shown[0]["text"].startswith("Deploying")


def test_shows_copies_of_a_place_once(asked, world):
    for number in range(3):
        t = world.transcript(f"{number}8888888-8888-4888-8888-888888888888")
        t.append(t.prompt("descale the samovar"), t.answer("Use vinegar."))
    world.ingest()
    assert len(asked.json("recall", "descaling a samovar")) == 1


def test_a_pasted_error_is_told_with_what_ended_it(asked, world):
    t = world.transcript("99999999-9999-4999-8999-999999999999")
    t.append(
        t.call("c1", command="make kettle"),
        t.result(
            "c1", "Traceback: KettleError: spout 12 is clogged at /home/a/x.py", is_error=True
        ),
        t.answer("Rinse the spout."),
        t.call("c2", command="make kettle"),
        t.result("c2", "built"),
    )
    world.ingest()
    error = "Traceback: KettleError: spout 7 is clogged at /srv/b/x.py"
    for words in ([error], ["--error", error]):
        (place,) = asked.json("recall", *words)
        assert "Rinse the spout" in place["answer"]
        assert place["outcome"] == "done"
        assert (place["error"]["times"], place["error"]["sessions"]) == (1, 1)
        assert place["error"]["never_solved"] is False
    note = asked("recall", error).stderr
    assert note.startswith("note: this error occurred 1 time in 1 session, last ")


def test_forgives_a_slip_of_typing(asked):
    assert asked.json("recall", "nested repostory")[0]["session"] == MAIN


def test_prints_a_citation_and_what_followed(asked):
    out = asked("recall", "fetching nested repositories").stdout
    assert "[11111111#" in out
    assert "→ $ git submodule status" in out
    assert "The host does not check out submodules" in out


def test_leaves_the_running_session_out(asked):
    places = asked.json("recall", "--not-session", MAIN, "fetch the nested repository", "teapot")
    assert {place["session"] for place in places} == {OTHER}


def test_a_running_session_may_not_be_indexed_yet(asked):
    assert asked.json("recall", "--not-session", "44444444", "teapot")[0]["session"] == OTHER


def test_prefers_a_project(asked, world):
    """Of two places that say the same, the one in the project comes first."""
    for number, folder in enumerate(("-code-one", "-code-two")):
        t = world.transcript(f"{number}7777777-7777-4777-8777-777777777777", folder)
        t.append(t.prompt(f"rotate kettle certificates {number}", cwd=f"/code/{folder[-3:]}"))
    world.ingest()
    for name in ("one", "two"):
        places = asked.json("recall", "kettle certificates", "--project", f"/code/{name}")
        assert places[0]["project"] == f"/code/{name}"
        assert len(places) == 2


def test_a_filter_in_the_question_is_no_word(asked):
    places = asked.json("recall", "blue", "teapot", "since:2026-02-02")
    assert {place["session"] for place in places} == {OTHER}
    asked("recall", "teapot until:2026-02-01", code=1)


def test_reads_the_question_from_stdin(asked):
    done = asked("recall", "-", "--json", input="which teapots are blue\n")
    assert json.loads(done.stdout.splitlines()[0])["session"] == OTHER


def test_keeps_within_the_tokens(asked):
    done = asked("recall", "--max-tokens", "100", "teapot or nested repository")
    assert 0 < len(done.stdout.encode()) <= 300


def test_without_a_question(asked):
    assert "no question" in asked("recall", " ", code=2).stderr


def test_says_that_nothing_was_found(asked):
    assert "nothing found" in asked("recall", "qqqqq", code=1).stderr


def test_says_when_nothing_seems_to_fit(asked, world):
    """What shares a common word with some place is not found: it is only the nearest."""
    places = asked.json(
        "recall", "terraform state lock of the kubernetes website cannot be released"
    )
    assert places[0]["session"] == MAIN
    assert {place["found"] for place in places} == {False}
    assert "nothing seems to fit" in asked("recall", "terraform website kubernetes ingress").stderr


def test_a_terminal_gets_lines_of_its_width(asked, world):
    """A pipe gets one line for each quotation."""
    t = world.transcript(OTHER)
    t.append(t.prompt(f"the zeppelin {'flies over the long and winding road ' * 6}"))
    world.ingest()
    text, code = asked.on_terminal("recall", "--no-sync", "zeppelin", width=60)
    lines = text.splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("  > "))
    assert code == 0
    assert max(map(len, lines)) <= 80  # the title line has a width of its own
    assert max(map(len, lines[first:])) <= 60
    assert lines[first + 1].startswith("    ")
    assert any(len(line) > 200 for line in asked("recall", "zeppelin").stdout.splitlines())
