"""Chats of cursor-agent, agent transcripts and exports, alone and beside each other."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing

import pytest
from tests.cursor_databases import (
    CREATED,
    bubble,
    composer,
    global_database,
    make_global,
    prompt,
    put_conversation,
    small_talk,
    terminal,
    user_directory,
)

from sess_schema import archive
from sess_schema.connection import open_reader, open_writer
from sess_schema.queries.search import Search
from sess_schema.queries.transcript import entries
from sessiond.ingest import Ingest
from sessiond.reading.survey import roots_of
from sessiond.sources.cursor import CursorSource
from sessiond.writing.store import Store

CHAT = "aaaaaaaa-0000-4000-8000-000000000001"
SUB = "bbbbbbbb-0000-4000-8000-000000000002"
SECRET = "c2VjcmV0LWtleS1vZi1ibG9icw"


# -- a chat as cursor-agent writes it


def varint(number):
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def field(number, data):
    """A length-delimited field of protobuf."""
    return varint(number << 3 | 2) + varint(len(data)) + data


class Chat:
    """One `store.db`; roots are only ever added."""

    def __init__(self, home, chat=CHAT, folder="0123456789abcdef"):
        self.chat = chat
        self.folder = home / ".cursor" / "chats" / folder / chat
        self.folder.mkdir(parents=True)
        self.path = self.folder / "store.db"
        self.db = sqlite3.connect(self.path, isolation_level=None)
        self.db.execute("PRAGMA journal_mode = wal")
        self.db.execute("CREATE TABLE blobs (id TEXT PRIMARY KEY, data BLOB)")
        self.db.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)")

    def close(self):
        self.db.close()

    def blob(self, data):
        name = hashlib.sha256(data).hexdigest()
        self.db.execute("INSERT OR IGNORE INTO blobs VALUES (?, ?)", (name, data))
        return name

    def message(self, value, *, wrapped=False):
        raw = json.dumps(value).encode()
        return self.blob(field(1, b"id") + field(4, raw) if wrapped else raw)

    def save(self, messages, *, name="New Agent", wrapped=False, folder=None, **more):
        """Write the messages, a root that lists them, and the row that names the root."""
        listed = [self.message(value, wrapped=wrapped) for value in messages]
        root = b"".join(field(1, bytes.fromhex(one)) for one in listed)
        root += field(9, folder.encode()) if folder else b""
        facts = {
            "agentId": self.chat,
            "latestRootBlobId": self.blob(root),
            "name": name,
            "mode": "default",
            "createdAt": CREATED,
            "lastUsedModel": "gpt-5",
            "blobEncryptionKey": SECRET,
            **more,
        }
        value = json.dumps(facts).encode().hex()
        self.db.execute("INSERT OR REPLACE INTO meta VALUES ('0', ?)", (value,))

    def meta(self, **facts):
        told = {"schemaVersion": 1, "createdAtMs": CREATED, "updatedAtMs": CREATED + 5000}
        (self.folder / "meta.json").write_text(json.dumps(told | facts))


def user(text):
    return {
        "role": "user",
        "content": [{"type": "text", "text": f"<user_query>{text}</user_query>"}],
    }


def answer(text):
    return {"role": "assistant", "content": [{"type": "text", "text": text}]}


def call(call_id, command):
    block = {"type": "tool-call", "toolCallId": call_id, "toolName": "Shell",
             "args": {"command": command}}  # fmt: skip
    return {"role": "assistant", "content": [block]}


def result(call_id, text):
    block = {"type": "tool-result", "toolCallId": call_id, "toolName": "Shell", "result": text}
    return {"role": "tool", "content": [block]}


TALK = [user("fix it"), call("t1", "make"), result("t1", "made"), answer("it is fixed")]
SHOWN = [
    ("user", "fix it", None),
    ("tool_use", "made", "ok"),
    ("assistant", "it is fixed", None),
]


# -- a transcript as the agent mirrors it


def transcript(home, *lines, session=CHAT, parent=None, slug="code-demo"):
    """Append to a transcript; the lines have neither ids nor times."""
    folder = home / ".cursor" / "projects" / slug / "agent-transcripts" / (parent or session)
    folder = folder / "subagents" if parent else folder
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{session}.jsonl"
    with path.open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    return path


def line(role, text):
    return {"role": role, "message": {"content": [{"type": "text", "text": text}]}}


def asked(text):
    return line("user", f"<user_query>\n{text}\n</user_query>")


MIRROR = [asked("fix it"), line("assistant", "it is fixed")]


class Index:
    """The index of the world's home."""

    def __init__(self, world):
        self.world = world

    def read(self):
        self.world.state.mkdir(mode=0o700, exist_ok=True)
        source = CursorSource(environ={"HOME": str(self.world.root)})
        with closing(open_writer(self.world.state / "index.db")) as db:
            return Ingest(Store(db)).reconcile(roots_of([source]))

    def entries(self, session=CHAT):
        with closing(open_reader(self.world.state / "index.db")) as db:
            key = db.execute("SELECT id FROM sessions WHERE native_id = ?", (session,)).get
            return list(entries(db, key))

    def shown(self, session=CHAT):
        return [(e.type, e.text or e.output, e.status) for e in self.entries(session)]

    def texts(self, session=CHAT):
        return [text for _, text, _ in self.shown(session)]

    def found(self, words):
        """Conversations in which something is found, once for each hit."""
        with closing(open_reader(self.world.state / "index.db")) as db:
            return [hit.session for hit in Search(words).hits(db)]

    def sessions(self):
        return [name for (name,) in self.world.sql("SELECT native_id FROM sessions ORDER BY 1")]

    def facts(self, *names, session=CHAT):
        (row,) = self.world.sql(
            f"SELECT {', '.join(names)} FROM sessions WHERE native_id = ?", session
        )
        return row[0] if len(names) == 1 else row


