"""Gemini CLI chats in the index: what a session shows, and where its files and project are."""

from __future__ import annotations

import hashlib
import json
import random

import pytest
from tests.gemini_home import (
    OTHER,
    SESSION,
    GeminiWorld,
    answer,
    call,
    document,
    encoded,
    header,
    message,
    moment,
    prompt,
    rewind,
)

from sessiond.sources.gemini import GeminiSource
from sessiond.sources.gemini.chat import tool_call

CHAT = (
    prompt(1, "list the files"),
    answer(2, "", toolCalls=[call(1, "ls", status="executing")]),
    answer(2, "", toolCalls=[call(1, "ls", "a.txt")], tokens={"input": 9, "output": 2}),
    answer(3, "There is one.", tokens={"input": 20, "output": 5, "cached": 8, "thoughts": 1}),
)
SHOWN = ["list the files", "lsa.txt", "There is one."]


def test_a_message_that_is_written_again_shows_once(world):
    """Only the last version is shown, counted, found and priced."""
    world.log().write_bytes(encoded(header(), *CHAT))
    world.ingest()
    assert world.texts() == SHOWN
    assert world.sql("SELECT events, prompts, tool_calls, title FROM sessions") == [
        (3, 1, 1, "list the files")
    ]
    assert world.sql("SELECT status FROM events WHERE type = 'tool_use' AND retired = 0") == [
        ("ok",)
    ]
    assert world.sql(
        "SELECT input_tokens, cache_read_tokens, output_tokens FROM usage ORDER BY ts"
    ) == [(9, 0, 2), (12, 8, 6)]
    assert world.restored(world.log()) == world.log().read_bytes()
    world.check()


def test_a_rewind_takes_back_what_followed_but_not_its_cost(world):
    """The prompt and its answer leave the session and its counts; their tokens still count."""
    again = (prompt(4, "delete it"), answer(5, "Done.", tokens={"input": 1, "output": 7}))
    after = prompt(6, "keep it")
    world.log().write_bytes(encoded(header(), *CHAT, *again, rewind(4), after))
    world.ingest()
    assert world.texts() == [*SHOWN, "keep it"]
    assert world.sql("SELECT events, prompts, tool_calls FROM sessions") == [(4, 2, 1)]
    assert world.sql("SELECT sum(output_tokens) FROM usage") == [(15,)]


def test_a_checkpoint_takes_nothing_back(world):
    """After a compression the model's context is shorter; the session keeps all messages."""
    snapshot = message("user", 90, [{"text": "<state_snapshot>all of it</state_snapshot>"}])
    compressed = {"$set": {"messages": [snapshot, message("gemini", 91, "Got it.")]}}
    world.log().write_bytes(encoded(header(), *CHAT, compressed, prompt(6, "go on")))
    world.ingest()
    assert world.texts() == [*SHOWN, "<state_snapshot>all of it</state_snapshot>", "go on"]


@pytest.mark.parametrize("first", ["document", "log", "both"])
def test_a_log_replaces_the_document_it_was_made_from(world, first):
    """Whichever is read first, the session is the same and nothing is shown twice."""
    old = document(CHAT[0], CHAT[1], CHAT[3], summary="Files")
    new = encoded(header(), *CHAT, prompt(6, "and now"))
    files = {"document": (world.document(), old), "log": (world.log(), new)}
    for name in sorted(files, key=lambda name: name != first):
        path, data = files[name]
        path.write_bytes(data)
        if first != "both":
            world.ingest()
    world.ingest()
    assert world.texts() == [*SHOWN, "and now"]
    assert world.sql("SELECT events, prompts, tool_calls, title, first_prompt FROM sessions") == [
        (4, 2, 1, "list the files", "list the files")
    ]
    assert world.sql("SELECT sum(output_tokens) FROM usage WHERE counted") == [(8,)]
    world.check()


def test_a_log_read_in_any_chunks_gives_the_same_index(world, tmp_path):
    """Cut anywhere, with a pass after each chunk, the index is that of a single read."""
    data = encoded(header(), *CHAT, prompt(4, "no"), rewind(4), *CHAT[2:], prompt(7, "yes"))
    for seed in range(4):
        grown, clean = GeminiWorld(tmp_path / f"g{seed}"), GeminiWorld(tmp_path / f"c{seed}")
        rng = random.Random(seed)
        cuts = sorted(rng.sample(range(1, len(data)), 6))
        for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            with grown.log().open("ab") as log:
                log.write(data[start:end])
            grown.ingest(settle=False)
        grown.ingest()
        clean.log().write_bytes(data)
        clean.ingest()
        assert grown.dump() == clean.dump()
        assert grown.texts() == clean.texts()


