"""Chats and transcripts as cursor-agent writes them, and the index of them."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing

from tests.conftest import opened
from tests.cursor_databases import (
    CREATED,
    bubble,
    composer,
    global_database,
    make_global,
    prompt,
    put_conversation,
)

from sess_schema.connection import open_reader
from sess_schema.queries.search import Search
from sess_schema.session import Reader
from sessiond.ingest import Ingest
from sessiond.reading.territory import Territory
from sessiond.sources.cursor import CursorSource
from sessiond.writing.transaction import Store

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

    def save(self, messages, *, name="New Agent", wrapped=False, folder=None, more=b"", **facts):
        """Write the messages, a root that lists them, and the row that names the root."""
        listed = [self.message(value, wrapped=wrapped) for value in messages]
        root = b"".join(field(1, bytes.fromhex(one)) for one in listed)
        root += field(9, folder.encode()) if folder else b""
        told = {
            "agentId": self.chat,
            "latestRootBlobId": self.blob(root + more),
            "name": name,
            "mode": "default",
            "createdAt": CREATED,
            "lastUsedModel": "gpt-5",
            "blobEncryptionKey": SECRET,
            **facts,
        }
        value = json.dumps(told).encode().hex()
        self.db.execute("INSERT OR REPLACE INTO meta VALUES ('0', ?)", (value,))

    def ref(self, data):
        """A blob, by its id as fields hold it."""
        return bytes.fromhex(self.blob(data))

    def meta(self, **facts):
        told = {"schemaVersion": 1, "createdAtMs": CREATED, "updatedAtMs": CREATED + 5000}
        (self.folder / "meta.json").write_text(json.dumps(told | facts))


def number(tag, value):
    """A varint field of protobuf."""
    return varint(tag << 3) + varint(value)


def timing(started, ended):
    """How long a turn took, and when it ended."""
    return field(14, number(1, ended - started) + number(2, ended))


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
        with closing(opened(self.world.state / "index.db")) as db:
            return Ingest(Store(db)).reconcile(Territory([source]).places)

    def entries(self, session=CHAT):
        with closing(open_reader(self.world.state / "index.db")) as db:
            key = db.execute("SELECT id FROM sessions WHERE native_id = ?", (session,)).get
            return list(Reader(db, key).entries())

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


def write_database(home, session=CHAT, more=None):
    talk = [prompt("b1", "fix it"), bubble("b2", text="it is fixed", at=CREATED + 1000)]
    db = make_global(global_database(home))
    put_conversation(db, composer(session, talk, **(more or {})), talk)
    db.close()


def write_chat(home):
    with closing(Chat(home)) as made:
        made.save(TALK)
