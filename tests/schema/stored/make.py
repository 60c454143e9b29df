"""Makes the indexes of earlier versions again, each with the program of its time.

    python -m tests.schema.stored.make

in a clone with its whole history and an environment with all dependencies: the last commit before
the next migration, a home directory at a fixed place, one `sessiond sync`. Files that exist are
kept: what they hold is what people have on their disks.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import apsw
import zstandard
from tests.cursor_databases import user_directory
from tests.schema.stored import corpus

from sess_schema import migrate

HERE = Path(__file__).parent
HOME = Path("/tmp/sessiond-stored")


def stored(version: int) -> Path:
    return HERE / f"index{version}.db.zst"


def unpack(version: int, home: Path) -> Path:
    """An index of that version below a home with the same corpus: only its place is another."""
    corpus.write(home)
    index = home / "state" / "index.db"
    index.parent.mkdir(mode=0o700)
    index.write_bytes(zstandard.decompress(stored(version).read_bytes()))
    index.chmod(0o600)
    cursor = str(user_directory(home.resolve()))
    with closing(apsw.Connection(str(index))) as db:
        for old, new in ((f"{HOME}/.config/Cursor/User", cursor), (f"{HOME}", f"{home.resolve()}")):
            db.execute("UPDATE sources SET path = replace(path, ?, ?)", (old, new))
    return index


def last_commit(version: int) -> str:
    """Of those that made indexes of this version: the one before the next migration was added."""
    added = ["git", "log", "--diff-filter=A", "--format=%H", "--", f"*/{version + 1:04}_*.sql"]
    found = subprocess.run(added, check=True, capture_output=True, text=True).stdout.split()
    return f"{found[-1]}^"


def make(version: int, scratch: Path) -> None:
    program = scratch / "program"
    program.mkdir()
    archive = ["git", "archive", last_commit(version)]
    packed = subprocess.run(archive, check=True, capture_output=True).stdout
    subprocess.run(["tar", "x", "-C", program], input=packed, check=True)
    folders = (str(program / name) for name in ("schema", "daemon", "cli"))
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(HOME),
        "SESSIOND_HOME": str(scratch / "state"),
        "PYTHONPATH": os.pathsep.join(folders),
        "TZ": "UTC",
    }
    subprocess.run([sys.executable, "-m", "sessiond", "sync"], env=environment, check=True)
    db = apsw.Connection(str(scratch / "state" / "index.db"))
    assert db.pragma("user_version") == version
    db.execute("VACUUM INTO ?", (str(scratch / "small.db"),))
    db.close()
    stored(version).write_bytes(zstandard.compress((scratch / "small.db").read_bytes(), 19))


def main() -> None:
    for version in range(1, migrate.latest()):
        if stored(version).exists():
            continue
        shutil.rmtree(HOME, ignore_errors=True)
        corpus.write(HOME)
        with tempfile.TemporaryDirectory() as scratch:
            make(version, Path(scratch))
        shutil.rmtree(HOME)


if __name__ == "__main__":
    main()
