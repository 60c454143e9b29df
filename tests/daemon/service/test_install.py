"""Services: what is written for each system, which commands follow, and what is left alone."""

from __future__ import annotations

import os
import plistlib
import stat
import sys
from pathlib import Path

import pytest

from sess_common.errors import Exit, SessError
from sessiond.service import install

PROGRAM = Path("/opt/my tools/100%/bin/sessiond")


@pytest.fixture
def user(tmp_path, monkeypatch):
    """An empty home on Linux, and no variable that moves data."""
    for name in install.variables():
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(install, "program", lambda: PROGRAM)
    # Tests live in the directory that a hardened service cannot see.
    monkeypatch.setattr(install, "_PRIVATE", ("/var/tmp",))
    return tmp_path / "home"


@pytest.fixture
def manager(tmp_path, monkeypatch):
    """systemctl and launchctl that note their calls; those with a word of `fails` fail."""

    class Manager:
        calls_file = tmp_path / "calls"

        def __init__(self) -> None:
            self.fails("")

        def fails(self, *words: str) -> None:
            (tmp_path / "fails").write_text("\n".join(words))

        @property
        def calls(self) -> list[str]:
            return self.calls_file.read_text().splitlines() if self.calls_file.exists() else []

    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("systemctl", "launchctl"):
        script = programs / name
        script.write_text(
            f"""#!/bin/sh
echo "{name} $*" >> "{tmp_path}/calls"
while read -r word || [ -n "$word" ]; do
  case " $* " in *" ${{word:-none}} "*) echo "no bus" >&2; echo "at all" >&2; exit 1 ;; esac
done < "{tmp_path}/fails"
"""
        )
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    return Manager()


@pytest.fixture
def said():
    return []


def unit_of(home: Path) -> Path:
    return home / ".config/systemd/user/sessiond.service"


def values(text: str, key: str) -> list[str]:
    return [line.partition("=")[2] for line in text.splitlines() if line.startswith(f"{key}=")]


def test_unit_differs_from_the_shipped_one_by_program_and_variables():
    """Only the mark, the program and the variables are added; the rest is the shipped unit."""
    text = install.systemd_unit(PROGRAM, {"CODEX_HOME": "/data/codex"})
    shipped = install.shipped("systemd/sessiond.service").decode()
    assert text == f"# {install.MARK}\n" + shipped.replace(
        "ExecStart=%h/.local/bin/sessiond start",
        'ExecStart="/opt/my tools/100%%/bin/sessiond" start\nEnvironment="CODEX_HOME=/data/codex"',
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("/plain", '"SESSIOND_HOME=/plain"'),
        ("/with space", '"SESSIOND_HOME=/with space"'),
        ("/100%h", '"SESSIOND_HOME=/100%%h"'),
        ('/a"b\\c', '"SESSIOND_HOME=/a\\"b\\\\c"'),
        ("/a\nExecStartPre=/bin/false", '"SESSIOND_HOME=/a\\nExecStartPre=/bin/false"'),
        ("/$HOME", '"SESSIOND_HOME=/$HOME"'),
    ],
    ids=["plain", "space", "specifier", "quotes", "newline", "dollar"],
)
def test_values_are_quoted_for_systemd(value, expected):
    """A value with any characters stays one assignment and means itself."""
    text = install.systemd_unit(PROGRAM, {"SESSIOND_HOME": value})
    assert values(text, "Environment") == [expected]
    assert values(text, "ExecStartPre") == []


@pytest.mark.parametrize("name", ["it's", 'a"b', "a\\b", "a\nb"])
def test_programs_that_systemd_refuses(name):
    """A path that systemd cannot run is refused at once, not when the service fails to start."""
    with pytest.raises(SessError, match="systemd cannot run"):
        install.systemd_unit(Path("/opt") / name / "sessiond", {})


def test_hardening_names_the_directories_of_this_installation():
    """The drop-in is the shipped one, with other directories to write to."""
    text = install.systemd_hardening([Path("/data/my index"), Path("/logs")])
    shipped = install.shipped("systemd/sessiond.service.d/hardening.conf").decode()
    assert text == f"# {install.MARK}\n" + shipped.replace(
        "ReadWritePaths=%h/.local/share/sessiond %h/.local/state/sessiond",
        'ReadWritePaths="/data/my index" "/logs"',
    )


