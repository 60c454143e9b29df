"""Films the sample for the README: `python docs/film.py`, after a change of how films look.

A test compares the film with what the code makes today.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path

FILM = Path(__file__).parent / "media" / "teapot.gif"
SESSION = "7ea9"
OPTIONS = ("--preset", "readme", "--utc")


def film(home: Path, target: Path) -> None:
    """With the dates of the sample as they are: each day's film would be another one."""
    sample = resources.files("sess_cli") / "sample"
    with resources.as_file(sample) as files:
        shutil.copytree(files, home / ".claude" / "projects", dirs_exist_ok=True)
    state = home / "state"
    environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(home), "TZ": "UTC"}
    environment["SESSIOND_HOME"] = str(state)
    command = (sys.executable, "-m", "sess_cli", "export", "gif", SESSION)
    subprocess.run([*command, *OPTIONS, "-o", str(target)], env=environment, check=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        film(Path(folder), Path(folder) / "film.gif")
        shutil.move(Path(folder) / "film.gif", FILM)
        FILM.chmod(0o644)
