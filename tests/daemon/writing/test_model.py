"""A random life of a transcript against a model: every line ever complete is there exactly once."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import apsw
import hypothesis
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.at_length import amount, count, seeds
from tests.conftest import World, opened
from tests.faults import disk
from tests.faults.disk import KILL, Trouble

from sessiond.ingest import Ingest
from sessiond.writing.transaction import Store

pytestmark = pytest.mark.slow


class Life:
    """Each action is a method; the number it gets decides what exactly it does."""

    def __init__(self, folder: Path) -> None:
        self.world = World(folder)
        self.world.state.mkdir(mode=0o700)
        self.transcript = self.world.transcript()
        self.path.write_bytes(b"")
        self.ever: list[str] = []  # complete lines that were there when the file was read
        self.deleted: bytes | None = None
        self.db: apsw.Connection | None = None
        self.reader: Ingest | None = None
        self.edits = 0

    @property
    def path(self) -> Path:
        path: Path = self.transcript.path
        return path

    def line(self) -> bytes:
        prompt = self.transcript.prompt(f"w{self.transcript.count:05}")
        line: bytes = self.transcript.encode(prompt)
        return line

    # -- what happens to the file

    def append(self, number):
        self.transcript.append(*(self.line() for _ in range(1 + number % 3)))

    def append_a_part(self, number):
        line = self.line()
        self.transcript.append(line[: 1 + number % (len(line) - 2)])

    def truncate(self, number):
        os.truncate(self.path, max(0, self.path.stat().st_size - number % 1000))

    def replace_without_a_line(self, number):
        lines = self.path.read_bytes().splitlines(keepends=True)
        if lines:
            del lines[number % len(lines)]
        new = self.path.with_suffix(".new")
        new.write_bytes(b"".join(lines))
        os.replace(new, self.path)

    def edit_in_place(self, number):
        """Another word of the same length somewhere."""
        words = self.whole_lines()
        if words:
            data = self.path.read_bytes()
            self.edits += 1
            with self.path.open("r+b") as file:
                file.seek(data.rindex(words[number % len(words)].encode()))
                file.write(b"e%05d" % self.edits)

    def move(self, number):
        there = self.world.projects / "abc"[number % 3] / self.path.name
        there.parent.mkdir(exist_ok=True)
        self.path.rename(there)
        self.transcript.path = there

    def delete(self, _number):
        self.deleted = self.path.read_bytes()
        self.path.unlink()

    def delete_and_begin_anew(self, number):
        self.path.unlink()
        self.append(number)

    def restore(self, _number):
        if self.deleted is not None:
            self.path.write_bytes(self.deleted)
            self.deleted = None

    # -- who reads it

    def read(self, _number=0):
        if self.reader is None:
            self.db = opened(self.world.state / "index.db")
            self.reader = Ingest(Store(self.db))
        self.reader.reconcile(self.world.places())
        if self.deleted is None:
            self.ever += [word for word in self.whole_lines() if word not in self.ever]

    def restart(self, _number=0):
        if self.db is not None:
            self.db.close()
        self.db = self.reader = None

    def read_and_be_killed(self, number):
        """kill -9 of a process that reads, at one of its writes."""
        self.restart()
        opened(self.world.state / "index.db").close()

        def work():
            self.read()
            return 0

        disk.in_child(self.world, Trouble(KILL, 1 + number % 40), work)

    # -- what must be true

    def whole_lines(self) -> list[str]:
        data = self.deleted if self.deleted is not None else self.path.read_bytes()
        return [
            line.rpartition(b'"content":"')[2].partition(b'"')[0].decode()
            for line in data.splitlines()
            if line.endswith(b'"}}') and line.startswith(b"{") and line.count(b'"type"') == 1
        ]

    def check(self):
        self.restore(0)
        self.read()
        self.read()  # an edit with an append is found at the second look
        stored = [
            text
            for (text,) in self.world.sql(
                "SELECT text FROM event_texts JOIN events USING (id) WHERE type = 'user'"
            )
        ]
        for word in self.ever:
            assert stored.count(word) == 1, (word, stored)
        now = self.whole_lines()
        shown = [text for kind, text, _ in self.world.shown(self.transcript.session)]
        found = [word for word in shown if word in now]
        if self.world.sql("SELECT count(*) FROM sources") == [(1,)]:
            assert found == now
        else:  # changed and moved at once, it is another file: what both have stands in the first
            assert sorted(found) == sorted(now)
        if content := self.path.read_bytes():  # an emptied file is kept as it was
            assert self.world.restored(self.path) == content


NEED_NO_FILE = {"restore", "read", "restart", "read_and_be_killed"}
ACTIONS = (
    *("append",) * 3, "append_a_part", "truncate", "replace_without_a_line", "edit_in_place",
    "move", "delete", "delete_and_begin_anew", "restore", *("read",) * 3, "restart",
    "read_and_be_killed",
)  # fmt: skip
LIVES = st.lists(
    st.tuples(st.sampled_from(ACTIONS), st.integers(0, 1 << 16)), min_size=4, max_size=16
)


def live(life):
    count("cases")
    with tempfile.TemporaryDirectory() as folder:
        one = Life(Path(folder))
        try:
            for action, number in life:
                if one.deleted is None or action in NEED_NO_FILE:
                    getattr(one, action)(number)
            one.check()
        finally:
            one.restart()


@pytest.mark.parametrize("seed", seeds(1, 20))
def test_any_life_of_a_file_ends_in_the_right_index(seed):
    """Hypothesis finds no sequence of changes that loses, doubles or misplaces a line."""
    how = settings(
        max_examples=amount(25, 260),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    hypothesis.seed(seed)(how(given(life=LIVES)(live)))()
