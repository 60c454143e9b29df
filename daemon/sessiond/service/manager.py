"""The service manager, systemd or launchd: what it says of our service, and starting it there."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sess_common import paths
from sessiond.service.notify import LAUNCHD_LABEL

UNIT = "sessiond.service"
SYSTEMCTL = ("systemctl", "--user")
# `restart` waits for READY, for at most the 90 seconds that systemd gives a service.
_LONGEST = 120
_SYSTEM_UNITS = ("/etc/systemd/user", "/usr/local/lib/systemd/user", "/usr/lib/systemd/user")
_PROPERTIES = ("LoadState", "ActiveState", "SubState", "Result", "MainPID", "NeedDaemonReload")
_FAILED, _OUTSIDE, _OLD, _STOPPED = "failed", "outside", "old", "stopped"

Command = tuple[str, ...]


def user_unit() -> Path:
    config = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(config) if os.path.isabs(config) else Path.home() / ".config"
    return base / "systemd" / "user" / UNIT


def agent_file() -> Path:
    return Path.home() / "Library" / "LaunchAgents" / f"{LAUNCHD_LABEL}.plist"


def launchd_names() -> tuple[str, str]:
    """The domain of this user's agents, and our agent in it."""
    domain = f"gui/{os.getuid()}"
    return domain, f"{domain}/{LAUNCHD_LABEL}"


def run(command: Sequence[str]) -> tuple[str, str]:
    """Run a command; its output, and what went wrong."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_LONGEST, check=False
        )
    except OSError as error:
        return "", f"cannot run `{command[0]}`: {error.strerror}"
    except subprocess.TimeoutExpired:
        return "", f"`{shlex.join(command)}` timed out after two minutes"
    if done.returncode == 0:
        return done.stdout, ""
    output = " ".join((done.stderr or done.stdout).split())
    return "", f"`{shlex.join(command)}` failed: {output or f'exit code {done.returncode}'}"


def installed() -> Path | None:
    """The file of the service that runs a daemon for this index, if one is installed."""
    system: str = sys.platform
    if system == "darwin":
        files = [agent_file()]
    elif system == "linux":
        files = [user_unit(), *(Path(folder) / UNIT for folder in _SYSTEM_UNITS)]
    else:
        return None
    file = next((file for file in files if file.exists()), None)
    return file if file is not None and _is_for_this_index(file) else None


def _is_for_this_index(file: Path) -> bool:
    """A service for another SESSIOND_HOME has nothing to do with this one."""
    try:
        text = file.read_text("utf-8", "replace")
    except OSError:
        return False
    if "SESSIOND_HOME" not in os.environ:
        return "SESSIOND_HOME" not in text
    return str(paths.home().data) in text


def restart() -> str:
    """Start the service anew; what went wrong. Starts by hand never count against its limit."""
    if sys.platform == "darwin":
        domain, service = launchd_names()
        _, not_loaded = run(("launchctl", "print", service))
        if not_loaded:
            run(("launchctl", "enable", service))
            return run(("launchctl", "bootstrap", domain, str(agent_file())))[1]
        return run(("launchctl", "kickstart", "-k", service))[1]
    run((*SYSTEMCTL, "reset-failed", UNIT))
    return run((*SYSTEMCTL, "restart", UNIT))[1]


def facts(
    holder: dict[str, Any] | None, is_current: Callable[[Path], bool]
) -> dict[str, Any] | None:
    """What the manager says of the service, and what is wrong with it; None without a service.

    `is_current`: whether a service file is what would be installed today.
    """
    file = installed()
    if file is None:
        return None
    state = _launchd_state() if sys.platform == "darwin" else _systemd_state()
    runs = holder is not None and holder.get("mode") == "daemon"
    pid = (holder or {}).get("pid") if runs else None
    trouble = None
    if state["state"] == "failed":
        trouble = _FAILED
    elif runs and state["pid"] not in (None, pid) and state["state"] != "unknown":
        trouble = _OUTSIDE
    elif not runs and state["state"] not in ("activating", "unknown"):
        trouble = _STOPPED
    elif state.get("old") or not is_current(file):
        trouble = _OLD
    return {"file": str(file), **state, "trouble": trouble, "outside": runs and state["pid"] != pid}


def _systemd_state() -> dict[str, Any]:
    wanted = f"--property={','.join(_PROPERTIES)}"
    said, trouble = run((*SYSTEMCTL, "show", UNIT, wanted))
    if trouble:
        return {"state": "unknown", "pid": None, "result": trouble}
    values = dict(line.partition("=")[::2] for line in said.splitlines())
    state = "failed" if values.get("ActiveState") == "failed" else values.get("ActiveState", "")
    return {
        "state": state or "unknown",
        "pid": int(values.get("MainPID") or 0),
        "result": values.get("Result", ""),
        "old": values.get("NeedDaemonReload") == "yes",
    }


def _launchd_state() -> dict[str, Any]:
    said, trouble = run(("launchctl", "print", launchd_names()[1]))
    if trouble:
        return {"state": "inactive", "pid": 0, "result": trouble}
    values = dict(line.strip().partition(" = ")[::2] for line in said.splitlines())
    pid, code = values.get("pid", ""), values.get("last exit code", "0").split(":")[0]
    running = values.get("state") == "running"
    failed = not running and code.isdigit() and int(code) != 0
    return {
        "state": "active" if running else "failed" if failed else "inactive",
        "pid": int(pid) if pid.isdigit() else 0,
        "result": f"exit code {code}" if failed else "",
    }


def in_words(service: dict[str, Any]) -> tuple[str, str] | None:
    """What is wrong with the service, and what to do about it."""
    trouble, outside = service["trouble"], service["outside"]
    if trouble == _FAILED:
        also = "; a daemon runs outside it" if outside else ""
        return f"the service has failed ({service['result']}){also}", "`sessiond restart`"
    return {
        _OUTSIDE: ("the daemon runs outside its service", "`sessiond restart` starts the service"),
        _STOPPED: ("the service is installed and does not run", "`sessiond restart` starts it"),
        _OLD: ("the service is not as this version installs it", "`sessiond install`"),
    }.get(trouble)


def is_healthy(service: dict[str, Any] | None) -> bool:
    return service is None or service["trouble"] in (None, _OLD)
