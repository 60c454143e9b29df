"""Where the files of an installation are."""

from __future__ import annotations

import os
import sys

import platformdirs
import pytest

from sess_common import paths


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere platformdirs itself is asked")
@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"XDG_DATA_HOME": "/x/data", "XDG_CONFIG_HOME": "/x/config", "XDG_STATE_HOME": "/x/state"},
        {"XDG_DATA_HOME": "~/data", "XDG_CONFIG_HOME": "  "},
        {"XDG_DATA_HOME": "", "XDG_STATE_HOME": "/x/state/"},
    ],
)
def test_the_directories_are_those_of_platformdirs(monkeypatch, tmp_path, environment):
    """They are found without importing it, and are the same."""
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "SESSIOND_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    home = paths.home()
    assert [os.path.normpath(one) for one in (home.data, home.config, home.logs)] == [
        os.path.normpath(one("sessiond", appauthor=False))
        for one in (
            platformdirs.user_data_dir,
            platformdirs.user_config_dir,
            platformdirs.user_log_dir,
        )
    ]


def test_an_installation_elsewhere_is_all_in_one_directory(monkeypatch, tmp_path):
    """SESSIOND_HOME may be relative to where the command runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SESSIOND_HOME", "here")
    home = paths.home()
    assert home.index == home.data / "index.db" == tmp_path / "here" / "index.db"
    assert home.config_file == tmp_path / "here" / "config.toml"
