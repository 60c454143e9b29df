"""The project of a conversation: the best of many places that may know it."""

from __future__ import annotations

import pytest
from tests.cursor_databases import (
    CREATED,
    bubble,
    composer,
    encoded,
    header_entry,
    make_global,
    put_bubble,
    put_conversation,
    put_item,
    reading,
    workspace_database,
)
from tests.daemon.sources.cursor.cursor_home import say


def identifier(folder):
    return {"id": "w", "uri": {"$mid": 1, "fsPath": folder, "path": folder, "scheme": "file"}}


def talk_of(files=("/touched/src/a.py", "/touched/test/b.py")):
    return [reading(f"b{n}", path, "text", at=CREATED + n) for n, path in enumerate(files)]


class Places:
    """The ways to tell the project of the conversation `c`, from best to worst."""

    def __init__(self, cursor):
        self.cursor = cursor
        self.more = {}

    def composer(self):
        self.more["workspaceIdentifier"] = identifier("/by/composer")
        self.write()

    def table(self):
        entry = header_entry(composer("c"), folder="/by/table")
        self.cursor.db.execute(
            "INSERT OR REPLACE INTO composerHeaders (composerId, value) VALUES ('c', ?)",
            (encoded(entry),),
        )

    def list(self):
        entry = header_entry(composer("c"), folder="/by/list")
        put_item(self.cursor.db, "composer.composerHeaders", {"allComposers": [entry]})

    def window(self):
        path = workspace_database(self.cursor.world.root, folder="/by/window")
        db = make_global(path, journal="delete")
        put_item(db, "composer.composerData", {"allComposers": [{"composerId": "c"}]})
        db.close()

    def repository(self):
        self.more["trackedGitRepos"] = [{"repoPath": "/by/repository"}]
        self.write()

    def touched(self):
        self.write()

    def write(self):
        talk = talk_of()
        put_conversation(self.cursor.db, composer("c", talk, **self.more), talk)


LEVELS = ("composer", "table", "list", "window", "repository", "touched")


def folder_by(level):
    return "/touched" if level == "touched" else f"/by/{level}"


@pytest.mark.parametrize("best", LEVELS)
def test_the_project_is_told_by_the_best_that_knows(cursor, best):
    places = Places(cursor)
    places.write()
    for level in LEVELS[LEVELS.index(best) :]:
        getattr(places, level)()
    cursor.read()
    assert cursor.facts("c", "project") == folder_by(best)


@pytest.mark.parametrize("level", LEVELS[:-1])
def test_a_better_source_that_comes_later_replaces_the_project(cursor, level):
    places = Places(cursor)
    worse = LEVELS[LEVELS.index(level) + 1]
    places.write()
    getattr(places, worse)()
    cursor.read()
    assert cursor.facts("c", "project") == folder_by(worse)
    getattr(places, level)()
    cursor.read()
    assert cursor.facts("c", "project") == folder_by(level)


@pytest.mark.parametrize("level", LEVELS[1:])
def test_a_worse_source_that_comes_later_changes_nothing(cursor, level):
    places = Places(cursor)
    better = LEVELS[LEVELS.index(level) - 1]
    places.write()
    getattr(places, better)()
    cursor.read()
    getattr(places, level)()
    cursor.read()
    assert cursor.facts("c", "project") == folder_by(better)


def test_a_window_that_is_flushed_later_tells_the_project(cursor):
    """Only its own database changes then, when the window is closed."""
    places = Places(cursor)
    places.write()
    cursor.read()
    places.window()
    cursor.read()
    assert cursor.facts("c", "project") == "/by/window"


def test_the_folder_of_a_window_may_be_written_later(cursor):
    places = Places(cursor)
    places.write()
    places.window()
    file = workspace_database(cursor.world.root, folder=None).parent / "workspace.json"
    told = file.read_text()
    file.unlink()
    cursor.read()
    file.write_text(told)
    put_bubble(cursor.db, "c", bubble("b9", text="more"))
    cursor.read()
    assert cursor.facts("c", "project") == "/by/window"


def test_the_project_follows_the_files_that_are_touched_later(cursor):
    talk = talk_of(["/touched/src/deep/a.py", "/touched/test/b.py"])
    put_conversation(cursor.db, composer("c", talk), talk[:1])
    cursor.read()
    assert cursor.facts("c", "project") == "/touched/src/deep"
    put_bubble(cursor.db, "c", talk[1])
    cursor.read()
    assert cursor.facts("c", "project") == "/touched"


def test_the_folders_in_a_bubble_tell_the_project(cursor):
    talk = [bubble("b1", text="one", workspaceUris=["file:///code/demo"])]
    put_conversation(cursor.db, composer("c", talk), talk)
    cursor.read()
    assert cursor.facts("c", "project") == "/code/demo"


@pytest.mark.parametrize("name", ["selectedComposerIds", "lastFocusedComposerIds"])
def test_a_window_may_only_name_what_is_selected(cursor, name):
    talk = say("one")
    put_conversation(cursor.db, composer("c", talk), talk)
    db = make_global(workspace_database(cursor.world.root), journal="delete")
    put_item(db, "composer.composerData", {name: ["c"]})
    db.close()
    cursor.read()
    assert cursor.facts("c", "project") == "/code/demo"


def test_the_panels_of_a_window_name_its_conversations(cursor):
    talk = say("one")
    put_conversation(cursor.db, composer("c", talk), talk)
    db = make_global(workspace_database(cursor.world.root), journal="delete")
    panel = {"workbench.panel.aichat.view.c": {"collapsed": False}}
    put_item(db, "workbench.panel.composerChatViewPane.1", panel)
    db.close()
    cursor.read()
    assert cursor.facts("c", "project") == "/code/demo"
