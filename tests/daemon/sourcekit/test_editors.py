from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiond.sourcekit.disk import small_json
from sessiond.sourcekit.folders import common_folder, folder_of_window, folder_of_workspace


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("file:///code/demo", "/code/demo"),
        ("file:///code/my%20demo/", "/code/my demo"),
        ("file:///code/100%25%23a", "/code/100%#a"),
        ("file:///code/d%C3%A9mo", "/code/démo"),
        ("file:///code/demo?x=1#y", "/code/demo"),
        ("file:///", "/"),
        ("file://localhost/code/demo", "/code/demo"),
        ("file:/code/demo", "/code/demo"),
        ("FILE:///code/demo", "/code/demo"),
        ("file:///c%3A/Users/demo/Pro%20j", "c:\\Users\\demo\\Pro j"),
        ("file:///C:/Users/demo", "c:\\Users\\demo"),
        ("file:///c%3A/", "c:\\"),
        ("file://server/share/demo", "\\\\server\\share\\demo"),
        ("file://wsl.localhost/Ubuntu/home/u", "\\\\wsl.localhost\\Ubuntu\\home\\u"),
        ("vscode-remote://ssh-remote%2Bhost/home/u/my%20proj", "/home/u/my proj"),
        ("vscode-remote://wsl%2BUbuntu/home/u", "/home/u"),
        ("vscode-remote://ssh-remote%2Bwin/c%3A/code", "c:\\code"),
        ("file:///code/many.code-workspace", "/code/many.code-workspace"),
        ("/code/demo", "/code/demo"),
        ("C:\\code\\demo\\", "C:\\code\\demo"),
        ("c:/code/demo", "c:\\code\\demo"),
        ("\\\\server\\share\\demo", "\\\\server\\share\\demo"),
    ],
)
def test_uris_and_paths(uri: str, expected: str) -> None:
    """A URI is the path that Cursor shows for it, on whichever system it was written."""
    assert folder_of_window(uri) == expected


@pytest.mark.parametrize(
    "nonsense",
    [
        "",
        "demo",
        "~/demo",
        "c:demo",
        "\\home\\u",
        "untitled:Untitled-1",
        "vscode-vfs://github/a/b",
        "https://demo.example/code",
        "file:",
        "file:///code/%00",
        "/code/a\nb",
        "/" + "x" * 40_000,
        None,
        7,
        [],
        {},
        {"id": "empty-window"},
        {"uri": []},
        {"uri": {"scheme": "untitled", "path": "Untitled-1"}},
        {"uri": {"scheme": "vscode-vfs", "path": "/a", "fsPath": "/a"}},
        {"configPath": {"path": "/home/u/.config/Cursor/Workspaces/17/workspace.json"}},
        {"workspace": "file:///c%3A/Cursor/Workspaces/17/workspace.json"},
    ],
)
def test_what_names_no_folder(nonsense: Any) -> None:
    """Untitled workspaces, places that are on no disk and other types are no folder."""
    assert folder_of_window(nonsense) is None


@pytest.mark.parametrize(
    ("identifier", "expected"),
    [
        ({"id": "1", "uri": {"fsPath": "/code/a", "path": "/code/b"}}, "/code/a"),
        ({"uri": {"fsPath": "c:\\code", "path": "/c:/code", "scheme": "file"}}, "c:\\code"),
        ({"uri": {"path": "/c:/100%25", "scheme": "file"}}, "c:\\100%25"),
        ({"uri": {"path": "/share/a", "authority": "srv", "scheme": "file"}}, "\\\\srv\\share\\a"),
        ({"uri": {"external": "file:///code/my%20a"}}, "/code/my a"),
        ({"uri": {"fsPath": 7, "path": [], "external": "file:///code/a"}}, "/code/a"),
        (
            {"uri": {"fsPath": "\\home\\u", "path": "/home/u", "scheme": "vscode-remote"}},
            "/home/u",
        ),
        ({"uri": "file:///code/a"}, "/code/a"),
        ({"configPath": {"fsPath": "/code/m.code-workspace"}}, "/code/m.code-workspace"),
        ({"fsPath": "/code/a"}, "/code/a"),
    ],
)
def test_workspace_identifiers(identifier: dict[str, Any], expected: str) -> None:
    """The path for the file system counts before the parts of the URI, but not for a remote."""
    assert folder_of_window(identifier) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["id", "uri", "configPath", "fsPath", "path", "scheme", "authority", "external"]
            ),
            inner,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_no_identifier_can_fail(identifier: Any) -> None:
    """Whatever stands there gives a path or nothing."""
    found = folder_of_window(identifier)
    assert found is None or found


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1))
def test_percent_encoding_is_undone(name: str) -> None:
    """Any name of a folder survives the way through a URI."""
    encoded = "".join(f"%{byte:02X}" for byte in name.encode())
    assert folder_of_window(f"file:///code/{encoded}") == f"/code/{name}".rstrip("/")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"folder": "file:///code/demo"}, "/code/demo"),
        ({"workspace": "file:///code/m.code-workspace"}, "/code/m.code-workspace"),
        ({"folder": "vscode-remote://ssh-remote%2Bhost/home/u/p"}, "/home/u/p"),
        ({"folder": 5}, None),
        ({}, None),
        (["file:///code/demo"], None),
    ],
)
def test_workspace_files(tmp_path: Path, content: Any, expected: str | None) -> None:
    """`workspace.json` names one folder or one file of folders."""
    (tmp_path / "workspace.json").write_text(json.dumps(content))
    assert folder_of_workspace(str(tmp_path)) == expected


