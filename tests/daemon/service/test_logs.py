"""The daemon's log: private, capped, in UTC, and silent about what transcripts say."""

from __future__ import annotations

import json
import logging
import os
import re
import stat
import sys
from collections.abc import Generator

import pytest

from sess_common.errors import Exit, SessError
from sessiond.service import logs

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (?P<rest>.*)")


@pytest.fixture(autouse=True)
def plain_process(monkeypatch):
    """No service manager around the test, and the logging of the test run put back after it."""
    for name in ("JOURNAL_STREAM", "XPC_SERVICE_NAME"):
        monkeypatch.delenv(name, raising=False)
    root, ours = logging.getLogger(), logging.getLogger("sessiond")
    handlers, levels = root.handlers[:], (root.level, ours.level)
    raising = logging.raiseExceptions
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    ours.setLevel(levels[1])
    logging.raiseExceptions = raising


@pytest.fixture
def log(tmp_path):
    return tmp_path / "sessiond.log"


def rest(text: str) -> list[str]:
    """The lines without their time stamps; lines of a traceback have none."""
    return [
        found["rest"] if (found := LINE.fullmatch(line)) else line for line in text.splitlines()
    ]


def test_the_file_is_private_and_in_utc(log, monkeypatch):
    """The log is 0600 under any umask, and its times are UTC in any zone."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    mask = os.umask(0)
    try:
        logs.set_up(log, foreground=False)
    finally:
        os.umask(mask)
    record = logging.LogRecord("sessiond", logging.INFO, "", 0, "started", (), None)
    record.created, record.msecs = 86400.25, 250.0
    logging.getLogger("sessiond").handle(record)
    assert log.read_text() == "1970-01-02T00:00:00.250Z INFO started\n"
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_libraries_speak_only_when_they_warn(log):
    """Our own messages count from INFO on, those of libraries from WARNING on."""
    logs.set_up(log, foreground=False)
    logging.getLogger("sessiond.watch").info("ours")
    logging.getLogger("watchdog").info("theirs")
    logging.getLogger("watchdog").warning("overflow")
    assert rest(log.read_text()) == ["INFO ours", "WARNING overflow"]


def test_the_log_is_capped(log, monkeypatch):
    """Rotation keeps three files, none above the cap, all 0600."""
    monkeypatch.setattr(logs, "MAX_BYTES", 2000)
    logs.set_up(log, foreground=False)
    for number in range(500):
        logging.getLogger("sessiond").info("message %d", number)
    files = sorted(log.parent.iterdir())
    assert [file.name for file in files] == ["sessiond.log", "sessiond.log.1", "sessiond.log.2"]
    assert all(file.stat().st_size <= 2000 for file in files)
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


@pytest.mark.parametrize(("foreground", "expected"), [(True, ["INFO hello"]), (False, [])])
def test_stderr_only_in_the_foreground(foreground, expected, log, capsys):
    """A foreground daemon talks on stderr as well, a detached one only in the file."""
    logs.set_up(log, foreground=foreground)
    logging.getLogger("sessiond").info("hello")
    assert rest(capsys.readouterr().err) == expected
    assert rest(log.read_text()) == ["INFO hello"]


def test_launchd_gets_no_second_copy(log, capsys, monkeypatch):
    """Under launchd, whose stderr file has no cap, the log goes to our own file alone."""
    monkeypatch.setenv("XPC_SERVICE_NAME", "io.github.sessiond")
    logs.set_up(log, foreground=True)
    logging.getLogger("sessiond").info("hello")
    assert capsys.readouterr().err == ""
    assert rest(log.read_text()) == ["INFO hello"]


def test_the_journal_gets_levels_and_no_times(log, tmp_path, monkeypatch):
    """With stderr on the journal there is no file, no time stamp, and a level per line."""
    with (tmp_path / "journal").open("w+") as journal:
        found = os.fstat(journal.fileno())
        monkeypatch.setenv("JOURNAL_STREAM", f"{found.st_dev}:{found.st_ino}")
        monkeypatch.setattr(sys, "stderr", journal)
        logs.set_up(log, foreground=True)
        logging.getLogger("sessiond").warning("slow")
        try:
            (tmp_path / "missing").read_bytes()
        except OSError:
            logging.getLogger("sessiond").exception("cannot write")
        journal.seek(0)
        lines = journal.read().splitlines()
    assert lines[:2] == ["<4>slow", "<3>cannot write"]
    assert (
        lines[-1]
        == f"<3>FileNotFoundError: [Errno 2] No such file or directory: '{tmp_path}/missing'"
    )
    assert all(line.startswith("<3>") for line in lines[1:])
    assert not log.exists()


@pytest.mark.parametrize("value", ["1:2", "nonsense", "1:2:3", ""])
def test_an_inherited_journal_does_not_count(value, log, monkeypatch):
    """JOURNAL_STREAM of a parent, when stderr is something else, leaves the log in the file."""
    monkeypatch.setenv("JOURNAL_STREAM", value)
    logs.set_up(log, foreground=False)
    logging.getLogger("sessiond").info("hello")
    assert rest(log.read_text()) == ["INFO hello"]


def test_exceptions_do_not_quote_transcripts(log):
    """Of an unexpected exception and its cause the log has places and types, no message."""
    logs.set_up(log, foreground=False)
    secret = "the password is hunter2"
    try:
        try:
            {"": ""}[secret]
        except KeyError as error:
            raise ValueError(secret) from error
    except ValueError:
        logging.getLogger("sessiond").exception("parser failed")
    text = log.read_text()
    assert "hunter2" not in text
    assert [line for line in rest(text) if not line.startswith(" ")] == [
        "ERROR parser failed",
        "ValueError",
        "caused by",
        "KeyError",
    ]
    assert "test_logs.py" in text


def test_control_characters_are_escaped(log):
    """A file name cannot forge a log line or drive the terminal that shows it."""
    logs.set_up(log, foreground=False)
    logging.getLogger("sessiond").info("reading %s", "a\n2026 INFO fake\x1b[2J\u202e\udc80é")
    assert rest(log.read_text()) == [r"INFO reading a\n2026 INFO fake\x1b[2J\u202e\udc80é"]


def test_the_directory_is_made(tmp_path):
    """The very first start of the daemon has a log, in a directory that is 0700."""
    log = tmp_path / "state" / "log" / "sessiond.log"
    logs.set_up(log, foreground=False)
    logging.getLogger("sessiond").info("hello")
    assert rest(log.read_text()) == ["INFO hello"]
    assert stat.S_IMODE(log.parent.stat().st_mode) == 0o700


def test_an_unwritable_log_does_not_stop_the_daemon(log, capsys):
    """Where the file cannot be opened the log goes to stderr and says why."""
    log.mkdir()
    logs.set_up(log, foreground=False)
    logging.getLogger("sessiond").info("hello")
    assert rest(capsys.readouterr().err) == [
        f'WARNING cannot write log "{log}": Is a directory',
        "INFO hello",
    ]


def test_a_full_disk_costs_lines_only(log, capsys, monkeypatch):
    """A write that fails raises nothing and prints nothing, and later lines are written again."""
    logs.set_up(log, foreground=False)
    (handler,) = logging.getLogger().handlers

    def full() -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(handler, "flush", full)
        logging.getLogger("sessiond").info("while full")
    logging.getLogger("sessiond").info("after")
    assert capsys.readouterr().err == ""
    assert rest(log.read_text())[-1] == "INFO after"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [(0, []), (2, ["d", "e"]), (4, ["b", "c", "d", "e"]), (99, ["a", "b", "c", "d", "e"])],
)
def test_tail_reaches_into_older_files(lines, expected, log):
    """The last N lines come from as many files as it takes, a half line at the end too."""
    (log.parent / "sessiond.log.2").write_text("a\n")
    (log.parent / "sessiond.log.1").write_text("b\nc\n")
    log.write_text("d\ne")
    assert list(logs.tail_log(log, lines)) == expected


def test_follow_survives_rotation(log):
    """Following yields each complete line once, also across a rotation, and never half of one."""
    log.write_text("one\nha")
    following = logs.tail_log(log, 10, follow=True)
    assert next(following) == "one"
    with log.open("a") as file:
        file.write("lf\n")
    assert next(following) == "half"
    with log.open("a") as file:
        file.write("last of the old\n")
    os.replace(log, f"{log}.1")
    log.write_text("first of the new\n")
    assert [next(following), next(following)] == ["last of the old", "first of the new"]
    assert isinstance(following, Generator)
    following.close()


def test_a_missing_log_says_where_else_to_look(log):
    """Without a file the error names it and points to the journal."""
    with pytest.raises(SessError) as caught:
        list(logs.tail_log(log, 10))
    assert caught.value.message == f'cannot read log "{log}": no such file or directory'
    assert caught.value.hint == (
        "the daemon creates it at startup; under systemd see `journalctl --user -u sessiond`"
    )
    assert caught.value.code == Exit.NOTHING_FOUND


def test_lines_as_json_have_time_level_and_message():
    """Lines of a traceback belong to the entry above them."""
    lines = ["2026-02-01T10:00:00.250Z WARNING a b", "  File x", "2026-02-01T10:00:01.000Z INFO c"]
    entries = [json.loads(line) for line in logs.as_json(lines)]
    assert entries == [
        {"ts": "2026-02-01T10:00:00.250Z", "level": "WARNING", "message": "a b"},
        {"ts": "2026-02-01T10:00:00.250Z", "level": "WARNING", "message": "  File x"},
        {"ts": "2026-02-01T10:00:01.000Z", "level": "INFO", "message": "c"},
    ]
