"""`sess suggest`: each reason has its threshold, and nothing is flagged without one."""

from __future__ import annotations

import json
from contextlib import closing

import pytest
from tests.golden_home import clean
from tests.must import must

from sess_cli.edit import cutting
from sess_cli.edit.suggest import PHRASES, correction, suggestions
from sess_schema.connection import open_reader
from sess_schema.queries import sessions, transcripts

SESSION = "11111111-1111-4111-8111-111111111111"


def found(world, *said):
    """(number, {trigger: score}) of each suggestion for a conversation."""
    world.transcript().append(*said)
    world.ingest()
    with closing(open_reader(world.state / "index.db")) as db:
        chosen = cutting.find_target(db, SESSION)
        told = suggestions(db, transcripts.read(db, chosen.source), chosen.session.key)
    return [
        (one.record.number, {trigger.id: round(trigger.score, 3) for trigger in one.triggers})
        for one in told
    ]


@pytest.mark.parametrize(("tokens", "score"), [(1999, None), (2000, 1.0), (3000, 1.2), (8000, 1.8)])
def test_costly_answers(world, tokens, score):
    """From 2,000 tokens on, up to three times as much; prompts never count."""
    t = world.transcript()
    said = t.prompt("x" * 40_000), t.answer("y" * 4 * tokens)
    assert found(world, *said) == ([(2, {"high_token_cost": score})] if score else [])


def test_edits_of_one_file_in_a_row(world):
    """Three of them are flagged, two are not; another file ends the row."""
    t = world.transcript()
    edits = []
    for number, path in enumerate(["/a", "/a", "/b", "/c", "/c", "/c", "/a"]):
        values = {"file_path": path, "old_string": "x", "new_string": "y"}
        edits += [t.call(f"c{number}", "Edit", **values), t.result(f"c{number}", "done")]
    told = found(world, t.prompt("go"), *edits)
    assert told == [(number, {"repeated_file_edit": 1.2}) for number in (8, 10, 12)]


@pytest.mark.parametrize(
    ("words", "weight"),
    [
        ("No.", 0.30),
        ("that is not what I  asked for", 0.85),
        ("\u8fd9\u6837\u4e0d\u5bf9", 0.70),
        ("That\u2019s not right, undo it", 0.80),
        ("make a note of the knob", None),
        ("thanks", None),
        ("", None),
    ],
)
def test_corrections(words, weight):
    """The strongest phrase counts; case, spaces and quotes do not; words count only whole."""
    told = correction(words)
    assert (told.weight if told else None) == weight


@pytest.mark.parametrize("phrase", PHRASES)
def test_each_phrase_of_the_lexicon(phrase):
    """By itself, and at the beginning and the end of what somebody says."""
    for words in (phrase, f"{phrase}, please", f"Hm. {phrase}", f"{phrase.upper()}!"):
        told = must(correction(words))
        assert told.weight >= PHRASES[phrase]
    assert (min(PHRASES.values()), max(PHRASES.values())) == (0.3, 0.9)


@pytest.mark.parametrize(
    "words",
    [
        "There is no need to hurry, and no test for it.",
        "No problem, go on",
        "I'd actually love that test to be saved",
        "first, pause; second, go on; third, do not stop there",
        "Describe the site. "
        + "uvx replaces uv tool run, so we mention it instead. " * 20
        + "Thanks",
        "Read this log:\n" + "a line\n" * 60 + "the wrong file was read\n" + "a line\n" * 60,
    ],
)
def test_ordinary_words_are_no_corrections(words):
    """Common words count where a sentence begins with them, and not in what was pasted."""
    assert correction(words) is None


@pytest.mark.parametrize(
    ("words", "phrase"),
    [
        ("Oh no, we lost the navigation", "no"),
        ("please replace them with a single link instead?", "instead"),
        ("x " * 300 + "\nActually, use the other one.", "actually"),
        ("scratch that. " + "a line\n" * 90, "scratch that"),
    ],
)
def test_corrections_among_other_words(words, phrase):
    """Where a person says them."""
    assert must(correction(words)).phrase == phrase


