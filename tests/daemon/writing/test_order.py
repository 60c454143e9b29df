"""The order in which files are read, and how much of each at a time, changes nothing."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.at_length import amount, count

pytestmark = pytest.mark.slow

LETTERS = "abcdef"


def session_id(letter):
    return f"{letter * 8}-1111-4111-8111-111111111111"


def called(transcript, call, number):
    """Every second call edits a file."""
    if number % 2:
        return transcript.call(call, command=f"step {number}")
    path = f"/w/{number}.py"
    return transcript.call(call, "Edit", file_path=path, old_string="a", new_string="b\nc")


def patch(count):
    """What a result says that it changed: `count` lines more."""
    hunk = {"oldStart": 1, "newStart": 1, "lines": ["-a", "+b", *["+more"] * count]}
    return {"toolUseResult": {"structuredPatch": [hunk]}}


def reordered(value):
    """The same JSON with the keys of every object in reverse order."""
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(value)}
    return [reordered(one) for one in value] if isinstance(value, list) else value


def queued(transcript, text, rng):
    """A message typed meanwhile: some of the records that a version may write for it."""
    operation = {"type": "queue-operation", "sessionId": transcript.session, "content": text}
    attached = {"type": "queued_command", "prompt": text, "commandMode": "prompt"}
    left = transcript.prompt(text)["timestamp"]
    told = [
        {**operation, "operation": "remove", "timestamp": left},
        transcript.record("attachment", None, attachment=attached),
    ]
    rng.shuffle(told)
    return [{**operation, "operation": "enqueue"}, *told[: rng.randint(0, 2)]][: rng.randint(0, 3)]


def side_agent(lines, rng):
    """What it was given, with the final counts of responses that were still being written."""
    kept = [line for line in lines if "uuid" in line]
    kept = kept[rng.choice([0, 0, len(kept) // 2]) :]
    copies = [{**line, "isSidechain": True, "agentId": "acompact"} for line in kept]
    for copy in copies:
        if copy["type"] == "assistant" and rng.random() < 0.5:
            message = copy["message"]
            usage = {**message["usage"], "output_tokens": rng.randint(50, 3000)}
            ending = {"stop_reason": rng.choice(["end_turn", None]), "usage": usage}
            copy["message"] = {**message, **ending}
    return copies


def written(world, session):
    """The transcript of a session, or of a side agent of the first one."""
    transcript = world.transcript(session)
    if session.startswith("agent-"):
        transcript.path = world.transcript(session_id("a")).path.with_suffix("")
        transcript.path /= f"subagents/{session}.jsonl"
        transcript.path.parent.mkdir(parents=True, exist_ok=True)
    return transcript


def conversation(world, rng):
    """A session and its forks: session id → records. Copies keep uuid and time."""
    files = {}
    original = world.transcript(session_id("a"))
    lines = [original.prompt("where do we start")]
    for number in range(rng.randint(1, 4)):
        call = f"toolu_{number}"
        lines.append(called(original, call, number))
        if rng.random() < 0.8:
            failed = rng.random() < 0.3
            lines.append(original.result(call, f"out {number}", is_error=failed, **patch(number)))
        for tokens in rng.sample((1, 40, 90), rng.randint(1, 3)):
            block = {"type": "text", "text": f"thought {number} {tokens}"}
            lines.append(
                original.assistant([block], message_id=f"msg_{number}", output_tokens=tokens)
            )
        lines += queued(original, f"and {number % 2}", rng)
    files[original.session] = list(lines)
    for letter in LETTERS[1 : rng.randint(2, 5)]:
        base = rng.choice(list(files.values()))
        kept = base[: rng.randint(2, max(2, len(base)))]
        fork = world.transcript(session_id(letter))
        fork.count = 100 * (1 + LETTERS.index(letter))
        copies = [{**line, "sessionId": fork.session} for line in kept if "uuid" in line]
        if rng.random() < 0.5:
            copies = [{**copy, "forkedFrom": {"sessionId": original.session}} for copy in copies]
        if rng.random() < 0.3:
            copies = [reordered(copy) for copy in copies]
        open_call = rng.choice(range(4))
        told = patch(open_call + LETTERS.index(letter))
        own = [fork.result(f"toolu_{open_call}", f"fork {letter}", **told)]
        own = own if rng.random() < 0.5 else []
        own.append(fork.prompt(f"in fork {letter}"))
        if rng.random() < 0.5:
            own += [{**copies[-1], "uuid": f"replayed-{letter}"}]
        leaf = rng.choice(copies)["uuid"]
        summary = {"type": "summary", "summary": f"Sum of {letter}", "leafUuid": leaf}
        files[fork.session] = [*([summary] if rng.random() < 0.5 else []), *copies, *own]
    if rng.random() < 0.5:
        files[f"agent-acompact-{rng.randint(1, 9)}"] = side_agent(files[original.session], rng)
    # Others in the folder tell what its name means.
    lost = world.transcript(session_id("f"))
    files[lost.session] = [{**lost.prompt("where am I"), "cwd": None}]
    return files


def written_in_pieces(world, files, rng):
    """Append everything in random portions, with a pass after each."""
    left = {session: list(lines) for session, lines in files.items()}
    while left:
        session = rng.choice(sorted(left))
        count = rng.randint(1, len(left[session]))
        transcript = written(world, session)
        transcript.append(*left[session][:count])
        left[session] = left[session][count:]
        if not left[session]:
            del left[session]
        if rng.random() < 0.7:
            world.ingest()
    world.ingest()


def comparable(world):
    dump = world.dump()
    dump["owners"] = world.sql(
        "SELECT u.message_id, s.native_id, t.line, t.session_id = u.session_id, u.ts, u.counted,"
        " u.sidechain FROM usage u JOIN sessions s ON s.id = u.session_id"
        " JOIN records t ON t.id = u.record_id ORDER BY 1, 2, 3"
    )
    return dump


@settings(max_examples=amount(20, 180), deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32), order=st.integers(0, 2**32))
def test_any_order_and_any_portions_give_the_same_index(world, seed, order):
    """Forks, forks of forks, replays, summaries and answers in forks: one index in the end."""
    make = type(world)
    count("cases")
    with tempfile.TemporaryDirectory() as folder:
        clean, disturbed = make(Path(folder) / "clean"), make(Path(folder) / "disturbed")
        files = conversation(clean, random.Random(seed))
        for session, lines in files.items():
            written(clean, session).append(*lines)
        clean.ingest()
        written_in_pieces(disturbed, files, random.Random(order))
        expected, found = comparable(clean), comparable(disturbed)
        for part, rows in expected.items():
            assert found[part] == rows, part
        disturbed.check()
        counted = disturbed.sql("SELECT native_id, events FROM sessions ORDER BY 1")
        assert counted == [(session, len(disturbed.shown(session))) for session, _ in counted]
