"""What the last pass looked at, so that a client can tell that another one would change nothing.

A pass without a daemon takes longer than a search, and mostly finds nothing new. It therefore
leaves a list of everything that it looked at: directories, files, places that do not exist yet,
settings, variables, its own code. While all of it is the same, a pass is not needed.

The list is removed by whoever takes the writer's lock, and it belongs to one state of the index: a
number is in both, so that an index that somebody put in its place is read anew.
"""

from __future__ import annotations

import contextlib
import os
import time

from sess_common.classes import TYPE_CHECKING

if TYPE_CHECKING:
    from sess_common.paths import Home

NAME = "walked"
FACT = "walked"  # in `facts`, with the number
_FORMAT = "2"
_SECONDS = 3600  # some work is done by passes only: comparing old parts of logs, for one
_UNSET = "-"

# How a path was looked at: as itself, or as what it leads to; and for directories of which only
# the existence matters, as a whole or by identity.
SELF, TARGET, SELF_IDENTITY, TARGET_IDENTITY = "l", "s", "i", "j"


def mark(stat: os.stat_result) -> str:
    """What differs if a file, or the list of a directory's entries, does."""
    return f"{stat.st_ino} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns} {stat.st_dev}"


def identity(stat: os.stat_result) -> str:
    return f"{stat.st_ino} {stat.st_mode} {stat.st_dev}"


def missing(error: OSError) -> str:
    return f"!{error.errno}"


def setting(name: str) -> str:
    """A variable as the list has it."""
    value = os.environ.get(name)
    return f"{name}{_UNSET if value is None else '=' + value}"


def write(
    home: Home, number: str, seen: int | None, names: list[str], looked: dict[str, str]
) -> None:
    """Leave the list, whole or not at all. `looked` has a mark for each path, as `SELF` or so.

    `seen` is the number of files, and None if the pass has more to say than that.
    """
    head = [_FORMAT, number, str(seen or ""), str(int(time.time())), home.settings_file, _user()]
    head.append(str(len(names)))
    parts = [*head, *map(setting, names), *looked.keys(), *looked.values()]
    if any("\0" in part for part in parts):
        return
    path = _file(home)
    beside = f"{path}.{os.getpid()}"
    text = "\0".join(parts).encode("utf-8", "surrogateescape")
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(text)
        os.replace(beside, path)
    except OSError:  # then every client has to ask for a pass
        with contextlib.suppress(OSError):
            os.unlink(beside)


def last_number(home: Home) -> str | None:
    """Of the list that is there, whatever changed since."""
    return _head(home)[0]


def files_seen(home: Home) -> int | None:
    """By the pass that left the list; None if it had more to say than their number."""
    seen = _head(home)[1]
    return int(seen) if seen else None


def _head(home: Home) -> tuple[str, str] | tuple[None, None]:
    try:
        with open(_file(home), "rb") as file:
            form, number, seen, _ = file.read(64).decode("ascii", "replace").split("\0", 3)
    except (OSError, ValueError):
        return None, None
    return (number, seen) if form == _FORMAT else (None, None)


def remove(lock_file: str) -> None:
    """Somebody is going to write to the index."""
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(os.path.dirname(lock_file), NAME))


def number_if_unchanged(home: Home) -> str | None:
    """The number of the state that the index must have, if everything is as the pass saw it."""
    try:
        with open(_file(home), "rb") as file:
            parts = file.read().decode("utf-8", "surrogateescape").split("\0")
        form, number, _, when, settings, user, count, *parts = parts
        variables, parts = parts[: int(count)], parts[int(count) :]
        age = time.time() - int(when)
    except (OSError, ValueError):
        return None
    if (form, settings, user) != (_FORMAT, home.settings_file, _user()):
        return None
    if not 0 <= age < _SECONDS or len(parts) % 2:
        return None
    for variable in variables:
        if setting(_name(variable)) != variable:
            return None
    middle = len(parts) // 2
    for where, before in zip(parts[:middle], parts[middle:], strict=True):
        how = where[:1]
        try:
            stat = os.lstat(where[1:]) if how in _SELVES else os.stat(where[1:])
        except OSError as error:
            now = missing(error)
        else:
            now = mark(stat) if how in _WHOLE else identity(stat)
        if now != before:
            return None
    return number


_SELVES = (SELF, SELF_IDENTITY)
_WHOLE = (SELF, TARGET)


def _name(variable: str) -> str:
    # No variable that agents read has a dash in its name.
    return variable.partition("=")[0].removesuffix(_UNSET)


def _user() -> str:
    return str(os.geteuid()) if hasattr(os, "geteuid") else ""


def _file(home: Home) -> str:
    return os.path.join(os.path.dirname(home.lock_file), NAME)
