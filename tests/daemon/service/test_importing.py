"""`sess import`: files from anywhere, recognised by their content and followed."""

from __future__ import annotations

import http.server
import io
import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from contextlib import closing, contextmanager

import apsw
import pytest
from tests.forked import BIN
from tests.golden_home import GOLDEN
from tests.waiting import LIMIT, wait_until

from sess_common.errors import Exit, SessError
from sessiond.service import importing

SESSION = "11111111-1111-4111-8111-111111111111"


@pytest.fixture
def here(world, monkeypatch, tmp_path):
    """A world in this process, and a folder that belongs to no agent."""
    monkeypatch.setenv("HOME", str(world.root))
    monkeypatch.setenv("SESSIOND_HOME", str(world.state))
    for name in ("CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    world.elsewhere = tmp_path / "elsewhere"
    world.elsewhere.mkdir()
    return world


def lines(world):
    log = world.transcript()
    records = [log.prompt("where does it lie?"), log.answer("anywhere")]
    return b"".join(map(log.encode, records))


def sessions(world):
    return world.sql("SELECT agent, native_id FROM sessions ORDER BY 1, 2")


def test_a_file_is_read_and_followed(here, capsys):
    """Its name says nothing, its content does; what is added later is read by any pass."""
    file = here.elsewhere / "a colleague's session.txt"
    file.write_bytes(lines(here))
    assert importing.run([str(file)]) == 0
    assert capsys.readouterr().out.startswith("1 session of claude in ")
    assert sessions(here) == [("claude", "a colleague's session.txt")]
    log = here.transcript()
    log.path = file
    log.count = 2
    log.append(log.prompt("and this?"))
    here.run("sessiond", "sync", check=0)
    assert here.sql("SELECT count(*) FROM events WHERE type = 'user'") == [(2,)]
    file.unlink()
    here.run("sessiond", "sync", check=0)
    assert here.sql("SELECT state FROM sources") == [("gone",)]


@pytest.mark.parametrize(
    ("agent", "path"),
    [
        ("chatgpt", "exports/chatgpt-2026-03/conversations.json"),
        ("claude-web", "exports/data-2026-03-02/conversations.json"),
        ("gemini", ".gemini/tmp/kettle/chats/session-2026-02-01T09-00-9e310000.json"),
        ("gemini", ".gemini/tmp/kettle/chats/session-2026-03-01T11-00-9e310000.jsonl"),
        ("jcode", ".jcoding/sessions/7ca1e000-0000-4000-8000-000000000002.json"),
        ("jehuang-jcode", ".jcode/sessions/session_ant_1772370000111.json"),
    ],
)
def test_the_content_decides(here, capsys, agent, path):
    """Files of other agents under any name are theirs."""
    file = here.elsewhere / "something.dat"
    shutil.copy(GOLDEN / agent / "home" / path, file)
    assert importing.run([str(file)], as_json=True) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["agent"], told["read"], told["error"]) == (agent, True, None)
    assert told["sessions"]
    assert {found for found, _ in sessions(here)} == {agent}


def test_what_opencode_exports_is_its_session(here, capsys):
    """One object with the session, its messages and their parts."""
    user = {"id": "msg_1", "sessionID": "ses_1", "role": "user", "time": {"created": 1772370000000}}
    answer = {
        "id": "msg_2",
        "sessionID": "ses_1",
        "role": "assistant",
        "parentID": "msg_1",
        "modelID": "claude-sonnet-4-5",
        "providerID": "anthropic",
        "cost": 0.25,
        "tokens": {"input": 5, "output": 7, "reasoning": 0, "cache": {"read": 1, "write": 2}},
        "time": {"created": 1772370001000, "completed": 1772370002000},
    }
    ran = {"command": "boil"}, {"start": 1772370001000, "end": 1772370001500}
    state = {"status": "completed", "input": ran[0], "output": "hot", "title": "x", "time": ran[1]}
    tool = {"id": "p3", "type": "tool", "tool": "bash", "callID": "c1", "state": state}
    exported = {
        "info": {"id": "ses_1", "directory": "/home/kim/tea", "title": "Tea", "time": {}},
        "messages": [
            {"info": user, "parts": [{"id": "p1", "type": "text", "text": "brew tea"}]},
            {"info": answer, "parts": [{"id": "p2", "type": "text", "text": "done"}, tool]},
            {"info": None, "parts": None},
        ],
    }
    file = here.elsewhere / "session.json"
    file.write_text(json.dumps(exported, indent=2))
    assert importing.run([str(file)]) == 0
    assert "1 session of opencode" in capsys.readouterr().out
    assert here.sql("SELECT native_id, project, title, prompts, tool_calls FROM sessions") == [
        ("ses_1", "/home/kim/tea", "Tea", 1, 1)
    ]
    assert here.sql("SELECT input_tokens, output_tokens, cost_usd FROM usage") == [(5, 7, 0.25)]


