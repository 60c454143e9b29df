"""A bubble in two conversations: shown in both, found once."""

from __future__ import annotations

import pytest
from tests.cursor_databases import (
    CREATED,
    composer,
    put_bubble,
    put_conversation,
)
from tests.daemon.sources.cursor.cursor_home import say


def test_a_copied_bubble_is_shown_twice_and_found_once(cursor):
    talk = say("zebra")
    for name, at in (("old", CREATED), ("new", CREATED + 10**6)):
        put_conversation(cursor.db, composer(name, talk, at=at), talk)
        cursor.read()
    assert cursor.texts("old") == cursor.texts("new") == ["zebra"]
    assert len(cursor.found("zebra")) == 1


@pytest.mark.parametrize("changed", ["old", "new"])
def test_a_copy_that_changes_leaves_the_other_as_it_was(cursor, changed):
    talk = say("zebra")
    for name, at in (("old", CREATED), ("new", CREATED + 10**6)):
        put_conversation(cursor.db, composer(name, talk, at=at), talk)
        cursor.read()
    put_bubble(cursor.db, changed, talk[0] | {"text": "giraffe"})
    cursor.read()
    other = "new" if changed == "old" else "old"
    assert (cursor.texts(changed), cursor.texts(other)) == (["giraffe"], ["zebra"])
    assert (cursor.found("giraffe"), cursor.found("zebra")) == ([changed], [other])
    assert (cursor.facts("old", "events"), cursor.facts("new", "events")) == (1, 1)
    cursor.world.check()


@pytest.mark.parametrize("removed", ["old", "new"])
def test_a_copy_that_goes_leaves_the_other_as_it_was(cursor, removed):
    talk = say("zebra", "more")
    for name, at in (("old", CREATED), ("new", CREATED + 10**6)):
        put_conversation(cursor.db, composer(name, talk, at=at), talk)
        cursor.read()
    cursor.delete(f"bubbleId:{removed}:b1")
    cursor.read()
    other = "new" if removed == "old" else "old"
    assert (cursor.texts(removed), cursor.texts(other)) == (["more"], ["zebra", "more"])
    assert cursor.found("zebra") == [other]


def test_a_copy_that_changes_as_the_other_does_is_found_once(cursor):
    talk = say("zebra")
    for name, at in (("old", CREATED), ("new", CREATED + 10**6)):
        put_conversation(cursor.db, composer(name, talk, at=at), talk)
    cursor.read()
    for name in ("old", "new"):
        put_bubble(cursor.db, name, talk[0] | {"text": "giraffe"})
        cursor.read()
    assert cursor.texts("old") == cursor.texts("new") == ["giraffe"]
    assert len(cursor.found("giraffe")) == 1
