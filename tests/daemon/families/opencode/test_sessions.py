"""OpenCode: sessions that are taken back, upgraded, copied and still being written."""

from __future__ import annotations

import json
import time
from contextlib import closing

import pytest
from tests.golden_home import GoldenWorld, database

from sessiond.families.opencode.messages import first_call
from sessiond.sources.kilo import KiloSource
from sessiond.sources.opencode import OpencodeSource

FIRST, SECOND = "opencode.db", "opencode-next.db"
NAMELESS = "ses_4b0d0000effepot4GoldenPot0004"  # its last prompt is taken back
TREE = "ses_7a0000001ffeTreeGolden001"
# In 1.4.3, and as an upgrade to 2.0 would copy it.
SESSION = (
    "INSERT INTO session (id, project_id, slug, directory, title, version, time_created,"
    " time_updated) VALUES (?, 'global', 'x', ?, ?, '1.4.3', 1, 2)"
)
UPGRADED = (
    "CREATE TABLE session_message AS SELECT m.id, m.session_id,"
    " json_extract(m.data, '$.role') AS type, m.time_created AS seq, m.time_created,"
    " m.time_updated, json_object('time', json_extract(m.data, '$.time'), 'text',"
    " (SELECT json_extract(p.data, '$.text') FROM part p WHERE p.message_id = m.id),"
    " 'tokens', json_extract(m.data, '$.tokens'), 'model',"
    " json_object('id', 'claude-sonnet-4-5'), 'content', json_array()) AS data FROM message m"
)
STARTED = (
    "INSERT INTO session_v2 (id, project_id, directory, version, time_created, time_updated)"
    " VALUES (?, 'global', '/new', '2.0', 1, 1)"
)
NEW = "ses_1a0000001ffeNewGolden0001"


@pytest.fixture
def world(tmp_path):
    return GoldenWorld(tmp_path, "opencode")


def lay(world, name):
    """Only the files with this in their path."""
    for part in world.parts:
        if name in part.path:
            world.lay(part)


def write(world, *statements, name=FIRST):
    with closing(database(world.root / ".local/share/opencode" / name)) as db:
        for statement, *values in statements:
            db.execute(statement, values)


def prompts(world, session):
    return [text for kind, text, _ in world.shown(session) if kind == "user"]


def spent(world):
    return world.sql("SELECT sum(input_tokens), sum(output_tokens) FROM usage WHERE counted")[0]


def test_what_is_taken_back_returns_when_a_person_redoes_it(world):
    """Until the next prompt everything is still there, only hidden."""
    lay(world, FIRST)
    world.ingest()
    assert prompts(world, NAMELESS) == ["Wash the cup"]
    write(world, ("UPDATE session SET revert = NULL, time_updated = time_updated + 1",))
    world.ingest()
    assert prompts(world, NAMELESS) == ["Wash the cup", "Break the cup"]
    world.check()


def test_a_part_of_an_answer_can_be_taken_back(world):
    """What comes before the part stays."""
    lay(world, FIRST)
    world.ingest()
    ((answer, part),) = world_rows(
        world,
        "SELECT m.id, max(p.id) FROM message m JOIN part p ON p.message_id = m.id"
        f" WHERE m.session_id = '{NAMELESS}' AND p.data LIKE '%callID%'",
    )
    revert = json.dumps({"messageID": answer, "partID": part})
    write(world, ("UPDATE session SET revert = ? WHERE id = ?", revert, NAMELESS))
    world.ingest()
    assert [text for _, text, _ in world.shown(NAMELESS)] == ["Wash the cup", "Washed."]
    world.check()


def world_rows(world, query):
    with closing(database(world.root / ".local/share/opencode" / FIRST)) as db:
        return list(db.execute(query))


def test_an_upgrade_to_the_second_generation_counts_nothing_twice(world):
    """It copies a session under the same ids and leaves the old tables behind."""
    lay(world, FIRST)
    world.ingest()
    before, shown = spent(world), prompts(world, NAMELESS)
    write(
        world,
        ("DROP TABLE session_message",),
        ("CREATE TABLE session_v2 AS SELECT * FROM session",),
        ("UPDATE session_v2 SET revert = NULL",),
        (UPGRADED,),
    )
    world.ingest()
    assert spent(world) == before
    assert prompts(world, NAMELESS) == [*shown, "Break the cup"]
    world.check()