def test_plist_differs_from_the_shipped_one_by_program_variables_and_log():
    """The agent is the shipped one, with absolute arguments, variables and a file for crashes."""
    content = install.launchd_plist(
        PROGRAM, {"CODEX_HOME": "/a & <b>"}, Path("/Users/x/Library/Logs")
    )
    expected = plistlib.loads(install.shipped("launchd/io.github.sessiond.plist"))
    expected["ProgramArguments"] = [str(PROGRAM), "start"]
    expected["EnvironmentVariables"] = {"CODEX_HOME": "/a & <b>"}
    expected["StandardErrorPath"] = "/Users/x/Library/Logs/stderr.log"
    assert plistlib.loads(content) == expected
    assert install.MARK.encode() in content


def test_plist_without_variables_has_no_empty_table():
    """No variables, no EnvironmentVariables."""
    content = install.launchd_plist(PROGRAM, {}, Path("/logs"))
    assert "EnvironmentVariables" not in plistlib.loads(content)


def test_moved_data_takes_what_is_set(monkeypatch):
    """Set variables are passed on as absolute paths; empty and unrelated ones are not."""
    monkeypatch.setenv("HOME", "/home/x")
    monkeypatch.chdir("/")
    environment = {
        "SESSIOND_HOME": "trial",
        "CLAUDE_CONFIG_DIR": "~/claude",
        "CODEX_HOME": "",
        "PATH": "/bin",
        "API_KEY": "secret",
    }
    assert install.moved_data(environment) == {
        "SESSIOND_HOME": "/trial",
        "CLAUDE_CONFIG_DIR": "/home/x/claude",
    }


def test_program_is_the_script_of_this_installation():
    """The service runs the script beside the interpreter that installed it."""
    assert install.program() == Path(sys.executable).parent / "sessiond"


def test_program_elsewhere_is_found_through_the_metadata(monkeypatch):
    """Where the script is not beside the interpreter, the list of installed files has it."""
    expected = (Path(sys.executable).parent / "sessiond").resolve()
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert install.program() == expected


def test_install_writes_the_unit_and_starts_it(user, manager, said, monkeypatch):
    """The unit is 0644 with the variables of the moment; systemd reloads, enables, restarts."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/data/claude")
    assert install.install(hardened=False, say=said.append) == Exit.OK
    unit = unit_of(user)
    assert unit.read_text() == install.systemd_unit(PROGRAM, {"CLAUDE_CONFIG_DIR": "/data/claude"})
    assert stat.S_IMODE(unit.stat().st_mode) == 0o644
    assert [entry.name for entry in unit.parent.iterdir()] == ["sessiond.service"]
    assert manager.calls == [
        "systemctl --user reset-failed sessiond.service",
        "systemctl --user daemon-reload",
        "systemctl --user enable sessiond.service",
        "systemctl --user restart sessiond.service",
    ]
    assert said == [
        f"wrote {unit}",
        "sessiond.service is enabled and running",
        "hint: it stops when you log out; run `loginctl enable-linger` to keep it running",
    ]


def test_install_goes_where_xdg_config_home_points(user, manager, said, monkeypatch, tmp_path):
    """XDG_CONFIG_HOME moves the unit and is passed on to the service."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    assert install.install(hardened=False, say=said.append) == Exit.OK
    text = (tmp_path / "xdg/systemd/user/sessiond.service").read_text()
    assert values(text, "Environment") == [f'"XDG_CONFIG_HOME={tmp_path}/xdg"']
    assert not (user / ".config").exists()


def test_hardened_may_write_where_the_index_is(user, manager, said, monkeypatch, tmp_path):
    """With SESSIOND_HOME the drop-in allows that one directory, which exists afterwards."""
    monkeypatch.setenv("SESSIOND_HOME", str(tmp_path / "trial"))
    assert install.install(hardened=True, say=said.append) == Exit.OK
    drop_in = unit_of(user).parent / "sessiond.service.d/hardening.conf"
    assert values(drop_in.read_text(), "ReadWritePaths") == [f'"{tmp_path}/trial"']
    assert stat.S_IMODE((tmp_path / "trial").stat().st_mode) == 0o700


