"""Which sessions there are, and which one an id means."""

from __future__ import annotations

import os
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sess_common.errors import SessError
from sess_schema.connection import open_reader
from sess_schema.ids import NO_SESSION
from sess_schema.queries import sessions, sources

ONE = "11111111-1111-4111-8111-111111111111"
NEAR = "11111111-2222-4222-8222-222222222222"
OTHER = "33333333-3333-4333-8333-333333333333"


@pytest.fixture
def index(world):
    """Three sessions, two of which begin alike, subagents of two of them, and a warm-up."""
    for number, name in enumerate((ONE, NEAR, OTHER), 1):
        t = world.transcript(name)
        t.append(t.prompt(f"prompt {number}", timestamp=f"2026-02-0{number}T10:00:00.000Z"))
        agent = world.transcript("agent-abc12345", f"-code-demo/{name}/subagents")
        if name != OTHER:
            agent.append(agent.prompt("look around", isSidechain=True, sessionId=name))
    warm = world.transcript("44444444-4444-4444-8444-444444444444")
    warm.append(warm.prompt("Warmup", timestamp="2026-02-09T10:00:00.000Z"))
    world.ingest()
    with closing(open_reader(world.state / "index.db")) as db:
        yield db


def listed(db, **options):
    return [row.session for row in sessions.Listing(**options).rows(db)]


def test_the_newest_activity_comes_first(index):
    """The default list has main sessions only, without warm-ups."""
    assert listed(index) == [OTHER, NEAR, ONE]


def test_all_has_subagents_and_warmups_too(index):
    """`--all` hides nothing but placeholders."""
    assert len(listed(index, every=True)) == 6


def test_a_list_can_be_limited_and_dated(index):
    """Limits and times narrow the list; 0 is no limit."""
    assert listed(index, limit=1) == [OTHER]
    assert listed(index, limit=0) == [OTHER, NEAR, ONE]
    assert listed(index, since=1_770_026_400_000) == [OTHER, NEAR]
    assert listed(index, until=1_770_026_400_000) == [ONE]
    assert listed(index, projects=["/elsewhere"]) == []


def test_a_session_without_times_stands_where_its_file_was_changed(world):
    """The modification time of the file takes the place of missing timestamps."""
    t = world.transcript(ONE)
    record = t.prompt("undated")
    del record["timestamp"]
    t.append(record)
    os.utime(t.path, (1_770_000_000, 1_770_000_000))
    world.ingest()
    with closing(open_reader(world.state / "index.db")) as db:
        (row,) = sessions.Listing().rows(db)
    assert (row.started, row.ended) == (1_770_000_000_000, 1_770_000_000_000)


def test_a_limit_takes_the_first_of_all_with_and_without_times(world):
    """Dated sessions come from an index and the others do not: one order, whatever the limit."""
    for number, name in enumerate((ONE, NEAR, OTHER)):
        t = world.transcript(name)
        day = 2 * number + 1
        t.append(t.prompt("dated", timestamp=f"2026-02-0{day}T10:00:00.000Z"))
        bare = world.transcript(f"5555555{number}-5555-4555-8555-555555555555")
        record = bare.prompt("undated")
        del record["timestamp"]
        bare.append(record)
        os.utime(bare.path, (1_769_943_600 + (day + 1) * 86_400,) * 2)
    world.ingest()
    with closing(open_reader(world.state / "index.db")) as db:
        every = listed(db, limit=0)
        assert [one[:8] for one in every] == [
            "55555552", "55555551", "33333333", "55555550", "11111111", "11111111",
        ]  # fmt: skip
        for limit in range(1, 7):
            assert listed(db, limit=limit) == every[:limit]


@pytest.mark.parametrize(
    ("given_id", "expected"),
    [
        (ONE, ONE),
        ("11111111-1", ONE),
        ("11111111-2222", NEAR),
        ("3333", OTHER),
        (" 3333 ", OTHER),
        ("last", OTHER),
        ("11111111-1/agent-abc12345", "agent-abc12345"),
        (f"{NEAR}/abc1", "agent-abc12345"),
    ],
)
def test_an_id_means_one_session(index, given_id, expected):
    """Full ids, prefixes, `last`, and subagents below their parents are understood."""
    assert sessions.resolve(index, given_id).session == expected


def test_a_subagent_is_told_from_its_namesake(index):
    """The same subagent id below two parents resolves to the one of the named parent."""
    first = sessions.resolve(index, f"{ONE}/agent-abc12345")
    second = sessions.resolve(index, f"{NEAR}/agent-abc12345")
    assert (first.parent, second.parent) == (ONE, NEAR)
    ids = sessions.ShortIds(index)
    assert ids.of(first) == "11111111-1/agent-abc12345"
    assert ids.of(second) == "11111111-2/agent-abc12345"


def test_short_ids_lead_back(index):
    """The id that a list shows is as long as it must be, and `resolve` takes it."""
    ids = sessions.ShortIds(index)
    rows = [*sessions.Listing().rows(index)]
    assert [ids.of(row) for row in rows] == ["33333333", "11111111-2", "11111111-1"]
    assert [sessions.resolve(index, ids.of(row)).key for row in rows] == [row.key for row in rows]


