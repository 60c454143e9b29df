"""What `sess search` can be asked for beyond words: modes, orders, neighbours, pages, budgets."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.waiting import LIMIT

from sess_schema import citations
from sess_schema.connection import open_reader
from sess_schema.queries import sessions

MAIN = "11111111-1111-4111-8111-111111111111"
SECOND = "22222222-2222-4222-8222-222222222222"


@pytest.fixture
def shop(world):
    """A session with reads, greps and edits, a subagent, and a newer session on another branch."""
    t = world.transcript(MAIN)
    t.append(
        t.prompt("Why does getUserName time out?"),
        t.call("r1", "Read", file_path="/code/demo/src/user.py"),
        t.result("r1", "     1→import os\n    12→def getUserName(x):\n    13→    return x\n"),
        t.call("g1", "Grep", pattern="getUserName"),
        t.result("g1", "src/api.py:40:    getUserName(y)\nsrc/user.py:12:def getUserName(x):"),
        t.call("b1", command="pytest -q", description="run the tests"),
        t.result("b1", 'File "/code/demo/src/user.py", line 13\nTimeoutError', is_error=True),
        t.call("a1", "Task", subagent_type="Explore", description="find it", prompt="find it"),
        t.result("a1", "found", toolUseResult={"agentId": "abc12345"}),
        t.answer("It waits for the lock; the timeout is five seconds."),
    )
    agent = world.transcript("agent-abc12345", f"-code-demo/{MAIN}/subagents")
    agent.append(
        agent.prompt("find it", isSidechain=True, sessionId=MAIN),
        agent.answer("The timeout is set in lock.py", isSidechain=True, sessionId=MAIN),
    )
    later = world.transcript(SECOND, "-code-other")
    more = {"cwd": "/code/other", "gitBranch": "feature/locks"}
    later.append(
        later.prompt("Raise the timeout", timestamp="2026-02-05T10:00:00.000Z", **more),
        later.answer("Done: the timeout is ten.", timestamp="2026-02-05T10:00:01.000Z", **more),
    )
    world.ingest()
    return world


def lines(sess, *arguments, **options):
    return sess("search", *arguments, **options).stdout.splitlines()


def test_hits_are_grouped_by_conversation(shop, sess):
    """The best session first, the subagent's hits under its parent, and how many more there are."""
    text = lines(sess, "timeout*", "--limit", "4")
    heads = [line for line in text if line and not line.startswith(" ")]
    assert [head.split()[0] for head in heads] == ["22222222", "11111111"]
    assert "  ↳ agent-abc12345  find it" in text
    below = text[text.index("  ↳ agent-abc12345  find it") + 1]
    assert below.startswith("    assistant  #")
    assert sess("search", "time*", "--limit", "1").stdout.splitlines()[-1] == (
        "  1 more in this session"
    )


def test_flat_is_the_plain_order(shop, sess):
    """Without groups each hit stands where its score puts it, as in JSON."""
    numbers = [
        line.split("#")[1].split()[0] for line in lines(sess, "timeout", "--flat") if "#" in line
    ]
    assert numbers == [hit["event"][:8] for hit in sess.json("search", "timeout")]


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (["def getUserName", "--tool", "Read"], "src/user.py:12  "),
        (["getUserName", "--tool", "Grep", "--substring"], ""),
        (['"getUserName(y)"', "--tool", "Grep"], "src/api.py:40  "),
        (["TimeoutError", "--tool", "Bash"], ""),
        (['"line 13"', "--tool", "Bash"], "src/user.py:13  "),
    ],
)
def test_a_hit_names_its_file_and_line(shop, sess, arguments, place):
    """From what a tool read, what grep printed and what a traceback says."""
    text = lines(sess, *arguments, "--flat")[1]
    assert text.split("  ")[3].startswith(place.strip()) if place else "user.py:13" not in text
    (hit,) = sess.json("search", *arguments)
    path, _, line = place.strip().partition(":")
    assert (hit["line"] or "") == (int(line) if line else "")
    assert (hit["path"] or "").endswith(path)


def test_neighbours_stand_around_a_hit(shop, sess):
    """-A, -B and -C count events of the session, in text and in JSON."""
    text = lines(sess, "--tool", "Grep", '"getUserName(y)"', "-C1")
    assert [line.split()[:2] for line in (text[1], text[3])] == [["·", "Read"], ["·", "Bash"]]
    (hit,) = sess.json("search", "--tool", "Grep", '"getUserName(y)"', "-B", "2", "-A", "1")
    assert text[2].split()[:2] == ["Grep", f"#{hit['event'][:8]}"]
    assert [one["tool"] or one["type"] for one in hit["before"]] == ["user", "Read"]
    assert [(one["tool"], one["status"]) for one in hit["after"]] == [("Bash", "error")]


