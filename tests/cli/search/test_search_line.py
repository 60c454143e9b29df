"""The command line of a search: options as people know them, and what was probably meant."""

from __future__ import annotations

import pytest

MAIN = "11111111-1111-4111-8111-111111111111"
SECOND = "abcdef12-2222-4222-8222-222222222222"


@pytest.fixture
def home(world):
    t = world.transcript(MAIN)
    t.append(
        t.prompt("the timeout of the lock"),
        t.answer("Timeout again: raise the timeouts"),
        t.call("c1", command="git push --force"),
        t.result("c1", "rejected", is_error=True),
        t.answer("a lockfile is in the way"),
    )
    other = world.transcript(SECOND, "-code-other")
    other.append(other.prompt("nothing special"), other.answer("fine"))
    world.ingest()
    return world


@pytest.mark.parametrize(
    ("short", "long"),
    [
        (["-n", "1"], ["--limit", "1"]),
        (["-n1"], ["--limit", "1"]),
        (["-c"], ["--count"]),
        (["-l"], ["--files-with-matches"]),
        (["-i"], []),
        (["-w"], ["--whole-word"]),
        (["-s"], ["--case-sensitive"]),
        (["-cw"], ["--count", "--whole-word"]),
    ],
)
def test_short_options_are_those_of_other_programs(home, sess, short, long):
    """They do what the long ones do, before and after the words."""
    expected = sess("search", "timeout", *long).stdout
    assert sess("search", "timeout", *short).stdout == expected != ""
    assert sess("search", *short, "timeout").stdout == expected


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("--limt", "did you mean --limit? "),
        ("--max-count", "did you mean -n N? "),
        ("-m", "did you mean -n N? "),
        ("--frobnicate", ""),
        ("-x", ""),
        ("-xy", ""),
    ],
)
def test_an_unknown_option_is_an_error(home, sess, option, meant):
    """It is never silently a word; the hint names the option that was meant, or how to find it."""
    done = sess("search", "timeout", option, code=2)
    assert done.stdout == ""
    assert done.stderr == (
        f"sess: no such option: {option}\n"
        f"hint: {meant}`sess search -- {option}` searches for it as a word\n"
    )


@pytest.mark.parametrize(
    "words", [["git", "push", "--force"], ["--", "--force"], ["--tool", "Bash", "git", "--force"]]
)
def test_in_a_pasted_command_options_are_words(home, sess, words):
    """A command line begins with a program; after `--` everything is a word."""
    assert "git push --force" in sess("search", *words).stdout


def test_a_number_is_needed(home, sess):
    """`-n` without one is an error, not a word."""
    done = sess("search", "timeout", "-n", "many", code=2)
    assert done.stderr.startswith("sess: -n needs a number\n")


def test_not_excludes_the_next_word(home, sess):
    """NOT means what it means to FTS5 and in web searches."""
    assert sess("search", "-c", "timeout NOT lock").stdout == "1\n"
    assert sess("search", "-c", "timeout", "NOT", "again").stdout == "1\n"


def test_an_unknown_saved_search_is_said(home, sess):
    """The word is searched for, and a note says that it is no saved search."""
    done = sess("search", "@slow", code=1)
    assert done.stderr.startswith("note: no saved search @slow; searching for the word\n")
    assert "note" not in sess("search", "@types/node", code=1).stderr


@pytest.mark.parametrize("given", [SECOND, "abcdef12", "ABCDEF12", f"{SECOND}#4f1eca50"])
def test_a_session_id_finds_the_session(home, sess, given):
    """A pasted ID, or its beginning, finds what that session says, with a note."""
    hits = sess.json("search", given)
    assert [hit["snippet"] for hit in hits] == ["nothing special", "fine"]
    assert {hit["session"] for hit in hits} == {SECOND}
    assert sess("search", given).stderr == (
        f"note: {given} is a session; `sess show` shows all of it\n"
    )


def test_an_upper_case_prefix_is_an_id(home, sess):
    """Some programs print IDs in capitals."""
    assert "nothing special" in sess("show", "ABCDEF12").stdout


@pytest.mark.parametrize(
    "words",
    [["tool:Edit", "timeout"], ["timeout", 'branch:"no such"'], ["(timeout -type:user)", "is:ok"]],
)
def test_inline_filters_are_dropped_in_a_hint(home, sess, words):
    """The hint is the same for `tool:Edit` as for `--tool Edit`."""
    number = sess("search", "-c", "timeout").stdout.strip()
    done = sess("search", *words, code=1)
    assert f"hint: {number} events match without the filters: `sess search " in done.stderr
    assert "tool:" not in done.stderr


def test_hits_inside_longer_words_are_mentioned(home, sess):
    """On a terminal, a search that found words says how many events have them inside others."""
    text, code = sess.on_terminal("search", "--no-sync", "lock")
    assert code == 0
    assert text.splitlines()[-1] == (
        "hint: 1 more event has it inside longer words: `sess search --substring lock`"
    )
    text, _ = sess.on_terminal("search", "--no-sync", "rejected")
    assert "hint" not in text
    assert "hint" not in sess("search", "lock").stderr


def test_words_that_are_no_command_are_searched_for(home, sess):
    """`sess WORDS` is `sess search WORDS`, options included."""
    for words in (["timeout"], ["timeout", "--json"], ["the", "lock", "-c"]):
        expected = home.run("sess", "search", *words, "--no-sync", check=0).stdout
        assert home.run("sess", *words, "--no-sync", check=0).stdout == expected


@pytest.mark.parametrize(
    ("typed", "verb"),
    [("serach", "search"), ("lst", "list"), ("shows", "show"), ("statz", "stats")],
)
def test_a_near_miss_of_a_command_is_not_searched_for(home, typed, verb):
    """One slip of the hand is answered with the command that was meant."""
    done = home.run("sess", typed, "the lock", check=2)
    assert done.stderr == (
        f"sess: no such command: {typed}\n"
        f"hint: did you mean `sess {verb}`? `sess search {typed} 'the lock'` searches for it\n"
    )


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("rollback", "sess undo"), ("redo", "sess undo --redo"), ("ping", "sess doctor")],
)
def test_commands_of_programs_like_it_are_answered(home, typed, meant):
    """Alone, with an ID or with options; among other words it is one of them."""
    for more in ([], ["last"], ["0e3e0000"], ["--list"]):
        done = home.run("sess", typed, *more, check=2)
        problem, hint = done.stderr.splitlines()
        assert problem == f"sess: no such command: {typed}"
        assert hint.startswith(f"hint: did you mean `{meant}`? ")
    expected = home.run("sess", "search", typed, "the", "lock").stdout
    assert home.run("sess", typed, "the", "lock").stdout == expected


def test_help_is_a_command_too(home):
    """As with git: `sess help` and `sess help VERB`."""
    assert home.run("sess", "help", check=0).stdout == home.run("sess", "--help", check=0).stdout
    assert home.run("sess", "help", "list", check=0).stdout.startswith("Usage: sess list")


def test_options_before_the_words_are_those_of_a_search(home):
    """`sess WORDS` searches, `sess -n 3 WORDS` says how."""
    done = home.run("sess", "-n", "3", "the lock", check=2)
    assert done.stderr == (
        "sess: no such option: -n\n"
        "hint: did you mean `sess search -n 3 'the lock'`? `sess --help`\n"
    )
    assert home.run("sess", "--version", "the lock", check=0).stdout.startswith("sess ")
