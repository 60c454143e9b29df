"""What a person said in a chat or transcript, and when."""

from __future__ import annotations

import pytest
from tests.daemon.sources.cursor.parsed_messages import line, said, told
from tests.waiting import lines_run

from sessiond.sourcekit.base import TITLE_PROMPT, Event, Title
from sessiond.sources.cursor.agent_messages import parse_message, read_time

# -- what a person said


def test_a_query_is_unwrapped() -> None:
    record = said("user", "<user_query>\ntie a knot\n</user_query>")
    assert told(record) == [("user", None, "tie a knot")]


def test_a_query_gives_the_title() -> None:
    record = said("user", "<user_query>\ntie\n  a knot\n</user_query>")
    assert record.titles == [Title("tie a knot", TITLE_PROMPT)]


def test_text_without_a_query_is_what_was_typed() -> None:
    record = parse_message({"role": "user", "content": "tie a knot"})
    assert told(record) == [("user", None, "tie a knot")]


def test_the_kind_of_a_message_is_its_role() -> None:
    record = parse_message({"role": "user", "content": "x"}, native_id="n1")
    assert (record.kind, record.role, record.native_id) == ("user", "user", "n1")


@pytest.mark.parametrize(
    "name", ["user_info", "git_status", "project_layout", "rules", "open_and_recently_viewed_files"]
)
def test_context_is_not_what_a_person_said(name: str) -> None:
    record = said("user", f"<{name}>\nOS: linux\n</{name}>")
    assert told(record) == [("system", "context", "OS: linux")]


def test_context_is_no_title() -> None:
    assert said("user", "<user_info>\nOS: linux\n</user_info>").titles == []


@pytest.mark.parametrize(
    ("name", "label"), [("system_reminder", "reminder"), ("system_notification", "notification")]
)
def test_notices_to_the_agent_have_labels(name: str, label: str) -> None:
    record = said("user", f"<{name}>Mind the gap</{name}>")
    assert told(record) == [("system", label, "Mind the gap")]


def test_context_around_a_query() -> None:
    """Elements side by side, with attributes and with others inside, and the query among them."""
    text = (
        '<rules>\n<user_rules description="x">Be brief</user_rules>\n</rules>\n'
        "<attached_files>a.py</attached_files><user_query>go</user_query>\n"
        "<system_reminder>later</system_reminder>"
    )
    assert told(said("user", text)) == [
        ("system", "context", '<user_rules description="x">Be brief</user_rules>'),
        ("system", "context", "a.py"),
        ("system", "reminder", "later"),
        ("user", None, "go"),
    ]


def test_whatever_stands_beside_a_query_is_context() -> None:
    """In the same block or in another one."""
    record = said("user", "--- Command: go ---\n<user_query>go</user_query>", "injected")
    assert told(record) == [
        ("system", "context", "--- Command: go ---"),
        ("system", "context", "injected"),
        ("user", None, "go"),
    ]


@pytest.mark.parametrize(
    "typed",
    [
        "what is <user_query>x</user_query> for",
        "what is <user_query> for",
        "<rules>\nmine\n</rules>",
        "<div>\n</div>",
    ],
)
def test_elements_inside_a_query_were_typed(typed: str) -> None:
    record = said("user", f"<user_query>\n{typed}\n</user_query>")
    assert told(record) == [("user", None, typed)]


def test_several_queries_in_one_text() -> None:
    record = said("user", "<user_query>a</user_query>\n<user_query>b</user_query>")
    assert told(record) == [("user", None, "a\nb")]


def test_a_query_without_an_end() -> None:
    assert told(said("user", "<user_query>\ntie a")) == [("user", None, "tie a")]


def test_an_empty_query() -> None:
    assert said("user", "<user_query>\n</user_query>").events == []


def test_an_unknown_element_alone_is_context() -> None:
    """Cursor adds new ones with every version."""
    record = said("user", "<brand_new_facts>\nx\n</brand_new_facts>")
    assert told(record) == [("system", "context", "x")]


@pytest.mark.parametrize(
    "typed",
    [
        "<my_notes>\nx\n</my_notes>\nuse these",
        "see\n<my_notes>\nx\n</my_notes>",
        "<p>hello</p>",
        "<my_notes>\nthat never end",
        "the <rules> of the game",
        "explain\n<rules>\nthat never end",
    ],
)
def test_elements_that_a_person_typed(typed: str) -> None:
    assert told(said("user", typed)) == [("user", None, typed)]


def test_a_reminder_after_what_was_typed() -> None:
    record = said("user", "go on\n<system_reminder>\nbe kind\n</system_reminder>")
    assert told(record) == [("system", "reminder", "be kind"), ("user", None, "go on")]


