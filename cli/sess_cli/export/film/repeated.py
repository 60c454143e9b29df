"""Failures that repeat within a prompt: told once, with how often they came again."""

from __future__ import annotations

from sess_cli.export.film import rows
from sess_cli.export.film.frames import Look
from sess_cli.export.film.scenes import Scene
from sess_cli.render import amounts


class Repeated:
    """Remembers the failures of the current prompt."""

    def __init__(self) -> None:
        self._chapter = -1
        self._first: dict[tuple[str, ...], Scene] = {}
        self._again: dict[int, tuple[Scene, int]] = {}  # by event, with how often it repeats

    def merged(self, scene: Scene) -> bool:
        """Whether a failure like this one has been told."""
        if scene.chapter != self._chapter:
            self._chapter = scene.chapter
            self._first = {}
        if not scene.failed:
            return False
        told = (scene.kind, *map(rows.plain, scene.body.rows or scene.head.rows))
        first = self._first.setdefault(told, scene)
        if first is scene:
            return False
        _, count = self._again.get(first.event, (first, 0))
        self._again[first.event] = first, count + 1
        return True

    def tell(self) -> None:
        for scene, count in self._again.values():
            words = f"  {'and ' if scene.tail else ''}{amounts.plural(count, 'more time')} the same"
            scene.tail = rows.row(*scene.tail, (words, Look("red")))
