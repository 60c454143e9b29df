"""jcode by cnjack: overflowed outputs, names that come later, and files that become shorter."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.golden_home import GoldenWorld

MAIN = "7ca1e000-0000-4000-8000-000000000001"
CUT = "lines / 60000 bytes truncated"


class Jcode(GoldenWorld):
    """The golden home, and where its sessions are."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "jcode")
        self.sessions = self.root / ".jcode" / "sessions"
        self.lay_all()


@pytest.fixture
def jcode(tmp_path):
    return Jcode(tmp_path)


def grep_output(world):
    ((output,),) = world.sql(
        "SELECT x.output FROM events e JOIN event_texts x ON x.id = e.id WHERE e.tool = 'grep'"
    )
    return output


def test_an_overflowed_output_is_read_in_full(jcode):
    """The index has the whole text, whichever of the two files came first."""
    overflow = jcode.sessions / "overflow" / MAIN / "c6.txt"
    text = overflow.read_text()
    overflow.unlink()
    jcode.ingest()
    assert CUT in grep_output(jcode)
    overflow.write_text(text)
    jcode.ingest()
    assert grep_output(jcode) == text
    assert jcode.found("only in the full output")


def test_a_result_reads_no_file_outside_of_its_session(jcode):
    """The path in a notice is only a name: it leads nowhere else."""
    log = jcode.sessions / f"{MAIN}.json"
    secret = jcode.root / "c6.txt"
    secret.write_text("a secret of somebody else")
    (jcode.sessions / "overflow" / MAIN / "c6.txt").unlink()
    log.write_text(log.read_text().replace(f"overflow/{MAIN}/c6.txt", "../../c6.txt"))
    jcode.ingest()
    assert CUT in grep_output(jcode)


def test_a_new_name_in_the_index_is_taken(jcode):
    """A session that a person renames later has the new title, without being read again."""
    jcode.ingest()
    index = jcode.sessions / "session.json"
    listed = json.loads(index.read_text())
    (entries,) = listed["sessions"].values()
    entries[0]["title"] = "The brightest spoon"
    index.write_text(json.dumps(listed))
    assert jcode.ingest().records == 0
    query = "SELECT title FROM sessions WHERE native_id = ?"
    assert jcode.sql(query, MAIN) == [("The brightest spoon",)]


def test_going_back_to_an_earlier_message_retires_what_followed(jcode):
    """jcode cuts the file before a prompt and goes on: only what is in the file is shown."""
    jcode.ingest()
    log = jcode.sessions / f"{MAIN}.json"
    lines = log.read_text().splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if '"content":"thanks"' in line)
    other = '{"type":"user","content":"and the knife","timestamp":"2026-03-01T13:01:00+02:00"}\n'
    beside = log.with_suffix(".json.tmp")
    beside.write_text("".join(lines[:at]) + other)
    beside.rename(log)
    jcode.ingest()
    prompts = [text for kind, text, _ in jcode.shown(MAIN) if kind == "user"]
    assert prompts == ["polish the spoon\nand the fork", "and the knife"]


def test_calls_without_ids_are_joined_by_name_and_order(jcode):
    """Of two running commands the first result is the first one's; a prompt ends the waiting."""
    jcode.ingest()
    calls = jcode.sql(
        "SELECT e.summary, e.status, x.output FROM events e JOIN event_texts x ON x.id = e.id"
        " JOIN sessions s ON s.id = e.session_id WHERE s.project LIKE 'ssh:%'"
        " AND e.tool = 'execute' ORDER BY e.id"
    )
    assert calls == [
        ("ls cups", "ok", "3 cups"),
        ("ls saucers", "ok", "2 saucers"),
        ("never answered", "pending", ""),
        ("ls cups", "ok", "still 3"),
    ]


def wrote(world, name, *entries):
    """A session with these entries after its header."""
    header = {"type": "session_start", "uuid": name, "project": "/p", "model": "gpt-5.1"}
    lines = [
        json.dumps(entry | {"timestamp": f"2026-03-01T13:00:{second:02}Z"})
        for second, entry in enumerate((header, *entries))
    ]
    (world.sessions / f"{name}.json").write_text("\n".join(lines) + "\n")


def call(tool, call_id, **args):
    return {"type": "tool_call", "name": tool, "tool_call_id": call_id, "args": json.dumps(args)}


def result(tool, call_id, output, **more):
    return {"type": "tool_result", "name": tool, "tool_call_id": call_id, "output": output, **more}


def subagent(what, name, **more):
    return {"type": f"subagent_{what}", "subagent_name": name, **more}


def test_subagents_that_run_at_once_end_one_by_one(jcode):
    """Each belongs to the call that names it, and goes on when another has its result."""
    wrote(
        jcode,
        "both",
        {"type": "user", "content": "look twice"},
        call("subagent", "a1", name="left", prompt="look left"),
        call("subagent", "a2", name="right", prompt="look right"),
        subagent("start", "right"),
        subagent("start", "left"),
        call("glob", "x1", pattern="*.left"),
        result("glob", "x1", "one"),
        subagent("result", "right", output="half", error="lost its way"),
        call("grep", "x2", pattern="left"),
        result("grep", "x2", "two"),
        subagent("result", "left", output="done"),
        call("read", "x3", file_path="/p/found"),
        result("read", "x3", "three"),
    )
    jcode.ingest()
    calls = jcode.sql(
        "SELECT s.native_id, e.tool FROM events e JOIN sessions s ON s.id = e.session_id"
        " WHERE s.native_id LIKE 'both%' AND e.type = 'tool_use' ORDER BY e.id"
    )
    main = [("both", "subagent"), ("both", "subagent"), ("both", "read")]
    assert sorted(calls) == sorted([*main, ("both/2-left", "glob"), ("both/2-left", "grep")])
    links = jcode.sql("SELECT native_id, call_id FROM sessions WHERE native_id LIKE 'both/%'")
    assert ("both/2-left", "a1") in links
    said = [text for kind, text, _ in jcode.shown("both") if kind == "system"]
    assert "right\nhalf\nlost its way" in said


def test_an_output_that_quotes_a_notice_stays_as_it_is(jcode):
    """Only the file that is named after the call has its output."""
    quoted = f"Full output saved to: /x/overflow/{MAIN}/c6.txt\nsaid the log"
    log = jcode.sessions / f"{MAIN}.json"
    reads = call("execute", "c8", command="tail log"), result("execute", "c8", quoted)
    moment = {"timestamp": "2026-03-01T13:02:00Z"}
    log.write_text(log.read_text() + "".join(json.dumps(one | moment) + "\n" for one in reads))
    jcode.ingest()
    query = "SELECT x.output FROM events e JOIN event_texts x ON x.id = e.id WHERE e.summary = ?"
    assert jcode.sql(query, "tail log") == [(quoted,)]
    assert CUT not in grep_output(jcode)


def test_the_model_of_a_tool_is_none_of_the_session(jcode):
    """What paints a picture did not answer the prompt."""
    painted = result("generate_image", "g1", "a spoon", provider="google", model="imagen-4")
    asked = {"type": "user", "content": "paint"}
    wrote(jcode, "paint", asked, call("generate_image", "g1", prompt="a spoon"), painted)
    jcode.ingest()
    query = "SELECT models FROM sessions WHERE native_id = 'paint'"
    assert jcode.sql(query) == [('["gpt-5.1"]',)]
