"""Upgrades an index of today by migrations that only tests have.

As a program, `python -m tests.schema.upgrading sync` is a `sessiond` of that later version.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sess_schema import migrate

LATER = Path(__file__).with_name("later")


@contextmanager
def later(folder: Path = LATER) -> Iterator[None]:
    """Within it, this is the version that has these migrations."""
    migrate.FOLDERS.append(str(folder))
    try:
        yield
    finally:
        migrate.FOLDERS.remove(str(folder))


def main() -> None:
    from sessiond.main import run  # not for the tests that upgrade in their process

    with later():
        run()


if __name__ == "__main__":
    sys.argv[0] = "sessiond"
    main()