@pytest.fixture
def index(world, monkeypatch):
    """Nobody writes while it reads, so what it read counts at once."""
    monkeypatch.setattr("sessiond.engines.databases.CLOCK_STEP_NS", 0)
    return Index(world)


@pytest.fixture
def chat(world):
    with closing(Chat(world.root)) as made:
        yield made


# -- chats


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_chat_is_shown_with_its_calls_and_results_joined(index, chat, wrapped):
    chat.save(TALK, wrapped=wrapped)
    index.read()
    assert index.shown() == SHOWN
    assert index.sessions() == [CHAT]


def test_a_chat_tells_its_facts(index, chat):
    chat.save(TALK, name="Parser")
    chat.meta(cwd="/code/demo")
    index.read()
    assert index.facts("kind", "project", "title", "models", "mode", "started_at") == (
        *("main", "/code/demo", "Parser", '["gpt-5"]', "default", CREATED),
    )
    assert index.facts("events", "prompts", "tool_calls") == (3, 1, 1)


def test_the_title_of_a_chat_without_a_name_is_its_first_prompt(index, chat):
    chat.save(TALK)
    index.read()
    assert index.facts("title") == "fix it"


def test_a_root_names_the_folder_where_no_file_does(index, chat):
    chat.save(TALK, folder="file:///code/demo")
    index.read()
    assert index.facts("project") == "/code/demo"


def test_a_chat_grows_with_its_roots(index, chat):
    for length in range(1, 5):
        chat.save(TALK[:length])
        index.read()
    assert index.shown() == SHOWN
    assert index.world.sql("SELECT count(*) FROM turns") == [(4,)]


def test_a_call_waits_for_its_result(index, chat):
    chat.save(TALK[:2])
    index.read()
    assert index.shown()[1] == ("tool_use", "", "pending")


