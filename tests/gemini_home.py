"""Chats of Gemini CLI that a test writes, in a home with an index of its own."""

from __future__ import annotations

import json
from contextlib import closing

from tests.conftest import World, opened

from sessiond.config import Config
from sessiond.ingest import Ingest
from sessiond.reading.territory import Territory
from sessiond.sources import all_sources
from sessiond.writing.transaction import Store

SESSION = "aaaaaaaa-1111-4111-8111-111111111111"
OTHER = "bbbbbbbb-1111-4111-8111-111111111111"


def moment(second):
    return f"2026-03-01T10:{second // 60:02}:{second % 60:02}.000Z"


def header(session=SESSION, **more):
    return {
        "sessionId": session,
        "projectHash": "none",
        "startTime": moment(0),
        "lastUpdated": moment(0),
        "kind": "main",
        **more,
    }


def message(kind, number, content, **more):
    """The numbers are ids and seconds at once."""
    return {
        "id": f"{number:08x}-2222-4222-8222-222222222222",
        "timestamp": moment(number),
        "type": kind,
        "content": content,
        **more,
    }


def prompt(number, text, **more):
    return message("user", number, [{"text": text}], **more)


def answer(number, text, **more):
    return message("gemini", number, text, model="gemini-2.5-pro", **more)


def call(number, command, output=None, *, status="success", name="run_shell_command"):
    told = {"id": f"call-{number}", "name": name, "args": {"command": command}, "status": status}
    if output is not None:
        response = {"id": told["id"], "name": name, "response": {"output": output}}
        told["result"] = [{"functionResponse": response}]
    return told


def rewind(number):
    return {"$rewindTo": message("user", number, "")["id"]}


def encoded(*records):
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def document(*messages, session=SESSION, **more):
    chat = header(session, messages=list(messages), **more)
    return json.dumps(chat, indent=2).encode()


class GeminiWorld(World):
    """A home in which Gemini CLI has a project."""

    def __init__(self, root):
        root.mkdir(exist_ok=True)
        super().__init__(root)
        self.tmp = root / ".gemini" / "tmp"
        self.chats = self.tmp / "demo" / "chats"
        self.chats.mkdir(parents=True)

    def log(self, session=SESSION):
        return self.chats / f"session-2026-03-01T10-00-{session[:8]}.jsonl"

    def document(self, session=SESSION):
        return self.chats / f"session-2026-03-01T10-00-{session[:8]}.json"

    def places(self):
        sources = all_sources(Config({"gemini": [str(self.tmp)]}))
        places = Territory(sources).places
        return [place for place in places if place.path == str(self.tmp.resolve())]

    def ingest(self, *, settle=True):
        self.state.mkdir(mode=0o700, exist_ok=True)
        with closing(opened(self.state / "index.db")) as db:
            return Ingest(Store(db), settle=settle).reconcile(self.places())

    def texts(self, session=SESSION):
        """What the session shows, in order."""
        return [
            text
            for (text,) in self.sql(
                "SELECT x.text || x.input || x.output FROM sessions s"
                " JOIN records t ON t.session_id = s.id"
                " JOIN events e ON e.record_id = coalesce(t.copy_of, t.id)"
                " JOIN event_texts x ON x.id = e.id"
                " WHERE s.native_id = ? AND t.retired = 0 AND t.superseded = 0 AND e.retired = 0"
                " GROUP BY e.id ORDER BY min(t.source_id), min(t.offset), e.block",
                session,
            )
        ]
