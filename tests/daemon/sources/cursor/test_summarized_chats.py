"""Chats of cursor-agent whose model sees a summary instead of the first messages."""

from __future__ import annotations

from contextlib import closing

import pytest
from tests.cursor_databases import CREATED
from tests.daemon.sources.cursor.agent_files import (
    answer,
    call,
    field,
    number,
    result,
    timing,
    user,
)

from sess_schema.connection import open_reader
from sess_schema.edits import Edit, of_event

SYSTEM = {"role": "system", "content": "You are an agent."}
TEXT = "Summary so far: in short"
SUMMARY = {"role": "user", "content": [{"type": "text", "text": TEXT}]}


def asked(chat, text, *, simulated=False, at=None):
    """A message of a person, as turns have it."""
    data = field(1, text.encode()) + field(2, b"id")
    data += number(5, 1) if simulated else b""
    return chat.ref(data + (number(25, at) if at else b""))


def said(text, at=None):
    return field(1, field(1, text.encode()) + (number(2, at) if at else b""))


def thought(text):
    return field(3, field(1, text.encode()) + number(2, 1200))


def tool_call(tool, args, outcome=b"", *, name="t1", at=None, took=None):
    """A call of a tool by its number; `outcome` is the field of the result that applies."""
    data = field(tool, field(1, args) + (field(2, outcome) if outcome else b""))
    data += field(57, name.encode())
    data += (number(59, at) if at else b"") + (number(60, at + took) if took else b"")
    return field(2, data)


def turn(chat, text, *steps, **more):
    """The field of a root that lists a turn."""
    inside = field(1, asked(chat, text, **more))
    inside += b"".join(field(2, chat.ref(step)) for step in steps)
    return field(8, chat.ref(field(1, inside)))


def archive(chat, messages, text="in short", shown=None):
    """The field of a root that lists what a summary replaced."""
    data = b"".join(field(1, bytes.fromhex(chat.message(one))) for one in messages)
    data += field(2, text.encode())
    data += field(4, bytes.fromhex(chat.message(shown))) if shown else b""
    return field(13, chat.ref(data))


def summary(chat, text="in short"):
    return field(6, chat.ref(field(1, text.encode())))


FIRST = [SYSTEM, user("one"), call("t1", "make"), result("t1", "made"), answer("two")]
LATER = [user("three"), answer("four")]
SYSTEM_SHOWN = ("system", "You are an agent.", None)
FIRST_SHOWN = [("user", "one", None), ("tool_use", "made", "ok"), ("assistant", "two", None)]
REST = [("summary", TEXT, None), ("user", "three", None), ("assistant", "four", None)]


def both_turns(chat):
    shell = field(1, field(1, b"make") + field(5, b"made"))
    first = turn(chat, "one", tool_call(1, field(1, b"make"), shell), said("two"))
    return first + turn(chat, "three", said("four"))


@pytest.mark.parametrize("watched", [True, False])
def test_what_a_summary_replaced_is_in_its_archive(index, chat, watched):
    """The result is the same whether the chat was read before the summary or only after it."""
    if watched:
        chat.save(FIRST, more=turn(chat, "one", said("two")))
        index.read()
    more = archive(chat, FIRST[1:], shown=SUMMARY) + both_turns(chat)
    chat.save([SYSTEM, SUMMARY, *LATER], more=more)
    index.read()
    assert index.shown() == [SYSTEM_SHOWN, *FIRST_SHOWN, *REST]
    assert index.facts("prompts", "tool_calls", "title") == (2, 1, "one")
    assert index.read().records == 0


def test_without_an_archive_the_turns_have_what_is_missing(index, chat):
    """The summary is no prompt, and nothing is told twice."""
    chat.save([SYSTEM, SUMMARY, *LATER], more=summary(chat, TEXT) + both_turns(chat))
    index.read()
    assert index.shown() == [SYSTEM_SHOWN, *FIRST_SHOWN, *REST]
    assert index.facts("prompts", "tool_calls", "title") == (2, 1, "one")
    more = summary(chat, TEXT) + both_turns(chat) + turn(chat, "five")
    chat.save([SYSTEM, SUMMARY, *LATER, user("five")], more=more)
    assert index.read().records == 1
    assert index.texts()[-2:] == ["four", "five"]