def test_what_a_compaction_drops_is_still_shown(index, chat):
    chat.save([user("one"), answer("two"), user("three")])
    index.read()
    summary = {"role": "user", "content": [{"type": "text", "text": "in short"}],
               "providerOptions": {"cursor": {"isSummary": True}}}  # fmt: skip
    chat.save([summary, user("three"), answer("four")])
    index.read()
    assert sorted(index.texts()) == sorted(["one", "two", "in short", "three", "four"])
    order = index.texts()
    assert order.index("one") < order.index("two") < order.index("three") < order.index("four")


def test_equal_messages_are_as_many_as_they_are(index, chat):
    chat.save([user("again"), answer("yes"), user("again"), answer("yes")])
    index.read()
    assert index.texts() == ["again", "yes", "again", "yes"]


def test_equal_messages_that_come_one_by_one(index, chat):
    talk = [user("again"), answer("yes"), user("again"), answer("yes")]
    for length in range(1, 5):
        chat.save(talk[:length])
        index.read()
    assert index.texts() == ["again", "yes", "again", "yes"]


def test_equal_messages_of_two_chats_are_shown_in_both(index, chat):
    chat.save(TALK)
    with closing(Chat(index.world.root, SUB)) as other:
        other.save(TALK)
    index.read()
    assert index.shown() == index.shown(SUB) == SHOWN


def test_the_file_beside_a_chat_may_come_later(index, chat):
    chat.save(TALK)
    index.read()
    assert index.facts("project", "title") == (None, "fix it")
    chat.meta(cwd="/code/demo", title="Named later")
    index.read()
    assert index.facts("project", "title") == ("/code/demo", "Named later")


def test_the_daemon_sees_the_file_beside_a_chat(index, chat):
    """Its owner is the database."""
    chat.save(TALK)
    chat.meta(cwd="/code/demo")
    source = CursorSource(environ={"HOME": str(index.world.root)})
    meta = str(chat.folder / "meta.json")
    assert (source.classify(meta), source.owner(meta)) == ("sidecar", str(chat.path))


def test_the_key_of_a_chat_is_nowhere(index, chat):
    chat.save(TALK)
    index.read()
    for table in ("sources", "sessions", "turns", "events", "event_texts", "database_rows"):
        for row in index.world.sql(f"SELECT * FROM {table}"):
            assert SECRET not in str(row)
    for (packed,) in index.world.sql("SELECT data FROM chunks"):
        assert SECRET.encode() not in archive.unpack(packed)


def test_a_chat_that_goes_and_returns(index, chat, tmp_path):
    chat.save(TALK)
    index.read()
    chat.close()
    chat.folder.rename(tmp_path / "away")
    index.read()
    assert index.shown() == SHOWN
    (tmp_path / "away").rename(chat.folder)
    index.read()
    assert index.shown() == SHOWN
    states = index.world.sql("SELECT DISTINCT state FROM sources")
    assert states == [("live",)]


def test_a_chat_can_be_restored_and_read_elsewhere(index, chat, tmp_path):
    chat.save(TALK)
    file = tmp_path / "export.jsonl"
    index.world.run("sess", "restore", CHAT, "-o", file, check=0)
    other = Index(type(index.world)(tmp_path / "other"))
    other.world.run("sessiond", "sync", file, check=0)
    assert other.shown() == SHOWN


def test_an_older_root_and_orphans_are_not_shown(index, chat):
    chat.message(answer("an orphan"))
    chat.save([answer("of an older root")])
    chat.save(TALK)
    index.read()
    assert index.shown() == SHOWN


# -- transcripts


def test_a_transcript_alone_is_shown(index):
    transcript(index.world.root, *MIRROR)
    index.read()
    assert index.texts() == ["fix it", "it is fixed"]


def test_a_subagent_has_a_transcript_of_its_own(index):
    transcript(index.world.root, *MIRROR)
    transcript(index.world.root, asked("look around"), session=SUB, parent=CHAT)
    index.read()
    assert index.texts(SUB) == ["look around"]
    assert index.facts("kind", session=SUB) == "subagent"
    assert index.world.sql(
        "SELECT p.native_id FROM sessions s JOIN sessions p ON p.id = s.parent_id"
    ) == [(CHAT,)]