def test_a_saved_conversation_of_kiro_and_amazon_q(here):
    """`/save` writes a value of the table that version 1 kept conversations in."""
    prompt = {"content": {"Prompt": {"prompt": "list files"}}, "timestamp": "2026-03-01T14:00:00Z"}
    use = {"id": "t1", "name": "execute_bash", "args": {"command": "ls"}}
    asked = {"ToolUse": {"message_id": "m1", "content": "Looking.", "tool_uses": [use]}}
    outcome = {"tool_use_id": "t1", "content": [{"Text": "a.txt"}], "status": "Success"}
    result = {"content": {"ToolUseResults": {"tool_use_results": [outcome]}}}
    said = {"Response": {"message_id": "m2", "content": "One file."}}
    saved = {
        "conversation_id": "q1",
        "next_message": None,
        "history": [{"user": prompt, "assistant": asked}, {"user": result, "assistant": said}],
        "valid_history_range": [0, 2],
    }
    file = here.elsewhere / "q.json"
    file.write_text(json.dumps(saved))
    assert importing.run([str(file)]) == 0
    assert here.sql("SELECT agent, native_id, prompts, tool_calls FROM sessions") == [
        ("kiro", "q1", 1, 1)
    ]
    assert here.sql("SELECT status FROM events WHERE type = 'tool_use'") == [("ok",)]


@pytest.mark.parametrize("ending", [b"\n", b""])
def test_one_line_of_a_log_is_a_log(here, monkeypatch, ending):
    """Also where the agent writes documents, too: what follows it is read as more of it."""
    line = lines(here).split(b"\n")[0] + ending
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(line)))
    assert importing.run(["-"]) == 0
    assert here.sql("SELECT agent, prompts FROM sessions") == [("claude", 1)]


def test_a_document_and_a_log_of_one_stem_are_two_sessions(here):
    """Handed over, they are in no agent's folder that says what they are to each other."""
    chats = GOLDEN / "gemini/home/.gemini/tmp/kettle/chats"
    for name in (
        "session-2026-02-01T09-00-9e310000.json",
        "session-2026-03-01T11-00-9e310000.jsonl",
    ):
        file = here.elsewhere / f"x{name[name.index('.') :]}"
        shutil.copy(chats / name, file)
        assert importing.run([str(file)]) == 0
    assert here.sql("SELECT native_id, kind FROM sessions ORDER BY 1") == [
        ("9e310000-0000-4000-8000-000000000001", "main"),
        ("9e310000-0000-4000-8000-000000000002", "main"),
    ]


def test_a_saved_session_of_the_web(here):
    """`{"loglines": [...]}` has the records of a transcript."""
    log = here.transcript()
    saved = {"loglines": [log.prompt("from the web"), log.call("c1", command="ls"),
                          log.result("c1", "no", is_error=True)]}  # fmt: skip
    file = here.elsewhere / "session.json"
    file.write_text(json.dumps(saved, indent=2))
    assert importing.run([str(file)]) == 0
    assert here.shown(SESSION) == [
        ("user", "from the web", None),
        ("tool_use", "lsno", "error"),
    ]


def test_standard_input_is_kept_in_private(here, monkeypatch):
    """The same bytes twice are one file, which only its owner can read."""
    for _ in range(2):
        given = io.TextIOWrapper(io.BytesIO(lines(here)))
        monkeypatch.setattr(sys, "stdin", given)
        assert importing.run(["-"]) == 0
    (path,) = [file for file in (here.state / "imports").glob("*/stdin") if file.is_file()]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(sessions(here)) == 1
    here.run("sess", "forget", "--yes", "stdin", "--no-sync", check=0)
    assert not path.exists()


def test_a_file_in_an_agents_place_is_not_listed(here):
    """It is followed already."""
    log = here.transcript()
    log.append(log.prompt("at home"))
    assert importing.run([str(log.path)]) == 0
    assert not (here.state / "imports" / "list.jsonl").exists()