def test_the_rest_of_a_turn_is_not_told_twice(index, chat):
    """The messages after a summary may begin in the middle of a turn, which is told whole."""
    chat.save([SYSTEM, SUMMARY, answer("two"), *LATER], more=summary(chat) + both_turns(chat))
    index.read()
    assert index.shown() == [SYSTEM_SHOWN, *FIRST_SHOWN, *REST]


def test_a_summary_that_is_nowhere_among_the_messages(index, chat):
    chat.save([SYSTEM, *LATER], more=summary(chat, TEXT) + both_turns(chat))
    index.read()
    assert index.shown() == [SYSTEM_SHOWN, *FIRST_SHOWN, *REST]


def test_two_summaries(index, chat):
    """What was read before the second one stays where it was."""
    chat.save([SYSTEM, SUMMARY, *LATER], more=summary(chat, TEXT) + both_turns(chat))
    index.read()
    again = {"role": "user", "content": "Second summary"}
    more = summary(chat, "Second summary") + both_turns(chat) + turn(chat, "five", said("six"))
    chat.save([SYSTEM, again, user("five"), answer("six")], more=more)
    index.read()
    assert index.shown() == [
        *(SYSTEM_SHOWN, *FIRST_SHOWN, *REST),
        ("summary", "Second summary", None),
        ("user", "five", None),
        ("assistant", "six", None),
    ]


def test_turns_of_a_chat_without_a_summary_add_nothing(index, chat):
    """Its messages are complete, even if a prompt reads differently in the turns."""
    chat.save([user("one @a.py"), answer("two"), *LATER], more=both_turns(chat))
    index.read()
    assert index.texts() == ["one @a.py", "two", "three", "four"]


# -- what turns can say


def told(index, chat, *steps, **more):
    chat.save([], more=summary(chat) + turn(chat, "ask", *steps, **more))
    index.read()
    return [(e.type, e.text or e.output, e.status, e.duration_ms) for e in index.entries()]


SUCCESS = field(1, number(3, 0) + field(5, b"a") + field(6, b"b"))


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (said("fine"), ("assistant", "fine", None, None)),
        (thought("hm"), ("thinking", "hm", None, None)),
        (tool_call(1, field(1, b"make"), SUCCESS), ("tool_use", "a\nb", "ok", None)),
        (
            tool_call(1, field(1, b"make"), field(1, number(3, 2) + field(6, b"broke"))),
            ("tool_use", "broke", "error", None),
        ),
        (
            tool_call(1, field(1, b"rm"), field(4, field(1, b"rm") + field(3, b"no"))),
            ("tool_use", "no", "denied", None),
        ),
        (
            tool_call(8, field(1, b"/a.py"), field(2, field(1, b"not found"))),
            ("tool_use", "not found", "error", None),
        ),
        (
            tool_call(8, field(1, b"/a.py"), field(1, field(1, b"text")), at=CREATED, took=1500),
            ("tool_use", "text", "ok", 1500),
        ),
        (tool_call(5, field(1, b"x")), ("tool_use", "", "pending", None)),
        (
            tool_call(99, field(1, b"word"), field(1, field(1, field(2, b"deep \xc3\xa9")))),
            ("tool_use", "deep \u00e9", "ok", None),
        ),
    ],
)
def test_a_step_of_a_turn(index, chat, step, expected):
    assert told(index, chat, step)[1] == expected


def test_calls_in_turns_are_described(index, chat):
    steps = [
        tool_call(1, field(1, b"make") + field(2, b"/code"), name="t1"),
        tool_call(4, field(1, b"/code") + field(2, b"*.py"), name="t2"),
        tool_call(99, field(1, b"word"), name="t3"),
    ]
    told(index, chat, *steps)
    assert index.world.sql(
        "SELECT kind, tool, summary FROM events WHERE type = 'tool_use' ORDER BY id"
    ) == [
        ("shell", "Shell", "make"),
        ("search", "Glob", "*.py in /code"),
        ("other", "tool-99", "text"),
    ]