@pytest.mark.parametrize(
    ("given_id", "message", "code"),
    [
        ("1111", '"1111" matches 2 sessions:', 2),
        ("agent-abc12345", '"agent-abc12345" matches 2 sessions:', 2),
        ("333", 'session ID too short: "333"', 2),
        ("", 'session ID too short: ""', 2),
        ("../../etc/passwd", 'no such session: "../../etc/passwd"', 1),
        ("/etc/passwd", 'no such session: "/etc/passwd"', 1),
        ("%%%%", 'no such session: "%%%%"', 1),
        ("____", 'no such session: "____"', 1),
    ],
)
def test_what_means_no_session_or_several_is_an_error(index, given_id, message, code):
    """Each failure says what it looked for and has its own exit code."""
    with pytest.raises(SessError) as caught:
        sessions.resolve(index, given_id)
    assert caught.value.message.startswith(message)
    assert caught.value.code == code


def test_candidates_are_listed_with_their_titles(index):
    """An ambiguous id names what it may mean."""
    with pytest.raises(SessError) as caught:
        sessions.resolve(index, "1111")
    assert caught.value.message.splitlines()[1:] == [
        "  11111111-2  prompt 2",
        "  11111111-1  prompt 1",
    ]


def test_equal_names_in_two_folders_are_told_apart(world):
    """Ids that are no UUIDs may repeat; the folder then tells which one is meant."""
    for folder in ("-work", "-code-demo"):
        t = world.transcript("chat", folder)
        t.append(t.prompt(f"in {folder}", uuid=f"{folder}-1"))
    world.ingest()
    with closing(open_reader(world.state / "index.db")) as db:
        ids = sessions.ShortIds(db)
        rows = [*sessions.Listing().rows(db)]
        assert len({ids.of(row) for row in rows}) == 2
        assert [sessions.resolve(db, ids.of(row)).key for row in rows] == [row.key for row in rows]


IDS = st.sampled_from([ONE, NEAR, OTHER])


def _begun(parts):
    """The beginning of an id, and perhaps one more character."""
    native, length, more = parts
    return native[:length] + more


def test_any_text_is_an_id_or_an_error(index):
    """No id ends in a traceback, and what is found begins with what was asked for."""
    found = []

    @settings(max_examples=200, derandomize=True, deadline=None)
    @given(st.text() | st.tuples(IDS, st.integers(0, 40), st.text(max_size=1)).map(_begun))
    def asked(text):
        try:
            row = sessions.resolve(index, text)
        except SessError:
            return
        found.append((text, row.session))

    asked()
    assert len(found) > 5
    assert [one for one in found if not one[1].startswith(one[0].strip())] == []


def test_a_session_whose_files_are_gone_says_so(world, index):
    """A vanished transcript marks its session; the source is still named."""
    world.transcript(OTHER).path.unlink()
    world.ingest()
    row = sessions.resolve(index, OTHER)
    assert (bool(row.source_gone), row.source) == (True, str(world.transcript(OTHER).path))
    assert not sessions.resolve(index, ONE).source_gone
    (source,) = sources.of_session(index, row.key)
    assert source.state == "gone"
    assert sources.states(index) == {"gone": 1, "live": 5}


def test_a_session_without_a_title_has_the_first_words_it_shows(world):
    """Also those that it shares with its original, wherever they were read first."""
    words = "/clear " + "and so on " * 40
    t = world.transcript(ONE)
    t.append(t.prompt("!"), t.prompt(words))
    world.ingest()
    with closing(open_reader(world.state / "index.db")) as db:
        (row,) = sessions.Listing().rows(db)
        assert sessions.title_for(db, row.key, None) == "!"
        assert sessions.title_for(db, row.key, "  a\n title ") == "a title"
        assert sessions.title_for(db, NO_SESSION, None) == "(no title)"


@pytest.mark.parametrize(
    ("records", "title"),
    [
        (
            lambda t: [t.call("c1", command="make tea"), t.answer("the  tea\nis made")],
            "the tea is made",
        ),
        (lambda t: [t.call("c1", command="make tea")], "Bash make tea"),
        (lambda t: [t.result("nobody", "steam")], "(no title)"),
    ],
)
def test_without_a_prompt_the_agent_gives_the_title(world, records, title):
    """Its first words, else its first call."""
    t = world.transcript(ONE)
    t.append(*records(t))
    world.ingest()
    with closing(open_reader(world.state / "index.db")) as db:
        assert sessions.title_of(db, sessions.resolve(db, ONE)) == title


def test_a_list_of_candidates_cuts_titles_with_an_ellipsis(world):
    """At 60 characters."""
    for name in (ONE, NEAR):
        t = world.transcript(name)
        t.append(t.prompt("please " + "do it now " * 10))
    world.ingest()
    with closing(open_reader(world.state / "index.db")) as db, pytest.raises(SessError) as caught:
        sessions.resolve(db, "1111")
    titles = [line.split("  ")[-1] for line in caught.value.message.splitlines()[1:]]
    assert titles == [("please " + "do it now " * 10)[:59].rstrip() + "…"] * 2
