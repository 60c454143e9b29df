"""What the index says about conversations in Cursor's databases, fact by fact."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing

import pytest
from tests.cursor_databases import (
    ASK,
    CREATED,
    GENERATIONS,
    HEADERS_TABLE,
    USER,
    bubble,
    composer,
    encoded,
    global_database,
    header_entry,
    iso,
    make_global,
    picture,
    prompt,
    put,
    put_bubble,
    put_composer,
    put_conversation,
    put_header,
    put_item,
    reading,
    small_talk,
    terminal,
    thought,
    workspace_database,
)

from sess_schema.connection import open_reader, open_writer
from sess_schema.queries.search import Search
from sess_schema.queries.transcript import entries, structured_input
from sessiond.ingest import Ingest
from sessiond.reading.survey import roots_of
from sessiond.sources.cursor import CursorSource
from sessiond.writing.store import Store

FACTS = (
    "kind", "project", "title", "models", "mode", "started_at", "ended_at", "events", "prompts",
    "tool_calls",
)  # fmt: skip


class Cursor:
    """Cursor's global database in the world's home, and the index of it."""

    def __init__(self, world):
        self.world = world
        self.path = global_database(world.root)
        self._db = None

    @property
    def db(self):
        self._db = self._db or make_global(self.path, headers=True)
        return self._db

    def close(self):
        if self._db is not None:
            self._db.close()
            self._db = None

    def read(self):
        """A pass of a new process over the places of Cursor."""
        self.world.state.mkdir(mode=0o700, exist_ok=True)
        source = CursorSource(environ={"HOME": str(self.world.root)})
        with closing(open_writer(self.world.state / "index.db")) as db:
            return Ingest(Store(db)).reconcile(roots_of([source]))

    def delete(self, key):
        self.db.execute("DELETE FROM cursorDiskKV WHERE key = ?", (key,))

    def entries(self, session):
        with closing(open_reader(self.world.state / "index.db")) as db:
            key = db.execute("SELECT id FROM sessions WHERE native_id = ?", (session,)).get
            return list(entries(db, key))

    def shown(self, session):
        """(type, what is said or came back, status) in order."""
        return [(e.type, e.text or e.output, e.status) for e in self.entries(session)]

    def texts(self, session):
        return [text for _, text, _ in self.shown(session)]

    def found(self, words):
        """Conversations in which something is found, once for each hit."""
        with closing(open_reader(self.world.state / "index.db")) as db:
            return [hit.session for hit in Search(words).hits(db)]

    def facts(self, session, *names):
        (row,) = self.world.sql(
            f"SELECT {', '.join(names or FACTS)} FROM sessions WHERE native_id = ?", session
        )
        return row[0] if len(names) == 1 else row

    def parent(self, session):
        rows = self.world.sql(
            "SELECT p.native_id FROM sessions s JOIN sessions p ON p.id = s.parent_id"
            " WHERE s.native_id = ?",
            session,
        )
        return rows[0][0] if rows else None

    def state(self, session):
        return self.world.sql("SELECT state FROM sources WHERE path = ?", f"{self.path}#{session}")[
            0
        ][0]

    def lines(self, session):
        raw = self.world.restored(f"{self.path}#{session}")
        return [json.loads(line) for line in raw.splitlines()]


@pytest.fixture
def cursor(world, monkeypatch):
    """Nobody writes while it reads, so what it read counts at once."""
    monkeypatch.setattr("sessiond.engines.databases.CLOCK_STEP_NS", 0)
    with closing(Cursor(world)) as made:
        yield made


def say(*texts, at=CREATED):
    """Answers b1, b2, ... a second apart."""
    return [bubble(f"b{n}", text=text, at=at + 1000 * n) for n, text in enumerate(texts, 1)]


# -- each generation as a whole

TALKS = {
    "generation1": [("user", "g1 question", None), ("assistant", "g1 answer", None)],
    "generation2": [
        ("user", "g2 question", None),
        ("assistant", "g2 answer", None),
        ("tool_use", "g2 file", "ok"),
    ],
} | {
    f"generation{number}": [
        ("user", f"g{number} please fix the parser", None),
        ("thinking", f"g{number} where is it", None),
        ("tool_use", f"g{number} 3 passed", "ok"),
        ("tool_use", f"g{number} broke", "error"),
        ("assistant", f"g{number} it is fixed", None),
    ]
    for number in (3, 4, 5)
}
LATER = CREATED + 4000
FACTS_OF = {
    "generation1": (*("main", "/code/demo", "G1", '["gpt-4"]', None, CREATED, CREATED, 2, 1, 0),),
    "generation2": (
        *("main", "/code/demo", "G2", "[]", "agent", CREATED, CREATED + 5000, 3, 1, 1),
    ),
} | {
    f"generation{number}": (
        *("main", "/code/demo", f"G{number}", '["composer-2.5"]', "agent", CREATED, LATER),
        *(5, 1, 2),
    )
    for number in (3, 4, 5)
}
EACH = pytest.mark.parametrize("make", GENERATIONS, ids=lambda make: make.__name__)


@EACH
def test_each_generation_tells_its_conversation(cursor, make):
    session = make(cursor.world.root)
    cursor.read()
    assert cursor.shown(session) == TALKS[make.__name__]


@EACH
def test_each_generation_tells_its_facts(cursor, make):
    session = make(cursor.world.root)
    cursor.read()
    if make.__name__ == "generation2":  # only the list of the window knows of the mode
        assert cursor.facts(session)[:4] == FACTS_OF["generation2"][:4]
        assert cursor.facts(session)[5:] == FACTS_OF["generation2"][5:]
    else:
        assert cursor.facts(session) == FACTS_OF[make.__name__]


@EACH
def test_each_generation_is_one_session_of_as_many_turns_as_bubbles(cursor, make):
    session = make(cursor.world.root)
    cursor.read()
    assert cursor.world.sql("SELECT native_id, turns FROM sessions") == [
        (session, len(TALKS[make.__name__]))
    ]


def test_all_generations_in_one_home(cursor):
    """The databases of several at once; each conversation is told as if it were alone."""
    root = cursor.world.root
    for make in (GENERATIONS[0], GENERATIONS[4]):
        make(root)
    db = make_global_again(cursor.path)
    for number in (2, 3, 4):
        other = root / f"other{number}"
        GENERATIONS[number - 1](other)
        db.execute("ATTACH ? AS other", (str(global_database(other)),))
        db.execute("INSERT INTO cursorDiskKV SELECT key, value FROM other.cursorDiskKV")
        db.execute("DETACH other")
    db.close()
    cursor.read()
    names = ("g1-tab", "g2-composer", "g3-composer", "g4-composer", "g5-composer")
    for make, session in zip(GENERATIONS, names, strict=True):
        assert cursor.shown(session) == TALKS[make.__name__]


def make_global_again(path):
    return sqlite3.connect(path, isolation_level=None)


@EACH
def test_each_generation_is_read_only_once(cursor, make):
    make(cursor.world.root)
    cursor.read()
    before = cursor.world.dump()
    assert cursor.read().turns == 0
    assert cursor.world.dump() == before


@EACH
def test_each_generation_can_be_restored_and_read_elsewhere(cursor, make, tmp_path):
    """`restore` writes envelope lines; they show the same conversation in another home."""
    session = make(cursor.world.root)
    file = tmp_path / "export.jsonl"
    cursor.world.run("sess", "restore", session, "-o", file, check=0)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert {line["composerId"] for line in lines} == {session}
    assert all("bubble" in line for line in lines)
    other = Cursor(type(cursor.world)(tmp_path / "other"))
    other.world.run("sessiond", "sync", file, check=0)
    assert other.shown(session) == TALKS[make.__name__]


@EACH
def test_each_generation_gives_structured_input(cursor, make):
    session = make(cursor.world.root)
    done = cursor.world.run("sess", "show", session, "--json", check=0)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    inputs = [event["input"] for event in events if event["type"] == "tool_use"]
    assert all(isinstance(given, dict) for given in inputs)
    if make.__name__ == "generation2":
        assert inputs == [{"target_file": "a.py"}]
    elif inputs:
        assert [given["command"] for given in inputs] == ["make test", "make lint"]


# -- order


def test_headers_give_the_order_whatever_the_rowids_and_times(cursor):
    first, second, third = say("one", "two", "three")
    put_conversation(cursor.db, composer("c", [third, first, second]), [second, third, first])
    cursor.read()
    assert cursor.texts("c") == ["three", "one", "two"]


def test_a_bubble_outside_the_headers_is_placed_by_its_time(cursor):
    first, second, third = say("one", "two", "three")
    put_conversation(cursor.db, composer("c", [first, third]), [third, second, first])
    cursor.read()
    assert cursor.texts("c") == ["one", "two", "three"]


def test_bubbles_without_headers_are_in_the_order_of_their_times(cursor):
    first, second, third = say("one", "two", "three")
    put_conversation(cursor.db, composer("c", [], status="aborted"), [third, second, first])
    cursor.read()
    assert cursor.texts("c") == ["one", "two", "three"]


def test_bubbles_without_headers_and_times_are_in_the_order_of_their_rows(cursor):
    talk = say("one", "two", "three")
    for one in talk:
        del one["createdAt"]
    put_conversation(cursor.db, composer("c", []), [talk[2], talk[0], talk[1]])
    cursor.read()
    assert cursor.texts("c") == ["three", "one", "two"]


def test_headers_that_are_emptied_later_leave_the_conversation_as_it_was(cursor):
    talk = say("one", "two", "three")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    put_composer(cursor.db, composer("c", [], status="aborted"))
    cursor.read()
    assert cursor.texts("c") == ["one", "two", "three"]


def test_headers_may_name_bubbles_that_are_not_there(cursor):
    first, second, third = say("one", "two", "three")
    put_conversation(cursor.db, composer("c", [first, second, third]), [first, third])
    cursor.read()
    assert cursor.texts("c") == ["one", "three"]


def test_a_bubble_that_headers_already_named_comes_to_its_place(cursor):
    first, second, third = say("one", "two", "three")
    put_conversation(cursor.db, composer("c", [first, second, third]), [first, third])
    cursor.read()
    put_bubble(cursor.db, "c", second)
    cursor.read()
    assert cursor.texts("c") == ["one", "two", "three"]
    assert [line["bubble"]["text"] for line in cursor.lines("c")] == ["one", "two", "three"]


def test_headers_may_name_a_bubble_by_the_id_inside_its_value(cursor):
    first, second, third = say("one", "two", "three")
    put_composer(cursor.db, composer("c", [third, second, first]))
    put(cursor.db, "bubbleId:c:key1", first)
    put(cursor.db, "bubbleId:c:key2", second)
    put(cursor.db, "bubbleId:c:key3", third)
    cursor.read()
    assert cursor.texts("c") == ["three", "two", "one"]


def test_a_new_bubble_at_the_front_moves_the_others(cursor):
    first, second, third = say("one", "two", "three")
    put_conversation(cursor.db, composer("c", [second, third]), [second, third])
    cursor.read()
    put_conversation(cursor.db, composer("c", [first, second, third]), [first])
    cursor.read()
    assert cursor.texts("c") == ["one", "two", "three"]
    assert [line["bubble"]["text"] for line in cursor.lines("c")] == ["one", "two", "three"]


def test_other_headers_make_another_order(cursor):
    first, second, third = say("one", "two", "three")
    put_conversation(cursor.db, composer("c", [first, second, third]), [first, second, third])
    cursor.read()
    put_composer(cursor.db, composer("c", [second, third, first]))
    cursor.read()
    assert cursor.texts("c") == ["two", "three", "one"]
    assert [line["bubble"]["text"] for line in cursor.lines("c")] == ["two", "three", "one"]


def test_the_structured_input_of_a_call_that_moved_is_still_its_own(cursor):
    first, second = terminal("b1", "first", "out"), terminal("b2", "second", "out", at=CREATED + 9)
    put_conversation(cursor.db, composer("c", [second]), [second])
    cursor.read()
    put_conversation(cursor.db, composer("c", [first, second]), [first])
    cursor.read()
    done = cursor.world.run("sess", "show", "--no-sync", "c", "--json", check=0)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["input"]["command"] for event in events] == ["first", "second"]


# -- values


def test_a_bubble_without_a_value_is_left_out(cursor):
    (one,) = say("one")
    put_conversation(cursor.db, composer("c", [one]), [one])
    put(cursor.db, "bubbleId:c:b2", None)
    cursor.read()
    assert cursor.texts("c") == ["one"]


def test_a_bubble_that_loses_its_value_is_no_longer_shown(cursor):
    talk = say("one", "two")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    put(cursor.db, "bubbleId:c:b2", None)
    cursor.read()
    assert cursor.texts("c") == ["one"]
    assert cursor.found("two") == []


def test_a_bubble_that_gets_its_value_later_is_shown(cursor):
    talk = say("one", "two")
    put_conversation(cursor.db, composer("c", talk), talk[:1])
    put(cursor.db, "bubbleId:c:b2", None)
    cursor.read()
    put_bubble(cursor.db, "c", talk[1])
    cursor.read()
    assert cursor.texts("c") == ["one", "two"]


@pytest.mark.parametrize("broken", ['{"text": "half', "no json", "[1, 2"])
def test_a_broken_value_is_shown_as_such_and_warned_of(cursor, broken):
    (one,) = say("one")
    put_conversation(cursor.db, composer("c", [one]), [one])
    put(cursor.db, "bubbleId:c:b2", broken)
    cursor.read()
    assert [(e.type, e.label) for e in cursor.entries("c")] == [
        ("assistant", None),
        ("system", "broken"),
    ]
    assert cursor.world.sql("SELECT reason FROM warnings") == [("bubble is not an object",)]


def test_a_broken_value_that_is_whole_later_is_shown_as_the_bubble_it_is(cursor):
    (one,) = say("one")
    put_composer(cursor.db, composer("c", [one]))
    put(cursor.db, "bubbleId:c:b1", encoded(one)[:-20])
    cursor.read()
    put_bubble(cursor.db, "c", one)
    cursor.read()
    assert cursor.shown("c") == [("assistant", "one", None)]
    assert cursor.world.sql("SELECT reason FROM warnings WHERE retired = 0") == []


@pytest.mark.parametrize("layers", [1, 2])
def test_a_bubble_inside_strings_is_unwrapped(cursor, layers):
    (one,) = say("one")
    value = encoded(one)
    for _ in range(layers):
        value = json.dumps(value)
    put_composer(cursor.db, composer("c", [one]))
    put(cursor.db, "bubbleId:c:b1", value)
    cursor.read()
    assert cursor.shown("c") == [("assistant", "one", None)]


def test_a_value_may_be_a_blob(cursor):
    (one,) = say("one")
    put_composer(cursor.db, composer("c", [one]))
    put(cursor.db, "bubbleId:c:b1", encoded(one).encode())
    cursor.read()
    assert cursor.shown("c") == [("assistant", "one", None)]


def test_the_text_of_a_prompt_may_be_only_in_its_rich_text(cursor):
    typed = prompt("b1", "typed words") | {"text": ""}
    put_conversation(cursor.db, composer("c", [typed]), [typed])
    cursor.read()
    assert cursor.shown("c") == [("user", "typed words", None)]


def test_the_older_names_of_fields_are_known_too(cursor):
    call = {"name": "grep", "toolCallId": "t1", "status": "completed", "args": {"pattern": "x"}}
    talk = [
        {"type": USER, "bubbleId": "b1", "text": "", "richtext": "old question"},
        {"type": 2, "bubbleId": "b2", "text": "old answer", "toolFormers": [call]},
        {"type": 2, "bubbleId": "b3", "text": "",
         "toolResults": [{"toolCallId": "t1", "result": "old result"}]},
    ]  # fmt: skip
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    assert cursor.shown("c") == [
        ("user", "old question", None),
        ("assistant", "old answer", None),
        ("tool_use", "old result", "ok"),
    ]


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        *(("completed", "ok"), ("error", "error"), ("cancelled", "denied"), ("rejected", "denied")),
        *(("loading", "pending"), ("pending", "pending")),
    ],
)
def test_the_status_of_a_call(cursor, status, shown):
    call = terminal("b1", "make", status=status, error="bad" if status == "error" else None)
    put_conversation(cursor.db, composer("c", [call]), [call])
    cursor.read()
    assert [e.status for e in cursor.entries("c")] == [shown]


def test_two_equal_calls_at_the_same_moment_are_two(cursor):
    """Parallel calls begin together; only their ids tell them apart."""
    talk = [terminal(f"b{n}", "make", "the same output") for n in (1, 2)]
    talk.append(bubble("b3", text="done", at=CREATED + 5000))
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    assert cursor.texts("c") == ["the same output", "the same output", "done"]


def test_two_equal_answers_at_the_same_moment_are_two(cursor):
    talk = [bubble(f"b{n}", text="the same") for n in (1, 2)]
    talk.append(bubble("b3", text="done", at=CREATED + 5000))
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    assert cursor.texts("c") == ["the same", "the same", "done"]


def test_equal_answers_are_two_when_the_second_comes_later(cursor):
    talk = [bubble(f"b{n}", text="the same") for n in (1, 2)]
    talk.append(bubble("b3", text="done", at=CREATED + 5000))
    put_conversation(cursor.db, composer("c", talk), [talk[0], talk[2]])
    cursor.read()
    put_bubble(cursor.db, "c", talk[1])
    cursor.read()
    assert cursor.texts("c") == ["the same", "the same", "done"]


# -- what is no conversation


def test_a_ghost_is_left_out(cursor):
    put_composer(cursor.db, composer("ghost", name=None))
    cursor.read()
    assert cursor.world.sql("SELECT native_id FROM sessions") == []


def test_a_draft_is_left_out(cursor):
    put_composer(cursor.db, composer("draft", name=None, isDraft=True, text="unsent words"))
    cursor.read()
    assert cursor.world.sql("SELECT native_id FROM sessions") == []


def test_a_named_shell_is_left_out(cursor):
    put_composer(cursor.db, composer("shell", name="Only a name"))
    cursor.read()
    done = cursor.world.run("sess", "list", "--no-sync", "--all", "--json")
    assert done.stdout == ""


def test_what_was_not_sent_is_not_said(cursor):
    talk = say("one")
    put_conversation(cursor.db, composer("c", talk, text="unsent words"), talk)
    cursor.read()
    assert cursor.found("unsent") == []


def test_a_ghost_that_begins_to_talk_is_a_conversation(cursor):
    put_composer(cursor.db, composer("c", name=None))
    cursor.read()
    talk = say("one")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    assert cursor.texts("c") == ["one"]


def test_bubbles_without_a_composer_are_a_conversation(cursor):
    for one in reversed(small_talk("lost")):
        put_bubble(cursor.db, "c", one)
    cursor.read()
    assert [kind for kind, _, _ in cursor.shown("c")] == [
        *("user", "thinking", "tool_use", "tool_use", "assistant"),
    ]
    assert cursor.facts("c", "title") == "lost please fix the parser"


def test_a_composer_that_comes_after_its_bubbles_gives_them_a_name(cursor):
    talk = small_talk("lost")
    for one in talk:
        put_bubble(cursor.db, "c", one)
    cursor.read()
    put_composer(cursor.db, composer("c", talk, name="Found"))
    cursor.read()
    assert cursor.facts("c", "title") == "Found"


# -- subagents

PARENT_FIRST = pytest.mark.parametrize("order", [("top", "sub"), ("sub", "top")])
INFO = {"parentComposerId": "top", "subagentTypeName": "explore", "toolCallId": "call_7\nfc_7"}


def put_family(cursor, order, *, info=None, listed=None, header=False):
    for name in order:
        talk = [prompt(f"{name}-1", f"{name} words")]
        more = {"subagentInfo": info} if info and name == "sub" else {}
        more |= {"subagentComposerIds": listed} if listed and name == "top" else {}
        value = composer(name, talk, **more)
        put_conversation(cursor.db, value, talk)
        if header:
            put_header(cursor.db, value | ({"subagentInfo": INFO} if name == "sub" else {}))
        cursor.read()


@PARENT_FIRST
def test_a_subagent_that_names_its_parent(cursor, order):
    put_family(cursor, order, info=INFO)
    assert cursor.parent("sub") == "top"
    assert cursor.facts("sub", "kind", "agent_type", "call_id") == ("subagent", "explore", "call_7")
    assert cursor.facts("top", "kind") == "main"


@PARENT_FIRST
def test_a_subagent_whose_header_names_its_parent(cursor, order):
    put_family(cursor, order, header=True)
    assert cursor.parent("sub") == "top"
    assert cursor.facts("sub", "kind", "agent_type", "call_id") == ("subagent", "explore", "call_7")


@PARENT_FIRST
def test_a_subagent_that_its_parent_names(cursor, order):
    put_family(cursor, order, listed=["sub"])
    assert cursor.parent("sub") == "top"
    assert cursor.facts("sub", "kind") == "subagent"
    assert cursor.facts("top", "kind") == "main"


def test_a_subagent_that_its_parent_names_later(cursor):
    put_family(cursor, ("top", "sub"))
    put_composer(cursor.db, composer("top", [prompt("top-1", "")], subagentComposerIds=["sub"]))
    cursor.read()
    assert (cursor.parent("sub"), cursor.facts("sub", "kind")) == ("top", "subagent")


def test_a_subagent_stays_one_when_it_says_more(cursor):
    put_family(cursor, ("sub", "top"), listed=["sub"])
    put_bubble(cursor.db, "sub", bubble("sub-2", text="more"))
    cursor.read()
    assert (cursor.parent("sub"), cursor.facts("sub", "kind")) == ("top", "subagent")


def test_a_header_that_comes_later_makes_a_subagent(cursor):
    put_family(cursor, ("top", "sub"))
    put_header(cursor.db, composer("sub", subagentInfo=INFO))
    cursor.read()
    assert (cursor.parent("sub"), cursor.facts("sub", "kind")) == ("top", "subagent")


def test_a_subagent_that_was_never_read_is_not_listed(cursor):
    put_family(cursor, ("top",), listed=["sub"])
    done = cursor.world.run("sess", "list", "--no-sync", "--all", "--json", check=0)
    assert [json.loads(line)["session"] for line in done.stdout.splitlines()] == ["top"]


# -- projects


def identifier(folder):
    return {"id": "w", "uri": {"$mid": 1, "fsPath": folder, "path": folder, "scheme": "file"}}


def talk_of(files=("/touched/src/a.py", "/touched/test/b.py")):
    return [reading(f"b{n}", path, "text", at=CREATED + n) for n, path in enumerate(files)]


class Places:
    """The ways to tell the project of the conversation `c`, from best to worst."""

    def __init__(self, cursor):
        self.cursor = cursor
        self.more = {}

    def composer(self):
        self.more["workspaceIdentifier"] = identifier("/by/composer")
        self.write()

    def table(self):
        entry = header_entry(composer("c"), folder="/by/table")
        self.cursor.db.execute(
            "INSERT OR REPLACE INTO composerHeaders (composerId, value) VALUES ('c', ?)",
            (encoded(entry),),
        )

    def list(self):
        entry = header_entry(composer("c"), folder="/by/list")
        put_item(self.cursor.db, "composer.composerHeaders", {"allComposers": [entry]})

    def window(self):
        path = workspace_database(self.cursor.world.root, folder="/by/window")
        db = make_global(path, journal="delete")
        put_item(db, "composer.composerData", {"allComposers": [{"composerId": "c"}]})
        db.close()

    def repository(self):
        self.more["trackedGitRepos"] = [{"repoPath": "/by/repository"}]
        self.write()

    def touched(self):
        self.write()

    def write(self):
        talk = talk_of()
        put_conversation(self.cursor.db, composer("c", talk, **self.more), talk)


LEVELS = ("composer", "table", "list", "window", "repository", "touched")


def folder_by(level):
    return "/touched" if level == "touched" else f"/by/{level}"


@pytest.mark.parametrize("best", LEVELS)
def test_the_project_is_told_by_the_best_that_knows(cursor, best):
    places = Places(cursor)
    places.write()
    for level in LEVELS[LEVELS.index(best) :]:
        getattr(places, level)()
    cursor.read()
    assert cursor.facts("c", "project") == folder_by(best)


@pytest.mark.parametrize("level", LEVELS[:-1])
def test_a_better_source_that_comes_later_replaces_the_project(cursor, level):
    places = Places(cursor)
    worse = LEVELS[LEVELS.index(level) + 1]
    places.write()
    getattr(places, worse)()
    cursor.read()
    assert cursor.facts("c", "project") == folder_by(worse)
    getattr(places, level)()
    cursor.read()
    assert cursor.facts("c", "project") == folder_by(level)


@pytest.mark.parametrize("level", LEVELS[1:])
def test_a_worse_source_that_comes_later_changes_nothing(cursor, level):
    places = Places(cursor)
    better = LEVELS[LEVELS.index(level) - 1]
    places.write()
    getattr(places, better)()
    cursor.read()
    getattr(places, level)()
    cursor.read()
    assert cursor.facts("c", "project") == folder_by(better)


def test_a_window_that_is_flushed_later_tells_the_project(cursor):
    """Only its own database changes then, when the window is closed."""
    places = Places(cursor)
    places.write()
    cursor.read()
    places.window()
    cursor.read()
    assert cursor.facts("c", "project") == "/by/window"


def test_the_folder_of_a_window_may_be_written_later(cursor):
    places = Places(cursor)
    places.write()
    places.window()
    file = workspace_database(cursor.world.root, folder=None).parent / "workspace.json"
    told = file.read_text()
    file.unlink()
    cursor.read()
    file.write_text(told)
    put_bubble(cursor.db, "c", bubble("b9", text="more"))
    cursor.read()
    assert cursor.facts("c", "project") == "/by/window"


def test_the_project_follows_the_files_that_are_touched_later(cursor):
    talk = talk_of(["/touched/src/deep/a.py", "/touched/test/b.py"])
    put_conversation(cursor.db, composer("c", talk), talk[:1])
    cursor.read()
    assert cursor.facts("c", "project") == "/touched/src/deep"
    put_bubble(cursor.db, "c", talk[1])
    cursor.read()
    assert cursor.facts("c", "project") == "/touched"


def test_the_folders_in_a_bubble_tell_the_project(cursor):
    talk = [bubble("b1", text="one", workspaceUris=["file:///code/demo"])]
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    assert cursor.facts("c", "project") == "/code/demo"


@pytest.mark.parametrize("name", ["selectedComposerIds", "lastFocusedComposerIds"])
def test_a_window_may_only_name_what_is_selected(cursor, name):
    talk = say("one")
    put_conversation(cursor.db, composer("c", talk), talk)
    db = make_global(workspace_database(cursor.world.root), journal="delete")
    put_item(db, "composer.composerData", {name: ["c"]})
    db.close()
    cursor.read()
    assert cursor.facts("c", "project") == "/code/demo"


def test_the_panels_of_a_window_name_its_conversations(cursor):
    talk = say("one")
    put_conversation(cursor.db, composer("c", talk), talk)
    db = make_global(workspace_database(cursor.world.root), journal="delete")
    panel = {"workbench.panel.aichat.view.c": {"collapsed": False}}
    put_item(db, "workbench.panel.composerChatViewPane.1", panel)
    db.close()
    cursor.read()
    assert cursor.facts("c", "project") == "/code/demo"


# -- titles, models, tokens, images


def test_a_new_name_is_the_new_title(cursor):
    talk = say("one")
    put_conversation(cursor.db, composer("c", talk, name="Old"), talk)
    cursor.read()
    put_composer(cursor.db, composer("c", talk, name="New"))
    cursor.read()
    assert cursor.facts("c", "title") == "New"


def test_the_title_of_a_nameless_conversation_is_its_first_prompt(cursor):
    talk = [prompt("b1", "first words"), prompt("b2", "second words", at=CREATED + 1000)]
    put_conversation(cursor.db, composer("c", talk, name=None), reversed(talk))
    cursor.read()
    assert cursor.facts("c", "title") == "first words"


def test_the_title_follows_the_prompt_that_is_replaced(cursor):
    """Nothing of what was taken back stays in sight."""
    talk = [prompt("b1", "hasty words")]
    put_conversation(cursor.db, composer("c", talk, name=None), talk)
    cursor.read()
    put_bubble(cursor.db, "c", prompt("b1", "better words"))
    cursor.read()
    assert cursor.facts("c", "title") == "better words"


def test_zero_tokens_are_unknown(cursor):
    talk = say("one")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    assert cursor.world.sql("SELECT * FROM usage") == []


def test_tokens_are_counted_once(cursor):
    count = {"tokenCount": {"inputTokens": 30, "outputTokens": 7}}
    talk = [bubble("b1", text="one", modelInfo={"modelName": "gpt-5"}, **count)]
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    put_bubble(cursor.db, "c", talk[0] | {"text": "one more"})
    cursor.read()
    assert cursor.world.sql(
        "SELECT message_id, model, ts, input_tokens, output_tokens FROM usage"
    ) == [("b1", "gpt-5", CREATED, 30, 7)]


def test_tokens_that_arrive_late_are_counted(cursor):
    talk = say("one")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    put_bubble(cursor.db, "c", talk[0] | {"tokenCount": {"inputTokens": 3, "outputTokens": 1}})
    cursor.read()
    assert cursor.world.sql("SELECT input_tokens, output_tokens FROM usage") == [(3, 1)]


def test_images_are_counted_and_not_in_the_text(cursor):
    shots = [picture(2000, seed) for seed in (1, 2)]
    shot = prompt("b1", "look at these", images=shots, context={"selectedImages": shots})
    put_conversation(cursor.db, composer("c", [shot]), [shot])
    cursor.read()
    assert [(e.text, e.images) for e in cursor.entries("c")] == [("look at these", 2)]


def test_an_image_alone_is_a_prompt(cursor):
    shot = prompt("b1", "", images=[picture(500)])
    put_conversation(cursor.db, composer("c", [shot]), [shot])
    cursor.read()
    assert [(e.type, e.text, e.images) for e in cursor.entries("c")] == [("user", "[image]", 1)]


def test_the_mode_of_a_conversation(cursor):
    talk = say("one")
    put_conversation(cursor.db, composer("c", talk, unifiedMode="plan"), talk)
    put_conversation(cursor.db, composer("d", talk, unifiedMode=ASK), talk)
    cursor.read()
    assert cursor.facts("c", "mode") == "plan"
    assert cursor.facts("d", "mode") == "ask"


def test_a_model_that_cursor_chose_is_unknown(cursor):
    talk = [prompt("b1", "one")]
    config = {"modelName": "default"}
    put_conversation(cursor.db, composer("c", talk, modelConfig=config), talk)
    cursor.read()
    assert cursor.facts("c", "models") == "[]"


def test_a_bubble_without_a_time_has_that_of_its_header(cursor):
    (one,) = say("one")
    del one["createdAt"]
    heads = [{"bubbleId": "b1", "type": 2, "createdAt": iso(CREATED + 777)}]
    value = composer("c") | {"fullConversationHeadersOnly": heads}
    put_conversation(cursor.db, value, [one])
    cursor.read()
    assert [e.ts for e in cursor.entries("c")] == [CREATED + 777]


def test_a_bubble_without_a_time_gets_that_of_the_composer_that_comes_later(cursor):
    (one,) = say("one")
    del one["createdAt"]
    put_bubble(cursor.db, "c", one)
    cursor.read()
    put_composer(cursor.db, composer("c", [one]))
    cursor.read()
    assert [e.ts for e in cursor.entries("c")] == [CREATED]


def test_a_bubble_that_loses_its_time_goes_to_the_end(cursor):
    """Headers do not name it, and a time that it no longer tells does not count."""
    talk = say("one", "two")
    put_conversation(cursor.db, composer("c", talk[1:]), talk)
    cursor.read()
    put_bubble(cursor.db, "c", {k: v for k, v in talk[0].items() if k != "createdAt"})
    cursor.read()
    assert cursor.texts("c") == ["two", "one"]


# -- bubbles that change


def ids(cursor, session):
    return [e.event for e in cursor.entries(session)]


def test_a_bubble_that_grows_keeps_its_event(cursor):
    talk = say("one", "two begins")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    before = ids(cursor, "c")
    put_bubble(cursor.db, "c", talk[1] | {"text": "two begins and ends"})
    cursor.read()
    assert ids(cursor, "c") == before
    assert cursor.texts("c") == ["one", "two begins and ends"]


def test_nothing_of_the_old_text_is_found(cursor):
    talk = say("zebra")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    put_bubble(cursor.db, "c", talk[0] | {"text": "giraffe"})
    cursor.read()
    assert (cursor.found("zebra"), cursor.found("giraffe")) == ([], ["c"])
    assert cursor.lines("c") == [{"composerId": "c", "bubble": talk[0] | {"text": "giraffe"}}]
    cursor.world.check()


def test_the_other_bubbles_are_not_touched_by_a_replacement(cursor):
    talk = small_talk("x")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    before = cursor.world.dump()["events"]
    put_bubble(cursor.db, "c", talk[4] | {"text": "another end"})
    assert cursor.read().turns == 1
    assert [row for row in cursor.world.dump()["events"] if row not in before] != []
    assert len([row for row in cursor.world.dump()["events"] if row not in before]) == 1


def test_a_call_that_ends_keeps_its_event(cursor):
    call = terminal("b1", "make", status="loading")
    put_conversation(cursor.db, composer("c", [call]), [call])
    cursor.read()
    before = ids(cursor, "c")
    assert [e.status for e in cursor.entries("c")] == ["pending"]
    put_bubble(cursor.db, "c", terminal("b1", "make", "all done"))
    cursor.read()
    assert ids(cursor, "c") == before
    assert cursor.shown("c") == [("tool_use", "all done", "ok")]


def test_files_follow_a_replacement(cursor):
    call = reading("b1", "/code/demo/a.py", "text")
    put_conversation(cursor.db, composer("c", [call]), [call])
    cursor.read()
    put_bubble(cursor.db, "c", reading("b1", "/code/demo/b.py", "text"))
    cursor.read()
    assert cursor.world.sql("SELECT path, action FROM files") == [("/code/demo/b.py", "read")]


def test_commits_follow_a_replacement(cursor):
    def commit(sha):
        return terminal("b1", "git commit -m x", f"[main {sha}] Fix it\n 1 file changed")

    put_conversation(cursor.db, composer("c", [commit("aaaa111")]), [commit("aaaa111")])
    cursor.read()
    before = cursor.world.sql("SELECT sha FROM commits")
    put_bubble(cursor.db, "c", commit("bbbb222"))
    cursor.read()
    assert before == [("aaaa111",)]
    assert cursor.world.sql("SELECT sha FROM commits") == [("bbbb222",)]


def test_a_bubble_that_becomes_something_else(cursor):
    talk = say("one")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    put_bubble(cursor.db, "c", thought("b1", "hm"))
    cursor.read()
    assert cursor.shown("c") == [("thinking", "hm", None)]
    assert cursor.facts("c", "events") == 1


def test_a_bubble_that_says_more_than_one_thing_and_then_less(cursor):
    call = terminal("b1", "make", "made")
    put_conversation(cursor.db, composer("c", [call]), [call | {"text": "I make it"}])
    cursor.read()
    assert [e.type for e in cursor.entries("c")] == ["assistant", "tool_use"]
    put_bubble(cursor.db, "c", call)
    cursor.read()
    assert cursor.shown("c") == [("tool_use", "made", "ok")]
    assert cursor.found('"I make it"') == []
    cursor.world.check()


def test_a_result_apart_from_its_call_may_change(cursor):
    call = {"name": "grep", "toolCallId": "t1", "args": {"pattern": "x"}}
    first = {"type": 2, "bubbleId": "b1", "text": "", "toolFormers": [call]}

    def result(text):
        return {"type": 2, "bubbleId": "b2", "text": "",
                "toolResults": [{"toolCallId": "t1", "result": text}]}  # fmt: skip

    put_conversation(cursor.db, composer("c", [first, result("")]), [first, result("zebra")])
    cursor.read()
    put_bubble(cursor.db, "c", result("giraffe"))
    cursor.read()
    assert cursor.shown("c") == [("tool_use", "giraffe", "ok")]
    assert cursor.found("zebra") == []


# -- bubbles and conversations that go


def test_a_removed_bubble_is_retired(cursor):
    talk = say("one", "two", "three")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    cursor.delete("bubbleId:c:b2")
    put_composer(cursor.db, composer("c", [talk[0], talk[2]]))
    cursor.read()
    assert cursor.texts("c") == ["one", "three"]
    assert cursor.found("two") == []
    assert cursor.facts("c", "events") == 2
    assert [line["bubble"]["text"] for line in cursor.lines("c")] == ["one", "three"]


def test_a_removed_bubble_that_comes_back_is_the_same(cursor):
    talk = say("one", "two", "three")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    before = ids(cursor, "c")
    cursor.delete("bubbleId:c:b2")
    cursor.read()
    assert cursor.texts("c") == ["one", "three"]
    put_bubble(cursor.db, "c", talk[1])
    cursor.read()
    assert cursor.texts("c") == ["one", "two", "three"]
    assert ids(cursor, "c") == before
    assert [line["bubble"]["text"] for line in cursor.lines("c")] == ["one", "two", "three"]
    assert cursor.found("two") == ["c"]
    cursor.world.check()


def delete_conversation(cursor, session, talk):
    cursor.delete(f"composerData:{session}")
    for one in talk:
        cursor.delete(f"bubbleId:{session}:{one['bubbleId']}")


def test_a_deleted_conversation_stays_and_is_said_to_be_gone(cursor):
    talk = small_talk("x")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    before = cursor.shown("c")
    delete_conversation(cursor, "c", talk)
    cursor.read()
    assert cursor.shown("c") == before
    done = cursor.world.run("sess", "list", "--no-sync", "--json", check=0)
    assert json.loads(done.stdout)["source_gone"] is True


def test_a_deleted_conversation_can_be_restored(cursor):
    talk = small_talk("x")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    delete_conversation(cursor, "c", talk)
    cursor.read()
    assert [line["bubble"] for line in cursor.lines("c")] == talk


def test_a_deleted_conversation_returns_without_duplicates(cursor):
    talk = small_talk("x")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    before = cursor.shown("c"), ids(cursor, "c"), cursor.lines("c"), cursor.facts("c")
    delete_conversation(cursor, "c", talk)
    cursor.read()
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    assert (cursor.shown("c"), ids(cursor, "c"), cursor.lines("c"), cursor.facts("c")) == before
    assert cursor.state("c") == "live"


def test_a_conversation_that_is_deleted_row_by_row_stays_whole(cursor):
    talk = say("one", "two", "three")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    cursor.delete("composerData:c")
    for one in talk:
        cursor.delete(f"bubbleId:c:{one['bubbleId']}")
        cursor.read()
        assert cursor.texts("c") == ["one", "two", "three"]
        assert [line["bubble"]["text"] for line in cursor.lines("c")] == ["one", "two", "three"]
    assert cursor.state("c") == "gone"


def test_a_conversation_whose_bubbles_go_before_its_composer(cursor):
    talk = say("one", "two", "three")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    for one in talk:
        cursor.delete(f"bubbleId:c:{one['bubbleId']}")
    cursor.read()
    cursor.delete("composerData:c")
    cursor.read()
    assert cursor.texts("c") == ["one", "two", "three"]
    assert cursor.state("c") == "gone"


def test_a_conversation_half_deleted_and_written_again_is_whole(cursor):
    talk = say("one", "two", "three")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    cursor.delete("composerData:c")
    cursor.delete("bubbleId:c:b1")
    cursor.read()
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    assert cursor.texts("c") == ["one", "two", "three"]
    assert [line["bubble"]["text"] for line in cursor.lines("c")] == ["one", "two", "three"]


def commands(cursor, session):
    """The structured input of each call, out of the archive."""
    with closing(open_reader(cursor.world.state / "index.db")) as db:
        return [structured_input(db, e)["command"] for e in cursor.entries(session)]


@pytest.mark.parametrize("order", [(1, 2, 3), (2, 1, 3), (3, 2, 1)])
def test_each_call_keeps_its_own_input_while_its_conversation_is_deleted(cursor, order):
    """Row by row, and written in another order than it is read."""
    talk = [terminal(f"b{n}", f"step {n}", "out", at=CREATED + n) for n in (1, 2, 3)]
    put_conversation(cursor.db, composer("c", talk), talk[1:])
    cursor.read()
    put_bubble(cursor.db, "c", talk[0])
    cursor.read()
    cursor.delete("composerData:c")
    for number in order:
        cursor.delete(f"bubbleId:c:b{number}")
        cursor.read()
        assert commands(cursor, "c") == ["step 1", "step 2", "step 3"]
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    assert commands(cursor, "c") == ["step 1", "step 2", "step 3"]


@pytest.mark.parametrize("front", [1, 2, 3])
def test_each_call_keeps_its_own_input_when_one_comes_to_the_front(cursor, front):
    talk = [terminal(f"b{n}", f"step {n}", "out", at=CREATED + n) for n in (1, 2, 3)]
    others = [one for n, one in enumerate(talk, 1) if n != front]
    put_conversation(cursor.db, composer("c", others), others)
    cursor.read()
    put_conversation(cursor.db, composer("c", [talk[front - 1], *others]), [talk[front - 1]])
    cursor.read()
    numbers = [front, *(n for n in (1, 2, 3) if n != front)]
    assert commands(cursor, "c") == [f"step {n}" for n in numbers]


# -- copies


def test_a_copied_bubble_is_shown_twice_and_found_once(cursor):
    talk = say("zebra")
    for name, at in (("old", CREATED), ("new", CREATED + 10**6)):
        put_conversation(cursor.db, composer(name, talk, at=at), talk)
        cursor.read()
    assert cursor.texts("old") == cursor.texts("new") == ["zebra"]
    assert len(cursor.found("zebra")) == 1


@pytest.mark.parametrize("changed", ["old", "new"])
def test_a_copy_that_changes_leaves_the_other_as_it_was(cursor, changed):
    talk = say("zebra")
    for name, at in (("old", CREATED), ("new", CREATED + 10**6)):
        put_conversation(cursor.db, composer(name, talk, at=at), talk)
        cursor.read()
    put_bubble(cursor.db, changed, talk[0] | {"text": "giraffe"})
    cursor.read()
    other = "new" if changed == "old" else "old"
    assert (cursor.texts(changed), cursor.texts(other)) == (["giraffe"], ["zebra"])
    assert (cursor.found("giraffe"), cursor.found("zebra")) == ([changed], [other])
    assert (cursor.facts("old", "events"), cursor.facts("new", "events")) == (1, 1)
    cursor.world.check()


@pytest.mark.parametrize("removed", ["old", "new"])
def test_a_copy_that_goes_leaves_the_other_as_it_was(cursor, removed):
    talk = say("zebra", "more")
    for name, at in (("old", CREATED), ("new", CREATED + 10**6)):
        put_conversation(cursor.db, composer(name, talk, at=at), talk)
        cursor.read()
    cursor.delete(f"bubbleId:{removed}:b1")
    cursor.read()
    other = "new" if removed == "old" else "old"
    assert (cursor.texts(removed), cursor.texts(other)) == (["more"], ["zebra", "more"])
    assert cursor.found("zebra") == [other]


def test_a_copy_that_changes_as_the_other_does_is_found_once(cursor):
    talk = say("zebra")
    for name, at in (("old", CREATED), ("new", CREATED + 10**6)):
        put_conversation(cursor.db, composer(name, talk, at=at), talk)
    cursor.read()
    for name in ("old", "new"):
        put_bubble(cursor.db, name, talk[0] | {"text": "giraffe"})
        cursor.read()
    assert cursor.texts("old") == cursor.texts("new") == ["giraffe"]
    assert len(cursor.found("giraffe")) == 1


# -- how the file is written


def told(cursor):
    dump = cursor.world.dump()
    return {part: dump[part] for part in ("events", "sessions", "turns", "usage", "warnings")}


def test_vacuum_changes_nothing(cursor):
    talk = small_talk("x")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.delete("bubbleId:c:none")
    cursor.read()
    before = told(cursor)
    cursor.db.execute("VACUUM")
    assert cursor.read().turns == 0
    assert told(cursor) == before


def test_other_rowids_change_nothing(cursor):
    talk = small_talk("x")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    before = told(cursor)
    cursor.db.execute("UPDATE cursorDiskKV SET rowid = 1000 - rowid")
    assert cursor.read().turns == 0
    assert told(cursor) == before
    rows = dict(cursor.world.sql("SELECT key, place FROM database_rows WHERE key LIKE 'bubble%'"))
    query = "SELECT key, rowid FROM cursorDiskKV WHERE key LIKE 'bubble%'"
    assert rows == dict(cursor.db.execute(query))


def test_another_file_with_the_same_rows_changes_nothing(cursor, tmp_path):
    talk = small_talk("x")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    before = told(cursor)
    cursor.close()
    shutil.copy(cursor.path, tmp_path / "copy")
    os.replace(tmp_path / "copy", cursor.path)
    assert cursor.read().turns == 0
    assert told(cursor) == before


def test_rows_that_are_updated_are_read_too(cursor):
    """Without a new rowid; the composer is written after its bubbles, as always."""
    talk = small_talk("x")
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    for key, value in (
        ("bubbleId:c:x-5", talk[4] | {"text": "another end"}),
        ("composerData:c", composer("c", talk, name="Renamed")),
    ):
        cursor.db.execute("UPDATE cursorDiskKV SET value = ? WHERE key = ?", (encoded(value), key))
    cursor.read()
    assert cursor.texts("c")[-1] == "another end"
    assert cursor.facts("c", "title") == "Renamed"


def test_upserts_are_read_too(cursor):
    talk = small_talk("x")
    cursor.db.execute("DROP TABLE cursorDiskKV")
    cursor.db.execute("CREATE TABLE cursorDiskKV (key TEXT PRIMARY KEY, value BLOB)")
    upsert = (
        "INSERT INTO cursorDiskKV VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
    )
    for text in ("one end", "another end"):
        for one in (*talk[:4], talk[4] | {"text": text}):
            cursor.db.execute(upsert, (f"bubbleId:c:{one['bubbleId']}", encoded(one)))
        cursor.db.execute(upsert, ("composerData:c", encoded(composer("c", talk))))
        cursor.read()
        assert cursor.texts("c")[-1] == text


def test_a_table_of_headers_that_appears_later_is_read(cursor):
    talk = say("one")
    put_conversation(cursor.db, composer("c", talk, name=None), talk)
    cursor.db.execute("DROP TABLE composerHeaders")
    cursor.read()
    cursor.close()
    db = make_global_again(cursor.path)
    db.execute(HEADERS_TABLE)
    put_header(db, composer("c", talk, name="By header"))
    db.close()
    cursor.read()
    assert cursor.facts("c", "title", "project") == ("By header", "/code/demo")
