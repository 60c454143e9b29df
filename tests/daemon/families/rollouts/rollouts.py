"""Rollouts that tests write, and a home directory for them."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime, timedelta

import orjson
from tests.conftest import World

from sessiond.config import Config
from sessiond.reading.territory import Territory
from sessiond.sources import all_sources

RETIRED = 13  # in the events of a dump
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def thread_id(number):
    return f"019f0000-0000-7000-8000-{number:012d}"


def turn_id(number):
    return f"019f0000-0000-7000-9000-{number:012d}"


def item(kind, /, **values):
    return {"type": "response_item", "payload": {"type": kind, **values}}


def event(kind, /, **values):
    return {"type": "event_msg", "payload": {"type": kind, **values}}


def message(role, text):
    piece = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": piece, "text": text}])


def call(call_id, command, **values):
    arguments = json.dumps({"cmd": command})
    return item(
        "function_call", name="exec_command", arguments=arguments, call_id=call_id, **values
    )


def output(call_id, text):
    return item("function_call_output", call_id=call_id, output=text)


def counts(entered, cached, out):
    return {"input_tokens": entered, "cached_input_tokens": cached, "output_tokens": out}


def tokens(total, last=None):
    info = {"total_token_usage": counts(*total), "model_context_window": 272000}
    if last:
        info["last_token_usage"] = counts(*last)
    return event("token_count", info=info)


class Rollout:
    """The file of one thread: each added line gets the next second of its clock."""

    def __init__(self, home, number, *, hours=0, folder="sessions/2026/03/01", **meta):
        self.thread = thread_id(number)
        self.path = home.codex / folder / f"rollout-2026-03-01T12-00-00-{self.thread}.jsonl"
        self.clock = NOON + timedelta(hours=hours)
        self.lines = []
        self.meta = {"type": "session_meta", "payload": {
            "id": self.thread, "cwd": "/code/kite", "cli_version": "0.149.0", "source": "cli",
            "git": {"branch": "main"}, **meta,
        }}  # fmt: skip
        self.add(self.meta)

    def add(self, *lines):
        self.lines += lines
        return self

    def turn(self, number, prompt, *answers):
        """Add a turn as Codex writes it."""
        self.add(
            event("task_started", turn_id=turn_id(number)),
            {"type": "turn_context", "payload": {
                "turn_id": turn_id(number), "cwd": "/code/kite", "model": "gpt-5.6-sol",
            }},
            message("user", prompt),
            event("user_message", message=prompt),
        )  # fmt: skip
        for answer in answers:
            self.add(message("assistant", answer) if isinstance(answer, str) else answer)
        return self

    def copy(self, parent, count=None):
        """Start as a fork does: with the parent's lines, under timestamps of this file."""
        return self.add(*parent.lines[:count])

    def encoded(self):
        moments = (self.clock + timedelta(seconds=number) for number in itertools.count())
        return [
            orjson.dumps({"timestamp": f"{moment:%FT%T}.000Z", **line}) + b"\n"
            for moment, line in zip(moments, self.lines, strict=False)
        ]

    def save(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(b"".join(self.encoded()))
        return self


class CodexHome(World):
    """A home directory with rollouts and an index."""

    def __init__(self, root):
        super().__init__(root)
        self.codex = root / ".codex"
        (self.codex / "sessions").mkdir(parents=True)

    def places(self):
        roots = [str(self.codex / name) for name in ("sessions", "archived_sessions")]
        roots += map(str, self.codex.glob("state_*.sqlite"))
        places = Territory(all_sources(Config({"codex": roots}))).places
        return [place for place in places if place.path in roots]

    def comparable(self):
        """The index without ids that depend on the order of reading, plus the owners of usage.

        Events that every thread took back are left out: only their owner is always the same.
        """
        dump = self.dump()
        del dump["edits"]  # one row per event, taken back or not
        return dump | {
            "events": [row for row in dump["events"] if not row[RETIRED]],
            "links": self.sql(
                "SELECT s.native_id, p.native_id, s.call_id FROM sessions s"
                " JOIN sessions p ON p.id = s.parent_id ORDER BY 1"
            ),
            "used": self.sql(
                "SELECT u.message_id, s.native_id, u.ts, u.counted, u.input_tokens,"
                " u.cache_read_tokens, u.output_tokens, u.cost_nano FROM usage u"
                " JOIN sessions s ON s.id = u.session_id ORDER BY 1"
            ),
        }

    def texts(self, thread, kind="user"):
        return [
            text
            for (text,) in self.sql(
                "SELECT x.text || x.input FROM sessions s JOIN records t ON t.session_id = s.id"
                " JOIN events e ON e.record_id = coalesce(t.copy_of, t.id)"
                " JOIN event_texts x ON x.id = e.id WHERE s.native_id = ? AND e.type = ?"
                " AND t.retired = 0 AND t.superseded = 0 AND e.retired = 0"
                " GROUP BY e.id ORDER BY min(t.source_id), min(t.offset), e.block",
                thread,
                kind,
            )
        ]

    def owned(self):
        """(owning session, text) of every event that is shown."""
        return self.sql(
            "SELECT s.native_id, x.text || x.input FROM events e"
            " JOIN event_texts x ON x.id = e.id JOIN sessions s ON s.id = e.session_id"
            " WHERE e.retired = 0 ORDER BY 1, e.ts, 2"
        )

    def used(self):
        """Input, cached and output tokens by session."""
        return self.sql(
            "SELECT s.native_id, sum(u.input_tokens), sum(u.cache_read_tokens),"
            " sum(u.output_tokens) FROM usage u JOIN sessions s ON s.id = u.session_id"
            " WHERE u.counted GROUP BY 1 ORDER BY 1"
        )
