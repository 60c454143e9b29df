"""Several sessions in one export: one that cannot be read does not stop the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from shutil import copyfileobj
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, BinaryIO, cast

if TYPE_CHECKING:
    from sess_cli.export.story import Story

_IN_MEMORY = 8 << 20  # bytes of one session


class Failures:
    """Collects the sessions that failed, each with the reason."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []
        self.why: str | None = None  # the last one failed

    @contextmanager
    def noted(self, story: Story) -> Iterator[None]:
        """Go on after an error, unless it is about the file that is being written."""
        self.why = None
        try:
            yield
        except Exception as error:
            if isinstance(error, OSError) or isinstance(error.__cause__, OSError):
                raise
            self.why = str(error) or type(error).__name__
            self.found.append((story.row.session, self.why))


@contextmanager
def whole(out: BinaryIO) -> Iterator[BinaryIO]:
    """What is written reaches `out` only if no error ends it."""
    with SpooledTemporaryFile(_IN_MEMORY) as part:
        yield cast("BinaryIO", part)
        part.seek(0)
        copyfileobj(part, out)