def test_context_that_was_cut_off() -> None:
    assert told(said("user", "<user_info>\nOS: li")) == [("system", "context", "OS: li")]


@pytest.mark.parametrize("unit", ["<rules>\n", "<a_b>\n", "<b>", "\n\n<user_query>", "<a_b></a_b>"])
def test_many_tags_are_read_in_one_pass(unit: str) -> None:
    """Each tag costs the same, however many there are; reading them all for each would not end."""
    few, many = (
        lines_run(lambda n=n: (said("user", "x\n" + unit * n), said("user", unit * n)))
        for n in (1_000, 10_000)
    )
    assert many < 11 * few
    said("user", "x\n" + unit * 50_000)


def test_images_of_a_prompt_are_counted() -> None:
    record = said("user", {"type": "image", "image": "aGk="}, "<user_query>see</user_query>")
    assert record.events == [Event("user", "see", images=1)]


def test_a_prompt_of_nothing_but_an_image() -> None:
    record = said("user", {"type": "file", "mediaType": "image/png", "data": "aGk="})
    assert record.events == [Event("user", "[image]", images=1)]


def test_marks_of_images_are_counted() -> None:
    record = said("user", "[Image]\n<user_query>\n[Image]\nsee\n</user_query>")
    assert record.events == [Event("user", "see", images=2)]


def test_a_summary_in_place_of_a_prompt() -> None:
    """What was said before was summed up by the agent: no person typed it."""
    record = said("user", "We tied a knot", providerOptions={"cursor": {"isSummary": True}})
    assert (told(record), record.titles) == ([("summary", "compact", "We tied a knot")], [])


# -- times


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("Tuesday, Jan 6, 2026, 3:04 PM (UTC+1)", 1767708240000),
        ("Tuesday, Jan 6, 2026, 3:04\u202fPM (UTC+1)", 1767708240000),
        ("Tuesday, January 6, 2026, 7:34 PM (UTC+5:30)", 1767708240000),
        ("Tuesday, Jan 6, 2026, 7:04 AM (UTC-7)", 1767708240000),
        ("Tuesday, Jan 6, 2026, 7:04 AM (UTC\u22127)", 1767708240000),
        ("Jan 6, 2026, 2:04 PM (UTC)", 1767708240000),
        ("Tue, Jan 6, 2026 at 14:04:05 GMT", 1767708245000),
        ("Wednesday, Jan 7, 2026, 12:04 AM (UTC+10)", 1767708240000),
        ("2026-01-06T14:04:00Z", 1767708240000),
        ("2026-01-06T15:04:00+01:00", 1767708240000),
        ("1767708240000", 1767708240000),
        ("Tuesday, Jan 6, 2026, 3:04 PM", None),
        ("Tuesday, Jan 36, 2026, 3:04 PM (UTC+1)", None),
        ("Tuesday, Foo 6, 2026, 3:04 PM (UTC+1)", None),
        ("Tuesday, Jan 6, 2026, 3:04 PM (UTC+77)", None),
        ("Tuesday, Jan 6, 0000, 3:04 PM (UTC+1)", None),
        ("soon", None),
        ("", None),
    ],
)
def test_times(written: str, expected: int | None) -> None:
    """A time that a person can read needs its distance from UTC to be one."""
    assert read_time(written) == expected


def test_the_time_in_a_prompt_is_taken_out() -> None:
    text = (
        "<timestamp>Tuesday, Jan 6, 2026, 3:04 PM (UTC+1)</timestamp>\n<user_query>go</user_query>"
    )
    record = said("user", text)
    assert (told(record), record.ts) == ([("user", None, "go")], 1767708240000)


def test_a_time_that_is_none_is_taken_out_as_well() -> None:
    record = said("user", "<timestamp>soon</timestamp>\ngo")
    assert (told(record), record.ts) == ([("user", None, "go")], None)


def test_the_time_of_the_line_counts_first() -> None:
    block = {"type": "text", "text": "<timestamp>2026-01-06T14:04:00Z</timestamp>go"}
    assert line("user", block, timestamp="2026-03-04T05:06:07Z").ts == 1772600767000


def test_a_bad_time_is_told() -> None:
    assert line("user", timestamp="soon").warnings == ["bad timestamp"]


def test_a_time_inside_a_query_was_typed() -> None:
    record = said("user", "<user_query>\n<timestamp>1767708240</timestamp>\n</user_query>")
    assert (record.ts, record.events[0].text) == (None, "<timestamp>1767708240</timestamp>")