def test_what_came_before_a_correction(world):
    """Also if the correction is at the end of a long prompt; results are no corrections."""
    t = world.transcript()
    told = found(
        world,
        t.prompt("please go"),
        t.answer("I went left."),
        t.prompt("so " * 200 + "that is wrong"),
        t.call("c1", command="x"),
        t.result("c1", "no, that is wrong"),
        t.answer("Right."),
        t.prompt("thanks"),
    )
    assert told == [(2, {"user_correction_follows_up": 1.31})]


@pytest.mark.parametrize(
    ("output", "is_error", "words", "flagged"),
    [
        ("boom", True, "wrong file", True),
        ("Traceback (most recent call last)", False, "wrong file", True),
        ("boom", True, "thanks", False),
        ("all fine", False, "wrong file", False),
    ],
)
def test_failed_calls_before_a_correction(world, output, is_error, words, flagged):
    """The call is flagged if its result failed and the next prompt corrects."""
    t = world.transcript()
    told = dict(
        found(
            world,
            t.prompt("go"),
            t.call("c1", command="x"),
            t.result("c1", output, is_error=is_error),
            t.answer("Hm."),
            t.prompt(words),
        )
    )
    assert ("tool_use_error_then_correction" in told.get(2, {})) is flagged
    if flagged:
        assert told[2] == {"tool_use_error_then_correction": 1.3}


@pytest.mark.parametrize(
    ("answers", "broken", "flagged"), [(5, False, 5), (4, False, 0), (6, True, 0)]
)
def test_long_talk_without_a_call(world, answers, broken, flagged):
    """Five answers in a row; a call in between ends the row."""
    t = world.transcript()
    said = [t.answer(f"talk {number}") for number in range(answers)]
    if broken:
        said.insert(3, t.call("c1", command="x"))
    assert found(world, t.prompt("go"), *said) == [
        (number, {"long_drift_no_tool_calls": 0.9}) for number in range(2, 2 + flagged)
    ]


def test_reasons_add_up_and_the_best_come_first(world):
    """A polluted session: the planted records are on top, in the order of their scores."""
    t = world.transcript()
    said = []
    for number in range(12):
        said += [t.prompt(f"step {number}"), t.call(f"k{number}", "Read", file_path=f"/f{number}")]
        said += [t.result(f"k{number}", "fine"), t.answer("Done.")]
    said += [
        t.prompt("now the build"),
        t.call("bad", command="make"),
        t.result("bad", "boom", is_error=True),
        t.prompt("that is not what I asked"),
        t.answer("z" * 40_000),
    ]
    world.transcript().append(*said)
    world.run("sess", "list", check=0)
    told = [
        json.loads(line)
        for line in world.run("sess", "suggest", SESSION, "--json", check=0).stdout.splitlines()
    ]
    assert [(one["number"], one["score"]) for one in told] == [(50, 2.61), (53, 1.8)]
    assert [one["id"] for one in told[0]["triggers"]] == [
        "user_correction_follows_up",
        "tool_use_error_then_correction",
    ]
    assert told[0]["triggers"][0]["reason"] == "corrected in 52: \u201cnot what i asked\u201d"
    done = world.run("sess", "suggest", SESSION, "--top", "1", check=0)
    assert done.stdout.splitlines()[-2:] == [
        "1 suggested, 1 more with --top 0; about 9 tokens",
        f"cut them: sess cut {SESSION} 50 --dry-run",
    ]
    none = world.run("sess", "suggest", SESSION, "--min-score", "9", check=0)
    assert (none.stdout, none.stderr) == ("", "nothing to suggest\n")


@pytest.mark.parametrize("agent", ["cursor", "codex", "opencode", "cline"])
def test_sessions_of_every_kind_of_source(tmp_path, agent):
    """Logs, documents and databases: their records are numbered, and can be judged."""
    world = clean(tmp_path, agent)
    with closing(open_reader(world.state / "index.db")) as db:
        rows = [
            sessions.by_key(db, key)
            for (key,) in db.execute("SELECT id FROM sessions WHERE records > 0")
        ]
        for row in rows:
            chosen = cutting.find_target(db, row.session, "1")
            told = transcripts.read(db, chosen.source)
            assert [record.number for record in told.records] == [*range(1, len(told.records) + 1)]
            assert all(edge.caller <= edge.answer for edge in told.edges)
            assert suggestions(db, told, row.key) is not None
        assert rows
