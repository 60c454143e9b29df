"""A temporary home with its own index and transcripts, separate from the user's."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sess_common.program import module

if TYPE_CHECKING:
    import subprocess

# No other variable is passed: any of them might lead an agent to another home.
_KEPT = (
    "PATH", "PYTHON", "VIRTUAL_ENV", "LANG", "LC_", "TZ", "TERM", "COLORTERM", "NO_COLOR",
    "FORCE_COLOR", "COLUMNS", "LINES", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "LD_LIBRARY_PATH",
    "DYLD_",
)  # fmt: skip


class Sandbox:
    """A home directory in which our programs find only what was put there."""

    def __init__(self, root: Path) -> None:
        import site

        self.root = root
        self.projects = root / ".claude" / "projects"
        self.projects.mkdir(parents=True)
        self.environment = {
            name: value for name, value in os.environ.items() if name.upper().startswith(_KEPT)
        }
        self.environment |= {
            "HOME": str(root),
            "USERPROFILE": str(root),
            "SESSIOND_HOME": str(root / "sessiond"),
            "PAGER": "cat",
            # `pip install --user` puts packages in the real home.
            "PYTHONUSERBASE": os.environ.get("PYTHONUSERBASE") or site.getuserbase(),
        }

    def sess(self, *arguments: str, capture: bool = False) -> subprocess.CompletedProcess[str]:
        """Run this client inside."""
        return self.run("sess_cli", *arguments, capture=capture)

    def run(
        self, name: str, *arguments: str, capture: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run one of our modules inside."""
        import subprocess

        sys.stdout.flush()
        return subprocess.run(
            [*module(name), *arguments],
            env=self.environment,
            capture_output=capture,
            text=True,
            errors="replace",
            check=False,
        )


@contextmanager
def throw_away() -> Iterator[Sandbox]:
    """A sandbox that is removed afterwards, whatever happens."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="sess-", ignore_cleanup_errors=True) as root:
        yield Sandbox(Path(root).resolve())
