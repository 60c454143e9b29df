"""What an older edition of a reader read is read again once."""

from __future__ import annotations

import json
import random
import shutil
from contextlib import closing

import pytest
from tests.conftest import opened
from tests.daemon.sources.cursor.agent_files import TALK, Chat, Index
from tests.daemon.writing.test_order import comparable, conversation, written
from tests.gemini_home import GeminiWorld, answer, call, document, prompt

from sessiond.config import Config
from sessiond.sources import all_sources
from sessiond.sources.claude import ClaudeSource
from sessiond.writing import reread
from sessiond.writing.transaction import Store

SOURCES = {source.agent: source for source in all_sources(Config())}


def grow_old(world):
    """Make the index one whose sources were read by an older edition, and otherwise."""
    with closing(opened(world.state / "index.db")) as db:
        db.execute("UPDATE sources SET edition = 0")
        db.execute("UPDATE events SET label = 'old', duration_ms = 1")
        db.execute("UPDATE records SET digest = digest / 2, kind = 'old'")
        db.execute("UPDATE usage SET input_tokens = 7, chars = 9")


def again(world, report=lambda _text: None):
    with closing(opened(world.state / "index.db")) as db:
        return reread.reread(Store(db), SOURCES, report)


def numbers(world):
    return world.sql("SELECT id, record_id, type FROM events ORDER BY id")


@pytest.mark.parametrize("seed", range(6))
def test_logs_are_read_again_from_the_archive_as_in_a_fresh_load(world, seed):
    """Forks, replays and summaries come out alike, with the numbers they had, files or not."""
    for session, lines in conversation(world, random.Random(seed)).items():
        written(world, session).append(*lines)
    world.transcript("99999999-1111-4111-8111-111111111111").append(
        world.transcript().prompt("alone"), b'{"type":"user","torn\n', b'{"unfinished'
    )
    world.ingest()
    fresh, before = comparable(world), numbers(world)
    left = world.sql("SELECT retired, offset, length, data FROM chunks ORDER BY id")
    grow_old(world)
    shutil.rmtree(world.projects)
    assert again(world) == len(fresh["sources"])
    assert comparable(world) == fresh
    assert numbers(world) == before
    assert world.sql("SELECT retired, offset, length, data FROM chunks ORDER BY id") == left
    assert again(world) == 0
    world.check()


def test_a_log_that_goes_on_is_read_on(world):
    """The state of the parser is that after the last line."""
    transcript = world.transcript()
    block = {"type": "text", "text": "once"}
    transcript.append(transcript.assistant([block], message_id="m"))
    world.ingest()
    grow_old(world)
    again(world)
    transcript.append(transcript.assistant([block], message_id="m"), transcript.prompt("more"))
    world.ingest()
    assert world.shown(transcript.session) == [("assistant", "once", None), ("user", "more", None)]


def test_a_stop_loses_only_the_batch_it_happens_in(world, monkeypatch):
    """What was committed is not read once more."""
    monkeypatch.setattr(reread, "COMMIT_BYTES", 0)
    for letter in "abc":
        transcript = world.transcript(f"{letter * 8}-1111-4111-8111-111111111111")
        transcript.append(transcript.prompt(f"in {letter}"))
    world.ingest()
    fresh = comparable(world)
    grow_old(world)
    seen = []

    def stop_at_the_second(text):
        seen.append(text)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        again(world, stop_at_the_second)
    assert world.sql("SELECT count(*) FROM sources WHERE edition = 0") == [(2,)]
    assert again(world) == 2
    assert comparable(world) == fresh
    assert seen[0] == "reading archived logs again, 0 of 0 MB"


def test_a_log_that_cannot_be_read_again_stays_as_it_was(world, monkeypatch, caplog):
    """It is reported and not tried at each start; the others are read."""
    for letter in "ab":
        transcript = world.transcript(f"{letter * 8}-1111-4111-8111-111111111111")
        transcript.append(transcript.prompt(f"in {letter}"))
    world.ingest()
    grow_old(world)
    identify = ClaudeSource.identify

    def crash(self, path, head):
        if "/aaaa" in path:
            raise RuntimeError("no")
        return identify(self, path, head)

    monkeypatch.setattr(ClaudeSource, "identify", crash)
    assert again(world) == 2
    assert "again: RuntimeError('no')" in caplog.text
    assert world.sql("SELECT text, label FROM events JOIN event_texts USING (id) ORDER BY 1") == [
        ("in a", "old"),
        ("in b", None),
    ]
    assert again(world) == 0


def test_what_was_said_in_a_sidecar_outlives_it(world):
    """The link and the description of a subagent stay when its sidecar is gone."""
    agent = world.projects / "-code-demo" / world.transcript().session / "subagents" / "agent-1"
    transcript = world.transcript()
    transcript.path = agent.with_suffix(".jsonl")
    transcript.path.parent.mkdir(parents=True)
    transcript.append(transcript.prompt("go", isSidechain=True, agentId="1"))
    facts = {"toolUseId": "toolu_1", "agentType": "Explore", "description": "Look around"}
    sidecar = agent.with_suffix(".meta.json")
    sidecar.write_text(json.dumps(facts))
    world.ingest()
    fresh = comparable(world)
    sidecar.unlink()
    grow_old(world)
    again(world)
    assert comparable(world) == fresh


def test_a_database_is_read_anew_in_place(world, monkeypatch):
    """Also records that are joined with others keep their numbers, and none is retired."""
    monkeypatch.setattr("sessiond.engines.databases.CLOCK_STEP_NS", 0)
    with closing(Chat(world.root)) as chat:
        chat.save(TALK)
    index = Index(world)
    index.read()
    fresh, before = world.dump(), numbers(world)
    grow_old(world)
    assert again(world) == 0
    index.read()
    assert world.dump() == fresh
    assert numbers(world) == before
    world.check()


def test_a_document_is_read_anew_in_place(tmp_path):
    """Once: the next pass finds nothing new."""
    world = GeminiWorld(tmp_path)
    talk = prompt(1, "do it"), answer(2, "Sure.", toolCalls=[call(2, "ls", "a")])
    world.document().write_bytes(document(*talk))
    world.ingest()
    fresh, before = world.dump(), numbers(world)
    grow_old(world)
    again(world)
    assert world.ingest().records == 2
    assert world.dump() == fresh
    assert numbers(world) == before
    assert world.ingest().records == 0
    world.check()
