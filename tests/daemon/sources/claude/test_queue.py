"""Messages typed while the agent works count once, however they left the queue."""

from __future__ import annotations

QUEUED = "also dry the cups"


def operation(transcript, name, content=None, **more):
    line = transcript.record("queue-operation", None, operation=name, **more)
    del line["uuid"], line["message"]
    return line if content is None else {**line, "content": content}


def attachment(transcript, text, **more):
    told = {"type": "queued_command", "prompt": text, "commandMode": "prompt", **more}
    return transcript.record("attachment", None, attachment=told)


def ways(t):
    """Every way through the queue: the lines, and how often a person asked for it."""
    enqueue = operation(t, "enqueue", QUEUED)
    notice, later = (f"<task-notification>{name}</task-notification>" for name in "ab")
    remove, named = operation(t, "remove"), operation(t, "remove", QUEUED)
    return {
        "taken": ([enqueue, remove], 1),
        "taken by name": ([enqueue, operation(t, "enqueue", "other"), named], 1),
        "taken and written": ([enqueue, remove, attachment(t, QUEUED)], 1),
        "written and taken": ([enqueue, attachment(t, QUEUED), named], 1),
        "written only": ([attachment(t, QUEUED)], 1),
        "taken twice": ([enqueue, enqueue, remove, named], 2),
        "taken twice, written twice": (
            [enqueue, enqueue, remove, named, attachment(t, QUEUED), attachment(t, QUEUED)],
            2,
        ),
        "not queued here": ([named], 1),
        "next prompt": ([enqueue, operation(t, "dequeue"), t.prompt(QUEUED)], 1),
        "taken as next prompt": ([enqueue, operation(t, "remove"), t.prompt(QUEUED)], 1),
        "waits": ([enqueue], 0),
        "withdrawn": ([enqueue, operation(t, "popAll")], 0),
        "withdrawn by name": (
            [enqueue, operation(t, "enqueue", "b"), operation(t, "popAll", "b"), remove],
            1,
        ),
        "withdrawn, then nothing to take": ([enqueue, operation(t, "popAll"), remove], 0),
        "a list with an image": (
            [
                operation(t, "enqueue", [{"type": "text", "text": QUEUED}, {"type": "image"}]),
                operation(t, "remove"),
            ],
            1,
        ),
        "a task": (
            [operation(t, "enqueue", "<task-notification>done</task-notification>"), remove],
            0,
        ),
        "after a task that left untold": (
            [operation(t, "enqueue", notice), t.prompt(notice), enqueue, remove],
            1,
        ),
        "after tasks that left in another order": (
            [
                operation(t, "enqueue", notice),
                operation(t, "enqueue", later),
                operation(t, "dequeue"),
                t.prompt(later),
                enqueue,
                operation(t, "remove", notice),
                remove,
            ],
            1,
        ),
        "twice, and once the next prompt": (
            [enqueue, enqueue, operation(t, "dequeue"), t.prompt(QUEUED), remove],
            2,
        ),
    }


def asked(world, session):
    """How often people typed the message, by every count."""
    found = world.sql(
        "SELECT x.text FROM events e JOIN event_texts x ON x.id = e.id JOIN sessions s"
        " ON s.id = e.session_id WHERE e.type = 'user' AND e.retired = 0 AND s.native_id = ?",
        session,
    )
    ((prompts, summed),) = world.sql(
        "SELECT prompts, (SELECT sum(prompts) FROM event_sums WHERE session_id = s.id)"
        " FROM sessions s WHERE native_id = ?",
        session,
    )
    assert prompts == summed == len(found)
    return found.count((QUEUED,))


def test_a_queued_message_is_a_prompt_once(world, tmp_path):
    """Whether the files are read whole or a line of each at a time: it makes no difference."""
    whole, piecewise = world, type(world)(tmp_path / "piecewise")
    expected = {}
    for one in (whole, piecewise):
        longest = 0
        for number, (way, (lines, times)) in enumerate(ways(one.transcript()).items()):
            t = one.transcript(f"{number:08}-1111-4111-8111-111111111111")
            told = [t.prompt("brew tea"), *({**line, "sessionId": t.session} for line in lines)]
            expected[way] = (t.session, times, told)
            longest = max(longest, len(told))
        for place in range(longest):
            for session, _, lines in expected.values():
                one.transcript(session).append(*lines[place : place + 1])
            if one is piecewise:
                one.ingest()
        one.ingest()
        for way, (session, times, _) in expected.items():
            assert asked(one, session) == times, way
    assert whole.dump() == piecewise.dump()
    assert {title for (title,) in whole.sql("SELECT title FROM sessions")} == {"brew tea"}
    whole.check()


def test_it_is_shown_where_the_agent_took_it(world):
    """With its label, between what happened before and after."""
    t = world.transcript()
    t.append(
        t.prompt("brew tea"),
        t.call("c1", command="boil"),
        operation(t, "enqueue", QUEUED),
        t.result("c1", "boiled"),
        operation(t, "remove"),
        t.answer("drying, too"),
    )
    world.ingest()
    assert [(kind, text) for kind, text, _ in world.shown(t.session)] == [
        ("user", "brew tea"),
        ("tool_use", "boilboiled"),
        ("system", QUEUED),
        ("user", QUEUED),
        ("assistant", "drying, too"),
    ]
    assert world.sql("SELECT label FROM events WHERE type = 'user'") == [(None,), ("queued",)]