@pytest.mark.skipif(sys.platform != "linux", reason="the default directories are those of Linux")
def test_hardened_default_directories_exist(user, manager, said):
    """Without SESSIOND_HOME the writable directories are the default ones, made beforehand."""
    assert install.install(hardened=True, say=said.append) == Exit.OK
    drop_in = unit_of(user).parent / "sessiond.service.d/hardening.conf"
    data, logs = user / ".local/share/sessiond", user / ".local/state/sessiond/log"
    assert values(drop_in.read_text(), "ReadWritePaths") == [f'"{data}" "{logs}"']
    assert data.is_dir()
    assert logs.is_dir()


def test_hardened_refuses_data_that_it_could_not_see(user, manager, said, monkeypatch, tmp_path):
    """PrivateTmp would hide an index under /tmp from its own daemon, so nothing is installed."""
    monkeypatch.setattr(install, "_PRIVATE", (str(tmp_path),))
    monkeypatch.setenv("SESSIOND_HOME", str(tmp_path / "trial"))
    with pytest.raises(SessError, match="has a private /tmp"):
        install.install(hardened=True, say=said.append)
    assert manager.calls == []
    assert not unit_of(user).exists()


def test_a_plain_install_takes_the_hardening_back(user, manager, said):
    """Installing again without --hardened removes our drop-in."""
    install.install(hardened=True, say=said.append)
    install.install(hardened=False, say=said.append)
    assert [entry.name for entry in unit_of(user).parent.iterdir()] == ["sessiond.service"]


def test_without_a_bus_the_rest_is_named(user, manager, said):
    """When systemd does not answer, the unit stays, the code is 69, and the commands are listed."""
    manager.fails("enable")
    assert install.install(hardened=False, say=said.append) == Exit.PROGRAM_FAILED
    assert unit_of(user).exists()
    assert said == [
        f"wrote {unit_of(user)}",
        "`systemctl --user enable sessiond.service` failed: no bus at all",
        "run these commands in a login session of this user:",
        "  systemctl --user enable sessiond.service",
        "  systemctl --user restart sessiond.service",
        "hint: it stops when you log out; run `loginctl enable-linger` to keep it running",
    ]


def test_without_systemctl_all_of_it_is_named(user, said, monkeypatch, tmp_path):
    """On a machine without systemd the file is written and all three commands are listed."""
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert install.install(hardened=False, say=said.append) == Exit.PROGRAM_FAILED
    assert said[1:-1] == [
        "cannot run `systemctl`: No such file or directory",
        "run these commands in a login session of this user:",
        "  systemctl --user daemon-reload",
        "  systemctl --user enable sessiond.service",
        "  systemctl --user restart sessiond.service",
    ]


@pytest.mark.parametrize("masked", [False, True], ids=["edited", "masked"])
def test_install_leaves_a_foreign_unit_alone(masked, user, manager, said):
    """A unit that somebody else wrote, or masked, is neither replaced nor removed."""
    unit = unit_of(user)
    unit.parent.mkdir(parents=True)
    if masked:
        unit.symlink_to("/dev/null")
    else:
        unit.write_text("[Service]\nExecStart=/bin/true\n")
    with pytest.raises(SessError, match="was not written by `sessiond install`"):
        install.install(hardened=False, say=said.append)
    assert install.uninstall(say=said.append) == Exit.NOTHING_FOUND
    assert said == [f"kept {unit}: it was not written by `sessiond install`"]
    assert unit.is_symlink() is masked
    assert manager.calls == []


def test_an_unwritable_directory_is_named(user, manager, said):
    """A file where the directory should be gives one line that names the unit."""
    (user / ".config").mkdir()
    (user / ".config/systemd").write_text("")
    with pytest.raises(SessError) as caught:
        install.install(hardened=False, say=said.append)
    assert caught.value.message == f'cannot write "{unit_of(user)}": Not a directory'


