"""Where rollouts are, which thread each belongs to, and how moved and packed ones are read."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import zstandard
from tests.daemon.families.rollouts.rollouts import Rollout, message, thread_id

from sessiond.sources.codex import CodexSource
from sessiond.sources.traex import TraexSource

HERE = Path(__file__)
THREAD = thread_id(1)


def line(kind, **payload):
    return json.dumps({"type": kind, "payload": payload}).encode() + b"\n"


def spec_of(name, head):
    return CodexSource(environ={"HOME": "/home/kim"}).identify(f"/nowhere/{name}", head)


def saved(home, **options):
    return Rollout(home, 1, **options).turn(1, "fly", "flown").save()


def pack(path):
    packed = path.with_name(path.name + ".zst")
    packed.write_bytes(zstandard.compress(path.read_bytes(), 3))
    os.utime(packed, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    path.unlink()
    return packed


# -- places


def test_the_places_are_below_the_home_of_codex():
    source = CodexSource(environ={"HOME": "/home/kim"})
    assert source.places() == ["/home/kim/.codex/sessions", "/home/kim/.codex/archived_sessions"]
    moved = CodexSource(environ={"HOME": "/home/kim", "CODEX_HOME": "~/cx"})
    assert moved.places() == ["/home/kim/cx/sessions", "/home/kim/cx/archived_sessions"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("2026/03/01/rollout-2026-03-01T12-00-00-x.jsonl", "transcript"),
        ("rollout-2025-04-20-x.json", "document"),
        ("history.jsonl", None),
        ("rollout-2026-03-01.jsonl.bak", None),
        ("session_index.jsonl", None),
    ],
)
def test_only_rollouts_are_read(name, kind):
    """The prompt history and the list of names are not sessions."""
    assert CodexSource(environ={}).classify(f"/h/.codex/sessions/{name}") == kind


def test_other_agents_files_are_not_claimed():
    """The content decides, whatever the name."""
    source = CodexSource(environ={})
    golden = HERE.parents[3] / "golden"
    claimed = {
        path.relative_to(golden).parts[0]
        for path in golden.rglob("*.jsonl")
        if source.claims(str(path), path.read_bytes()[:65536])
    }
    assert claimed == {"codex"}


def test_a_rollout_under_any_name_is_recognised_by_its_content(home):
    """Such as a file outside the known places that `sessiond sync` is given."""
    rollout = saved(home)
    copied = home.root / "anything.jsonl"
    rollout.path.rename(copied)
    assert home.run("sessiond", "sync", copied, check=0).stdout.startswith("1 file seen")
    assert home.sql("SELECT agent, native_id FROM sessions") == [("codex", THREAD)]


def test_the_doctors_probe_is_found(home):
    for path, data in CodexSource(environ={"HOME": str(home.root)}).probe("lantern").items():
        Path(path).write_bytes(data)
    home.ingest()
    assert home.found("lantern") == ["put the lantern on"]


# -- threads


def test_the_first_record_names_the_thread():
    """Neither the file name nor a copied record does."""
    head = line("session_meta", id="own") + line("session_meta", id="copied")
    spec = spec_of(f"rollout-2026-03-01T12-00-00-{THREAD}.jsonl", head)
    assert (spec.native_id, spec.kind, spec.resume) == ("own", "main", ("codex", "resume", "own"))


def test_the_file_name_names_a_thread_without_metadata():
    assert spec_of(f"rollout-2026-03-01T12-00-00-{THREAD}.jsonl", b"").native_id == THREAD
    assert spec_of("rollout-x.jsonl", b"[1]\n").native_id == "rollout-x"


def test_a_first_line_longer_than_the_head_names_the_thread_too():
    """Instructions and tools come after all the short fields."""
    meta = {"id": "own", "forked_from_id": "p", "base_instructions": {"text": "x" * 90_000}}
    assert spec_of("rollout-y.jsonl", line("session_meta", **meta)[:65536]).native_id == "own"
    bare = json.dumps({"id": "old", "instructions": "x" * 90_000}).encode()
    assert spec_of("rollout-y.jsonl", bare[:65536]).native_id == "old"


def test_a_fork_is_a_separate_session():
    spec = spec_of("rollout-y.jsonl", line("session_meta", id="own", forked_from_id="p"))
    assert (spec.kind, spec.parent) == ("main", None)


def test_a_reverted_thread_continues_in_a_separate_session():
    """Its file name has both ids; `resume` takes the id of the thread."""
    name = f"rollout-2026-03-01T12-00-00-{THREAD}_{thread_id(2)}.jsonl"
    spec = spec_of(name, line("session_meta", id=THREAD, history_base={"thread_id": THREAD}))
    assert (spec.native_id, spec.resume) == (thread_id(2), ("codex", "resume", THREAD))


@pytest.mark.parametrize(
    ("facts", "parent", "role", "title"),
    [
        (
            {"source": {"subagent": {"thread_spawn": {
                "parent_thread_id": "p", "agent_nickname": "Ada", "agent_role": "explorer",
            }}}},
            *("p", "explorer", "Ada"),
        ),
        ({"source": {"subagent": "review"}, "parent_thread_id": "p"}, "p", "review", None),
        ({"source": {"subagent": {"other": "guardian"}}}, None, "guardian", None),
        ({"source": "cli", "parent_thread_id": "p", "agent_nickname": "Bo"}, "p", None, "Bo"),
    ],
)  # fmt: skip
def test_a_subagent_has_its_parent_and_its_name(facts, parent, role, title):
    spec = spec_of("rollout-y.jsonl", line("session_meta", id="own", **facts))
    assert (spec.kind, spec.parent, spec.agent_type, spec.title) == (
        *("subagent", parent, role, title),
    )


def test_the_last_name_of_a_thread_is_its_title(home):
    """Even one that was given after the last line of the thread."""
    saved(home)
    home.ingest()
    assert home.sql("SELECT title FROM sessions") == [("fly",)]
    names = home.codex / "session_index.jsonl"
    entries = [{"id": THREAD, "thread_name": name} for name in ("old", "Kite  day")]
    names.write_text("\n".join(map(json.dumps, entries)) + "\nbroken\n[1]\n")
    home.ingest()
    assert home.sql("SELECT title FROM sessions") == [("Kite day",)]


THREADS = "CREATE TABLE threads (id TEXT PRIMARY KEY, title TEXT, first_user_message TEXT"


@pytest.mark.parametrize(
    ("table", "rename"),
    [
        (f"{THREADS}, name TEXT)", "UPDATE threads SET name = 'Kite  day'"),
        (f"{THREADS})", "UPDATE threads SET title = 'Kite  day'"),
    ],
)
def test_a_name_in_the_database_is_the_title(home, table, rename):
    """Also one given after the last line of the thread; a title alone repeats the prompt."""
    with closing(sqlite3.connect(home.codex / "state_5.sqlite")) as db:
        db.execute(table)
        db.execute(
            "INSERT INTO threads (id, title, first_user_message) VALUES (?, 'fly', 'fly')",
            (THREAD,),
        )
        db.commit()
        rollout = saved(home)
        home.ingest()
        assert home.sql("SELECT title, title_rank FROM sessions") == [("fly", 1)]
        db.execute(rename)
        db.commit()
        os.utime(home.codex / "state_5.sqlite", ns=(1, 1))  # a later write changes the time
        home.ingest()
        assert home.sql("SELECT title FROM sessions") == [("Kite day",)]
    rollout.turn(2, "higher").save()
    home.ingest()
    assert home.sql("SELECT title FROM sessions") == [("Kite day",)]
    assert home.sql("SELECT count(*) FROM sessions") == [(1,)]
    assert sorted(path.name for path in home.codex.iterdir()) == ["sessions", "state_5.sqlite"]


def test_the_newest_database_counts(home):
    """The number in its name grows with its schema; old ones stay."""
    for number, name in ((9, "old"), (10, "new")):
        with closing(sqlite3.connect(home.codex / f"state_{number}.sqlite")) as db:
            db.execute(f"{THREADS}, name TEXT)")
            db.execute("INSERT INTO threads (id, name) VALUES (?, ?)", (THREAD, name))
            db.commit()
    source = CodexSource(environ={"HOME": str(home.root)})
    assert source.places()[2:] == [str(home.codex / "state_10.sqlite")]
    saved(home)
    (home.codex / "state_9.sqlite").unlink()
    home.ingest()
    assert home.sql("SELECT title FROM sessions") == [("new",)]


def test_each_agent_claims_its_own_rollouts():
    """TRAE CLI writes the same format; the provider of its models tells them apart."""
    codex, trae = CodexSource(environ={}), TraexSource(environ={"HOME": "/h"})
    for provider, expected in (("openai", (True, False)), ("trae", (False, True))):
        head = line("session_meta", id=THREAD, model_provider=provider)
        assert (codex.claims("/x/a.jsonl", head), trae.claims("/x/a.jsonl", head)) == expected
    assert trae.places() == ["/h/.trae/cli/sessions", "/h/.trae/cli/archived_sessions"]
    moved = TraexSource(environ={"HOME": "/h", "TRAE_HOME": "~/t"})
    assert moved.places()[0] == "/h/t/cli/sessions"


def test_a_session_has_the_facts_of_its_thread(home):
    saved(home)
    home.ingest()
    assert home.sql(
        "SELECT agent, native_id, kind, project, git_branch, version, models, prompts FROM sessions"
    ) == [("codex", THREAD, "main", "/code/kite", "main", "0.149.0", '["gpt-5.6-sol"]', 1)]


# -- files that move


def test_a_rollout_that_was_packed_in_place_is_the_same_source(home):
    """Nothing is read again, nothing is gone, and the archive returns the plain bytes."""
    rollout = saved(home)
    home.ingest()
    before, plain = home.dump(), rollout.path.read_bytes()
    pack(rollout.path)
    assert (home.ingest().records, home.ingest().gone) == (0, 0)
    assert home.dump() == before
    assert home.restored(rollout.path) == plain


def test_a_packed_rollout_that_is_unpacked_and_grows_is_read_further(home):
    rollout = saved(home)
    pack(rollout.path)
    home.ingest()
    assert home.texts(THREAD) == ["fly"]
    rollout.turn(2, "higher").save()
    rollout.path.with_name(rollout.path.name + ".zst").unlink()
    assert home.ingest().records == 4
    assert home.texts(THREAD) == ["fly", "higher"]


def test_of_a_packed_and_a_plain_rollout_the_plain_one_is_read(home):
    rollout = saved(home)
    packed = pack(rollout.path)
    rollout.turn(2, "higher").save()
    assert packed.exists()
    assert home.ingest().seen == 1
    assert home.texts(THREAD) == ["fly", "higher"]


@pytest.mark.parametrize("packed", [False, True])
def test_an_archived_rollout_is_the_same_source(home, packed):
    """Codex archives by renaming: nothing is read again and nothing is gone."""
    rollout = saved(home)
    path = pack(rollout.path) if packed else rollout.path
    home.ingest()
    before = home.sql("SELECT id, state, offset FROM sources")
    archive = home.codex / "archived_sessions"
    archive.mkdir()
    path.rename(archive / path.name)
    found = home.ingest()
    assert (found.records, found.gone) == (0, 0)
    assert home.sql("SELECT id, state, offset FROM sources") == before
    assert home.sql("SELECT path FROM sources") == [(str(archive / rollout.path.name),)]
    assert home.texts(THREAD) == ["fly"]


def test_large_lines_are_read(home):
    """Instructions of many kilobytes in the first line, megabytes in a result."""
    rollout = Rollout(home, 1, base_instructions={"text": "x" * 200_000})
    rollout.add(message("user", "y" * 3_000_000 + " kitesurf")).save()
    home.ingest()
    assert len(home.found("kitesurf")) == 1
    assert home.found("x" * 60) == []


# -- the first releases


def test_a_session_in_one_document_is_read_after_each_rewrite(home):
    """The first releases rewrote the whole session after each turn."""
    path = home.codex / "sessions" / "rollout-2025-04-20-0b1c.json"
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "function_call", "name": "shell", "call_id": "c1",
         "arguments": '{"command":["ls"]}'},
    ]  # fmt: skip
    facts = {"timestamp": "2025-04-20T10:00:00.000Z", "id": "0b1c"}
    path.write_text(json.dumps({"session": facts, "items": items}))
    home.ingest()
    assert home.shown("0b1c") == [("user", "hi", None), ("tool_use", "ls", "pending")]
    output = {"type": "function_call_output", "call_id": "c1", "output": '{"output":"a"}'}
    path.write_text(json.dumps({"session": facts, "items": [*items, output]}))
    home.ingest()
    assert home.shown("0b1c") == [("user", "hi", None), ("tool_use", "lsa", "ok")]
    assert home.sql("SELECT title, started_at, prompts FROM sessions") == [("hi", 1745143200000, 1)]
    path.write_text(json.dumps({"session": facts, "items": [*items, output]})[:50])
    home.ingest()
    assert home.shown("0b1c") == [("user", "hi", None), ("tool_use", "lsa", "ok")]
