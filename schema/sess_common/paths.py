"""Where the index, configuration, logs and lock live, all private to their owner."""

from __future__ import annotations

import contextlib
import os
import stat
import sys

from sess_common.classes import TYPE_CHECKING
from sess_common.errors import Exit, SessError

if TYPE_CHECKING:
    from pathlib import Path

_NAME = "sessiond"


class Home:
    """The directories of one installation. Every search asks for files, which are plain text here:

    importing pathlib takes as long as opening the index.
    """

    def __init__(self, data: str, config: str, logs: str) -> None:
        self._data, self._config, self._logs = data, config, logs
        self.index_file = os.path.join(data, "index.db")
        self.lock_file = os.path.join(data, "sessiond.lock")
        self.settings_file = os.path.join(config, "config.toml")

    @property
    def data(self) -> Path:
        return _path(self._data)

    @property
    def config(self) -> Path:
        return _path(self._config)

    @property
    def logs(self) -> Path:
        return _path(self._logs)

    @property
    def index(self) -> Path:
        return _path(self.index_file)

    @property
    def lock(self) -> Path:
        return _path(self.lock_file)

    @property
    def status(self) -> Path:
        return self.data / "status.json"

    @property
    def imports(self) -> Path:
        """What was handed over: a list of files, and those that came from elsewhere."""
        return self.data / "imports"

    @property
    def config_file(self) -> Path:
        return _path(self.settings_file)

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
        root = absolute(os.path.expanduser(override))
        return Home(root, root, root)
    return Home(*(_on_linux() or _anywhere()))


def _on_linux() -> tuple[str, str, str] | None:
    """What platformdirs says there, whose import takes longer than a search."""
    if sys.platform != "linux" or "ANDROID_ROOT" in os.environ:
        return None
    above = []
    for variable, usual in (
        ("XDG_DATA_HOME", "~/.local/share"),
        ("XDG_CONFIG_HOME", "~/.config"),
        ("XDG_STATE_HOME", "~/.local/state"),
    ):
        chosen = os.environ.get(variable, "").strip()
        above.append(chosen if os.path.isabs(chosen) else os.path.expanduser(usual))
    data, config, state = (os.path.join(one, _NAME) for one in above)
    return data, config, os.path.join(state, "log")


def _anywhere() -> tuple[str, str, str]:
    import platformdirs  # only where the rules are less simple

    return (
        platformdirs.user_data_dir(_NAME, appauthor=False),
        platformdirs.user_config_dir(_NAME, appauthor=False),
        platformdirs.user_log_dir(_NAME, appauthor=False),
    )


def absolute(path: str) -> str:
    return path if os.path.isabs(path) else os.path.join(os.getcwd(), path)


def _path(text: str) -> Path:
    from pathlib import Path

    return Path(text)


def make_private(directory: Path) -> None:
    """Create a directory that only its owner can enter; refuse one that is not ours."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = os.stat(directory)
    except OSError as error:
        raise SessError(
            f'cannot create directory "{directory}": {error.strerror}',
            hint="set SESSIOND_HOME to a writable directory",
            code=Exit.INDEX_UNUSABLE,
        ) from error
    if hasattr(os, "getuid") and status.st_uid != os.getuid():
        raise SessError(
            f'directory "{directory}" belongs to another user',
            hint="set SESSIOND_HOME to another directory",
            code=Exit.INDEX_UNUSABLE,
        )
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o002 or (mode & 0o020 and os.listdir(directory)):
        # What others may have put there is not trusted, and a shared directory is left shared.
        raise SessError(
            f'directory "{directory}" can be written to by other users',
            hint=f'`chmod 700 "{directory}"` if only you use it, or set SESSIOND_HOME to another',
            code=Exit.INDEX_UNUSABLE,
        )
    if mode != 0o700:
        with contextlib.suppress(OSError):
            os.chmod(directory, 0o700)


def create_private_file(path: str | Path) -> None:
    """Create an empty 0600 file if missing; SQLite gives -wal and -shm the same mode."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        os.chmod(path, 0o600)