def test_uninstall_removes_what_install_wrote(user, manager, said):
    """Unit, drop-in, its directory and the link of systemd go; a drop-in of the user stays."""
    install.install(hardened=True, say=said.append)
    folder = unit_of(user).parent
    (folder / "sessiond.service.d/mine.conf").write_text("[Service]\nNice=0\n")
    (folder / "default.target.wants").mkdir()
    (folder / "default.target.wants/sessiond.service").symlink_to(unit_of(user))
    manager.calls_file.unlink()
    said.clear()
    assert install.uninstall(say=said.append) == Exit.OK
    left = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
    assert left == ["default.target.wants", "sessiond.service.d", "sessiond.service.d/mine.conf"]
    assert manager.calls == [
        "systemctl --user disable --now sessiond.service",
        "systemctl --user daemon-reload",
    ]
    assert said == [
        f"removed {folder}/sessiond.service.d/hardening.conf",
        f"removed {unit_of(user)}",
    ]


def test_uninstall_without_a_bus_still_removes_the_files(user, manager, said):
    """When systemd does not answer, the files go and what is left to run is listed."""
    install.install(hardened=False, say=said.append)
    manager.fails("disable")
    said.clear()
    assert install.uninstall(say=said.append) == Exit.PROGRAM_FAILED
    assert not unit_of(user).exists()
    assert said[1:] == [
        "`systemctl --user disable --now sessiond.service` failed: no bus at all",
        "run these commands in a login session of this user:",
        "  systemctl --user stop sessiond.service",
        "  systemctl --user daemon-reload",
    ]


def test_uninstall_of_nothing_says_so(user, manager, said):
    """Without a unit the code is 1 and systemd is left in peace."""
    assert install.uninstall(say=said.append) == Exit.NOTHING_FOUND
    assert said == [f"not installed: no {unit_of(user)}"]
    assert manager.calls == []


def test_launchd_install_and_uninstall(user, manager, said, monkeypatch):
    """On macOS the agent is enabled and bootstrapped, and booted out before its file goes."""
    monkeypatch.setattr(sys, "platform", "darwin")
    agent = user / "Library/LaunchAgents/io.github.sessiond.plist"
    domain = f"gui/{os.getuid()}"
    service = f"{domain}/io.github.sessiond"
    manager.fails("print")
    assert install.install(hardened=False, say=said.append) == Exit.OK
    assert plistlib.loads(agent.read_bytes())["ProgramArguments"] == [str(PROGRAM), "start"]
    assert stat.S_IMODE(agent.stat().st_mode) == 0o644
    assert manager.calls == [
        f"launchctl print {service}",
        f"launchctl enable {service}",
        f"launchctl bootstrap {domain} {agent}",
    ]
    assert install.uninstall(say=said.append) == Exit.OK
    assert not agent.exists()
    assert said == [
        f"wrote {agent}",
        "io.github.sessiond is loaded and running",
        f"removed {agent}",
    ]


def test_launchd_that_cannot_stop_the_old_agent_names_all_steps(user, manager, said, monkeypatch):
    """When the loaded agent cannot be booted out, all steps are left to do by hand."""
    monkeypatch.setattr(sys, "platform", "darwin")
    agent = user / "Library/LaunchAgents/io.github.sessiond.plist"
    domain = f"gui/{os.getuid()}"
    manager.fails("bootout")
    assert install.install(hardened=False, say=said.append) == Exit.PROGRAM_FAILED
    assert said[1:] == [
        f"`launchctl bootout {domain}/io.github.sessiond` failed: no bus at all",
        "run these commands in a login session of this user:",
        f"  launchctl bootout {domain}/io.github.sessiond",
        f"  launchctl enable {domain}/io.github.sessiond",
        f"  launchctl bootstrap {domain} {agent}",
    ]


def test_hardened_is_refused_on_macos(user, manager, said, monkeypatch):
    """launchd has no such options, and says so instead of ignoring the wish."""
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(SessError, match="systemd only"):
        install.install(hardened=True, say=said.append)


def test_other_systems_are_told_what_works(user, manager, said, monkeypatch):
    """Where neither manager exists the error offers the detached daemon."""
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SessError) as caught:
        install.install(hardened=False, say=said.append)
    assert caught.value.message == 'no supported service manager on "win32"'
    assert caught.value.hint == "run `sessiond start --detach`"
