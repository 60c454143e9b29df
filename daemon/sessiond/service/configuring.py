"""Shows and edits config.toml."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from typing import Any, NamedTuple

from sess_common import paths
from sess_common.errors import Exit, SessError
from sess_common.escape import safe
from sessiond import config
from sessiond.sources import all_sources

DEFAULT = "default"
_PLACES = ("config_file", "data", "index", "log")
_WIDEST = 40


class Setting(NamedTuple):
    key: str
    value: Any
    origin: str  # `default`, or the file


def show(*, as_json: bool) -> None:
    """Print places and settings; a faulty file is an error."""
    home = paths.home()
    all_sources(config.load(home.config_file))
    found = [*settings(home)]
    if as_json:
        for name in _PLACES:
            print(json.dumps({"place": _named(name), "path": str(getattr(home, name))}))
        for one in found:
            print(json.dumps({"key": one.key, "value": one.value, "from": one.origin}))
        return
    for name in _PLACES:
        path = getattr(home, name)
        missing = "" if path.exists() else "  (not there)"
        print(f"{_named(name):<8} {safe(str(path))}{missing}")
    if "SESSIOND_HOME" in os.environ:
        print("         (SESSIOND_HOME is set)")
    print()
    lines = [(f"{one.key} = {_shown(one.value)}", one.origin) for one in found]
    width = min(max(len(text) for text, _ in lines), _WIDEST)
    for text, origin in lines:
        print(f"{safe(text):<{width}}  # {origin}")


def settings(home: paths.Home) -> Iterator[Setting]:
    """Every key with the value that applies."""
    values = {}
    if home.config_file.exists():
        values = tomllib.loads(home.config_file.read_text("utf-8"))
    for key in config.KEYS:
        section = values.get(key.section.partition(".")[0], {})
        if key.name.isupper() or "." in key.section:  # names that people choose
            continue
        given = key.name in section
        yield Setting(
            key.path, section.get(key.name, key.default), "config.toml" if given else DEFAULT
        )
    for agent, places in values.get("roots", {}).items():
        yield Setting(f"roots.{agent}", places, "config.toml")
    for model, prices in values.get("prices", {}).items():
        yield Setting(f'prices."{model}"', prices, "config.toml")


def edit() -> None:
    """Open the file, with every key as a comment if it is new, and check it afterwards."""
    home = paths.home()
    home.create()
    path = home.config_file
    if not path.exists():
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write("# Settings of sessiond and sess. Remove the # before a line to use it.\n\n")
            file.write(config.example_file(commented=True))
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        code = subprocess.run([*shlex.split(editor), path], check=False).returncode
    except (OSError, ValueError) as error:
        why = str(getattr(error, "strerror", None) or error).lower()
        raise SessError(
            f"cannot run the editor `{editor}`: {why}",
            hint=f'set EDITOR, or edit "{path}" yourself',
            code=Exit.PROGRAM_FAILED,
        ) from error
    if code:
        raise SessError(f"`{editor}` ended with exit code {code}", code=Exit.PROGRAM_FAILED)
    all_sources(config.load(path))
    print(f"{path} is fine; `sessiond restart` makes a running daemon read it")


def _named(name: str) -> str:
    return name.removesuffix("_file")


def _shown(value: Any) -> str:
    return "(unset)" if value is None else json.dumps(value)
