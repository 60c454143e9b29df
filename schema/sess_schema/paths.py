"""Where the index, configuration, logs and lock live, all private to their owner."""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from sess_schema.errors import Exit, SessError


@dataclass(frozen=True, slots=True)
class Home:
    """The directories of one installation."""

    data: Path
    config: Path
    logs: Path

    @property
    def index(self) -> Path:
        return self.data / "index.db"

    @property
    def lock(self) -> Path:
        return self.data / "sessiond.lock"

    @property
    def status(self) -> Path:
        return self.data / "status.json"

    @property
    def imports(self) -> Path:
        """What was handed over: a list of files, and those that came from elsewhere."""
        return self.data / "imports"

    @property
    def config_file(self) -> Path:
        return self.config / "config.toml"

    @property
    def log(self) -> Path:
        return self.logs / "sessiond.log"

    def create(self) -> None:
        """Create the directories with mode 0700, whatever the umask."""
        for directory in {self.data, self.config, self.logs}:
            make_private(directory)


def home() -> Home:
    """This user's installation, or the one in SESSIOND_HOME."""
    if override := os.environ.get("SESSIOND_HOME"):
        root = Path(override).expanduser().absolute()
        return Home(root, root, root)
    import platformdirs  # noqa: PLC0415 - not needed with an override

    name = "sessiond"
    return Home(
        Path(platformdirs.user_data_dir(name, appauthor=False)),
        Path(platformdirs.user_config_dir(name, appauthor=False)),
        Path(platformdirs.user_log_dir(name, appauthor=False)),
    )


def make_private(directory: Path) -> None:
    """Create a directory that only its owner can enter; refuse one that is not ours."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = os.stat(directory)
    except OSError as error:
        raise SessError(
            f'cannot create directory "{directory}": {error.strerror}',
            hint="set SESSIOND_HOME to a writable directory",
            code=Exit.INDEX_UNUSABLE,
        ) from error
    if hasattr(os, "getuid") and found.st_uid != os.getuid():
        raise SessError(
            f'directory "{directory}" belongs to another user',
            hint="set SESSIOND_HOME to another directory",
            code=Exit.INDEX_UNUSABLE,
        )
    if stat.S_IMODE(found.st_mode) != 0o700:
        with contextlib.suppress(OSError):
            os.chmod(directory, 0o700)


def create_private_file(path: Path) -> None:
    """Create an empty 0600 file if missing; SQLite gives -wal and -shm the same mode."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        os.chmod(path, 0o600)
