"""Draw cards in a second process while this one reads: drawing is half of the work."""

from __future__ import annotations

import os
import signal
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from sess_cli.export.html.cards import Drawer
from sess_cli.export.story import Item

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

    from sess_schema.queries.sessions import SessionRow

_BATCH = 64
_AHEAD = 8  # batches waiting to be drawn; a limit on memory
_WORTH_A_PROCESS = 1500  # events
_WORTH_SENDING = 100  # if the process already runs


class Told(Protocol):
    """What has events to draw: a session, or its part of a page."""

    row: SessionRow

    def items(self) -> Iterator[Item]: ...


class Workshop:
    """Starts the second process at the first long session."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def cards(self, story: Told, drawer: Drawer) -> Iterator[tuple[Item, str]]:
        """Every event with its card, in order."""
        pool = self._pool_for(story)
        if pool is None:
            for item in story.items():
                yield item, drawer.card(item)
            return
        waiting: deque[tuple[list[Item], Future[list[str]]]] = deque()
        events = story.items()
        while batch := [*islice(events, _BATCH)]:
            # Drawing a subagent reads its session, which only this process can.
            sent = [item for item in batch if item.agent is None]
            waiting.append((batch, pool.submit(_drawn, drawer, sent)))
            if len(waiting) > _AHEAD:
                yield from self._received(*waiting.popleft(), drawer)
        while waiting:
            yield from self._received(*waiting.popleft(), drawer)

    @staticmethod
    def _received(
        batch: list[Item], future: Future[list[str]], drawer: Drawer
    ) -> Iterator[tuple[Item, str]]:
        cards = iter(future.result())
        for item in batch:
            yield item, next(cards) if item.agent is None else drawer.card(item)

    def _pool_for(self, story: Told) -> ProcessPoolExecutor | None:
        if self._pool is not None:
            return self._pool if story.row.events >= _WORTH_SENDING else None
        # Elsewhere a new process has to import everything again, which takes longer than it saves.
        if story.row.events < _WORTH_A_PROCESS or sys.platform != "linux" or _cores() < 2:
            return None
        from concurrent.futures import ProcessPoolExecutor  # not for short ones
        from multiprocessing import get_context

        with suppress(OSError):  # without a second process it only takes longer
            self._pool = ProcessPoolExecutor(
                1, get_context("fork"), initializer=signal.signal,
                initargs=(signal.SIGINT, signal.SIG_IGN),
            )  # fmt: skip
        return self._pool


def _drawn(drawer: Drawer, items: list[Item]) -> list[str]:
    return [drawer.card(item) for item in items]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
