"""Logs of entries: what the golden homes of Pi and OMP do not show."""

from __future__ import annotations

import pytest
from tests.golden_home import GoldenWorld, facts

from sessiond.families.entry_log import EntryParser
from sessiond.sourcekit.base import SessionSpec


def test_a_title_that_is_written_over_in_place_changes_nothing_else(tmp_path):
    """OMP keeps the title in a first line of fixed length: later lines stay where they are."""
    world = GoldenWorld(tmp_path, "omp")
    world.lay_all()
    world.ingest()
    before = facts(world)
    log = next(part for part in world.parts if part.data.startswith(b'{"type":"title"'))
    path = world.file(log)
    data = path.read_bytes()
    slot, rest = data.split(b"\n", 1)
    path.write_bytes(slot.replace(b"Lute strings", b"Lute-strings") + b"\n" + rest)
    world.ingest()
    assert facts(world) == before
    assert world.restored(str(path)) == path.read_bytes()


def test_the_same_short_id_in_two_sessions_is_two_entries(tmp_path):
    """Ids have eight digits: those of two sessions may be equal."""
    world = GoldenWorld(tmp_path, "pi")
    folder = world.root / ".pi/agent/sessions/--x--"
    folder.mkdir(parents=True)
    for number in (1, 2):
        session = f"0196aaaa-0000-7000-8000-00000000000{number}"
        moment = f"2026-05-08T02:00:0{number}.000Z"
        usage = f'{{"input":{number},"output":1,"cost":{{}}}}'
        (folder / f"{number}_{session}.jsonl").write_text(
            f'{{"type":"session","version":3,"id":"{session}","timestamp":"{moment}","cwd":"/x"}}\n'
            f'{{"type":"message","id":"0000aaaa","parentId":null,"timestamp":"{moment}","message":'
            f'{{"role":"assistant","content":[],"model":"m","usage":{usage},"stopReason":"stop"}}}}\n'
        )
    world.ingest()
    assert world.sql("SELECT sum(input_tokens) FROM usage WHERE counted") == [(3,)]


@pytest.mark.parametrize(
    ("output", "status"),
    [
        ("Command aborted", "denied"),
        ("counting\n\nCommand aborted", "denied"),
        ("User denied the command", "denied"),
        ("no such file\n\nCommand exited with code 1", "error"),
        ("waiting\n\nCommand timed out after 5 seconds", "error"),
    ],
)
def test_a_call_that_a_person_stopped_is_denied_and_a_failed_one_failed(output, status):
    parser = EntryParser(SessionSpec("s"), {})
    content = [{"type": "text", "text": output}]
    message = {"role": "toolResult", "toolCallId": "c1", "toolName": "bash", "content": content}
    record = parser.parse({"type": "message", "message": {**message, "isError": True}})
    assert [result.status for result in record.results] == [status]
