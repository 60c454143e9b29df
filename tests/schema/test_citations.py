"""Citations: a key names the same event on every machine, after a rebuild, and never another."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from hashlib import blake2s

import pytest

from sess_common.errors import SessError
from sess_schema import citations
from sess_schema.citations import Citations
from sess_schema.connection import open_reader, open_writer
from sess_schema.ids import EventId
from sess_schema.queries import sessions
from sess_schema.session import Reader
from sessiond.config import Config
from sessiond.ingest import Ingest
from sessiond.reading.territory import Territory
from sessiond.sources import all_sources
from sessiond.writing.transaction import Store

MAIN = "11111111-1111-4111-8111-111111111111"
FORK = "22222222-2222-4222-8222-222222222222"


@pytest.fixture
def elsewhere(world, tmp_path_factory):
    """Another home with an index of its own."""
    return type(world)(tmp_path_factory.mktemp("elsewhere") / "deeper")


def cited(world, session=MAIN, *, superseded=False):
    """What each event of a session says, by its key."""
    with closing(open_reader(world.state / "index.db")) as db:
        key = sessions.resolve(db, session).key
        keys = citations.of_session(db, key)
        return {
            keys.of[entry.id]: entry.text or entry.summary or entry.output
            for entry in Reader(db, key, superseded=superseded).entries()
        }


def resolved(world, given, session=MAIN, **options):
    with closing(open_reader(world.state / "index.db")) as db:
        return citations.resolve(db, sessions.resolve(db, session).key, given, **options)


def refused(world, given, **options):
    with pytest.raises(SessError) as caught:
        resolved(world, given, **options)
    return caught.value


def busy(world):
    t = world.transcript(MAIN)
    nameless = {"type": "summary", "summary": "about the teapot", "leafUuid": "x"}
    t.append(
        t.prompt("brew"),
        t.assistant(
            [
                {"type": "text", "text": "two things"},
                {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ls"}},
            ]
        ),
        t.result("c1", "a.py"),
        t.result("lost", "no call is known"),
        nameless,
        b"{broken\n",
        t.answer("done"),
    )
    return t


def test_the_key_is_that_of_the_record_and_of_what_the_event_is_in_it(world):
    """Texts are counted by type, so that a thought before them changes nothing."""
    t = world.transcript(MAIN)
    prompt, answer = (
        t.prompt("brew"),
        t.assistant([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]),
    )
    t.append(prompt, answer)
    world.ingest()

    def key(record, what):
        return blake2s(f"{record['uuid']}/{what}".encode(), digest_size=6).hexdigest()

    assert cited(world) == {
        key(prompt, "user/0"): "brew",
        key(answer, "assistant/0"): "one",
        key(answer, "assistant/1"): "two",
    }


def test_a_record_that_grows_keeps_the_keys_of_its_events(world, monkeypatch):
    """A message written again with a thought and another call in front cites as before."""
    monkeypatch.setenv("HOME", str(world.root))
    log = world.root / ".gemini" / "tmp" / "p" / "chats" / "session-2026-02-01T10-00-77777777.jsonl"
    log.parent.mkdir(parents=True)
    session = "77777777-7777-4777-8777-777777777777"
    moment = "2026-02-01T10:00:00.000Z"
    head = {"sessionId": session, "projectHash": "p", "startTime": moment, "kind": "main"}
    call = {"id": "c1", "name": "run_shell_command", "args": {"command": "ls"}, "status": "x"}
    early = {"id": "c0", "name": "read_file", "args": {"file_path": "/a"}, "status": "success"}
    answer = {"id": "m1", "timestamp": moment, "type": "gemini", "content": "I run ls"}

    def grow(**more):
        log.write_bytes(
            log.read_bytes() * log.exists() + json.dumps({**answer, **more}).encode() + b"\n"
        )
        with closing(open_writer(world.state / "index.db")) as db:
            Ingest(Store(db)).reconcile(Territory(all_sources(Config())).places)
        return {text: key for key, text in cited(world, session).items()}

    world.state.mkdir(mode=0o700, exist_ok=True)
    log.write_text(json.dumps(head) + "\n")
    before = grow(toolCalls=[call])
    after = grow(
        thoughts=[{"subject": "Plan", "description": "first"}],
        toolCalls=[early, {**call, "status": "success"}],
    )
    assert len(after) == len(before) + 2
    assert {text: after[text] for text in before} == before


def test_keys_are_the_same_in_another_home_and_after_a_rebuild(world, elsewhere):
    """Neither the path of a file nor the order of reading goes into a key."""
    busy(world)
    world.ingest()
    before = cited(world)
    assert len(before) == 7
    first = elsewhere.transcript(FORK, folder="-somewhere-else")
    first.append(first.prompt("read before the other"))
    elsewhere.ingest()
    place = elsewhere.projects / "-moved-here"
    place.mkdir()
    shutil.copy(world.transcript(MAIN).path, place)
    elsewhere.ingest()
    assert cited(elsewhere) == before


def test_a_result_without_its_call_has_the_same_key_however_it_was_parted(world, elsewhere):
    """Read alone, or parted from its call by a rewrite: the number of its block differs."""
    t = world.transcript(MAIN)
    call, result = t.call("c1", command="ls"), t.result("c1", "a.py")
    t.append(call, result)
    world.ingest()
    t.path.write_bytes(t.encode(result))
    world.ingest()
    elsewhere.transcript(MAIN).append(result)
    elsewhere.ingest()
    assert cited(world) == cited(elsewhere)
    assert [*cited(world).values()] == ["a.py"]


def test_a_result_that_comes_later_does_not_change_the_key_of_its_call(world):
    """Also where the record has no id."""
    t = world.transcript(MAIN)
    call = t.call("c1", command="ls")
    del call["uuid"]
    t.append(call)
    world.ingest()
    before = cited(world)
    t.append(t.result("c1", "a.py"))
    world.ingest()
    assert cited(world) == before == {next(iter(before)): "ls"}


def test_a_rewrite_that_keeps_a_record_keeps_its_key(world):
    """Lines before it may go or come."""
    t = world.transcript(MAIN)
    first, second, third = t.prompt("one"), t.answer("two"), t.prompt("three")
    t.append(first, second, third)
    world.ingest()
    before = {text: key for key, text in cited(world).items()}
    t.path.write_bytes(b"".join(map(t.encode, (t.prompt("zero, put in front"), second, third))))
    world.ingest()
    after = {text: key for key, text in cited(world).items()}
    assert {after["two"], after["three"]} == {before["two"], before["three"]}
    assert before["one"] not in after.values()


def test_a_key_names_nothing_else_when_its_record_left(world):
    """The one that left can be asked for; what stands in its place has another key."""
    t = world.transcript(MAIN)
    nameless = {"type": "summary", "summary": "old name", "leafUuid": "x"}
    t.append(t.prompt("brew"), nameless)
    world.ingest()
    before = {text: key for key, text in cited(world).items()}
    t.path.write_bytes(t.encode(t.prompt("pour")) + t.encode({**nameless, "summary": "new name"}))
    world.ingest()
    for text in ("brew", "old name"):
        assert resolved(world, before[text]) is None
        kept = resolved(world, before[text], superseded=True)
        (said,) = world.sql("SELECT text FROM event_texts WHERE id = ?", kept)[0]
        assert said == text


def test_an_id_that_an_agent_used_twice_names_its_first_record(world):
    """The second one has a key of its own."""
    t = world.transcript(MAIN)
    first, second = t.prompt("first"), t.prompt("second")
    second["uuid"] = first["uuid"]
    t.append(first)
    world.ingest()
    (only,) = cited(world)
    t.append(second)
    world.ingest()
    found = cited(world)
    assert found[only] == "first"
    assert sorted(found.values()) == ["first", "second"]
    assert len(found) == 2


def test_one_key_alone_is_what_all_together_give(world):
    """`search` asks for single events, `show` for whole sessions."""
    t = busy(world)
    fork = world.transcript(FORK)
    again = t.prompt("the same id again")
    again["uuid"] = "00000000-0000-0000-0000-00000000000a"
    t.append(again, {**t.prompt("and again"), "uuid": again["uuid"]})
    for line in t.path.read_bytes().splitlines(keepends=True)[:4]:
        fork.append(line.replace(MAIN.encode(), FORK.encode()))
    world.ingest()
    with closing(open_reader(world.state / "index.db")) as db:
        for name in (MAIN, FORK):
            session = sessions.resolve(db, name).key
            keys = citations.of_session(db, session)
            assert len(keys.of) >= 4
            for event, key in keys.of.items():
                assert Citations(db).key(event, session) == key


def test_the_shortest_beginning_that_is_unique_is_printed():
    """Eight digits, more where two keys begin alike."""
    of = {EventId(1): "aaaaaaaa0000", EventId(2): "aaaaaaaa0011", EventId(3): "bbbbbbbb0000"}
    keys = citations.Keys(of, frozenset(of), sorted(of.values()))
    assert [keys.short(event) for event in of] == ["aaaaaaaa000", "aaaaaaaa001", "bbbbbbbb"]


def test_a_beginning_with_several_meanings_is_refused_with_all_of_them(world, monkeypatch):
    """One line; nothing is guessed."""
    t = busy(world)
    world.ingest()
    of = iter(["abcd11112222", "abcd11113333", *(f"{n}fffffffffff" for n in range(9))])
    monkeypatch.setattr(citations, "_digest", lambda _name: next(of))
    error = refused(world, "ABCD1111")
    assert error.message == "#ABCD1111 matches 2 events: #abcd11112, #abcd11113"
    assert t.session == MAIN


def test_digits_alone_may_begin_a_key(world, monkeypatch):
    """A row number never names an event."""
    t = busy(world)
    world.ingest()
    digits = iter(range(1000, 2000))
    monkeypatch.setattr(citations, "_digest", lambda _: f"{next(digits)}99999999")
    with closing(open_reader(world.state / "index.db")) as db:
        session = sessions.resolve(db, t.session).key
        event = citations.resolve(db, session, "1000")
    assert event is not None


def test_three_digits_are_too_few(world):
    """They would mean another event tomorrow."""
    busy(world)
    world.ingest()
    assert refused(world, "abc").message == "event key too short: #abc"


def test_the_work_grows_with_the_blocks_of_a_record_and_not_with_their_square(world):
    """One record of thousands of blocks must not make every search that meets it useless."""
    steps: list[int] = []
    for blocks in (100, 400):
        t = world.transcript(f"{blocks:08}-1111-4111-8111-111111111111")
        t.append(t.assistant([{"type": "text", "text": f"cup {n}"} for n in range(blocks)]))
        world.ingest()
        with closing(open_reader(world.state / "index.db")) as db:
            events = [
                event
                for (event,) in db.execute(
                    "SELECT e.id FROM events e JOIN sessions s ON s.id = e.session_id"
                    " WHERE s.native_id = ? AND e.type = 'assistant'",
                    (t.session,),
                )
            ]
            assert len(events) == blocks
            counted = [0]

            def count(counted=counted):
                counted[0] += 1
                return False

            db.set_progress_handler(count, 100)
            citations = Citations(db)
            assert len({citations.key(event) for event in events}) == blocks
        steps.append(counted[0])
    assert steps[1] < 8 * steps[0], steps