def test_a_missing_workspace_file(tmp_path: Path) -> None:
    """A window without a folder has none."""
    assert folder_of_workspace(str(tmp_path)) is None


def test_a_workspace_file_that_is_no_json(tmp_path: Path) -> None:
    (tmp_path / "workspace.json").write_bytes(b'{"folder": "file:///code')
    assert folder_of_workspace(str(tmp_path)) is None


def test_a_huge_workspace_file(tmp_path: Path) -> None:
    """Nothing larger than a workspace file can be is read."""
    content = {"folder": "file:///code/demo", "more": "x" * 70_000}
    (tmp_path / "workspace.json").write_text(json.dumps(content))
    assert folder_of_workspace(str(tmp_path)) is None


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text('{"folder": "file:///code/demo"}')
    (tmp_path / "workspace.json").symlink_to(tmp_path / "real.json")
    assert folder_of_workspace(str(tmp_path)) is None


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "workspace.json")
    assert small_json(str(tmp_path / "workspace.json")) == {}


def test_a_path_with_a_nul_is_no_file() -> None:
    assert small_json("a\0b") == {}


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["/code/demo/src/a.py", "/code/demo/b.py"], "/code/demo"),
        (["/code/demo/a.py"], "/code/demo"),
        (["/code/demo/a", "/code/demonstration/b"], "/code"),
        (["/code/demo/x/../a.py", "/code/demo//b.py"], "/code/demo"),
        (["/home/u/a", "/home/u/b"], "/home/u"),
        (["a.py", "./b.py", "/code/demo/a.py"], "/code/demo"),
        (["/code/Demo/a", "/code/demo/b"], "/code"),
        (["C:\\code\\Demo\\a.py", "c:/code/demo/b/c.py"], "C:\\code\\Demo"),
        (["\\\\srv\\share\\demo\\a", "\\\\srv\\share\\demo\\b\\c"], "\\\\srv\\share\\demo"),
        (["/home/u/a", "/home/v/b"], None),
        (["/Users/u/a", "/Users/v/b"], None),
        (["C:\\Users\\u\\a", "C:\\Users\\v\\b"], None),
        (["/a.py"], None),
        (["/code/a", "/etc/b"], None),
        (["C:\\a.py", "C:\\code\\b"], None),
        (["C:\\code\\a", "D:\\code\\a"], None),
        (["\\\\srv\\share\\a"], None),
        (["/code/demo/a", "c:\\code\\demo\\a"], None),
        (["a.py"], None),
        ([], None),
        ([7, None], None),
    ],
)
def test_common_folders(paths: list[Any], expected: str | None) -> None:
    """Files tell their folder unless they have too little in common."""
    assert common_folder(paths) == expected


@given(st.lists(st.text()))
def test_no_paths_can_fail(paths: list[str]) -> None:
    assert common_folder(paths) != "/"


NAMES = st.text("abc", min_size=1, max_size=3)


@given(st.lists(st.lists(NAMES, min_size=1, max_size=4), min_size=1, max_size=5))
def test_a_common_folder_holds_every_file(paths: list[list[str]]) -> None:
    """Every file is below the folder, and none deeper would do."""
    files = ["/code/" + "/".join(parts) for parts in paths]
    assert common_folder(files) == os.path.commonpath([os.path.dirname(file) for file in files])
