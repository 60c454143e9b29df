"""Installs the daemon as a service: a systemd user unit or a launchd agent.

The files under systemd/ and launchd/ are the templates. This fills in the program's path, the
variables that locate the data, and the directories that the service may write to.
"""

from __future__ import annotations

import importlib.metadata
import os
import plistlib
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from sess_common import installation, lock, paths
from sess_common.errors import Exit, SessError
from sessiond.service import manager
from sessiond.service.manager import (
    SYSTEMCTL,
    UNIT,
    Command,
    agent_file,
    launchd_names,
    run,
    user_unit,
)
from sessiond.service.notify import LAUNCHD_LABEL
from sessiond.sources import source_classes

_OWN_VARIABLES = ("SESSIOND_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
# This line marks our own files, which we may replace or remove.
MARK = "Written by `sessiond install`; `sessiond uninstall` removes it."

Say = Callable[[str], None]

# PrivateTmp= hides other programs' files here.
_PRIVATE = ("/tmp", "/var/tmp")  # noqa: S108


def install(*, hardened: bool, say: Say) -> Exit:
    """Write the service file and start the service."""
    launchd = _launchd()
    executable, environment, home = program(), moved_data(os.environ), paths.home()
    home.create()
    if launchd:
        if hardened:
            raise SessError(
                "--hardened is for systemd only", hint="run `sessiond install` without it"
            )
        agent = agent_file()
        _write(agent, launchd_plist(executable, environment, home.logs))
        say(f"wrote {agent}")
        return _bootstrap(agent, say)
    unit, drop_in = user_unit(), _drop_in()
    if hardened:
        writable = {home.data: None, home.logs: None}
        _refuse_private_tmp([*writable, *map(Path, environment.values())])
        _write(drop_in, systemd_hardening(writable).encode())
        say(f"wrote {drop_in}")
    elif _ours(drop_in):
        _remove_drop_in(drop_in)
        say(f"removed {drop_in}")
    _write(unit, systemd_unit(executable, environment).encode())
    say(f"wrote {unit}")
    commands = [
        (*SYSTEMCTL, "daemon-reload"),
        (*SYSTEMCTL, "enable", UNIT),
        # Not `enable --now`: a running service has to load the new file.
        (*SYSTEMCTL, "restart", UNIT),
    ]
    run((*SYSTEMCTL, "reset-failed", UNIT))  # one that failed too often would not be started
    code = _run_all(commands, say)
    if code == Exit.OK:
        say(f"{UNIT} is enabled and running")
    if not _lingers():
        say("hint: it stops when you log out; run `loginctl enable-linger` to keep it running")
    return code


def is_current(file: Path) -> bool:
    """Whether a service file is what this version writes; variables aside, which others set."""
    if not _ours(file):
        return True
    with suppress(OSError, ValueError, SessError):
        return _is_same(file)
    return True


def _is_same(file: Path) -> bool:
    if file == agent_file():
        old, new = plistlib.loads(file.read_bytes()), plistlib.loads(_plist())
        return _without_variables(old) == _without_variables(new)
    lines = file.read_text("utf-8", "replace").splitlines()
    return [line for line in lines if not line.startswith("Environment=")] == [
        *systemd_unit(program(), {}).splitlines()
    ]


def _without_variables(agent: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in agent.items() if key != "EnvironmentVariables"}


def _plist() -> bytes:
    return launchd_plist(program(), moved_data(os.environ), paths.home().logs)


def _lingers() -> bool:
    """Whether this user's services run while nobody is logged in."""
    said, _ = run(("loginctl", "show-user", str(os.getuid()), "--property=Linger"))
    return said.strip() == "Linger=yes"


def uninstall(*, say: Say) -> Exit:
    """Stop the service and remove the files that `install` wrote, and only those."""
    if _launchd():
        agent = agent_file()
        if not _ours(agent):
            return _nothing(agent, say)
        trouble = _bootout()
        agent.unlink()
        say(f"removed {agent}")
        left = ("launchctl", "bootout", launchd_names()[1])
        return _by_hand(trouble, [left], say) if trouble else Exit.OK
    unit, drop_in = user_unit(), _drop_in()
    if not _ours(unit):
        return _nothing(unit, say)
    trouble = _run((*SYSTEMCTL, "disable", "--now", UNIT))
    # If no manager answers, the link is still ours to remove.
    wanted = unit.parent / "default.target.wants" / UNIT
    if wanted.is_symlink() and wanted.resolve() == unit.resolve():
        wanted.unlink()
    if _ours(drop_in):
        _remove_drop_in(drop_in)
        say(f"removed {drop_in}")
    unit.unlink()
    say(f"removed {unit}")
    reload = (*SYSTEMCTL, "daemon-reload")
    trouble = trouble or _run(reload)
    return _by_hand(trouble, [(*SYSTEMCTL, "stop", UNIT), reload], say) if trouble else Exit.OK


def systemd_unit(executable: Path, environment: Mapping[str, str]) -> str:
    """The shipped unit with this program and these variables."""
    # systemd rejects these in a program's path, even quoted.
    if any(char in "\"'\\" or not char.isprintable() for char in str(executable)):
        raise SessError(
            f'systemd cannot run "{executable}": quotes, backslashes or control characters in path',
            hint="install sessiond in a directory with a simpler name",
        )
    lines = [f"# {MARK}"]
    for line in shipped(f"systemd/{UNIT}").decode().splitlines():
        if line.startswith("ExecStart="):
            lines.append(f"ExecStart={_quoted(str(executable))} start")
            lines += [f"Environment={_quoted(f'{k}={v}')}" for k, v in environment.items()]
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def systemd_hardening(writable: Iterable[Path]) -> str:
    """The shipped drop-in with the directories that this installation writes to."""
    directories = " ".join(_quoted(str(directory)) for directory in writable)
    lines = [f"# {MARK}"]
    for line in shipped(f"systemd/{UNIT}.d/hardening.conf").decode().splitlines():
        changed = line.startswith("ReadWritePaths=")
        lines.append(f"ReadWritePaths={directories}" if changed else line)
    return "\n".join(lines) + "\n"


def launchd_plist(executable: Path, environment: Mapping[str, str], log_dir: Path) -> bytes:
    """The shipped agent with this program, these variables and a file for crash reports."""
    agent = plistlib.loads(shipped(f"launchd/{LAUNCHD_LABEL}.plist"))
    agent["ProgramArguments"] = [str(executable), "start"]
    agent["StandardErrorPath"] = str(log_dir / "stderr.log")
    if environment:
        agent["EnvironmentVariables"] = dict(environment)
    text = plistlib.dumps(agent, sort_keys=False)
    return text.replace(b"<plist ", f"<!-- {MARK} -->\n<plist ".encode(), 1)


def shipped(name: str) -> bytes:
    """A service file from this installation, wheel or editable."""
    try:
        return _installed(f"/share/sessiond/{name}").read_bytes()
    except OSError as error:
        raise SessError(
            f'the service file "{name}" is missing from this installation',
            hint=f"`{installation.reinstalling()}`",
        ) from error


def program() -> Path:
    """The `sessiond` script of this installation."""
    script = Path(sys.executable).absolute().parent / "sessiond"
    if os.access(script, os.X_OK):
        return script
    # `pip install --user` puts it elsewhere.
    try:
        return _installed("/bin/sessiond")
    except FileNotFoundError:
        raise SessError(
            f'program not found: "{script}"', hint=f"`{installation.reinstalling()}`"
        ) from None


def variables() -> tuple[str, ...]:
    """Environment variables that move our data or an agent's.

    A service does not see the variables of the shell that installed it, so we pass these on.
    """
    agents = (name for source in source_classes() for name in source.variables)
    return tuple(dict.fromkeys((*_OWN_VARIABLES, *agents)))


def moved_data(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that are set now, as absolute paths."""
    return {
        name: os.path.abspath(os.path.expanduser(environment[name]))
        for name in variables()
        if environment.get(name)
    }


def _installed(suffix: str) -> Path:
    try:
        files = importlib.metadata.files("sessiond") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.as_posix().endswith(suffix):
            return Path(str(file.locate())).resolve(strict=True)
    raise FileNotFoundError(suffix)


def _quoted(word: str) -> str:
    # systemd.syntax(7): C escapes inside double quotes, and specifiers even there.
    for char, escape in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("\n", "\\n")):
        word = word.replace(char, escape)
    return f'"{word}"'


def _launchd() -> bool:
    system: str = sys.platform
    if system not in {"linux", "darwin"}:
        raise SessError(
            f'no supported service manager on "{system}"', hint="run `sessiond start --detach`"
        )
    return system == "darwin"


def _drop_in() -> Path:
    return user_unit().parent / f"{UNIT}.d" / "hardening.conf"


def _ours(path: Path) -> bool:
    try:
        return MARK.encode() in path.read_bytes()
    except OSError:
        return False


def _write(path: Path, content: bytes) -> None:
    if os.path.lexists(path) and not _ours(path):
        raise SessError(
            f'"{path}" already exists and was not written by `sessiond install`',
            hint="move it away, then run `sessiond install` again",
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=path.parent, prefix=".sessiond-", delete=False) as file:
            try:
                file.write(content)
                os.fchmod(file.fileno(), 0o644)
                file.flush()
                os.fsync(file.fileno())
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise
    except OSError as error:
        raise SessError(
            f'cannot write "{path}": {error.strerror}', hint="check its directory"
        ) from error


def _remove_drop_in(drop_in: Path) -> None:
    drop_in.unlink()
    if not any(drop_in.parent.iterdir()):
        drop_in.parent.rmdir()


def _refuse_private_tmp(directories: Iterable[Path]) -> None:
    for directory in directories:
        if any(directory.is_relative_to(private) for private in _PRIVATE):
            raise SessError(
                f'a hardened service has a private /tmp and cannot see "{directory}"',
                hint="move it elsewhere, or install without --hardened",
            )


def _nothing(path: Path, say: Say) -> Exit:
    kept = path.exists()
    say(
        f"kept {path}: it was not written by `sessiond install`"
        if kept
        else f"not installed: no {path}"
    )
    return Exit.NOTHING_FOUND


def _run_all(commands: Sequence[Command], say: Say) -> Exit:
    """Run the commands until one fails, then list the remaining ones."""
    for done, command in enumerate(commands):
        if trouble := _run(command):
            return _by_hand(trouble, commands[done:], say)
    return Exit.OK


def _by_hand(trouble: str, commands: Sequence[Command], say: Say) -> Exit:
    say(trouble)
    say("run these commands in a login session of this user:")
    for command in commands:
        say(f"  {shlex.join(command)}")
    return Exit.PROGRAM_FAILED


def _run(command: Command) -> str:
    """Run a command and return the error, or an empty string."""
    return run(command)[1]


def _bootstrap(agent: Path, say: Say) -> Exit:
    domain, service = launchd_names()
    start = [
        # Undo an earlier `launchctl disable`, which would make the next command fail.
        ("launchctl", "enable", service),
        ("launchctl", "bootstrap", domain, str(agent)),
    ]
    if trouble := _bootout():
        return _by_hand(trouble, [("launchctl", "bootout", service), *start], say)
    code = _run_all(start, say)
    if code == Exit.OK:
        say(f"{LAUNCHD_LABEL} is loaded and running")
    return code


def _bootout() -> str:
    _, service = launchd_names()
    loaded = ("launchctl", "print", service)
    if _run(loaded):
        return ""
    trouble = _run(("launchctl", "bootout", service))
    # bootout may return before the agent exits, then also with an error ("now in progress"), and a
    # bootstrap in between fails.
    end = time.monotonic() + (1 if trouble and "progress" not in trouble else 15)
    while time.monotonic() < end:
        if _run(loaded):
            return ""
        time.sleep(0.2)
    return trouble or f"`launchctl bootout {service}` has not ended"


def main() -> int:
    """For `sess doctor`: what is wrong with the service and what to do about it, a line each."""
    service = manager.facts(lock.holder(paths.home().lock), is_current)
    for line in (manager.in_words(service) if service is not None else None) or ():
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
