"""Continue: what calls were given, in all places where it was written."""

from __future__ import annotations

import json

import pytest
from tests.golden_home import clean


@pytest.mark.parametrize(
    ("call", "given"), [("old_a", {"filepath": "gate.py"}), ("old_b", {"command": "oil"})]
)
def test_early_versions_wrote_one_call_per_answer(tmp_path, call, given):
    """Its arguments are found in the record, parsed or as the model wrote them."""
    world = clean(tmp_path, "continue")
    ((pointer,),) = world.sql("SELECT pointer FROM events WHERE call_id = ?", call)
    sessions = world.root / ".continue" / "sessions"
    document = json.loads((sessions / "c0000000-0000-4000-8000-00000000000c.json").read_text())
    value = next(
        item
        for item in document["history"]
        if item.get("toolCallState", {}).get("toolCallId") == call
    )
    for name in pointer.split("/")[1:]:
        value = value[name]
    assert (json.loads(value) if isinstance(value, str) else value) == given
