"""launchd, played by a program that answers as its documentation and launchctl(1) say."""

from __future__ import annotations

import json
import os
import plistlib
import sys
from pathlib import Path

import pytest

from sess_common.errors import Exit, SessError
from sessiond.service import control, install, manager

# Services are loaded into a domain and run; `bootout` returns before a service has ended.
LAUNCHCTL = """#!{python}
import json, plistlib, sys
from pathlib import Path
state_file = Path({state!r})
state = json.loads(state_file.read_text())
verb, *rest = sys.argv[1:]
state["calls"].append(" ".join([verb, *rest]))
def end(code=0, text=""):
    state_file.write_text(json.dumps(state))
    print(text, file=sys.stderr if code else sys.stdout)
    sys.exit(code)
domain = "gui/{uid}"
label = "io.github.sessiond"
service = domain + "/" + label
loaded = state["loaded"]
if verb in ("enable", "disable"):
    assert rest == [service]
    state["disabled"] = verb == "disable"
    end()
if verb == "print":
    assert rest == [service]
    if state["closing"]:
        state["closing"] -= 1
        state["loaded"] = bool(state["closing"])
    elif not loaded:
        end(113, 'Could not find service "' + label + '" in domain for user gui: {uid}')
    end(0, service + " = {{\\n\\tstate = running\\n\\tpid = 42\\n\\tlast exit code = 0\\n}}")
if verb == "bootstrap":
    assert rest[0] == domain and len(rest) == 2
    agent = plistlib.loads(Path(rest[1]).read_bytes())
    if loaded or state["disabled"]:
        end(5, "Bootstrap failed: 5: Input/output error")
    assert agent["Label"] == label and agent["ProgramArguments"][0].startswith("/")
    state["loaded"], state["starts"] = True, state["starts"] + 1
    end()
if verb == "bootout":
    assert rest == [service]
    if not loaded:
        end(3, "Boot-out failed: 3: No such process")
    state["closing"] = 2
    end(36 if state["slow"] else 0, "Boot-out failed: 36: Operation now in progress")
if verb == "kickstart":
    assert rest == ["-k", service]
    if not loaded:
        end(113, "Could not find service")
    state["starts"] += 1
    end()
end(64, "Unrecognized subcommand: " + verb)
"""


@pytest.fixture
def launchd(tmp_path, monkeypatch):
    """A Mac with nothing loaded; the state that launchctl keeps."""

    class Launchd:
        file = tmp_path / "launchd.json"

        def has(self, **facts):
            self.file.write_text(json.dumps(self.state | facts))

        @property
        def state(self):
            fresh = {"loaded": False, "disabled": False, "closing": 0, "starts": 0, "slow": False}
            known = json.loads(self.file.read_text()) if self.file.exists() else {}
            return fresh | {"calls": []} | known

        @property
        def verbs(self):
            return [call.split()[0] for call in self.state["calls"]]

    programs = tmp_path / "programs"
    programs.mkdir()
    script = programs / "launchctl"
    script.write_text(
        LAUNCHCTL.format(python=sys.executable, state=str(Launchd.file), uid=os.getuid())
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SESSIOND_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(install, "program", lambda: Path("/opt/bin/sessiond"))
    fake = Launchd()
    fake.has()
    return fake


@pytest.mark.parametrize("slow", [False, True])
def test_installing_again_ends_the_old_agent_first(launchd, slow):
    """Also one that takes its time, which launchctl reports as an error."""
    said: list[str] = []
    launchd.has(disabled=True, slow=slow)
    for _ in range(2):
        assert install.install(hardened=False, say=said.append) == Exit.OK, said
    state = launchd.state
    assert (state["loaded"], state["disabled"], state["starts"]) == (True, False, 2)
    agent = plistlib.loads(manager.agent_file().read_bytes())
    assert agent["KeepAlive"] == {"SuccessfulExit": False}
    assert install.uninstall(say=said.append) == Exit.OK
    assert not manager.agent_file().exists()
    assert not launchd.state["loaded"]


def test_uninstalling_what_is_not_loaded_removes_its_file(launchd):
    install.install(hardened=False, say=lambda _: None)
    launchd.has(loaded=False)
    assert install.uninstall(say=lambda _: None) == Exit.OK
    assert not manager.agent_file().exists()


def test_restart_goes_through_launchd(launchd, monkeypatch):
    """An agent that is loaded is started anew; one that is not is loaded, even if disabled."""
    install.install(hardened=False, say=lambda _: None)
    monkeypatch.setattr(control, "start_detached", lambda _: pytest.fail("outside launchd"))
    assert control.restart(lambda _: None) == Exit.OK
    assert launchd.verbs[-1] == "kickstart"
    launchd.has(loaded=False, disabled=True)
    assert control.restart(lambda _: None) == Exit.OK
    assert launchd.verbs[-2:] == ["enable", "bootstrap"]
    agent = manager.agent_file()
    agent.write_bytes(agent.read_bytes().replace(b"/opt/bin/sessiond", b"not/absolute"))
    launchd.has(loaded=False)
    with pytest.raises(SessError) as caught:
        control.restart(lambda _: None)
    assert "start --detach" in (caught.value.hint or "")


def test_what_launchd_says_is_in_the_status(launchd):
    """Its process, another one beside it, and an agent that another version wrote."""
    assert manager.facts(None, install.is_current) is None
    install.install(hardened=False, say=lambda _: None)
    ours = {"mode": "daemon", "pid": 42}
    assert (manager.facts(ours, install.is_current) or {})["trouble"] is None
    outside = manager.facts({"mode": "daemon", "pid": 43}, install.is_current) or {}
    assert manager.in_words(outside) == (
        "the daemon runs outside its service",
        "`sessiond restart` starts the service",
    )
    assert not manager.is_healthy(outside)
    file = manager.agent_file()
    file.write_bytes(file.read_bytes().replace(b"/opt/bin/sessiond", b"/old/sessiond"))
    old = manager.facts(ours, install.is_current) or {}
    assert (old["trouble"], manager.is_healthy(old)) == ("old", True)
    launchd.has(loaded=False)
    assert (manager.facts(None, install.is_current) or {})["trouble"] == "stopped"