def test_context_is_counted_in_characters(shop, sess):
    """--context decides how much of the text a hit shows."""
    (short,) = sess.json("search", "five", "--context", "20")
    (long,) = sess.json("search", "five")
    assert len(short["snippet"]) < 30 < len(long["snippet"])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["serName"], 0),
        (["--substring", "serName"], 3),
        (["--substring", "SERNAME"], 3),
        (["--substring", "--case-sensitive", "SERNAME"], 0),
        (["--regex", r"get\w+Name\("], 2),
        (["--regex", "--case-sensitive", "timeouterror"], 0),
        (["--regex", "timeouterror$"], 1),
        (["--whole-word", "--substring", "time"], 1),
        (["--case-sensitive", "timeout"], 4),
        (["--case-sensitive", "Timeout"], 0),
        (["--tools-only", "pytest -q"], 1),
        (["--tools-only", "run the tests file"], 1),
        (["--tools-only", "ten"], 0),
        (["is:error"], 1),
        (["branch:feature/*"], 2),
        (["branch:feature"], 0),
        (["--branch", "feature/locks"], 2),
        (["title:raise"], 2),
        (["is:subagent", "timeout"], 1),
        (["-is:subagent", "timeout"], 3),
        (["file:src/user.py"], 1),
        (["model:opus", "timeout"], 4),
        (["role:user", "timeout"], 1),
        (["(getUserName", "OR", "ten)", "-tool:Grep"], 3),
        (["since:2026-02-05", "timeout"], 2),
    ],
)
def test_modes_and_filters_count(shop, sess, arguments, expected):
    """--count is the number of events that each way of asking finds."""
    done = sess("search", "--count", *arguments, code=0 if expected else 1)
    assert done.stdout == f"{expected}\n"
    assert len(sess.json("search", *arguments) if expected else []) == expected


def test_tools_only_shows_what_the_tool_was_asked(shop, sess):
    """The input in one line is the context, even where the match is in the output."""
    (hit,) = sess.json("search", "--tools-only", "timeouterror")
    assert hit["snippet"] == "pytest -q # run the tests"
    assert hit["field"] == "output"


def test_offsets_point_into_the_stored_text(shop, sess):
    """`field` and `offsets` lead to the match in event_texts, `matches` to it in the snippet."""
    for hit in sess.json("search", "timeout"):
        with closing(open_reader(shop.state / "index.db")) as db:
            session = sessions.resolve(db, hit["session"]).key
            event = citations.resolve(db, session, hit["event"])
        (text,) = shop.sql(f"SELECT {hit['field']} FROM event_texts WHERE id = ?", event)[0]
        assert {text[b:e].lower() for b, e in hit["offsets"]} == {"timeout"}
        assert {hit["snippet"][b:e].lower() for b, e in hit["matches"]} == {"timeout"}


def test_fields_are_chosen(shop, sess):
    """--fields keeps only those, in that order, and knows them all."""
    done = sess("search", "timeout", "--fields", "event,session", "--limit", "1")
    assert list(json.loads(done.stdout)) == ["event", "session"]
    done = sess("search", "timeout", "--fields", "event,nonsense", code=2)
    assert done.stderr.startswith('sess: no such field: "nonsense"\nhint: version, session, ')


def test_ids_can_be_shown(shop, sess):
    """--ids gives what `sess show` takes."""
    (first, *_) = lines(sess, "timeout", "--ids")
    assert "timeout" in sess("show", first).stdout.lower()


def test_files_with_matches_are_transcripts(shop, sess):
    """Each transcript once, the one with the newest match first."""
    found = [Path(line).stem for line in lines(sess, "timeout", "--files-with-matches")]
    assert found == [SECOND, MAIN, "agent-abc12345"]


def test_orders(shop, sess):
    """By time both ways; an unknown order is a usage error."""
    times = [hit["ts"] for hit in sess.json("search", "timeout", "--sort", "newest")]
    assert times == sorted(times, reverse=True)
    times = [hit["ts"] for hit in sess.json("search", "timeout", "--sort", "oldest")]
    assert times == sorted(times)
    assert sess("search", "timeout", "--sort", "size", code=2).stderr.startswith(
        "sess: no such order"
    )


@pytest.mark.parametrize("order", ["relevance", "newest", "oldest"])
def test_pages_follow_each_other(shop, sess, order):
    """`--cursor start` and what each page gives lead through all hits, whatever comes between."""
    every = [hit["event"] for hit in sess.json("search", "timeout", "--sort", order)]
    paged, cursor = [], "start"
    while cursor:
        page = sess.json("search", "timeout", "--sort", order, "--limit", "3", "--cursor", cursor)
        paged += [line["event"] for line in page[:-1]]
        cursor = page[-1]["cursor"]
        new = shop.transcript(f"{len(paged):08}-0000-4000-8000-000000000000")
        new.append(new.prompt("a new timeout"))
        shop.ingest()
    assert paged == every