def write_database(home, session=CHAT, more=None):
    talk = [prompt("b1", "fix it"), bubble("b2", text="it is fixed", at=CREATED + 1000)]
    db = make_global(global_database(home))
    put_conversation(db, composer(session, talk, **(more or {})), talk)
    db.close()


def write_chat(home):
    with closing(Chat(home)) as made:
        made.save(TALK)


BETTER = pytest.mark.parametrize("write", [write_database, write_chat])


def texts_of(write):
    return [text for _, text, _ in SHOWN] if write is write_chat else ["fix it", "it is fixed"]


@BETTER
@pytest.mark.parametrize("first", ["file", "database", "both"])
def test_a_transcript_is_not_shown_beside_its_database(index, write, first):
    home = index.world.root
    if first in ("file", "both"):
        transcript(home, *MIRROR)
    if first == "file":
        index.read()
    write(home)
    if first == "database":
        index.read()
        transcript(home, *MIRROR)
    index.read()
    assert index.texts() == texts_of(write)
    assert index.facts("events") == len(texts_of(write))
    assert len(index.found("fixed")) == 1


@BETTER
@pytest.mark.parametrize("first", ["file", "database"])
def test_a_transcript_that_grows_later_is_still_not_shown(index, write, first):
    home = index.world.root
    transcript(home, *MIRROR) if first == "file" else write(home)
    index.read()
    write(home) if first == "file" else transcript(home, *MIRROR)
    index.read()
    transcript(home, line("assistant", "and a word more"))
    index.read()
    assert index.texts() == texts_of(write)
    assert index.world.sql(
        "SELECT count(*) FROM events e JOIN event_texts x ON x.id = e.id"
        " WHERE e.retired = 0 AND x.text LIKE '%a word more%'"
    ) == [(0,)]


FACTS = (
    *("kind", "project", "title", "models", "started_at", "ended_at", "events", "prompts"),
    *("tool_calls",),
)


@BETTER
@pytest.mark.parametrize("first", ["file", "database"])
def test_a_transcript_changes_no_fact_that_the_database_tells(index, write, first, tmp_path):
    """It may say something of times and files; the database knows better."""
    alone = Index(type(index.world)(tmp_path / "alone"))
    write(alone.world.root)
    alone.read()
    home = index.world.root
    stamped = asked("Fix  it").copy()
    content = "<timestamp>Monday, Mar 2, 2026, 9:00 AM (UTC)</timestamp>\n"
    stamped["message"]["content"][0]["text"] = content + "<user_query>\nfix\n</user_query>"
    tool = {"type": "tool_use", "name": "Read", "input": {"path": "/other/place/a.py"}}
    more = {"role": "assistant", "message": {"content": [tool]}}
    if first == "file":
        transcript(home, stamped, more)
        index.read()
    write(home)
    index.read()
    if first == "database":
        transcript(home, stamped, more)
        index.read()
    assert index.facts(*FACTS) == alone.facts(*FACTS)


def test_a_subagent_of_the_database_stays_one_when_its_transcript_is_read(index):
    home = index.world.root
    info = {"parentComposerId": SUB, "toolCallId": "call_1"}
    write_database(home, more={"subagentInfo": info})
    index.read()
    transcript(home, *MIRROR)
    index.read()
    assert index.facts("kind") == "subagent"


def test_a_mirrored_transcript_can_be_restored_by_its_path(index):
    write_database(index.world.root)
    path = transcript(index.world.root, *MIRROR)
    done = index.world.run("sess", "restore", path, "-o", "-", check=0)
    assert done.stdout == path.read_text()


