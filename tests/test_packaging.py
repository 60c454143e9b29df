"""The package: service files that their managers accept, one version, a complete wheel."""

from __future__ import annotations

import importlib.util
import os
import plistlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from tests.must import must

from sessiond.service import install
from sessiond.service.notify import LAUNCHD_LABEL

ROOT = Path(__file__).parent.parent
SERVICE_FILES = [
    "systemd/sessiond.service",
    "systemd/sessiond.service.d/hardening.conf",
    "launchd/io.github.sessiond.plist",
]


@pytest.mark.parametrize("name", SERVICE_FILES)
def test_installed_service_files_are_those_of_the_repository(name):
    """An editable install holds copies; a stale one means that `make test` has to install again."""
    assert install.shipped(name) == (ROOT / name).read_bytes()


def test_no_other_service_files_are_shipped():
    """The two folders go into the wheel as they are, so nothing else may be in them."""
    found = [
        str(path.relative_to(ROOT))
        for folder in ("systemd", "launchd")
        for path in (ROOT / folder).rglob("*")
        if path.is_file()
    ]
    assert sorted(found) == sorted(SERVICE_FILES)


def test_plist_as_launchd_wants_it():
    """Named after its file, restarted only after failure, private, at low priority."""
    agent = plistlib.loads((ROOT / "launchd/io.github.sessiond.plist").read_bytes())
    assert agent == {
        "Label": LAUNCHD_LABEL,
        "ProgramArguments": ["/bin/sh", "-c", 'exec "$HOME/.local/bin/sessiond" start'],
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 30,
        "ExitTimeOut": 10,
        "ProcessType": "Background",
        "LowPriorityIO": True,
        "Nice": 10,
        "Umask": 0o077,
    }


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
@pytest.mark.parametrize("rendered", [False, True], ids=["by-hand", "installed"])
@pytest.mark.parametrize("hardened", [False, True], ids=["base", "hardened"])
def test_systemd_accepts_the_unit(rendered, hardened, tmp_path):
    """`systemd-analyze verify --user` reports nothing, even for unusual names."""
    program = tmp_path / "a b" / "100%h $x é" / "sessiond"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / "sessiond.service"
    drop_in = tmp_path / "sessiond.service.d" / "hardening.conf"
    if rendered:
        text = install.systemd_unit(program, {"CODEX_HOME": '/a "b"\\%h\n$x é'})
        more = install.systemd_hardening([tmp_path / 'my "index" 100%h'])
    else:
        text = (ROOT / "systemd/sessiond.service").read_text()
        assert text.count("\nExecStart=%h/.local/bin/sessiond start\n") == 1
        text = text.replace("%h/.local/bin/sessiond", "/bin/sh")
        more = (ROOT / "systemd/sessiond.service.d/hardening.conf").read_text()
    unit.write_text(text)
    if hardened:
        drop_in.parent.mkdir()
        drop_in.write_text(more)
    with tempfile.TemporaryDirectory(dir="/tmp") as runtime:  # addresses of sockets must be short
        done = subprocess.run(
            ["systemd-analyze", "verify", "--user", str(unit)],
            env={**os.environ, "XDG_RUNTIME_DIR": runtime, "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
    # A warning leaves the exit code at 0, so check the output too.
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_changelog_is_about_this_version():
    """The newest heading of the changelog is the version in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    headings = re.findall(
        r"^## \[(.+?)\] - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    assert headings[0] == project["version"]


@pytest.mark.slow
@pytest.mark.skipif(
    not importlib.util.find_spec("hatchling"),
    reason="hatchling is not installed here, and fetching it would need a network",
)
def test_the_wheel_is_complete(tmp_path):
    """The wheel has all modules, migrations, type markers, service files, and both programs."""
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"),
            *("--no-build-isolation", "--wheel-dir", str(tmp_path), str(ROOT)),
        ],
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (scripts,) = (name for name in names if name.endswith(".dist-info/entry_points.txt"))
        programs = archive.read(scripts).decode()
    expected = {
        str(path.relative_to(ROOT / folder))
        for folder in ("schema", "daemon", "cli")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix in {".py", ".sql", ".typed"}
    }
    assert {"sess_schema/py.typed", "sessiond/py.typed", "sess_cli/py.typed"} <= expected
    assert any(name.endswith(".sql") for name in expected)
    data = f"{wheel.name.rsplit('-', 3)[0]}.data/data/share/sessiond"
    expected |= {f"{data}/{name}" for name in SERVICE_FILES}
    expected.add(f"{wheel.name.rsplit('-', 3)[0]}.dist-info/licenses/LICENSE")
    assert expected - names == set()
    assert "sess = sess_cli.start:run" in programs
    assert "sessiond = sessiond.main:run" in programs


CHANGELOG = """# Changelog

## [Unreleased]

## [0.2.0] - 2026-12-01

### Added

- a thing

## [0.1.0] - 2026-11-16

- the first
"""


@pytest.mark.parametrize(
    ("tag", "changelog", "problem"),
    [
        ("v0.2.0", CHANGELOG, None),
        ("0.2.0", CHANGELOG, "the tag is 0.2.0, but the version in pyproject.toml is 0.2.0"),
        ("v0.3.0", CHANGELOG, "the tag is v0.3.0, but the version in pyproject.toml is 0.2.0"),
        (
            "v0.2.0",
            CHANGELOG.replace(" - 2026-12-01", ""),
            "the changelog has no dated section for 0.2.0",
        ),
        (
            "v0.2.0",
            CHANGELOG.replace("[0.1.0]", "[0.2.0]").replace("[0.2.0]", "[0.2.1]", 1),
            "0.2.0 is not the newest section of the changelog",
        ),
        (
            "v0.2.0",
            CHANGELOG.replace("[Unreleased]\n", "[Unreleased]\n\n- later\n"),
            "the changelog still has entries under Unreleased",
        ),
    ],
)
def test_a_release_needs_tag_version_and_changelog_to_agree(tag, changelog, problem):
    """One sentence for each mismatch."""
    spec = must(
        importlib.util.spec_from_file_location("release", ROOT / "scripts/check_release.py")
    )
    release = importlib.util.module_from_spec(spec)
    must(spec.loader).exec_module(release)
    assert release.problem(tag, "0.2.0", changelog) == problem
    assert release.notes(CHANGELOG, "0.2.0") == "### Added\n\n- a thing"