def test_a_subagent_is_linked_to_the_call_that_started_it(world):
    """Its file is in a folder named after the parent; the call has its id."""
    started = {**call(1, "map it", "mapped", name="delegate_to_agent"), "agentId": "scout-1"}
    below = world.chats / SESSION
    below.mkdir()
    (below / "scout-1.jsonl").write_bytes(
        encoded(header("scout-1", kind="subagent"), prompt(8, "map the code"), answer(9, "Done"))
    )
    world.log().write_bytes(encoded(header(), answer(2, "", toolCalls=[started])))
    world.ingest()
    assert world.sql(
        "SELECT c.native_id, c.kind, p.native_id, c.call_id FROM sessions c"
        " JOIN sessions p ON p.id = c.parent_id"
    ) == [("scout-1", "subagent", SESSION, "call-1")]
    assert world.texts("scout-1") == ["map the code", "Done"]


def test_a_subagent_in_a_document_is_read(world):
    """Versions of early 2026 wrote one JSON document for each."""
    below = world.chats / SESSION
    below.mkdir()
    chat = document(prompt(8, "find skills"), answer(9, "None"), session="x-1", kind="subagent")
    (below / "x-1.json").write_bytes(chat)
    world.document().write_bytes(document(*CHAT))
    assert world.ingest().skipped == []
    assert world.sql(
        "SELECT c.native_id, c.kind, p.native_id, c.prompts FROM sessions c"
        " JOIN sessions p ON p.id = c.parent_id"
    ) == [("x-1", "subagent", SESSION, 0)]
    assert world.texts("x-1") == ["find skills", "None"]


@pytest.mark.parametrize("kind", ["main", "subagent"])
def test_a_helper_with_the_id_of_its_chat_is_read_in_any_order(tmp_path, kind):
    """The chat keeps its title, its models in order of first use, and its kind."""
    chat = document(
        prompt(1, "fly"),
        message("gemini", 2, "Up.", model="m-1", tokens={"input": 1, "output": 1}),
        message("gemini", 5, "Down.", model="m-3", tokens={"input": 1, "output": 1}),
        summary="A flight",
    )
    helper = document(
        prompt(3, "what is the flag for help?"),
        message("gemini", 4, "-h", model="m-2", tokens={"input": 1, "output": 1}),
        summary="A question about flags",
        kind=kind,
    )
    dumps = []
    for first in range(2):
        world = GeminiWorld(tmp_path / str(first))
        path = world.document()
        files = [(path, chat), (path.with_name(path.name.replace("10-00", "10-07")), helper)]
        for name, data in reversed(files) if first else files:
            name.write_bytes(data)
            world.ingest()
        for name, data in files:  # what is read again changes nothing
            name.write_bytes(data.replace(b"  ", b" "))
        world.ingest()
        dumps.append(sorted(world.sql("SELECT native_id, kind, title, models FROM sessions")))
        world.check()
    models = ["m-1", "m-2", "m-3"]
    if kind == "main":
        assert dumps[0] == [(SESSION, "main", "A flight", json.dumps(models))]
    else:
        name = "session-2026-03-01T10-07-aaaaaaaa"
        assert dumps[0] == [
            (SESSION, "main", "A flight", json.dumps(["m-1", "m-3"])),
            (name, "subagent", "what is the flag for help?", json.dumps(["m-2"])),
        ]
    assert dumps[0] == dumps[1]


def test_short_ids_of_two_chats_are_not_the_same_message(world):
    """Messages `m1` of two sessions with the same text are two messages; both count."""
    reply = {"id": "m1", "timestamp": moment(1), "type": "gemini", "content": "yes"}
    reply["tokens"] = {"input": 3, "output": 4}
    for session in (SESSION, OTHER):
        world.log(session).write_bytes(encoded(header(session), reply))
    world.ingest()
    assert world.texts(SESSION) == world.texts(OTHER) == ["yes"]
    assert world.sql("SELECT count(*), sum(output_tokens) FROM usage WHERE counted") == [(2, 8)]


def project(world):
    world.log().write_bytes(encoded(header(), *CHAT))
    world.ingest()
    return world.sql("SELECT project FROM sessions")[0][0]


def test_the_folder_names_the_project(world):
    (world.tmp / "demo" / ".project_root").write_text("/code/demo\n")
    assert project(world) == "/code/demo"


def test_the_history_of_files_names_the_project(world):
    noted = world.tmp.parent / "history" / "demo" / ".project_root"
    noted.parent.mkdir(parents=True)
    noted.write_text("/home/kim/kettle")
    world.log().write_bytes(encoded(header(), *CHAT))
    world.ingest()
    assert world.sql("SELECT project FROM sessions") == [("/home/kim/kettle",)]


def test_the_registry_names_the_project(world):
    (world.tmp.parent / "projects.json").write_text(json.dumps({"projects": {"/code/d": "demo"}}))
    assert project(world) == "/code/d"