def test_an_edit_in_a_turn_has_the_texts_before_and_after(index, chat):
    success = field(1, field(1, b"/a.py") + field(6, b"x = 1\n") + field(7, b"x = 2\n"))
    told(index, chat, tool_call(12, field(1, b"/a.py") + field(6, b"..."), success))
    ((event,),) = index.world.sql("SELECT id FROM events WHERE type = 'tool_use'")
    with closing(open_reader(index.world.state / "index.db")) as db:
        assert of_event(db, event) == [Edit("/a.py", "x = 1\n", "x = 2\n")]


def test_what_the_agent_tells_itself_is_no_prompt(index, chat):
    assert told(index, chat, said("on it"), simulated=True)[0][0] == "system"
    assert index.facts("prompts") == 0


def test_a_command_that_a_person_ran(index, chat):
    shell = field(1, chat.ref(field(1, b"git status")))
    shell += field(2, chat.ref(field(1, b"clean") + number(3, 0)))
    chat.save([], more=summary(chat) + field(8, chat.ref(field(2, shell))))
    index.read()
    assert index.shown()[0] == ("tool_use", "clean", "ok")


@pytest.mark.parametrize(
    "more",
    [
        field(8, b"x" * 32),
        field(8, b""),
        field(13, b"\xff"),
        field(14, b"\x08"),
        field(6, b"y" * 32),
    ],
)
def test_broken_turns_are_passed_over(index, chat, more):
    """Blobs that are missing or no protobuf: the messages are there."""
    chat.save(LATER, more=more)
    index.read()
    assert [text for kind, text, _ in index.shown() if kind != "summary"] == ["three", "four"]


# -- times


def test_turns_tell_the_times_of_messages(index, chat):
    """A prompt at the start of its turn, the last answer at its end; nothing took 0 ms."""
    more = both_turns(chat)
    more += timing(CREATED + 1000, CREATED + 9000) + timing(CREATED + 60_000, CREATED + 61_000)
    chat.save([*FIRST, *LATER], more=more)
    index.read()
    assert [(e.type, e.ts - CREATED, e.duration_ms) for e in index.entries()][1:] == [
        ("user", 1000, None),
        ("tool_use", 1000, None),
        ("assistant", 9000, None),
        ("user", 60_000, None),
        ("assistant", 61_000, None),
    ]
    assert index.facts("started_at", "ended_at") == (CREATED + 1000, CREATED + 61_000)


def test_a_turn_gets_its_time_when_it_ends(index, chat):
    chat.save(FIRST, more=turn(chat, "one"))
    index.read()
    assert [e.ts for e in index.entries()] == [CREATED] * 4
    chat.save(FIRST, more=turn(chat, "one") + timing(CREATED + 1000, CREATED + 9000))
    index.read()
    assert [e.ts - CREATED for e in index.entries()][1:] == [1000, 1000, 9000]


def test_timings_of_the_last_turns_only(index, chat):
    """An older version recorded none for the first ones."""
    messages = [one for n in range(4) for one in (user(f"p{n}"), answer(f"a{n}"))]
    more = b"".join(turn(chat, f"p{n}", said(f"a{n}")) for n in range(4))
    more += timing(CREATED + 10, CREATED + 20) + timing(CREATED + 30, CREATED + 40)
    chat.save(messages, more=more)
    index.read()
    assert [e.ts - CREATED for e in index.entries()] == [0, 0, 0, 0, 10, 20, 30, 40]


def test_steps_with_their_own_times(index, chat):
    told(index, chat, said("two", at=CREATED + 500), at=CREATED + 100)
    assert [e.ts - CREATED for e in index.entries()][:2] == [100, 500]


def test_a_root_names_the_branch(index, chat):
    chat.save(LATER, more=field(19, b"feature/x"))
    index.read()
    assert index.facts("git_branch") == "feature/x"
