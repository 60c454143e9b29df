"""Hints name what made the installation: what was made by one is not changed by another."""

from __future__ import annotations

import shlex
import sys

import pytest

from sess_common import installation


@pytest.fixture
def made_by(tmp_path, monkeypatch):
    def make(name, text=""):
        monkeypatch.setattr(sys, "prefix", str(tmp_path))
        (tmp_path / name).write_text(text)

    return make


def test_pipx_injects(made_by):
    made_by("pipx_metadata.json")
    program, verb, name, *packages = shlex.split(installation.adding("video"))
    assert (program, verb, name) == ("pipx", "inject", "sessiond")
    assert [package[:2] for package in packages] == ["av", "pi"]
    assert installation.reinstalling() == "pipx reinstall sessiond"
    assert installation.upgrading() == "pipx upgrade sessiond"


def test_uv_installs_again_from_where_it_did(made_by):
    made_by("uv-receipt.toml", "[tool]\nrequirements = [{ name = 'sessiond', directory = '/a b' }]")
    *start, last = shlex.split(installation.adding("encrypt"))
    assert start[:4] == ["uv", "tool", "install", "--with"]
    assert start[4].startswith("cryptography")
    assert last == "/a b"
    made_by("uv-receipt.toml", "[tool]\nrequirements = [{ name = 'sessiond' }]")
    assert installation.reinstalling() == "uv tool install --reinstall sessiond"


def test_elsewhere_it_is_pip_of_this_python(made_by):
    words = shlex.split(installation.adding("video"))
    assert words[:4] == [sys.executable, "-m", "pip", "install"]
    assert "sessiond" not in " ".join(words[4:])
