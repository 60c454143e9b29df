"""A random life of transcripts against a model: every line ever complete is there exactly once."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

pytestmark = pytest.mark.slow


class TranscriptLife(RuleBasedStateMachine):
    """Append, cut, replace, delete, restore and move one file; ingest after each step."""

    make_world = None  # set by the test below

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.world = type(self).make_world(self.folder)
        self.transcript = self.world.transcript()
        self.transcript.path.write_bytes(b"")
        self.ever: list[str] = []
        self.deleted: bytes | None = None

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def line(self) -> bytes:
        number = self.transcript.count
        return self.transcript.encode(self.transcript.prompt(f"word{number}"))

    @precondition(lambda self: self.deleted is None)
    @rule(count=st.integers(1, 3))
    def append(self, count):
        self.transcript.append(*(self.line() for _ in range(count)))

    @precondition(lambda self: self.deleted is None)
    @rule(cut=st.integers(1, 400))
    def append_part(self, cut):
        line = self.line()
        self.transcript.append(line[: min(cut, len(line) - 2)])

    @precondition(lambda self: self.deleted is None)
    @rule(cut=st.integers(0, 1000))
    def truncate(self, cut):
        size = self.transcript.path.stat().st_size
        os.truncate(self.transcript.path, max(0, size - cut))

    @precondition(lambda self: self.deleted is None)
    @rule(pick=st.integers(0, 100))
    def drop_a_line(self, pick):
        lines = self.transcript.path.read_bytes().splitlines(keepends=True)
        if lines:
            del lines[pick % len(lines)]
        new = self.transcript.path.with_suffix(".new")
        new.write_bytes(b"".join(lines))
        os.replace(new, self.transcript.path)

    @precondition(lambda self: self.deleted is None)
    @rule()
    def delete(self):
        self.deleted = self.transcript.path.read_bytes()
        self.transcript.path.unlink()

    @precondition(lambda self: self.deleted is not None)
    @rule()
    def restore(self):
        self.transcript.path.write_bytes(self.deleted)
        self.deleted = None

    @precondition(lambda self: self.deleted is None)
    @rule(name=st.sampled_from(["-a", "-b", "-c"]))
    def move(self, name):
        there = self.world.projects / name / self.transcript.path.name
        there.parent.mkdir(exist_ok=True)
        self.transcript.path.rename(there)
        self.transcript.path = there

    @rule(settle=st.booleans())
    def ingest(self, settle):
        self.world.ingest(settle=settle)
        self.seen()

    def whole_lines(self) -> list[str]:
        data = self.deleted if self.deleted is not None else self.transcript.path.read_bytes()
        return [
            line.rpartition(b'"content":"')[2].partition(b'"')[0].decode()
            for line in data.splitlines()
            if line.endswith(b'"}}') and line.startswith(b"{") and line.count(b'"type"') == 1
        ]

    def seen(self) -> None:
        if self.deleted is None:
            self.ever += [word for word in self.whole_lines() if word not in self.ever]

    @invariant()
    def everything_once(self):
        if self.deleted is not None or not (self.world.state / "index.db").exists():
            return
        self.world.ingest()
        self.seen()
        stored = [
            text
            for (text,) in self.world.sql(
                "SELECT text FROM event_texts JOIN events USING (id) WHERE type = 'user'"
            )
        ]
        for word in self.ever:
            assert stored.count(word) == 1, (word, stored)
        shown = [
            text for kind, text, _ in self.world.shown(self.transcript.session) if kind == "user"
        ]
        assert [word for word in shown if word in self.whole_lines()] == self.whole_lines()
        if content := self.transcript.path.read_bytes():  # an emptied file is kept as it was
            assert self.world.restored(self.transcript.path) == content


def test_any_life_of_a_file_ends_in_the_right_index(world):
    """Hypothesis finds no sequence of changes that loses, doubles or misplaces a line."""
    TranscriptLife.make_world = staticmethod(type(world))
    machine = TranscriptLife.TestCase
    machine.settings = settings(
        max_examples=40,
        stateful_step_count=20,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    machine().runTest()
