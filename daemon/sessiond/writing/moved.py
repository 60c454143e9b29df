"""Keeps the source of a file that moved to another path."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import apsw

from sessiond.reading import tail
from sessiond.reading.survey import Candidate
from sessiond.reading.tracked import Tracked
from sessiond.writing import comparing

Parts = Callable[[Tracked], list[Tracked]]


def follow(
    db: apsw.Connection, tracked: dict[str, Tracked], files: Sequence[Candidate], parts: Parts
) -> None:
    """Rename the sources of files that are new by name, but not by content."""
    for file in files:
        if file.path in tracked or file.kind == "database":
            continue
        same_inode = db.execute(
            "SELECT path FROM sources WHERE inode = ? AND dev = ?",
            (file.stat.inode, file.stat.dev),
        )
        for (path,) in list(same_inode):
            known = tracked[path]
            if (
                os.path.basename(path) == os.path.basename(file.path)
                and not os.path.lexists(tail.log_file(path))
                and _still_same(db, known, file.path)
            ):
                with db:
                    for source in (known, *parts(known)):
                        del tracked[source.path]
                        source.save_path(db, file.path + source.path.removeprefix(path))
                        tracked[source.path] = source
                break


def _still_same(db: apsw.Connection, known: Tracked, path: str) -> bool:
    """Inode numbers are reused; the bytes decide."""
    try:
        fd, _ = tail.open_log(path)
    except (OSError, tail.Unreadable):
        return False
    try:
        if known.is_whole:
            return comparing.common_prefix(db, known, fd) == os.fstat(fd).st_size
        tail.verify(known.progress.checkpoint, fd)
    except tail.Rewritten:
        return False
    finally:
        os.close(fd)
    return True