def test_a_mirrored_conversation_is_restored_from_its_database(index):
    write_database(index.world.root)
    transcript(index.world.root, *MIRROR)
    done = index.world.run("sess", "restore", CHAT, "-o", "-", check=0)
    lines = [json.loads(one) for one in done.stdout.splitlines()]
    assert [one["bubble"]["text"] for one in lines] == ["fix it", "it is fixed"]


def test_the_transcript_is_not_needed_when_the_database_is_gone(index):
    """What the database told is kept, and is not told twice then either."""
    home = index.world.root
    write_database(home)
    transcript(home, *MIRROR)
    index.read()
    global_database(home).unlink()
    transcript(home, line("assistant", "more"))
    index.read()
    assert index.texts()[:2] == ["fix it", "it is fixed"]
    assert index.texts().count("fix it") == 1


def test_a_chat_and_a_conversation_of_the_same_id_are_told_once(index):
    home = index.world.root
    write_database(home)
    write_chat(home)
    index.read()
    assert index.texts().count("it is fixed") == 1


# -- exports


def envelope(session, value):
    return json.dumps({"composerId": session, "bubble": value}) + "\n"


def test_an_export_of_several_conversations(index, tmp_path):
    file = tmp_path / "export.jsonl"
    pairs = zip(small_talk("one"), small_talk("two", CREATED + 60_000), strict=True)
    file.write_text("".join(envelope("c1", a) + envelope("c2", b) for a, b in pairs))
    index.world.run("sessiond", "sync", file, check=0)
    assert index.sessions() == ["c1", "c2"]
    for session, name in (("c1", "one"), ("c2", "two")):
        assert [kind for kind, _, _ in index.shown(session)] == [
            *("user", "thinking", "tool_use", "tool_use", "assistant"),
        ]
        assert all(name in text for text in index.texts(session))
        assert index.facts("events", "title", session=session) == (
            *(5, f"{name} please fix the parser"),
        )


@pytest.mark.parametrize("first", ["export", "database"])
def test_an_export_beside_the_database_is_not_shown_twice(index, tmp_path, first):
    home = index.world.root
    file = tmp_path / "export.jsonl"
    talk = [prompt("b1", "fix it"), bubble("b2", text="it is fixed", at=CREATED + 1000)]
    file.write_text("".join(envelope(CHAT, one) for one in talk) + envelope("other", talk[0]))
    if first == "export":
        index.world.run("sessiond", "sync", file, check=0)
    write_database(home)
    index.world.run("sessiond", "sync", check=0)
    if first == "database":
        index.world.run("sessiond", "sync", file, check=0)
    assert index.texts() == ["fix it", "it is fixed"]
    assert index.texts("other") == ["fix it"]
    assert len(index.found("fixed")) == 1


def test_an_export_that_grows_is_read_on(index, tmp_path):
    file = tmp_path / "export.jsonl"
    talk = small_talk("x")
    for one in talk:
        with file.open("a") as out:
            out.write(envelope("c1", one))
        index.world.run("sessiond", "sync", file, check=0)
    assert len(index.shown("c1")) == 5


def test_an_unfinished_call_in_an_export(index, tmp_path):
    file = tmp_path / "export.jsonl"
    file.write_text(envelope("c1", terminal("b1", "make", status="loading")))
    index.world.run("sessiond", "sync", file, check=0)
    assert [status for _, _, status in index.shown("c1")] == ["pending"]


@pytest.mark.parametrize("name", ["x.jsonl", "a b.JSONL", "state.vscdb.excised.jsonl"])
def test_an_export_may_have_any_name(index, tmp_path, name):
    file = tmp_path / name
    file.write_text(envelope("c1", prompt("b1", "hello")))
    index.world.run("sessiond", "sync", file, check=0)
    assert index.texts("c1") == ["hello"]


