"""How this installation was made, by pip, pipx or uv, and what to type to change it: for hints."""

from __future__ import annotations

import os
import re
import shlex
import sys
from contextlib import suppress
from importlib import metadata

NAME = "sessiond"
# What each leaves in the environment that it makes for a program.
_UV, _PIPX = "uv-receipt.toml", "pipx_metadata.json"


def adding(extra: str) -> str:
    """The command that adds what an extra needs."""
    packages = [shlex.quote(package) for package in _wanted_by(extra)]
    if _has(_UV):
        return f"uv tool install {' '.join(f'--with {one}' for one in packages)} {_uv_source()}"
    if _has(_PIPX):
        return f"pipx inject {NAME} {' '.join(packages)}"
    return f"{_pip()} install {' '.join(packages)}"


def reinstalling() -> str:
    """The command that installs the same again."""
    if _has(_UV):
        return f"uv tool install --reinstall {_uv_source()}"
    if _has(_PIPX):
        return f"pipx reinstall {NAME}"
    return f"{_pip()} install --force-reinstall {NAME}"


def upgrading(package: str = NAME) -> str:
    """The command that upgrades the program, or a package that it uses."""
    if _has(_UV):
        return f"uv tool upgrade {NAME}"
    if _has(_PIPX):
        return (
            f"pipx upgrade {NAME}"
            if package == NAME
            else f"pipx runpip {NAME} install -U {package}"
        )
    return f"{_pip()} install --upgrade {package}"


def _wanted_by(extra: str) -> list[str]:
    try:
        wanted = metadata.requires(NAME) or []
    except metadata.PackageNotFoundError:
        wanted = []
    ending = re.compile(rf"\s*;\s*extra\s*==\s*['\"]{extra}['\"]")
    return [ending.sub("", one) for one in wanted if ending.search(one)]


def _pip() -> str:
    return f"{shlex.quote(sys.executable)} -m pip"


def _has(name: str) -> bool:
    return os.path.exists(os.path.join(sys.prefix, name))


def _uv_source() -> str:
    """The name of the package, or the folder that uv installed it from."""
    import tomllib

    with suppress(OSError, ValueError, KeyError, TypeError):
        with open(os.path.join(sys.prefix, _UV), "rb") as file:
            requirements = tomllib.load(file)["tool"]["requirements"]
        for one in requirements:
            folder = one.get("directory") or one.get("editable")
            if one["name"] == NAME and folder:
                return shlex.quote(folder)
    return NAME
