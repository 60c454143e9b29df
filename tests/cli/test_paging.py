"""The pager, as git has it: on a terminal only, quiet when left, and never in the daemon's way."""

from __future__ import annotations

import os

import pytest

MAIN = "11111111-1111-4111-8111-111111111111"


@pytest.fixture
def pager(tmp_path):
    """A pager that notes its environment and what it gets."""
    program = tmp_path / "pager"
    program.write_text(f'#!/bin/sh\necho "$LESS" > {tmp_path}/less\ncat > {tmp_path}/paged\n')
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    "arguments", [["list"], ["search", "flaky"], ["flaky"], ["show", "1111"]], ids=" ".join
)
def test_long_output_goes_through_the_pager(story, sess, pager, tmp_path, arguments):
    """For list, search and show; LESS is set as git sets it."""
    text, code = sess.on_terminal(*arguments, "--no-sync", PAGER=str(pager))
    assert (text, code) == ("", 0)
    assert "the flaky retry" in (tmp_path / "paged").read_text()
    assert (tmp_path / "less").read_text() == "FRX\n"


@pytest.mark.parametrize("arguments", [["list"], ["search", "flaky"], ["show", "1111"]])
def test_no_pager_is_used_where_none_is_wanted(story, sess, pager, tmp_path, arguments):
    """--no-pager, SESS_PAGER=cat, a dumb terminal, JSON, or a pipe."""
    for extra, environment in (
        (["--no-pager"], {}), ([], {"SESS_PAGER": "cat"}), ([], {"TERM": "dumb"}), (["--json"], {}),
        ([], {"PAGER": ""}),
    ):  # fmt: skip
        text, code = sess.on_terminal(
            *arguments, "--no-sync", *extra, **{"PAGER": str(pager), **environment}
        )
        assert code == 0
        assert "the flaky retry" in text
    story.env["PAGER"] = str(pager)
    assert "the flaky retry" in sess(*arguments).stdout
    assert not (tmp_path / "paged").exists()


def test_the_configuration_chooses_before_the_environment(story, sess, pager, tmp_path):
    """`[output] pager` is ours as core.pager is git's; SESS_PAGER comes before it."""
    (story.state / "config.toml").write_text(f'[output]\npager = "{pager}"\n')
    text, _ = sess.on_terminal("list", "--no-sync", PAGER="cat")
    assert text == ""
    text, _ = sess.on_terminal("list", "--no-sync", SESS_PAGER="cat")
    assert "flaky" in text
    (story.state / "config.toml").write_text("[output]\npager = false\n")
    text, _ = sess.on_terminal("list", "--no-sync", PAGER=str(pager))
    assert "flaky" in text
    story.run("sessiond", "sync", check=0)


def test_nothing_found_starts_no_pager(story, sess, pager, tmp_path):
    """Hints and errors stay on the terminal, and the exit code is that of the command."""
    text, code = sess.on_terminal("search", "--no-sync", "flakee", PAGER=str(pager))
    assert code == 1
    assert text.startswith('nothing found: no event has "flakee"')
    text, code = sess.on_terminal("show", "--no-sync", "9999", PAGER=str(pager))
    assert (text.splitlines()[0], code) == ('sess: no such session: "9999"', 1)
    assert not (tmp_path / "paged").exists()


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="needs /proc")
@pytest.mark.slow
def test_an_open_pager_does_not_hold_the_index(story, sess, tmp_path):
    """While somebody reads, no transaction is open: the log of changes can be emptied."""
    t = story.transcript(MAIN)
    t.append(*(t.answer("long " * 200) for _ in range(300)))
    story.ingest()
    program = tmp_path / "pager"
    program.write_text(
        "#!/bin/sh\nhead -1 > /dev/null\nsleep 2\n"
        f"ls -l /proc/$PPID/fd | grep -c index.db > {tmp_path}/open\ncat > /dev/null\n"
    )
    program.chmod(0o755)
    for arguments in (["show", "1111"], ["search", "long", "-n", "0"]):
        _, code = sess.on_terminal(*arguments, "--no-sync", PAGER=str(program))
        assert code == 0
        assert (tmp_path / "open").read_text() == "0\n"