@pytest.mark.parametrize("name", ["old.vscdb", "OLD.VSCDB", "copy.sqlite"])
def test_a_database_may_have_any_name_of_its_kind(index, tmp_path, name):
    talk = small_talk("x")
    db = make_global(tmp_path / name, journal="delete")
    put_conversation(db, composer("c1", talk), talk)
    db.close()
    index.world.run("sessiond", "sync", tmp_path / name, check=0)
    assert len(index.shown("c1")) == 5


def test_a_transcript_of_the_agent_is_known_by_its_content(index, tmp_path):
    file = tmp_path / f"{CHAT}.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in MIRROR))
    index.world.run("sessiond", "sync", file, check=0)
    assert index.texts() == ["fix it", "it is fixed"]
    assert index.world.sql("SELECT DISTINCT agent FROM sessions") == [("cursor",)]


@pytest.mark.parametrize("folder", ["exports", "projects/demo/exports", "chats/x"])
def test_a_directory_may_hold_files_of_both_agents(index, tmp_path, folder):
    place = tmp_path / "given"
    (place / folder).mkdir(parents=True)
    (place / folder / "export.jsonl").write_text(envelope("c1", prompt("b1", "hello")))
    t = index.world.transcript()
    t.path = place / folder / f"{t.session}.jsonl"
    t.append(t.prompt("to the other"))
    index.world.run("sessiond", "sync", place, check=0)
    assert index.world.sql("SELECT agent, native_id FROM sessions ORDER BY 1") == [
        ("claude", t.session),
        ("cursor", "c1"),
    ]


def test_a_configured_root_is_read(index, tmp_path):
    place = tmp_path / "exports"
    place.mkdir()
    (place / "export.jsonl").write_text(envelope("c1", prompt("b1", "hello")))
    index.world.state.mkdir(mode=0o700)
    config = index.world.state / "config.toml"
    config.write_text(f'[roots]\ncursor = ["{place}"]\n')
    index.world.run("sessiond", "sync", check=0)
    assert index.texts("c1") == ["hello"]


# -- places


def roots(platform, **environ):
    return CursorSource(environ=environ, platform=platform).roots()


def test_the_places_on_linux():
    assert roots("linux", HOME="/home/ada") == [
        "/home/ada/.config/Cursor/User/globalStorage",
        "/home/ada/.config/Cursor/User/workspaceStorage",
        "/home/ada/.cursor/chats",
        "/home/ada/.cursor/projects",
        "/home/ada/.config/cursor/chats",
        "/home/ada/.config/cursor/projects",
    ]


def test_the_places_on_linux_may_be_moved():
    found = roots("linux", HOME="/home/ada", XDG_CONFIG_HOME="/conf", CURSOR_CONFIG_DIR="/agent")
    assert found[:2] == [
        "/conf/Cursor/User/globalStorage",
        "/conf/Cursor/User/workspaceStorage",
    ]
    assert {"/agent/chats", "/agent/projects", "/conf/cursor/chats"} <= set(found)


def test_the_places_on_macos():
    assert roots("darwin", HOME="/Users/ada", XDG_CONFIG_HOME="/conf") == [
        "/Users/ada/Library/Application Support/Cursor/User/globalStorage",
        "/Users/ada/Library/Application Support/Cursor/User/workspaceStorage",
        "/Users/ada/.cursor/chats",
        "/Users/ada/.cursor/projects",
    ]


def test_the_places_on_windows():
    found = roots("win32", HOME="C:/Users/ada", APPDATA="C:/Users/ada/AppData/Roaming")
    assert found == [
        "C:/Users/ada/AppData/Roaming/Cursor/User/globalStorage",
        "C:/Users/ada/AppData/Roaming/Cursor/User/workspaceStorage",
        "C:/Users/ada/.cursor/chats",
        "C:/Users/ada/.cursor/projects",
    ]


def test_the_old_copy_of_the_database_is_left_alone(index):
    folder = user_directory(index.world.root) / "globalStorage"
    source = CursorSource(environ={"HOME": str(index.world.root)})
    assert source.classify(str(folder / "state.vscdb.backup")) is None