def test_what_no_agent_wrote_is_refused(here):
    """Nothing is kept of it, and the message says where to look."""
    file = here.elsewhere / "letter.txt"
    file.write_text("Dear Ada,\n")
    with pytest.raises(SessError, match="is not a file of any agent") as refused:
        importing.run([str(file)])
    assert "sessiond agents" in (refused.value.hint or "")
    with pytest.raises(SessError, match="no such file"):
        importing.run([str(here.elsewhere / "missing")])
    with pytest.raises(SessError, match="is a directory"):
        importing.run([str(here.elsewhere)])
    with pytest.raises(SessError, match='unknown agent "nobody"'):
        importing.run([str(file)], agent="nobody")
    assert not (here.state / "imports" / "list.jsonl").exists()


# -- from the web


@contextmanager
def server(answers):
    """A web server with (status, headers, body) by path."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            status, headers, body = answers[self.path]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{running.server_port}"
    finally:
        running.shutdown()
        running.server_close()
        thread.join()


def test_an_address_is_downloaded_after_its_host_was_named(here, capsys):
    """Each host, also that of a redirect, before it is asked."""
    with server({f"/{SESSION}.jsonl": (200, {}, lines(here))}) as other:
        moved = {"Location": f"{other}/{SESSION}.jsonl".replace("127.0.0.1", "localhost")}
        with server({"/moved": (302, moved, b"")}) as first:
            assert importing.run([f"{first}/moved"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said == ["downloading from 127.0.0.1", "downloading from localhost"]
    assert sessions(here) == [("claude", "moved")]


def test_what_cannot_be_downloaded_is_said(here, monkeypatch):
    """A missing page, a file that is too large, and a redirect out of the web."""
    monkeypatch.setattr(importing, "LARGEST_DOWNLOAD", 1000)
    away = (302, {"Location": "file:///etc/passwd"}, b"")
    pages = {"/none": (404, {}, b""), "/large": (200, {}, b"x" * 2000), "/away": away}
    with server(pages) as site:
        for path, why in (("none", "404"), ("large", "is larger than"), ("away", "not allowed")):
            with pytest.raises(SessError, match=why):
                importing.run([f"{site}/{path}"])
    left = [file for file in (here.state / "imports").rglob("*") if file.is_file()]
    assert left == []


# -- with a daemon


def test_a_running_daemon_reads_it_and_its_growth(here):
    """The importer writes no row: the daemon does, and keeps watching the file."""
    file = here.elsewhere / f"{SESSION}.txt"
    file.write_bytes(lines(here))
    daemon = here.start()
    try:
        wait_until(lambda: here.run("sessiond", "status").returncode == 0)
        done = here.run("sess", "import", file, check=0)
        assert done.stdout.startswith("1 session of claude in ")
        log = here.transcript()
        log.path, log.count = file, 2
        log.append(log.prompt("while you watch"))
        wait_until(lambda: here.found("watch"))
    finally:
        daemon.terminate()
        daemon.wait(LIMIT)


# -- sessiond sync FILE


def test_sync_of_a_file_with_any_name_is_followed(here):
    """Outside of every place, with a name that nobody gives: read now, and its growth later."""
    file = here.elsewhere / "saved by a friend"
    file.write_bytes(lines(here))
    here.run("sessiond", "sync", file, check=0)
    assert here.found("anywhere")
    log = here.transcript()
    log.path, log.count = file, 2
    log.append(log.prompt("it grew afterwards"))
    here.run("sessiond", "sync", check=0)
    assert here.found("grew")


def test_what_came_by_a_pipe_and_nobody_wrote_leaves_nothing(here):
    """It is called what the person called it, and no copy of it stays."""
    for text, said in ((b"", "standard input is empty"), (b"Dear Ada", "standard input is not a")):
        done = subprocess.run(
            [BIN / "sess", "import", "-"], input=text, env=here.env, capture_output=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 1
        assert done.stderr.decode().startswith(f"sess: {said}")
        assert list((here.state / "imports").iterdir()) == []


def test_a_known_file_given_again_to_the_wrong_agent_stays(here):
    """What is followed is not taken away by a slip."""
    for agent, code in ((), 0), (("--agent", "goose"), 1):
        done = subprocess.run(
            [BIN / "sess", "import", "-", *agent], input=lines(here), env=here.env,
            capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode == code, done
    here.run("sessiond", "sync", check=0)
    assert here.sql("SELECT state FROM sources") == [("live",)]


def test_sync_of_a_directory_takes_only_what_is_known_by_its_content(here):
    """Every program writes .json files: a name is not enough where no agent keeps its files."""
    (here.elsewhere / f"{SESSION}.jsonl").write_bytes(lines(here))
    for name in ("package.json", "agent-a1.meta.json", "settings.json"):
        (here.elsewhere / name).write_text('{"name": "kettle"}')
    done = here.run("sessiond", "sync", here.elsewhere, check=0)
    assert (done.stdout[:22], done.stderr) == ("1 file seen, 1 changed", "")
    done = here.run("sessiond", "sync", here.elsewhere / "package.json", check=5)
    assert done.stderr.startswith(
        f'sessiond: skipped "{here.elsewhere}/package.json": is not a known transcript format\n'
    )
    assert here.sql("SELECT count(*) FROM sources") == [(1,)]


def test_sync_of_nothing_but_a_missing_file_is_an_error(here):
    """There is no rest that could be indexed."""
    done = here.run("sessiond", "sync", "nowhere.jsonl", check=1)
    assert done.stderr.startswith('sessiond: no such file: "nowhere.jsonl"\nhint: ')


def test_sync_takes_standard_input(here):
    """`-`, as everywhere."""
    done = subprocess.run(
        [BIN / "sessiond", "sync", "-"], input=lines(here), env=here.env,
        capture_output=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"1 session of claude in ")
    assert here.found("anywhere")


def test_sync_hands_a_file_to_the_running_daemon(here):
    """Instead of refusing, because another process writes."""
    file = here.elsewhere / "a.log"
    file.write_bytes(lines(here))
    daemon = here.start()
    try:
        wait_until(lambda: here.run("sessiond", "status").returncode == 0)
        done = here.run("sessiond", "sync", file, check=0)
        assert done.stdout.startswith("1 session of claude in ")
        assert here.run("sessiond", "sync", "-q", file, check=0).stdout == ""
    finally:
        daemon.terminate()
        daemon.wait(LIMIT)


def test_sync_hands_a_directory_to_the_running_daemon(here):
    """It is read as without a daemon: every transcript in it, and the same words about it."""
    (here.elsewhere / "friend").mkdir()
    (here.elsewhere / "friend" / f"{SESSION}.jsonl").write_bytes(lines(here))
    daemon = here.start()
    try:
        wait_until(lambda: here.run("sessiond", "status").returncode == 0)
        done = here.run("sessiond", "sync", here.elsewhere, check=0)
        assert done.stdout.startswith("1 file seen, 1 changed, 2 records read (0.0 MB) in ")
        assert sessions(here) == [("claude", SESSION)]
        done = here.run("sessiond", "sync", "--json", "elsewhere", cwd=here.elsewhere.parent)
        assert {"seen": 1, "changed": 0, "roots": [str(here.elsewhere)]}.items() <= json.loads(
            done.stdout
        ).items()
    finally:
        daemon.terminate()
        daemon.wait(LIMIT)


def test_a_person_may_say_whose_a_file_is(here, capsys):
    """--agent reads what the agent would not know by sight; without words in it, that is said."""
    file = here.elsewhere / "letter.txt"
    file.write_text('{"type": "nothing anybody knows"}\n' * 2)
    with pytest.raises(SessError, match="is not a file of any agent"):
        importing.run([str(file)])
    assert importing.run([str(file)], agent="claude") == 1
    assert capsys.readouterr().out.startswith("no conversations in ")
    done = here.run("sessiond", "sync", "--agent", "claude", check=2)
    assert done.stderr.startswith("sessiond: --agent needs a file\n")
    done = here.run("sessiond", "sync", "--agent", "nobody", file, check=2)
    assert done.stderr.startswith('sessiond: unknown agent "nobody"\n')


def test_of_an_empty_database_is_said_that_its_agent_may_hold_more(here, capsys):
    """An agent that runs saves conversations when it likes."""
    file = here.elsewhere / "state.vscdb"
    with closing(apsw.Connection(os.fspath(file))) as db:
        for table in ("ItemTable", "cursorDiskKV"):
            db.execute(f"CREATE TABLE {table} (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
    assert importing.run([str(file)], agent="cursor") == Exit.NOTHING_FOUND
    said, hint = capsys.readouterr().out.splitlines()
    assert said.startswith("no conversations in ")
    assert hint == "hint: cursor may hold what it has not saved yet; quit it and try again"


def test_what_only_looks_like_an_address_is_a_usage_error(world):
    done = world.run("sess", "import", "http://[::1", check=2)
    assert "is not an address" in done.stderr
