"""Fixtures: a private home, transcripts that grow, and the index of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import zlib
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from uuid import UUID

import apsw
import pytest
from hypothesis import settings
from tests import forked
from tests.at_length import amount

from sess_schema import archive, search_index, soundness
from sess_schema.connection import open_reader, open_writer
from sess_schema.queries.views import digests
from sessiond.config import Config
from sessiond.ingest import Ingest
from sessiond.reading.territory import Territory
from sessiond.service.startup import note_agents
from sessiond.sources import all_sources
from sessiond.writing.transaction import Store

TEN_O_CLOCK = datetime(2026, 2, 1, 10, tzinfo=UTC)
BIN = Path(sys.executable).parent


# Under `nohup` and in the background these signals are ignored, also in every program we start.
# A signal with a handler here is reset to its default by exec.
for number in (signal.SIGHUP, signal.SIGINT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, lambda *_: None)

# A busy machine must not fail a test; in CI the same examples run each time.
settings.register_profile(
    "patient", deadline=None, derandomize="CI" in os.environ, max_examples=amount(40, 400)
)
settings.load_profile("patient")


@cache
def empty_index() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder) / "index.db"
        open_writer(index).close()
        return index.read_bytes()


def opened(index: Path) -> apsw.Connection:
    """The writer of an index; a new index is a copy, which is faster than migrating."""
    if not index.exists():
        index.touch(mode=0o600)
        index.write_bytes(empty_index())
    return open_writer(index)


class Transcript:
    """A Claude Code transcript that a test writes line by line."""

    def __init__(self, path: Path, session: str) -> None:
        self.path = path
        self.session = session
        self.count = 0
        path.parent.mkdir(parents=True, exist_ok=True)

    @staticmethod
    def encode(record) -> bytes:
        return json.dumps(record, separators=(",", ":")).encode() + b"\n"

    def record(self, type_, message, **more):
        """A record with the next uuid, one second later."""
        self.count += 1
        return {
            "type": type_,
            "uuid": str(UUID(int=(zlib.crc32(self.session.encode()) << 64) | self.count)),
            "timestamp": f"{TEN_O_CLOCK + timedelta(seconds=self.count):%Y-%m-%dT%H:%M:%S}.000Z",
            "sessionId": self.session,
            "cwd": "/code/demo",
            "gitBranch": "main",
            "version": "2.1.0",
            "message": message,
            **more,
        }

    def prompt(self, text, **more):
        return self.record("user", {"role": "user", "content": text}, **more)

    def answer(self, text, **more):
        return self.assistant([{"type": "text", "text": text}], **more)

    def assistant(self, content, *, message_id=None, output_tokens=10, **more):
        message = {
            "id": message_id or f"msg_{self.session[:8]}_{self.count + 1}",
            "role": "assistant",
            "model": "claude-opus-4-5",
            "content": content,
            "usage": {"input_tokens": 3, "output_tokens": output_tokens},
        }
        return self.record("assistant", message, requestId=f"req_{message['id']}", **more)

    def call(self, call_id, tool="Bash", **values):
        return self.assistant([{"type": "tool_use", "id": call_id, "name": tool, "input": values}])

    def result(self, call_id, content, *, is_error=False, **more):
        block = {"type": "tool_result", "tool_use_id": call_id, "content": content}
        if is_error:
            block["is_error"] = True
        return self.record("user", {"role": "user", "content": [block]}, **more)

    def append(self, *records):
        with self.path.open("ab") as file:
            for record in records:
                file.write(record if isinstance(record, bytes) else self.encode(record))
        return self


class World:
    """A home directory with its own transcripts and index."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.projects = root / ".claude" / "projects"
        self.state = root / "state"
        self.projects.mkdir(parents=True)
        self.env = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("XDG_", "CLAUDE_", "NOTIFY", "SESSIOND"))
        } | {"HOME": str(root), "SESSIOND_HOME": str(self.state), "TZ": "UTC"}

    def transcript(self, session="11111111-1111-4111-8111-111111111111", folder="-code-demo"):
        return Transcript(self.projects / folder / f"{session}.jsonl", session)

    def ingest(self, *, settle=True):
        """One sync in this process."""
        self.state.mkdir(mode=0o700, exist_ok=True)
        with closing(opened(self.state / "index.db")) as db:
            note_agents(db, all_sources(Config()))
            return Ingest(Store(db), settle=settle).reconcile(self.places())

    def places(self):
        sources = all_sources(Config({"claude": [str(self.projects)]}))
        places = Territory(sources).places
        return [place for place in places if place.path == str(self.projects.resolve())]

    def run(self, program, *arguments, check=None, **options):
        """Run `sess` or `sessiond` in this home."""
        if forked.possible(program, self.env, options):
            done = forked.run(program, arguments, self.env, **options)
        else:
            done = subprocess.run(
                [BIN / program, *map(str, arguments)],
                env=self.env,
                check=False,
                capture_output=True,
                text=True,
                timeout=60,
                **options,
            )
        if check is not None:
            assert done.returncode == check, (done.returncode, done.stdout, done.stderr)
        return done

    def start(self, **options):
        """A daemon in a separate process, in the foreground."""
        if forked.possible("sessiond", self.env, options):
            with open(os.devnull, "r+b") as nowhere:
                streams = [nowhere.fileno()] * 3
                return forked.start("sessiond", ["start"], self.env, streams, **options)
        return subprocess.Popen(
            [BIN / "sessiond", "start"],
            env=self.env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **options,
        )

    def sql(self, query, *values):
        with closing(open_reader(self.state / "index.db")) as db:
            return list(db.execute(query, values))

    def restored(self, path):
        """The bytes of a source, read back from the archive."""
        with closing(open_reader(self.state / "index.db")) as db:
            source = db.execute("SELECT id FROM sources WHERE path = ?", (str(path),)).get
            return b"".join(archive.source_bytes(db, source))

    def shown(self, session):
        """(type, text, status) of a session's shown events."""
        return self.sql(
            "SELECT e.type, x.text || x.input || x.output, e.status FROM sessions s"
            " JOIN records t ON t.session_id = s.id"
            " JOIN events e ON e.record_id = coalesce(t.copy_of, t.id)"
            " JOIN event_texts x ON x.id = e.id"
            " WHERE s.native_id = ? AND t.retired = 0 AND t.superseded = 0 AND e.retired = 0"
            " GROUP BY e.id"
            " ORDER BY min(t.source_id), min(t.offset), e.block",
            session,
        )

    def found(self, words):
        """Texts of the events that match, in order."""
        return [
            row[0]
            for row in self.sql(
                "SELECT text || input || output FROM event_index WHERE event_index MATCH ?"
                " ORDER BY rowid",
                words,
            )
        ]

    def dump(self):
        """The content of the index, without ids that depend on the order of reading."""
        path = f"substr(p.path, {len(str(self.root)) + 1})"  # the same in every home
        events = self.sql(
            "SELECT s.native_id, t.line, e.block, e.type, e.label, e.tool, e.status, e.ts,"
            " e.duration_ms, e.summary, e.images, e.call_id, e.pointer, e.retired, x.text, x.input,"
            " x.output, x.marks FROM events e JOIN event_texts x ON x.id = e.id"
            " JOIN sessions s ON s.id = e.session_id JOIN records t ON t.id = e.record_id"
            " ORDER BY 1, 2, 3, x.text, e.call_id, e.retired, 4, e.ts"
        )
        sessions = self.sql(
            "SELECT native_id, home, alias, kind, call_id, project, title, git_branch, models,"
            " project_from, version, started_at, ended_at, records, events, prompts, tool_calls"
            " FROM sessions ORDER BY 1, 2"
        )
        records = self.sql(
            f"SELECT {path}, t.line, t.offset, t.length, t.kind, t.role, t.native_id, t.parent_id,"
            " t.ts, t.ts_from, t.digest, t.retired, t.copy_of IS NULL"
            " FROM records t JOIN sources p ON p.id = t.source_id ORDER BY 1, 2, 3, t.retired"
        )
        usage = self.sql(
            "SELECT message_id, request_id, model, ts, input_tokens, output_tokens FROM usage"
            " ORDER BY 1, 2"
        )
        warnings = self.sql(
            f"SELECT {path}, w.line, w.offset, w.retired, w.reason"
            " FROM warnings w JOIN sources p ON p.id = w.source_id ORDER BY 1, 3, 5"
        )
        sources = self.sql(
            f"SELECT {path}, offset, lines, blank_lines, state FROM sources p ORDER BY 1"
        )
        edits = self.sql(
            "SELECT s.native_id, t.line, e.block, e.kind, e.call_id, d.number, d.path, d.added,"
            " d.removed, length(d.data) FROM events e LEFT JOIN edits d ON d.event_id = e.id"
            " JOIN sessions s ON s.id = e.session_id JOIN records t ON t.id = e.record_id"
            " ORDER BY 1, 2, 3, e.call_id, d.number, e.retired, 4"
        )
        return {
            "events": events,
            "edits": edits,
            "sessions": sessions,
            "records": records,
            "usage": usage,
            "warnings": warnings,
            "sources": sources,
        }

    def check(self):
        """Both integrity checks, no broken references, no event later than its block allows, and
        digests that are what their sessions have."""
        with closing(open_writer(self.state / "index.db")) as db:
            assert db.pragma("integrity_check") == "ok"
            assert soundness.broken_references(db) == []
            late = (
                "SELECT e.id FROM events e LEFT JOIN event_blocks b ON b.block = e.id >> ?"
                " WHERE e.ts > coalesce(b.newest, -1)"
            )
            assert list(db.execute(late, (search_index.BLOCK_BITS,))) == []
            assert digests.differences(db) == 0
            db.execute("INSERT INTO event_index (event_index, rank) VALUES ('integrity-check', 1)")


@pytest.fixture(autouse=True)
def _no_damage_before():
    """What one test met in the archive is not told at the end of a command of the next."""
    archive.met.clear()


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)
