"""What the index knows of each source, in memory during a pass."""

from __future__ import annotations

from collections import defaultdict

import apsw

from sessiond.reading.survey import Candidate
from sessiond.reading.tracked import Tracked, load_all
from sessiond.sourcekit.base import SessionSpec


class Known:
    """Every source in the index, by path; loaded when it is asked for."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._sources: dict[str, Tracked] | None = None
        self._parts: dict[int, list[Tracked]] | None = None  # conversations by their whole

    @property
    def sources(self) -> dict[str, Tracked]:
        if self._sources is None:
            self._sources, self._parts = load_all(self._db), None
        return self._sources

    def forget(self) -> None:
        """The index says something else: load it again."""
        self._sources = None

    def of(self, file: Candidate) -> Tracked:
        """The source of a file, new if nobody has read it yet."""
        return self.sources.get(file.path) or Tracked(
            file.path, file.agent.agent, file.kind, edition=file.agent.edition
        )

    def parts_of(self, source: Tracked) -> list[Tracked]:
        """The conversations of a document or database."""
        if not source.is_whole or source.id is None:
            return []
        sources = self.sources
        if self._parts is None:
            self._parts = defaultdict(list)
            for part in sources.values():
                if part.part_of is not None:
                    self._parts[part.part_of].append(part)
        return self._parts.get(source.id, [])

    def part(self, whole: Tracked, spec: SessionSpec) -> Tracked:
        """The source of one conversation."""
        path = f"{whole.path}#{spec.native_id}"
        if path not in self.sources:
            part = Tracked(path, whole.agent, "transcript", part_of=whole.id)
            self.sources[path] = part
            if self._parts is not None and whole.id is not None:
                self._parts[whole.id].append(part)
        return self.sources[path]

    def unread(self, file: Candidate) -> int:
        """Bytes that are new in it."""
        known = self.sources.get(file.path)
        if known and known.is_whole and known.stat:
            return 0
        return max(0, file.stat.size - (known.progress.checkpoint.offset if known else 0))

    def failures(self, file: Candidate) -> int:
        known = self.sources.get(file.path)
        return known.failures if known else 0
