"""Records that Claude Code takes back or replaces."""

from __future__ import annotations

import pytest

FORK = "22222222-2222-4222-8222-222222222222"


@pytest.mark.parametrize("piecewise", [False, True])
@pytest.mark.parametrize("field", ["retractedMessageUuids", "supersedesUuids"])
def test_what_another_model_answers_instead_replaces_what_was_said(world, field, piecewise):
    """It is no longer shown, found or counted as an event; its tokens were spent."""
    t = world.transcript()
    partial = t.answer("I would rather", output_tokens=7)
    withdrawn = {field: [partial["uuid"], "unknown", 7, None]}
    if field == "supersedesUuids":
        instead = [t.answer("Of course, here it is.", **withdrawn)]
    else:
        notice = t.record("system", None, subtype="model_refusal_fallback", content="Switched")
        instead = [{**notice, **withdrawn}, t.answer("Of course, here it is.")]
    for line in (t.prompt("brew"), partial, *instead):
        t.append(line)
        if piecewise:
            world.ingest()
    world.ingest()
    live = "SELECT x.text FROM events e JOIN event_texts x ON x.id = e.id WHERE e.retired = 0"
    assert ("I would rather",) not in world.sql(live)
    assert ("Of course, here it is.",) in world.sql(live)
    assert world.sql("SELECT sum(output_tokens) FROM usage WHERE counted") == [(17,)]
    world.check()


def test_a_fork_from_before_keeps_what_was_said(world):
    """Only the session that took it back hides it."""
    t, fork = world.transcript(), world.transcript(FORK)
    asked, partial = t.prompt("brew"), t.answer("I would rather")
    t.append(asked, partial, t.answer("Of course.", supersedesUuids=[partial["uuid"]]))
    fork.append(*({**line, "sessionId": FORK} for line in (asked, partial)))
    world.ingest()
    shown = (
        "SELECT x.text FROM sessions s JOIN records t ON t.session_id = s.id JOIN events e"
        " ON e.record_id = coalesce(t.copy_of, t.id) JOIN event_texts x ON x.id = e.id"
        " WHERE s.native_id = ? AND t.superseded = 0 AND e.retired = 0 ORDER BY t.offset"
    )
    assert world.sql(shown, t.session) == [("brew",), ("Of course.",)]
    assert world.sql(shown, FORK) == [("brew",), ("I would rather",)]