def test_a_folder_named_by_a_digest_belongs_to_the_project_with_that_digest(world):
    registry = {"projects": {"/code/a": "a", "/code/b": "b"}}
    (world.tmp.parent / "projects.json").write_text(json.dumps(registry))
    name = hashlib.sha256(b"/code/b").hexdigest()
    (world.tmp / "demo").rename(world.tmp / name)
    world.chats = world.tmp / name / "chats"
    assert project(world) == "/code/b"


def test_directories_name_the_project_only_with_its_digest(world):
    digest = hashlib.sha256(b"/code/b").hexdigest()
    first = header(projectHash=digest, directories=["/code/a", "/code/b"])
    world.log().write_bytes(encoded(first, *CHAT))
    world.ingest()
    assert world.sql("SELECT project FROM sessions") == [("/code/b",)]


def test_an_unknown_project_has_the_name_of_its_folder(world):
    """The name is no path and is never taken for one."""
    assert project(world) == "demo"
    assert world.sql("SELECT project_from FROM sessions") == [("name",)]


def test_only_chats_are_read(world):
    """Prompt logs, copies of unreadable files and everything outside `chats` are ignored."""
    demo = world.tmp / "demo"
    for name in ("logs.json", "shell_history", "checkpoint-a.json", "session-x.jsonl"):
        (demo / name).write_bytes(encoded(header(), *CHAT))
    name = world.log().name
    (world.chats / f"{name}.unreadable-1").write_bytes(b"{")
    (world.chats / name.replace(".jsonl", ".unreadable-1.jsonl")).write_bytes(b"{")
    assert world.ingest().seen == 0


def test_only_folders_with_chats_are_entered(tmp_path):
    moved = {"HOME": "/h", "GEMINI_CLI_HOME": str(tmp_path)}
    source = GeminiSource(environ=moved, platform="linux")
    root = str(tmp_path.resolve() / ".gemini" / "tmp")
    assert source.places() == [str(tmp_path / ".gemini" / "tmp")]
    assert [
        source.enters(f"{root}/{below}")
        for below in ("demo", "demo/chats", "demo/chats/parent", "demo/tool-outputs", "demo/logs/x")
    ] == [True, True, True, False, False]
    assert GeminiSource(environ={"HOME": "/h"}, platform="darwin").places() == [
        "/h/.gemini/tmp",
        "/h/.cache/.gemini/tmp",
    ]


@pytest.mark.parametrize(
    ("tool", "output", "status"),
    [
        ("run_shell_command", "Stdout: Exit Code: 0\nExit Code: 2\nSignal: (none)", "error"),
        ("run_shell_command", "Output: \nExit Code: 1\nExit Code: 0\nSignal: (none)", "ok"),
        ("run_shell_command", "Output: boiled", "ok"),
        ("read_file", "Exit Code: 2", "ok"),
    ],
)
def test_a_command_that_fails_is_a_failed_call(tool, output, status):
    """Gemini CLI says of every command that ran that the call succeeded."""
    response = {"functionResponse": {"response": {"output": output}}}
    call = {"id": "c1", "name": tool, "args": {}, "status": "success", "result": [response]}
    assert tool_call(call, "").status == status


def response(name, **said):
    return {"functionResponse": {"id": "c1", "name": name, "response": said}}


def test_a_call_has_its_own_result_among_those_of_others():
    """Calls that ran at the same time may each have the results of all."""
    other = {"functionResponse": {"id": "c2", "response": {"error": "dry"}}}
    call = {"id": "c1", "name": "edit", "status": "success"}
    found = tool_call({**call, "result": [other, response("edit", output="done")]}, "")
    assert (found.output, found.status) == ("done", "ok")
    found = tool_call({**call, "result": [response("edit", output="half", error="no")]}, "")
    assert (found.output, found.status) == ("half\nno", "error")


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"status": "cancelled", "result": [response("edit", error="no")]}, "denied"),
        ({"status": "success", "result": [response("edit", output="Exit Code: 1")]}, "ok"),
        ({"status": "executing"}, "error"),
    ],
)
@pytest.mark.parametrize("lay", ["log", "document"])
def test_a_result_that_is_repeated_for_the_model_changes_nothing(world, lay, said, status):
    """Newer versions write it once more, as a message of the user's role, without a status."""
    chat = (
        prompt(1, "pour"),
        answer(2, "", toolCalls=[{"id": "c1", "name": "edit", "args": {}, **said}]),
        message("user", 3, [response("edit", error="dry")]),
    )
    if lay == "log":
        world.log().write_bytes(encoded(header(), *chat))
    else:
        world.document().write_bytes(document(*chat))
    world.ingest()
    assert world.sql("SELECT status FROM events WHERE type = 'tool_use'") == [(status,)]
    assert world.sql("SELECT count(*) FROM events WHERE type = 'user'") == [(1,)]
