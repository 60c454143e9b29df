"""The same error elsewhere, and what ended it there."""

from __future__ import annotations

from contextlib import closing
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sess_schema.connection import open_reader
from sess_schema.queries.failures import signature
from sess_schema.queries.failures.aftermath import BUDGET, command
from sess_schema.queries.failures.similar import is_error, similar
from sess_schema.queries.fields import Condition

SOLVED = "11111111-1111-4111-8111-111111111111"
OPEN = "22222222-2222-4222-8222-222222222222"
OTHER = "33333333-3333-4333-8333-333333333333"
ERROR = """\
Traceback (most recent call last):
  File "{folder}/kettle/boiler.py", line {line}, in boil
    self.valve.open(pressure)
ValveError: the valve {name} is stuck at 0x{at}
"""


def pasted(folder="/home/ann/tea", line=41, name="'A7'", at="7f3a22b1c0"):
    return ERROR.format(folder=folder, line=line, name=name, at=at)


@pytest.fixture
def index(world):
    """An error that was solved in one session and not in another, and other failures."""
    t = world.transcript(SOLVED)
    t.append(
        t.prompt("Make tea"),
        t.call("c1", command="cd /w/tea && pytest -q tests 2>&1 | tail -5"),
        t.result("c1", pasted("/w/tea", 7, "'B2'", "55aa00ff12"), is_error=True),
        t.answer("The valve sticks because the spring is not lubricated."),
        t.call("r1", "Read", file_path="/w/tea/kettle/boiler.py"),
        t.result("r1", "1→import valve"),
        t.call(
            "e1", "Edit", file_path="/w/tea/kettle/boiler.py",
            old_string="self.valve.open(p)", new_string="self.valve.lubricate()",
        ),
        t.result("e1", "done"),
        t.call("c2", command="pytest -q tests"),
        t.result("c2", "3 passed"),
        t.answer("The kettle boils."),
        t.prompt("Now make coffee"),
        t.answer("Grinding beans."),
    )  # fmt: skip
    later = world.transcript(OPEN)
    day = {"timestamp": "2026-03-05T10:00:00.000Z"}
    later.append(
        later.prompt("Try again", **day),
        later.call("c1", command="make kettle") | day,
        later.result("c1", pasted("/mnt/x", 99, "'C3'", "00ff00ff00"), is_error=True, **day),
        later.answer("Let me look.", **day),
        later.call("c2", command="make kettle") | day,
        later.result("c2", pasted("/mnt/x", 99, "'C3'", "00ff00ff01"), is_error=True, **day),
    )
    other = world.transcript(OTHER)
    other.append(
        other.prompt("List it"),
        other.call("c1", command="ls /nowhere"),
        other.result("c1", "ls: cannot access '/nowhere': No such file", is_error=True),
        other.answer("It does not exist."),
    )
    world.ingest()
    with closing(open_reader(world.state / "index.db")) as db:
        yield db


def test_an_error_is_found_elsewhere_with_what_ended_it(index):
    """Other folders, line numbers, addresses and quotes; the answer ends with the first success."""
    found = similar(index, pasted())
    assert found.found
    assert (found.times, found.sessions) == (3, 2)
    names = dict(iter(index.execute("SELECT id, native_id FROM sessions")))
    by_session = {names[place.found.session]: place for place in found.places}
    assert by_session.keys() == {SOLVED, OPEN}
    solved = by_session[SOLVED]
    assert (solved.outcome, by_session[OPEN].outcome) == ("done", "failed")
    assert solved.found.quote.startswith("ValveError: the valve 'B2'")
    assert "spring is not lubricated" in solved.answer
    assert "edited boiler.py: +self.valve.lubricate() -self.valve.open(p)" in solved.answer
    assert "$ pytest -q tests" in solved.answer
    assert "coffee" not in solved.answer
    assert "import valve" not in solved.answer
    assert solved.ended_by is not None
    assert found.last is not None
    assert names[found.last.session] == OPEN


def test_what_was_never_solved_is_said_to_be_so(index):
    """Where the same command failed again each time."""
    open_one = index.execute("SELECT id FROM sessions WHERE native_id = ?", (OPEN,)).get
    within = Condition("e.session_id = ?", (open_one,))
    assert similar(index, pasted(), within=within).never_solved
    assert not similar(index, pasted()).never_solved
    left = similar(index, pasted(), leave_out=[open_one])
    assert {place.found.session for place in left.places} == {left.places[0].found.session}
    assert open_one not in {place.found.session for place in left.places}


def test_an_error_that_never_occurred_is_not_found(index):
    """The nearest place is named, and said not to fit."""
    found = similar(index, "error[E0382]: borrow of moved value: `valve`\n --> src/main.rs:4:5")
    assert not found.found
    assert found.times == 0
    assert not similar(index, "").places
    assert not similar(index, "%%% 12 34").places


