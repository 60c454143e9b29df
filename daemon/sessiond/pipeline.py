"""A generator run ahead in a second thread, no further than a budget of bytes."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator, Iterator
from typing import Protocol, TypeVar

BUDGET = 16 << 20
_MOST_WAITING = 256


class Weighty(Protocol):
    @property
    def weight(self) -> int: ...


Item = TypeVar("Item", bound=Weighty)


def pipelined(items: Iterator[Item]) -> Generator[Item, None, None]:
    """The same items in the same order; an error of the producer is raised here."""
    ready: deque[Item] = deque()
    changed = threading.Condition()
    waiting = 0
    finished = abandoned = False
    failure: BaseException | None = None

    def produce() -> None:
        nonlocal waiting, finished, failure
        try:
            for item in items:
                with changed:
                    while not abandoned and (waiting > BUDGET or len(ready) > _MOST_WAITING):
                        changed.wait()
                    if abandoned:
                        return
                    ready.append(item)
                    waiting += item.weight
                    changed.notify_all()
        except BaseException as error:  # noqa: BLE001 - handed to the consumer
            failure = error
        finally:
            with changed:
                finished = True
                changed.notify_all()

    thread = threading.Thread(target=produce, name="reader", daemon=True)
    thread.start()
    try:
        while True:
            with changed:
                while not ready and not finished:
                    changed.wait()
                if not ready:
                    break
                item = ready.popleft()
                waiting -= item.weight
                changed.notify_all()
            yield item
        if failure is not None:
            raise failure
    finally:
        with changed:
            abandoned = True
            changed.notify_all()
        thread.join()
