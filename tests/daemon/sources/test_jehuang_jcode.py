"""jcode by 1jehuang: a new snapshot takes the journal in, at any moment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.golden_home import GoldenWorld

from sessiond.sourcekit.base import NotReady

MAIN = "session_owl_1772370000000"


class Jcode(GoldenWorld):
    """The golden home, and the two files of its main session."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "jehuang-jcode")
        self.snapshot = self.root / ".jcode" / "sessions" / f"{MAIN}.json"
        self.journal = self.snapshot.with_name(f"{MAIN}.journal.jsonl")
        self.lay_all()


@pytest.fixture
def jcode(tmp_path):
    return Jcode(tmp_path)


def checkpoint(world):
    """What the program does when its journal is full."""
    session = json.loads(world.snapshot.read_text())
    for line in world.journal.read_bytes().split(b"\n"):
        if b'{"meta"' in line:
            entry = json.loads(line[line.rindex(b'{"meta"') :])
            known = {message["id"] for message in session["messages"]}
            session["messages"] += [m for m in entry["append_messages"] if m["id"] not in known]
            session |= entry["meta"]
    return json.dumps(session).encode()


def test_a_checkpoint_changes_nothing(jcode):
    """The same messages in the snapshot instead of the journal: nothing is read or retired."""
    jcode.ingest()
    before = jcode.shown(MAIN)
    assert len(before) == 9
    jcode.snapshot.write_bytes(checkpoint(jcode))
    assert jcode.ingest().records == 0  # with both, as after a crash between the two steps
    jcode.journal.unlink()
    assert jcode.ingest().records == 0
    assert jcode.shown(MAIN) == before
    assert jcode.sql("SELECT count(*) FROM records WHERE retired > 0") == [(0,)]


def test_a_checkpoint_while_it_is_read_loses_nothing(jcode):
    """An old snapshot without its journal is not taken for a conversation that became shorter."""
    jcode.ingest()
    old = jcode.snapshot.read_bytes()
    jcode.snapshot.write_bytes(checkpoint(jcode))
    jcode.journal.unlink()
    with pytest.raises(NotReady, match="changed while it was read"):
        list(jcode.source.documents.conversations(str(jcode.snapshot), old))


def entry(name, content):
    message = {"id": name, "role": "assistant", "content": content}
    return json.dumps({"meta": {}, "append_messages": [message]}, separators=(",", ":"))


def said(name):
    return entry(name, [{"type": "text", "text": name}])


def texts(world):
    world.ingest()
    return [text for kind, text, _ in world.shown(MAIN) if kind == "assistant"][-2:]


def test_entries_that_were_glued_together_are_all_read(jcode):
    """A lost line break loses nothing, also after an entry that was torn."""
    torn = said("never written")[:-9]
    with jcode.journal.open("a") as journal:
        journal.write(f"{torn}{said('one more cup')}{said('and one more')}\n")
    assert texts(jcode) == ["one more cup", "and one more"]


def test_an_argument_with_the_name_of_an_entry_is_none(jcode):
    """What a tool was given may have a field `meta`, and so look like the start of an entry."""
    given = {"type": "tool_use", "id": "call_m", "name": "mcp", "input": {"meta": {"title": "x"}}}
    with jcode.journal.open("a") as journal:
        journal.write(entry("message_m", [{"type": "text", "text": "with meta"}, given]) + "\n")
        journal.write(said("after it") + "\n")
    assert texts(jcode) == ["with meta", "after it"]