def test_what_followed_stays_within_its_budget(world):
    """However much was said: the first and the last pieces, long ones cut."""
    t = world.transcript(SOLVED)
    t.append(t.prompt("Go"), t.call("c0", command="make"))
    t.append(t.result("c0", "boom: fatal error in the boiler room", is_error=True))
    for number in range(60):
        t.append(t.answer(f"attempt {number} " + "word " * 300))
    t.append(t.call("c9", command="make"), t.result("c9", "built"))
    world.ingest()
    with closing(open_reader(world.state / "index.db")) as db:
        (place,) = similar(db, "fatal error in the boiler room").places
        assert place.outcome == "done"
        assert BUDGET * 0.8 < len(place.answer) <= BUDGET
        assert place.answer.startswith("attempt 0 ")
        assert (
            len(similar(db, "fatal error in the boiler room", budget=300).places[0].answer) <= 300
        )


@pytest.mark.parametrize(
    "text",
    [
        pasted(),
        "zsh: command not found: kettle",
        "fatal: not a git repository (or any of the parent directories): .git",
        "src/app.ts:14:7 - error TS2322: Type 'string' is not assignable to type 'number'.",
        "npm ERR! code ERESOLVE",
        "--- FAIL: TestBoil (0.00s)\n    boil_test.go:12: got 1, want 2",
        "go: cannot find main module, but found .git/config in /srv/tea",
        "make: *** [Makefile:3: all] Error 2",
        "thread 'main' panicked at src/main.rs:4:5:\nindex out of bounds",
        "Nov 03 11:20:41 web-2 nginx[88]: nginx: [emerg] bind() to 0.0.0.0:443 failed (98: in use)",
        "Access to fetch at 'https://a.example' from origin 'https://b.example' is not allowed",
        "How did we get rid of this?\nfatal: not a git repository\nI forgot. Do you know?",
    ],
)
def test_errors_are_recognised(text):
    assert signature.is_pasted(text)


@pytest.mark.parametrize(
    "text",
    [
        "how did we fix the error in the parser",
        "why does pytest fail with ValveError: stuck?",
        "python package fails because of dashes in the script's name",
        "tests\nthat never end",
        "why is 'valve' not found in `boiler.py`: is the path wrong",
        "the page about kettles is missing a title",
    ],
)
def test_questions_are_not_errors(text):
    assert not signature.is_pasted(text)


def test_a_message_that_a_failed_call_printed_is_an_error(index):
    """Even if nothing about it looks like one."""
    assert is_error(index, "the valve 'B2' is stuck at 0x55aa00ff12")
    assert not is_error(index, "The valve sticks because the spring is not lubricated")
    assert not is_error(index, "make tea")


@given(st.integers(0, 10**9), st.text("0123456789abcdef", min_size=10, max_size=40))
def test_signatures_leave_out_what_differs_each_time(number, digits):
    """Folders, numbers, hashes, times and the contents of quotes."""
    one = signature.key(
        f"Exit code {number}\n/tmp/x{number}/boiler.py:{number}:{number}: error: valve"
        f" 'v{digits}' of 0x{digits} stuck after {number}.5s"
    )
    other = signature.key("Exit code 1\nboiler.py:3:4: error: valve 'main' of 0xff stuck after 1s")
    assert one[0] == other[0] == "boiler py error valve of stuck after"


@pytest.mark.parametrize(
    ("typed", "same"),
    [
        ("cd /w && make kettle 2>&1 | tail -5", "make kettle"),
        ("TERM=dumb sudo make  kettle > log", "make kettle"),
        ("make kettle  # boil", "make kettle"),
        ("make kettle && make cup", "make kettle"),
    ],
)
def test_commands_are_compared_without_folder_and_output(typed, same):
    assert command(typed) == same


def test_of_equal_places_the_preferred_ones_come_first(index):
    sessions = dict(iter(index.execute("SELECT native_id, id FROM sessions")))
    for name in (SOLVED, OPEN):
        prefer = Condition("e.session_id = ?", (sessions[name],))
        best, *_ = similar(index, pasted(), prefer=prefer).places
        assert best.found.session == sessions[name]


def test_what_looks_for_an_error_sees_short_lines(monkeypatch):
    """Its expressions take time that grows with the square of a line: a log may be one line."""
    seen = [""]
    looked = signature._STRONG.search

    def search(line):
        seen.append(line)
        return looked(line)

    monkeypatch.setattr(signature, "_STRONG", SimpleNamespace(search=search))
    for text in ("x." * 10_000 + "\n" + "y" * 30_000, "error " + "z." * 10_000):
        signature.is_pasted(text)
        signature.key(text)
    assert 0 < max(map(len, seen)) <= 400
