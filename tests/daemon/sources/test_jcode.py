"""jcode by cnjack: overflowed outputs, names that come later, and files that become shorter."""

from __future__ import annotations

import json

import pytest
from tests.golden_home import GoldenWorld

MAIN = "7ca1e000-0000-4000-8000-000000000001"
CUT = "lines / 60000 bytes truncated"


@pytest.fixture
def jcode(tmp_path):
    world = GoldenWorld(tmp_path, "jcode")
    world.lay_all()
    world.sessions = world.root / ".jcode" / "sessions"
    return world


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
    assert jcode.ingest().turns == 0
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