def test_a_cursor_of_another_search_is_refused(shop, sess):
    """It would lead anywhere."""
    cursor = sess.json("search", "timeout", "--limit", "1", "--cursor", "start")[-1]["cursor"]
    done = sess("search", "lock", "--cursor", cursor, code=2)
    assert done.stderr.startswith("sess: the cursor belongs to another search")
    assert sess("search", "lock", "--cursor", "xyz", code=2).stderr.startswith(
        "sess: invalid cursor"
    )


def test_evidence_fits_the_budget(world, sess):
    """--max-tokens packs the best pieces, each with what `sess show` takes, and never more."""
    for number in range(12):
        t = world.transcript(f"{number:08}-0000-4000-8000-000000000000")
        t.append(*(t.prompt(f"needle {number} {n} " + "hay " * 300) for n in range(5)))
    world.ingest()
    for budget in (60, 200, 2000):
        text = sess("search", "needle", "--max-tokens", str(budget)).stdout
        assert 0 < len(text.encode()) <= budget * 3
        assert text.startswith("[")
    cites = [line[1:].split("]")[0] for line in text.splitlines() if line.startswith("[")]
    assert len(cites) == len(set(cites)) >= 8
    assert "needle" in sess("show", cites[0]).stdout
    pieces = sess.json("search", "needle", "--max-tokens", "500")
    assert len(sess("search", "needle", "--max-tokens", "500", "--json").stdout) <= 1500
    assert all(piece["text"].startswith(f"[{piece['cite']}] ") for piece in pieces)


def test_explain_tells_how_a_query_was_understood(shop, sess):
    """An outline, the notes, the order; nothing is searched."""
    done = sess("search", "--explain", 'foo.bar() "a b" (x OR y*) -z tool:Bash type:int')
    assert done.stdout.splitlines()[:13] == [
        "all of",
        "  as typed: foo.bar()",
        "  phrase: a b",
        "  any of",
        "    word: x",
        "    words starting with: y",
        "  as typed: -z",
        "  filter: tool is Bash",
        "  as typed: type:int",
        'note: -z is searched for as a flag; -"z" excludes the word',
        'note: type:int is searched for as words: no such type: "int"',
        "order: best first",
        'index: ("foo.bar()" AND "a b" AND ("x" OR "y"*) AND "-z" AND "type:int")',
    ]


def test_nothing_found_says_what_would_have_been(shop, sess):
    """A near spelling, a beginning, a part of a word, fewer filters: each with its number."""
    done = sess("search", "timeot", code=1)
    assert done.stdout == ""
    assert (
        'hint: 4 events match "timeout" instead of "timeot": `sess search timeout`' in done.stderr
    )
    done = sess("search", "getUser", code=1)
    assert (
        "hint: 3 events match words starting with \"getUser\": `sess search 'getUser*'`"
        in done.stderr
    )
    done = sess("search", "serName", code=1)
    assert "hint: 3 events match inside words: `sess search --substring serName`" in done.stderr
    done = sess("search", "timeout", "--tool", "Edit", code=1)
    assert "hint: 4 events match without the filters: `sess search timeout`" in done.stderr
    done = sess("search", "--all-words", "lock nowhere", code=1)
    assert "any of the words: `sess search 'lock OR nowhere'`" in done.stderr
    assert sess("search", "qqqqzzzz", code=1).stderr == ('nothing found: no event has "qqqqzzzz"\n')


def test_a_question_without_a_hit_says_what_was_not_found_and_what_would_be(shop, sess):
    """However long it is, and in a pipe: words of the subject, never `how OR did OR we`."""
    question = "how did we fix the lock of the qqqq timeout in the shop"
    done = sess("search", "--all-words", question, code=1)
    assert done.stdout == ""
    said, *hints = done.stderr.splitlines()
    assert said == 'nothing found: no event has all words; none at all has "fix", "qqqq", "shop"'
    (hint,) = hints
    assert hint.endswith("events match any of the rarest words: `sess search 'lock OR timeout'`")
    done = sess("search", "how did the lock", "--tool", "Bash", code=1)
    assert done.stderr.startswith("nothing found: no event that passes the filters has all words")
    assert " OR " not in done.stderr
    both = sess("search", "--all-words", "timeot", "lokc", code=1).stderr
    assert '"timeout" instead of "timeot" and "lock" instead of "lokc"' in both


