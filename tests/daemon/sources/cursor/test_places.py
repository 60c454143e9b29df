"""Where Cursor keeps its files on each system."""

from __future__ import annotations

from tests.cursor_databases import (
    user_directory,
)

from sessiond.sources.cursor import CursorSource


def roots(platform, **environ):
    return CursorSource(environ=environ, platform=platform).roots()


def test_the_places_on_linux():
    assert roots("linux", HOME="/home/ada") == [
        "/home/ada/.config/Cursor/User/globalStorage",
        "/home/ada/.config/Cursor/User/workspaceStorage",
        "/home/ada/.cursor/chats",
        "/home/ada/.cursor/projects",
        "/home/ada/.config/cursor/chats",
        "/home/ada/.config/cursor/projects",
    ]


def test_the_places_on_linux_may_be_moved():
    found = roots("linux", HOME="/home/ada", XDG_CONFIG_HOME="/conf", CURSOR_CONFIG_DIR="/agent")
    assert found[:2] == [
        "/conf/Cursor/User/globalStorage",
        "/conf/Cursor/User/workspaceStorage",
    ]
    assert {"/agent/chats", "/agent/projects", "/conf/cursor/chats"} <= set(found)


def test_the_places_on_macos():
    assert roots("darwin", HOME="/Users/ada", XDG_CONFIG_HOME="/conf") == [
        "/Users/ada/Library/Application Support/Cursor/User/globalStorage",
        "/Users/ada/Library/Application Support/Cursor/User/workspaceStorage",
        "/Users/ada/.cursor/chats",
        "/Users/ada/.cursor/projects",
    ]


def test_the_places_on_windows():
    found = roots("win32", HOME="C:/Users/ada", APPDATA="C:/Users/ada/AppData/Roaming")
    assert found == [
        "C:/Users/ada/AppData/Roaming/Cursor/User/globalStorage",
        "C:/Users/ada/AppData/Roaming/Cursor/User/workspaceStorage",
        "C:/Users/ada/.cursor/chats",
        "C:/Users/ada/.cursor/projects",
    ]


def test_the_old_copy_of_the_database_is_left_alone(index):
    folder = user_directory(index.world.root) / "globalStorage"
    source = CursorSource(environ={"HOME": str(index.world.root)})
    assert source.classify(str(folder / "state.vscdb.backup")) is None