def test_a_database_that_never_had_the_first_generation(world):
    """It has only the new tables; a session without a message yet is no session."""
    lay(world, SECOND)
    write(world, ("DROP TABLE session",), ("DROP TABLE part",), name=SECOND)
    write(
        world,
        ("DROP TABLE message",),
        (STARTED, NEW),
        name=SECOND,
    )
    assert world.ingest().skipped == []
    assert len(world.sql("SELECT 1 FROM sessions")) == 3
    world.check()


def test_the_database_replaces_the_files_it_was_made_from(world):
    """A session in both is shown once, as the database has it."""
    lay(world, "storage/")
    world.ingest()
    assert prompts(world, TREE) == ["Climb the tree"]
    lay(world, FIRST)
    info = {"role": "user", "time": {"created": 1754038800100}}
    write(
        world,
        (SESSION, TREE, "/tree", "Climb"),
        ("INSERT INTO message VALUES ('msg_tree1', ?, 1, 2, ?)", TREE, json.dumps(info)),
        (
            "INSERT INTO part VALUES ('prt_tree1', 'msg_tree1', ?, 1, 2, ?)",
            TREE,
            json.dumps({"type": "text", "text": "Climb the tree"}),
        ),
    )
    world.ingest()
    assert [text for _, text, _ in world.shown(TREE)] == ["Climb the tree"]
    assert world.sql("SELECT title, project FROM sessions WHERE native_id = ?", TREE) == [
        ("Climb", "/tree")
    ]
    world.check()


def test_an_answer_is_followed_while_it_is_written(world):
    """Its writer keeps the database open; a call starts, runs and ends in place."""
    lay(world, FIRST)
    world.ingest()
    now = time.time_ns() // 1_000_000  # OpenCode notes when it writes a part
    states = [
        {"status": "pending", "input": {}, "raw": ""},
        {"status": "running", "input": {"command": "make"}, "time": {"start": now}},
        {
            "status": "completed",
            "input": {"command": "make"},
            "output": "done",
            "metadata": {"exit": 0},
            "time": {"start": now, "end": now + 3000},
        },
    ]
    info = {"role": "assistant", "time": {"created": now}, "modelID": "m"}
    seen = []
    folder = world.root / ".local/share/opencode"
    with closing(database(folder / FIRST)) as db:
        db.pragma("journal_mode", "wal")
        db.execute(SESSION, (NEW, "/new", "New"))
        db.execute("INSERT INTO message VALUES ('msg_n', ?, 1, 2, ?)", (NEW, json.dumps(info)))
        for number, state in enumerate(states):
            part = json.dumps({"type": "tool", "tool": "bash", "callID": "c", "state": state})
            db.execute(
                "INSERT INTO part VALUES ('prt_n', 'msg_n', ?1, 1, ?2, ?3) ON CONFLICT DO UPDATE"
                " SET time_updated = ?2, data = ?3",
                (NEW, now + number, part),
            )
            world.ingest()
            seen.append(world.shown(NEW))
            beside = {path.name for path in folder.iterdir()}
            assert beside == {FIRST, f"{FIRST}-shm", f"{FIRST}-wal"}
    assert seen == [
        [("tool_use", "", "pending")],
        [("tool_use", "make", "pending")],
        [("tool_use", "makedone", "ok")],
    ]
    ((duration,),) = world.sql("SELECT duration_ms FROM events WHERE call_id = 'c'")
    assert duration == 3000
    world.check()


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ("The user rejected permission to use this specific tool call.", "denied"),
        ("Error: The user has specified a rule which prevents you from using this", "denied"),
        ("Tool execution aborted", "denied"),
        ("EACCES: permission denied, open '/etc/tea'", "error"),
        ("rg: /root: Permission denied (os error 13)", "error"),
    ],
)
def test_a_person_refuses_calls_and_a_system_lets_them_fail(error, status):
    """Both may speak of permission."""
    part = {"tool": "read", "state": {"status": "error", "error": error}}
    assert first_call(part, "").status == status


@pytest.mark.parametrize(
    ("path", "agent"),
    [
        ("/elsewhere/opencode-next.db", "opencode"),
        ("/elsewhere/kilo.db", "kilo"),
        ("/data/kilo/opencode.db", "kilo"),
    ],
)
def test_a_database_elsewhere_belongs_to_the_program_that_it_is_named_after(path, agent):
    """Kilo Code was made from OpenCode, and named its database like it at first."""
    found = [one.agent for one in (OpencodeSource(), KiloSource()) if one.claims(path, b"")]
    assert found[-1:] == [agent]
    assert agent == "kilo" or len(found) == 1