def test_a_search_goes_on_by_relevance_where_few_events_have_all_words(shop, sess):
    """After those with all words, which keep their order; with --all-words, nothing else."""
    exact = sess.json("search", "--all-words", "lock timeout")
    hits = sess.json("search", "lock timeout qqqq")
    assert {hit["tier"] for hit in hits} == {"relevance"}
    done = sess("search", "lock timeout qqqq")
    assert "few events have all words" in done.stderr
    assert "(in none: qqqq)" in done.stderr
    both = sess.json("search", "lock timeout")
    assert both[: len(exact)] == exact
    assert [hit["tier"] for hit in both] == ["exact"] * len(exact) + ["relevance"] * (
        len(both) - len(exact)
    )
    assert (len(both) > len(exact)) == (len(exact) < 3)
    # What counts or lists events has those with all words only, and so have operators.
    for options in (["--count"], ["--ids"], ["-l"], ["--sort", "newest"]):
        sess("search", *options, "lock timeout qqqq", code=1)
    for words in ('lock "timeout qqqq"', "lock timeout -retry qqqq", "lock timeout qqqq*"):
        sess("search", words, code=1)


def test_a_hint_keeps_its_promise(shop, sess):
    """The command that a hint names finds as many events as it says, with the same options."""
    for asked in (["--tool", "Read", "getUser"], ["timeot", "--type", "user"],
                  ["--case-sensitive", "GETUSERNAME"], ["tool:Grep", "serName"]):  # fmt: skip
        _, *hints = sess("search", *asked, code=1).stderr.splitlines()
        assert hints
        for hint in hints:
            number = hint.split()[1]
            command = shlex.split(hint.split("`")[1])
            assert sess("search", "--count", *command[2:]).stdout == f"{number}\n", hint


def test_a_pasted_command_is_words(shop, sess):
    """Flags, pipes and options that only look like ours do not stop a search."""
    for words in (["git", "-C", "/repo", "status"], ["ls", "-la", "|", "head", "-n", "5"],
                  ["find", ".", "-name", "*.py", "-exec", "rm", "{}", ";"]):  # fmt: skip
        done = sess("search", *words, code=1)
        assert "Usage" not in done.stderr
    assert sess("search", "pytest", "-q").stdout


def test_saved_searches(shop, sess):
    """--save keeps words and options, @NAME runs them with more, --unsave forgets; 0600."""
    sess("search", "timeout", "--type", "assistant", "--save", "slow")
    expected = sess.json("search", "timeout", "--type", "assistant", "lock")
    assert sess.json("search", "@slow", "lock") == expected
    assert lines(sess, "--saved") == ["@slow  timeout --no-sync --type assistant"]
    assert stat.S_IMODE(os.stat(shop.state / "searches.json").st_mode) == 0o600
    sess("search", "--unsave", "slow")
    assert lines(sess, "--saved") == []
    assert sess("search", "@slow", code=1).stdout == ""
    refused = sess("search", "timeout", "--save", "a/b", code=2)
    assert refused.stderr.startswith("sess: invalid name")
    assert refused.stdout == ""


def test_history_is_off_until_it_is_wanted(shop, sess):
    """Nothing is noted by default; config.toml turns it on."""
    sess("search", "timeout")
    assert lines(sess, "--history") == []
    assert not (shop.state / "search-history").exists()
    (shop.state / "config.toml").write_text("[search]\nhistory = true\n")
    sess("search", "timeout", "--limit", "1")
    assert lines(sess, "--history") == ["timeout --no-sync --limit 1"]
    assert stat.S_IMODE(os.stat(shop.state / "search-history").st_mode) == 0o600
    assert shop.run("sessiond", "sync", check=0)


def test_ids_are_links_where_the_terminal_knows_them(shop, sess):
    """OSC 8 to the transcript; nowhere else a trace of it."""
    text, _ = sess.on_terminal("search", "--no-sync", "lock", colour=True, VTE_VERSION="7000")
    assert f"\x1b]8;;file://{shop.projects}/-code-demo/{MAIN}.jsonl\x1b\\" in text
    text, _ = sess.on_terminal("search", "--no-sync", "lock", colour=True)
    assert "\x1b]8" not in text


def test_the_first_hit_does_not_wait_for_the_last(world, sess):
    """`| head -1` of a scan over everything ends it at once."""
    t = world.transcript()
    t.append(*(t.prompt(f"needle {number} " + "x" * 3000) for number in range(3000)))
    world.ingest()
    command = [str(Path(sys.executable).parent / "sess"), "search", "--no-sync", "--substring",
               "eedl", "--limit", "0", "--json"]  # fmt: skip
    with subprocess.Popen(command, env=world.env, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert b"needle 2999" in process.stdout.readline()
        process.stdout.close()
        assert process.wait(LIMIT) == 0


def test_options_that_exclude_each_other(shop, sess):
    """A contradiction is a usage error, not a surprise."""
    for pair in (
        ["--count", "--ids"],
        ["--substring", "--regex"],
        ["--max-tokens", "99", "--count"],
    ):
        assert sess("search", "timeout", *pair, code=2).stderr.startswith("sess: ")
