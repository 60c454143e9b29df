"""Files that their agent rewrites whole: records that stay, change, leave and return."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from tests.gemini_home import SESSION, GeminiWorld, answer, call, document, prompt
from tests.waiting import let_it_write

from sessiond.reading import tail

FIRST = (prompt(1, "one"), answer(2, "two"), prompt(3, "three"))


@pytest.fixture
def world(tmp_path):
    return GeminiWorld(tmp_path)


def ids(world):
    """Ids of the events that are shown, by text."""
    return dict(
        world.sql(
            "SELECT x.text || x.input || x.output, e.id FROM events e JOIN event_texts x USING (id)"
            " JOIN records t ON t.id = e.record_id WHERE e.retired = 0 AND t.retired = 0"
        )
    )


@pytest.fixture
def known(world):
    """A document of three messages, already read; returns its event ids."""
    world.document().write_bytes(document(*FIRST))
    world.ingest()
    return ids(world)


def rewrite(world, *messages, **more):
    world.document().write_bytes(document(*messages, **more))
    return world.ingest()


def test_records_that_did_not_change_keep_their_events(world, known):
    """After two more messages, the old ones keep their ids."""
    rewrite(world, *FIRST, answer(4, "four"), prompt(5, "five"))
    now = ids(world)
    assert {text: now[text] for text in known} == known
    assert world.texts() == ["one", "two", "three", "four", "five"]
    assert world.sql("SELECT events, prompts FROM sessions") == [(5, 3)]
    world.check()


def test_a_record_changes_in_place(world, known):
    """A message with new text keeps its event; the old text is no longer found."""
    rewrite(world, FIRST[0], answer(2, "zwei"), FIRST[2])
    assert ids(world) == {"one": known["one"], "zwei": known["two"], "three": known["three"]}
    assert world.found("two") == []
    assert world.found("zwei") == ["zwei"]
    world.check()


def test_a_record_changes_in_place_if_only_its_images_do(world):
    """A second picture under the same words is counted."""
    picture = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    for pictures in ([picture], [picture, picture]):
        message = prompt(1, "look")
        message["content"] += pictures
        rewrite(world, message)
        assert world.sql("SELECT images FROM events WHERE retired = 0") == [(len(pictures),)]


def test_a_call_that_ends_changes_in_place(world):
    """The same event gets the output and the status."""
    world.document().write_bytes(document(answer(1, "", toolCalls=[call(1, "ls", status="x")])))
    world.ingest()
    before = world.sql("SELECT id, status FROM events")
    rewrite(world, answer(1, "", toolCalls=[call(1, "ls", "a.txt")]))
    assert before == [(before[0][0], "pending")]
    assert world.sql("SELECT id, status FROM events") == [(before[0][0], "ok")]
    assert world.texts() == ["lsa.txt"]


def test_a_document_that_moved_is_the_same_one(world, known):
    """Its folder got another name; a later change replaces the old message."""
    old = world.document()
    folder = old.parents[1]
    moved = folder.with_name("renamed")
    folder.rename(moved)
    world.ingest()
    assert ids(world) == known
    path = str(moved / old.parent.name / old.name)
    whole = world.sql("SELECT path, state FROM sources ORDER BY path")
    assert whole == [(path, "live"), (f"{path}#{SESSION}", "live")]
    (moved / old.parent.name / old.name).write_bytes(document(FIRST[0], answer(2, "zwei")))
    world.ingest()
    assert world.texts() == ["one", "zwei"]
    world.check()


def test_a_record_that_leaves_the_document_is_retired(world, known):
    """It is no longer shown or counted, but stays in the index, and may return."""
    rewrite(world, FIRST[0], FIRST[2])
    assert world.texts() == ["one", "three"]
    assert world.sql("SELECT events, prompts FROM sessions") == [(2, 2)]
    assert world.sql("SELECT text FROM events e JOIN event_texts USING (id) WHERE retired > 0") == [
        ("two",)
    ]
    rewrite(world, *FIRST)
    assert world.texts() == ["one", "two", "three"]
    world.check()


def test_records_follow_the_order_of_the_document(world, known):
    """Messages that moved are shown where they are now."""
    rewrite(world, FIRST[2], FIRST[0], FIRST[1])
    assert world.texts() == ["three", "one", "two"]
    assert ids(world) == known


def test_a_conversation_that_leaves_its_document_is_kept(world, known):
    """Another session replaces it in the file: the index has both, the first as gone."""
    other = "cccccccc-1111-4111-8111-111111111111"
    rewrite(world, prompt(9, "nine"), session=other)
    assert world.texts(SESSION) == ["one", "two", "three"]
    assert world.texts(other) == ["nine"]
    path = world.document()
    assert dict(world.sql("SELECT path, state FROM sources")) == {
        str(path): "live",
        f"{path}#{SESSION}": "gone",
        f"{path}#{other}": "live",
    }
    lines = world.run("sess", "restore", SESSION, "--no-sync", check=0).stdout.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [one["id"] for one in FIRST]
    rewrite(world, *FIRST)
    assert ids(world).items() >= known.items()
    assert world.sql("SELECT state FROM sources WHERE path = ?", f"{path}#{SESSION}") == [("live",)]
    world.check()


@pytest.mark.parametrize("torn", [b"", b"{", document(*FIRST)[:-5], b"[1]", b'{"messages": 7}'])
def test_a_half_written_document_changes_nothing_and_is_read_again(world, known, torn):
    """The index keeps what it has; the next pass reads the complete file."""
    world.document().write_bytes(torn)
    summary = world.ingest()
    assert ids(world) == known
    assert [path for path, _ in summary.skipped] == [str(world.document())]
    assert world.sql("SELECT state, error IS NULL FROM sources WHERE part_of IS NULL") == [
        ("unreadable", 0)
    ]
    assert world.restored(world.document()) == document(*FIRST)
    rewrite(world, *FIRST, answer(4, "four"))
    assert world.texts() == ["one", "two", "three", "four"]
    assert world.sql("SELECT state, error FROM sources WHERE part_of IS NULL") == [("live", None)]


def test_restore_gives_the_document(world, known, tmp_path):
    """By session id or by path, byte for byte, even after the file is gone."""
    whole = world.document().read_bytes()
    for given in (SESSION, world.document()):
        out = tmp_path / f"out-{len(str(given))}"
        world.run("sess", "restore", given, "-o", out, "--no-sync", check=0)
        assert out.read_bytes() == whole
    world.document().unlink()
    world.ingest()
    assert {state for (state,) in world.sql("SELECT state FROM sources")} == {"gone"}
    assert world.texts() == ["one", "two", "three"]
    out = tmp_path / "again"
    world.run("sess", "restore", SESSION, "-o", out, "--no-sync", check=0)
    assert out.read_bytes() == whole
    world.document().write_bytes(whole)
    world.ingest()
    assert {state for (state,) in world.sql("SELECT state FROM sources")} == {"live"}
    assert ids(world) == known


def test_a_document_that_changes_while_it_is_read_is_read_again(world, known, monkeypatch):
    """A write during a read discards that read."""
    world.document().write_bytes(document(*FIRST, answer(4, "four")))
    read = tail.read_at
    grown: list[int] = []

    def read_and_write(fd, count, offset):
        data = read(fd, count, offset)
        if not grown:
            grown.append(world.document().write_bytes(document(*FIRST, answer(5, "five"))))
            os.utime(world.document(), (1, 1))
        return data

    monkeypatch.setattr(tail, "read_at", read_and_write)
    summary = world.ingest()
    assert summary.skipped == [(str(world.document()), "changed while it was read")]
    assert ids(world) == known
    world.ingest()
    assert world.texts() == ["one", "two", "three", "five"]


def test_records_with_the_same_id_are_separate_records(world):
    """Two messages with one id are both shown, and each keeps its event."""
    one, two = prompt(1, "one"), {**prompt(2, "two"), "id": prompt(1, "")["id"]}
    world.document().write_bytes(document(one, two))
    world.ingest()
    before = ids(world)
    rewrite(world, one, two, prompt(3, "three"))
    assert world.texts() == ["one", "two", "three"]
    assert {text: ids(world)[text] for text in before} == before


def test_a_kill_at_any_moment_loses_nothing(world, tmp_path):
    """After kill -9 during rewrites, the index is that of an undisturbed read."""
    for round_ in range(3):
        messages = [prompt(n, f"message {n} of round {round_ if n % 3 else 0}") for n in range(300)]
        world.document().write_bytes(document(*messages))
        daemon = world.start()
        let_it_write(world, round_)
        daemon.kill()
        daemon.wait()
    world.run("sessiond", "sync", check=0)
    world.check()
    clean = GeminiWorld(tmp_path / "clean")
    clean.document().write_bytes(world.document().read_bytes())
    clean.ingest()
    assert world.texts() == clean.texts()
    assert world.sql("SELECT events, prompts FROM sessions") == [(300, 300)]
    assert world.restored(world.document()) == world.document().read_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports peak memory in /proc")
def test_a_document_of_20_mb_needs_bounded_memory(world):
    """At most 300 MB, however many messages it has."""
    messages = [answer(n, f"{n} " + "word " * 2100) for n in range(2000)]
    world.document().write_bytes(document(*messages))
    assert world.document().stat().st_size > 20 << 20
    program = (
        "import sys; from sessiond.main import run\n"
        "sys.argv = ['sessiond', 'sync']\n"
        "try: run()\n"
        "finally: print(open('/proc/self/status').read(), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=world.env, capture_output=True, text=True, check=True
    )
    (most,) = (line for line in done.stderr.splitlines() if line.startswith("VmHWM:"))
    assert int(most.split()[1]) < 300 << 10
    assert world.sql("SELECT events FROM sessions") == [(2000,)]
