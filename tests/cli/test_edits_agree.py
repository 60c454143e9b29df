"""Whatever counts or draws an edit says the same of it."""

from __future__ import annotations

import json
import re

from tests.cursor_databases import bubble, tool

HUNKS = [
    {"oldStart": 3, "newStart": 3, "lines": [" def f():", "-    return 1", "+    return 2"]},
    {"oldStart": 40, "newStart": 40, "lines": ["+# the end", " pass"]},
]
COMPOSER = "cccccccc-1111-4111-8111-111111111111"
PATCH = "*** Begin Patch\n*** Update File: /code/demo/b.py\n@@\n-a\n+b\n+c\n*** End Patch"


def counted(world):
    """Lines added and removed by `sess stats edits`, by tool."""
    done = world.run("sess", "stats", "edits", "--json", "--no-sync", check=0)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {
        one.get("tool", "all"): (one["lines_added"], one["lines_removed"])
        for one in found
        if "suffix" not in one
    }


def drawn(world, session):
    """Lines that the page of a session marks as added and removed."""
    world.run("sess", "export", "html", session, "-o", world.root / "p.html", "--static", check=0)
    html = (world.root / "p.html").read_text("utf-8")
    return len(re.findall(r"<ins\b", html)), len(re.findall(r"<del\b", html))


def test_statistics_and_pages_count_the_same_lines(world):
    """Of an edit whose result tells the lines of the file, of one without, and of a new file."""
    t = world.transcript()
    many = {"file_path": "/code/demo/a.py", "replace_all": True}
    t.append(
        t.prompt("change it"),
        t.call("c1", "Edit", **many, old_string="return 1", new_string="return 2"),
        t.result("c1", "done", toolUseResult={"structuredPatch": HUNKS}),
        t.call("c2", "Edit", file_path="/code/demo/b.py", old_string="x\ny\nz", new_string="x\nz"),
        t.result("c2", "done"),
    )
    world.run("sessiond", "sync", check=0)
    assert counted(world) == {"all": (2, 2), "Edit": (2, 2)}
    assert drawn(world, "1111") == (2, 2)


def test_edits_of_cursor_are_drawn_and_counted(world):
    """A replaced text and a patch, in `sess show`, on the page and in statistics."""
    change = {"file_path": "/code/demo/a.py", "old_string": "one\ntwo", "new_string": "one\n2"}
    bubbles = [
        bubble("b0", 1, "change it"),
        tool("b1", "search_replace", params=change, result={"output": "ok"}),
        tool("b2", "apply_patch", result={"output": "ok"}),
    ]
    bubbles[2]["toolFormerData"]["rawArgs"] = PATCH
    file = world.root / "export.jsonl"
    lines = (json.dumps({"composerId": COMPOSER, "bubble": one}) + "\n" for one in bubbles)
    file.write_text("".join(lines), "utf-8")
    world.run("sessiond", "sync", file, check=0)
    shown = world.run("sess", "show", "cccc", "--no-sync", check=0).stdout
    assert re.findall(r"^    ([-+] \w+)$", shown, re.MULTILINE) == [
        "- two", "+ 2", "- a", "+ b", "+ c",
    ]  # fmt: skip
    assert counted(world) == {"all": (3, 2), "search_replace": (1, 1), "apply_patch": (2, 1)}
    assert drawn(world, "cccc") == (3, 2)
