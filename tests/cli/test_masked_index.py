"""Commands over an index whose secrets were masked at ingest (`redact.at_ingest`)."""

from __future__ import annotations

import os

import pytest
from tests.daemon.ingest.test_masking import KEY, everything, secretive
from tests.waiting import wait_until


@pytest.fixture
def masked(world):
    """A transcript with secrets, read with the setting on."""
    world.state.mkdir(mode=0o700)
    (world.state / "config.toml").write_text("[redact]\nat_ingest = true\n")
    world.secretive = secretive(world.transcript())
    os.utime(world.secretive.path, (1_700_000_000, 1_700_000_000))
    world.run("sessiond", "sync", check=0)
    return world


def test_nothing_is_left_to_find(masked):
    """`doctor --secrets` counts none, `check` is content, and the words around are found."""
    assert KEY.encode() not in everything(masked)
    assert '"kind"' not in masked.run("sess", "doctor", "--secrets", "--json").stdout
    assert masked.run("sess", "check").returncode == 0
    assert masked.run("sess", "search", "please").stdout.count("log in with ****") == 1


def test_restore_says_that_secrets_stay_masked(masked):
    """As many bytes as the file has, and a line on stderr."""
    done = masked.run("sess", "restore", masked.secretive.session, "-o", "-", check=0)
    assert "stay masked" in done.stderr
    assert len(done.stdout.encode()) == masked.secretive.path.stat().st_size
    assert KEY not in done.stdout


def test_a_transcript_with_secrets_can_be_cut_and_mended(masked):
    """The file keeps its secrets; only the archive has masks."""
    path, before = masked.secretive.path, masked.secretive.path.read_bytes()
    masked.run("sess", "cut", masked.secretive.session, "1", "--yes", check=0)
    assert path.read_bytes() != before
    masked.run("sess", "undo", check=0)
    assert path.read_bytes() == before
    assert KEY.encode() not in everything(masked)


def test_a_masked_archive_does_not_stand_in_for_the_file(masked):
    """`prune` deletes only what can be restored byte for byte."""
    done = masked.run("sess", "prune", masked.secretive.session, "--yes")
    assert done.returncode != 0
    assert "is not as it was archived" in done.stderr
    assert masked.secretive.path.exists()


@pytest.mark.parametrize("value", ['"yes"', "1", "[]"])
def test_the_setting_is_true_or_false(world, value):
    """Anything else is an error in one line."""
    world.state.mkdir(mode=0o700)
    (world.state / "config.toml").write_text(f"[redact]\nat_ingest = {value}\n")
    done = world.run("sessiond", "sync", check=2)
    assert "redact.at_ingest must be true or false" in done.stderr


def test_a_directory_that_is_handed_to_the_daemon_is_masked(masked, tmp_path):
    """`sessiond sync DIR` is read by the daemon, with its settings."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    other = secretive(masked.transcript("22222222-1111-4111-8111-111111111111"))
    other.path.rename(elsewhere / other.path.name)
    daemon = masked.start()
    try:
        wait_until((masked.state / "status.json").exists)
        masked.run("sessiond", "sync", elsewhere, check=0)
    finally:
        daemon.terminate()
        assert daemon.wait(60) == 0
    assert masked.sql("SELECT count(*) FROM sessions") == [(2,)]
    assert KEY.encode() not in everything(masked)
