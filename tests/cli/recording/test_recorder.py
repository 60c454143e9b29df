"""The recorder as a library: what is on disk after each call, and what survives accidents."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sess_cli.recording import InvalidId, Recorder, check_id, files
from sess_cli.recording.files import title_from


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "sessions"


def entries(recorder):
    with open(recorder.path, "rb") as file:
        return [json.loads(line) for line in file]


def types(recorder):
    return [entry["type"] for entry in entries(recorder)]


def listed(folder):
    return json.loads((folder / "session.json").read_text("utf-8"))["sessions"]


def test_nothing_is_written_before_the_first_entry(folder):
    """Neither by creating a recorder nor by a system prompt: open and quit leaves nothing."""
    recorder = Recorder("/code/tea", folder=str(folder))
    assert recorder.system_prompt("Be brief.", "os: linux")
    recorder.close()
    assert not recorder.has_recording
    assert not folder.exists()


def test_the_first_entry_brings_header_and_prompt(folder):
    """In this order, the prompt with the time of the entry; the list names the session."""
    recorder = Recorder("/code/tea", model="m1", provider="p1", folder=str(folder))
    recorder.system_prompt("Be brief.", "os: linux")
    assert recorder.user("boil water\nand then tea")
    header, prompt, user = entries(recorder)
    assert header == {
        "type": "session_start",
        "uuid": recorder.session,
        "project": "/code/tea",
        "provider": "p1",
        "model": "m1",
        "timestamp": header["timestamp"],
    }
    assert prompt == {
        "timestamp": user["timestamp"],
        "type": "system_prompt",
        "content": "Be brief.",
        "env_info": "os: linux",
    }
    assert user == {
        "type": "user",
        "content": "boil water\nand then tea",
        "timestamp": user["timestamp"],
    }
    assert listed(folder) == {
        "/code/tea": [
            {
                "uuid": recorder.session,
                "project": "/code/tea",
                "provider": "p1",
                "model": "m1",
                "start_time": header["timestamp"],
                "title": "boil water",
            }
        ]
    }


def test_files_are_private(folder):
    """Folders 0700, files 0600, also one that was looser before."""
    recorder = Recorder("/p", folder=str(folder))
    recorder.tool_result("execute", "x\n" * 3000, "c1")
    modes = {
        os.path.relpath(os.path.join(above, name), folder.parent): stat.S_IMODE(
            os.stat(os.path.join(above, name)).st_mode
        )
        for above, folders, files in os.walk(folder.parent)
        for name in [*folders, *files]
    }
    assert {mode for path, mode in modes.items() if path.endswith((".json", ".txt"))} == {0o600}
    assert modes["sessions"] == modes["sessions/overflow"] == 0o700
    recorder.close()
    os.chmod(recorder.path, 0o644)
    recorder.user("again")
    assert stat.S_IMODE(os.stat(recorder.path).st_mode) == 0o600


def test_an_entry_after_close_is_appended(folder):
    """Closing twice is harmless, and what was written stays."""
    recorder = Recorder("/p", folder=str(folder))
    recorder.user("one")
    recorder.close()
    recorder.close()
    recorder.assistant("two")
    assert types(recorder) == ["session_start", "user", "assistant"]


def test_resuming_appends_and_keeps_the_title(folder):
    """A second process continues the file; an unknown id begins a session of that name."""
    first = Recorder("/p", folder=str(folder))
    assert first.resume("tea-time")
    first.user("first words")
    first.close()
    second = Recorder("/p", folder=str(folder))
    assert second.resume("tea-time")
    second.user("later words")
    assert types(second) == ["session_start", "user", "user"]
    assert [one["title"] for one in listed(folder)["/p"]] == ["first words"]


@pytest.mark.parametrize(
    ("given_id", "reason"),
    [
        ("", "the ID is empty"),
        (".", '"." is a directory, not an ID'),
        ("..", '".." is a directory, not an ID'),
        ("a/b", 'the ID "a/b" contains a path separator'),
        ("a\\b", 'the ID "a\\b" contains a path separator'),
        ("a..b", 'the ID "a..b" contains ".."'),
        ("a\nb", "the ID contains control characters"),
    ],
)
def test_unsafe_ids_are_refused(folder, given_id, reason):
    """Each with its own reason; a recorder that is given one keeps its own."""
    with pytest.raises(InvalidId) as refused:
        check_id(given_id)
    assert str(refused.value) == reason
    recorder = Recorder("/p", folder=str(folder))
    before = recorder.session, recorder.path
    assert not recorder.resume(given_id)
    assert (recorder.session, recorder.path) == before


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("  boil water \n now", "boil water"),
        ("a\rb", "a"),
        ("\n\n", "New session"),
        ("x" * 80, "x" * 80),
        ("é" * 81, "é" * 80 + "…"),
    ],
)
def test_titles(prompt, title):
    """The first line, trimmed, at most 80 characters."""
    assert title_from(prompt) == title


def test_a_name_that_a_person_gave_stays(folder):
    """Against names that programs think of later; empty names and empty sessions are refused."""
    recorder = Recorder("/p", folder=str(folder))
    assert not recorder.rename("too early")
    recorder.user("first words")
    assert not recorder.rename("  ")
    assert recorder.rename("by a program", by_user=False)
    assert listed(folder)["/p"][0]["title"] == "by a program"
    assert recorder.rename("by\na person")
    assert recorder.rename("by a program again", by_user=False)
    recorder.user("more words")
    (meta,) = listed(folder)["/p"]
    assert (meta["title"], meta["title_user_set"]) == ("by a person", True)


def test_a_caller_refines_the_title_once(folder):
    """When there is a first title, whoever comes first; nothing, or a failure, leaves that."""
    asked = []

    def refine(prompt):
        asked.append((prompt, listed(folder)["/p"][0]["title"]))
        return "  About \n tea "

    recorder = Recorder("/p", folder=str(folder), refine=refine)
    threads = [threading.Thread(target=recorder.user, args=(f"words {n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ((prompt, title),) = asked
    assert title == prompt
    assert listed(folder)["/p"][0]["title"] == "About tea"


@pytest.mark.parametrize("refined", [None, " ", RuntimeError("no model")])
def test_a_title_that_cannot_be_refined_stays(folder, refined):
    """The error is told, not raised."""

    def refine(_prompt):
        if isinstance(refined, Exception):
            raise refined
        return refined

    recorder = Recorder("/p", folder=str(folder), refine=refine)
    assert recorder.user("first words")
    assert listed(folder)["/p"][0]["title"] == "first words"
    assert recorder.error is (refined if isinstance(refined, Exception) else None)


def test_empty_fields_are_left_out_and_arguments_are_text(folder):
    """As the agent whose format this is writes them."""
    recorder = Recorder("/p", folder=str(folder))
    recorder.tool_call("read", {"path": "é"}, "c1")
    recorder.tool_result("read", "", "c1", error=OSError("no such file"), duration_ms=5)
    recorder.tool_call("read", '{"path": "b"}')
    _, call, result, old = (
        {name: value for name, value in entry.items() if name != "timestamp"}
        for entry in entries(recorder)
    )
    assert call == {
        "type": "tool_call", "name": "read", "args": '{"path":"é"}', "tool_call_id": "c1",
    }  # fmt: skip
    assert result == {
        "type": "tool_result", "name": "read", "tool_call_id": "c1", "error": "no such file",
        "duration_ms": 5,
    }  # fmt: skip
    assert old == {"type": "tool_call", "name": "read", "args": '{"path": "b"}'}


def test_a_teammate_is_below_its_leader_and_not_listed(folder):
    """With the header that a leader's reader expects."""
    recorder = Recorder.teammate("leader-1", "fork", model="m", folder=str(folder))
    recorder.user("look in the drawer")
    assert recorder.path == str(folder / "leader-1" / "subagents" / "agent-fork.jsonl")
    header = entries(recorder)[0]
    assert (header["uuid"], header["project"], header["provider"]) == (
        "leader-1/fork",
        "fork",
        "teammate",
    )
    assert not (folder / "session.json").exists()


