"""`sess lessons`: errors that come back, what they cost and what ended them."""

from __future__ import annotations

import re

import pytest
from tests.must import must

from sess_schema.queries.failures.lessons import may_be_handed_on

FIRST = "11111111-1111-4111-8111-111111111111"
SECOND = "22222222-2222-4222-8222-222222222222"
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def boil(t, number, status, *, minute):
    """A call of the same command, with another folder and another number each time."""
    at = {"timestamp": f"2026-02-02T10:{minute:02}:00.000Z"}
    output = f"/tmp/x{number}/boil.py:{number}: KettleError: valve 'v{number}' is stuck ({TOKEN})"
    return (
        t.call(f"c{number}", command=f"cd /w{number} && make kettle") | at,
        t.result(f"c{number}", output if status else "boiled", is_error=status, **at),
    )


@pytest.fixture
def kitchen(world, sess):
    """An error in two sessions, tried twice and solved in one of them; others that do not recur."""
    t = world.transcript(FIRST)
    t.append(t.prompt("Boil", timestamp="2026-02-02T09:59:00.000Z"))
    t.append(*boil(t, 11, True, minute=0), *boil(t, 12, True, minute=2))
    at = {"timestamp": "2026-02-02T10:03:00.000Z"}
    t.append(
        t.call("e1", "Edit", file_path="/w/boil.py", old_string="a", new_string="oil()") | at,
        t.result("e1", "done", **at),
    )
    t.append(*boil(t, 13, False, minute=4))
    t.append(t.call("o1", command="ls /no"), t.result("o1", "ls: cannot access", is_error=True))
    other = world.transcript(SECOND)
    other.append(other.prompt("Again", timestamp="2026-02-02T10:10:00.000Z"))
    other.append(*boil(other, 21, True, minute=11))
    world.ingest()
    return sess


def test_an_error_that_comes_back_is_counted_with_what_ended_it(kitchen):
    """Two tries until a success are one episode; folders and numbers do not matter."""
    (lesson,) = kitchen.json("lessons")
    assert lesson["signature"].startswith("boil py kettleerror valve is stuck")
    counts = [lesson[name] for name in ("times", "sessions", "episodes", "solved", "unknown")]
    assert counts == [3, 2, 2, 1, 1]
    assert (lesson["unsolved"], lesson["open"]) == (0, False)
    assert lesson["ended_by"][0] == "edited boil.py: +oil() -a"
    assert lesson["active_ms"] == 4 * 60_000
    assert lesson["tools"] == ["Bash"]
    assert [one.split("#")[0] for one in lesson["evidence"]] == [SECOND, FIRST]
    shown = kitchen.json("show", lesson["evidence"][0])
    assert "KettleError" in shown[0]["output"]
    assert len(kitchen.json("lessons", "--least", "1")) == 2


def test_lessons_mask_secrets_and_may_be_pasted(kitchen):
    """As Markdown, each with places that `sess show` accepts."""
    for arguments in ((), ("--json",), ("--paste",)):
        assert TOKEN[4:].lower() not in kitchen("lessons", *arguments).stdout.lower()
    (line,) = kitchen("lessons", "--paste").stdout.splitlines()
    assert re.match(r"- `.*KettleError.*` \(3 times in 2 sessions\) ended by `edited boil", line)
    place = must(re.search(r"<!-- (\S+)", line))[1]
    assert kitchen.json("show", place)


def test_lessons_are_drawn_and_filtered(kitchen):
    out = kitchen("lessons").stdout
    assert "3 times in 2 sessions · Bash · 1 solved, 1 not tried again" in out
    assert "ended by edited boil.py" in out
    done = kitchen("lessons", "--open", code=1)
    assert done.stderr.startswith("sess: no error that was not solved")
    assert kitchen("lessons", "--project", "/nowhere", code=1).stdout == ""
    assert "no such order" in kitchen("lessons", "--sort", "size", code=2).stderr


def test_an_error_is_open_until_its_command_succeeds(world, sess):
    t = world.transcript(FIRST)
    t.append(t.prompt("Boil"), *boil(t, 11, True, minute=0), *boil(t, 12, True, minute=3))
    world.ingest()
    (lesson,) = sess.json("lessons", "--open")
    assert (lesson["unsolved"], lesson["episodes"]) == (1, 1)
    assert lesson["active_ms"] == 3 * 60_000
    assert "not solved when it was last tried" in sess("lessons").stdout
    assert "has an end that can be told" in sess("lessons", "--paste").stderr
    t.append(*boil(t, 13, False, minute=9))
    world.ingest()
    assert not sess.json("lessons")[0]["open"]


@pytest.mark.parametrize(
    "step",
    ["$ rm -rf build", "$ git reset --hard HEAD~1", "$ git push --force", "$ sudo make install",
     "$ psql -c 'DROP TABLE tea'", "$ git checkout -- ."],
)  # fmt: skip
def test_what_cannot_be_undone_is_not_handed_on(step):
    assert not may_be_handed_on(["edited boil.py: +oil()", step])
    assert may_be_handed_on(["$ git checkout main", "$ make kettle"])
