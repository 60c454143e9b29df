"""A session that a test writes, and films of it."""

from __future__ import annotations

from contextlib import contextmanager

from sess_cli.commands.export import shared
from sess_cli.export.film.pacing import Pacing
from sess_cli.export.film.stage import staged
from sess_cli.export.film.storyboard import storyboard
from sess_cli.options import Masks

MAIN = "11111111-1111-4111-8111-111111111111"


class Session:
    def __init__(self, world, monkeypatch) -> None:
        self.world = world
        self.transcript = world.transcript(MAIN)
        monkeypatch.setenv("HOME", str(world.root))
        monkeypatch.setenv("SESSIOND_HOME", str(world.state))
        self.calls = 0

    def write(self, *records):
        self.transcript.append(*records)

    def call(self, tool, output="done", *, is_error=False, more=None, **given):
        self.calls += 1
        name = f"call{self.calls}"
        self.write(
            self.transcript.call(name, tool, **given),
            self.transcript.result(name, output, is_error=is_error, **(more or {})),
        )

    @contextmanager
    def opened(self):
        self.world.ingest()
        with shared.opened(MAIN, Masks().redactor, sync=False) as story:
            yield story

    def board(self, columns=100, **options):
        with self.opened() as story:
            return storyboard(story, columns, utc=True, **options)

    def film(self, *, columns=100, lines=30, options=None, fps=15, **pacing):
        board = self.board(columns, **(options or {}))
        plan = Pacing(fps=fps, **pacing).plan(board)
        return staged(board, plan, columns, lines, fps=fps)