def test_fifty_recorders_are_all_listed(folder):
    """The list is rewritten by one at a time."""

    def begin(number):
        with Recorder("/p", folder=str(folder)) as recorder:
            return recorder.user(f"prompt {number}")

    with ThreadPoolExecutor(50) as pool:
        assert all(pool.map(begin, range(50)))
    titles = sorted(one["title"] for one in listed(folder)["/p"])
    assert titles == sorted(f"prompt {number}" for number in range(50))


def test_a_damaged_list_is_left_alone(folder):
    """The entry is written all the same."""
    folder.mkdir()
    (folder / "session.json").write_text("{not json", "utf-8")
    recorder = Recorder("/p", folder=str(folder))
    assert recorder.user("words")
    assert types(recorder) == ["session_start", "user"]
    assert (folder / "session.json").read_text("utf-8") == "{not json"


def test_every_entry_is_on_disk_before_the_next(folder, monkeypatch):
    """Each is one write, followed by one sync of the same file."""
    calls = []
    write, sync = os.write, os.fsync

    def noted_write(fd, data):
        calls.append("write")
        return write(fd, data)

    def noted_sync(fd):
        calls.append("sync")
        return sync(fd)

    monkeypatch.setattr(os, "write", noted_write)
    monkeypatch.setattr(os, "fsync", noted_sync)
    recorder = Recorder("/p", folder=str(folder))
    recorder.user("one")
    calls.clear()
    recorder.assistant("two")
    recorder.tool_call("read", {}, "c1")
    assert calls == ["write", "sync"] * 2


def test_a_full_disk_leaves_no_half_entry(folder, monkeypatch):
    """The entry is missing whole, the next one is written."""
    recorder = Recorder("/p", folder=str(folder))
    recorder.user("one")
    write = os.write

    def full(fd, data):
        monkeypatch.setattr(os, "write", failing)
        return write(fd, data[:20])

    def failing(fd, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    assert not recorder.assistant("two")
    monkeypatch.setattr(os, "write", write)
    assert recorder.assistant("three")
    assert [entry.get("content") for entry in entries(recorder)] == [None, "one", "three"]


def test_a_file_that_was_replaced_is_followed(folder):
    """An edit renames a new file into place: the old one, still open, must not be written."""
    recorder = Recorder("/p", folder=str(folder))
    recorder.user("one")
    recorder.assistant("two")
    path = Path(recorder.path)
    beside = path.with_suffix(".new")
    beside.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    beside.replace(path)
    recorder.assistant("three")
    assert [entry.get("content") for entry in entries(recorder)] == [None, "one", "three"]


def test_what_cannot_be_written_is_told_not_raised(folder):
    """Recording never breaks what is recorded."""
    folder.parent.joinpath("sessions").write_text("a file is in the way", "utf-8")
    recorder = Recorder("/p", folder=str(folder))
    assert not recorder.user("words")
    assert isinstance(recorder.error, OSError)
    assert not recorder.entry({"type": "odd", "value": float("nan")})


@settings(max_examples=25)
@given(st.integers(min_value=0, max_value=600))
def test_a_torn_last_line_costs_nothing_else(tmp_path_factory, at):
    """Wherever a write broke off, the next entry is on a line of its own and all others stay."""
    folder = tmp_path_factory.mktemp("torn")
    recorder = Recorder("/p", folder=str(folder))
    for number in range(5):
        recorder.user(f"prompt {number}")
    recorder.close()
    path = Path(recorder.path)
    torn = path.read_bytes()[:at]
    path.write_bytes(torn)
    recorder.assistant("after")
    recorder.close()
    lines = path.read_bytes().splitlines()
    whole = torn.splitlines()
    assert lines[: len(whole)] == whole if torn else len(lines) == 2
    assert json.loads(lines[-1])["content"] == "after"


def test_importing_it_loads_only_the_standard_library():
    """An agent that records itself pays for nothing else."""
    program = (
        "import sys; before = set(sys.modules); import sess_cli.recording;"
        " print(sorted({m.split('.')[0] for m in set(sys.modules) - before}"
        " - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "['sess_cli']\n"


# -- long outputs


@pytest.mark.parametrize(
    "output",
    ["", "x", "x" * files.MOST_BYTES, "\n".join(["x"] * files.MOST_LINES)],
    ids=["empty", "short", "most bytes", "most lines"],
)
def test_an_output_at_a_limit_is_untouched(tmp_path, output):
    """It is returned as it is, and no file is written."""
    assert files.shortened(output, str(tmp_path / "over"), "c1") is output
    assert not (tmp_path / "over").exists()


def test_many_lines_keep_200_and_500(tmp_path):
    """The notice counts what was removed and names the file with everything."""
    lines = [f"line {number}" for number in range(2001)]
    short = files.shortened("\n".join(lines), str(tmp_path), "c/../1")
    path = tmp_path / "c___1.txt"
    assert path.read_text("utf-8") == "\n".join(lines)
    kept = [*lines[:200], *lines[-500:]]
    removed = len("\n".join(lines)) - len("\n".join(lines[:200])) - len("\n".join(lines[-500:]))
    assert short.split("\n") == [
        *kept[:200],
        "",
        f"... [1301 lines / {removed} bytes truncated] ...",
        f"Full output saved to: {path}",
        "Use the read tool to view the complete output.",
        *kept[200:],
    ]


@settings(max_examples=50)
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=20), max_size=60), st.integers(1, 9))
def test_shortened_outputs_are_short(tmp_path_factory, words, times):
    """Few long lines are cut too, never inside a character, and the file has all of it."""
    folder = tmp_path_factory.mktemp("over")
    output = "\n".join(word * 60 * times for word in words)
    short = files.shortened(output, str(folder), "")
    size = len(output.encode())
    if size <= files.MOST_BYTES and files.lines_in(output) <= files.MOST_LINES:
        assert short == output
        return
    assert len(short.encode()) <= files.MOST_BYTES + 500
    assert (folder / "unknown.txt").read_bytes() == output.encode()


def test_outputs_of_calls_without_an_id_do_not_collide(tmp_path):
    """Each gets a file of its own."""
    for word in ("a", "b"):
        files.shortened(word * 60_000, str(tmp_path), "")
    assert [path.read_text("utf-8")[0] for path in sorted(tmp_path.iterdir())] == ["b", "a"]


def test_without_a_place_for_the_file_the_notice_names_none(tmp_path):
    """Nothing fails."""
    (tmp_path / "over").write_text("in the way", "utf-8")
    short = files.shortened("x" * 60_000, str(tmp_path / "over"), "c1")
    assert "bytes truncated" in short
    assert "saved to" not in short
