from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.at_length import amount

from sess_common import escape
from sessiond.sourcekit.base import Record, SessionSpec, Title
from sessiond.sourcekit.values import as_count, as_time, is_weak, prompt_title
from sessiond.sources.claude.injected import Segment, split_prompt
from sessiond.sources.claude.transcript import ClaudeParser

MAIN = SessionSpec("s1")


def parse(*values: dict[str, Any], spec: SessionSpec = MAIN) -> list[Record]:
    parser = ClaudeParser(spec, {})
    return [parser.parse(value) for value in values]


def answer(text: str, message_id: str = "m1", **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {"type": "assistant", "message": {"id": message_id, "content": content}, **more}


def prompt(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": text}, **more}


def result(content: Any, **block: Any) -> dict[str, Any]:
    given = {"type": "tool_result", "tool_use_id": "c1", "content": content, **block}
    return {"type": "user", "message": {"role": "user", "content": [given]}}


def texts(records: list[Record]) -> list[list[str]]:
    return [[event.text for event in record.events] for record in records]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2026-03-04T05:06:07Z", 1772600767000),
        ("2026-03-04T05:06:07.5Z", 1772600767500),
        ("2026-03-04T05:06:07.123456789Z", 1772600767123),
        ("2026-03-04T07:06:07.001+02:00", 1772600767001),
        ("2026-03-04 05:06:07", 1772600767000),
        (1772600767, 1772600767000),
        (1772600767.25, 1772600767250),
        (1772600767123, 1772600767123),
        (1772600767123456, 1772600767123),
        ("1772600767123", 1772600767123),
        ("0001-01-01T00:00:00Z", None),
        ("soon", None),
        ("", None),
        (True, None),
        (-1, None),
        (float("nan"), None),
        (10**400, None),
        ([], None),
        (None, None),
    ],
)
def test_times(written: Any, expected: int | None) -> None:
    """A time in any usual notation is UTC milliseconds; anything else is no time."""
    assert as_time(written) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [(7, 7), (7.9, 7), ("7", 7), (None, 0), (-1, 0), (True, 0), ("x", 0), ("²", 0), (1e400, 0)],
)
def test_counts(written: Any, expected: int) -> None:
    """Token counts may be floats or digits in a string; what is no count is zero."""
    assert as_count(written) == expected


def test_a_missing_time_is_the_previous_one() -> None:
    """Undated records take the time before them, without a warning; bad times warn too."""
    records = parse({"type": "mode"}, prompt("a", timestamp=1772600767), {"type": "mode"})
    assert [(r.ts, r.ts_from, r.warnings) for r in records] == [
        (None, None, []),
        (1772600767000, None, []),
        (1772600767000, "previous", []),
    ]
    (bad,) = parse(prompt("b", timestamp="?"))
    assert (bad.ts, bad.ts_from, bad.warnings) == (None, None, ["bad timestamp"])


def test_blocks_of_one_response_are_told_once() -> None:
    """Lines of a response repeat earlier blocks; the same words in another one are new."""
    records = parse(answer("a"), answer("a"), answer("a", "m2"), answer("a", requestId="r2"))
    assert texts(records) == [["a"], [], ["a"], ["a"]]


def test_interleaved_responses() -> None:
    """A sidechain's lines between those of a response do not make it forget its blocks."""
    records = parse(answer("a"), answer("b", "m2"), answer("a"), answer("b", "m2"))
    assert texts(records) == [["a"], ["b"], [], []]


def test_a_prompt_ends_a_response() -> None:
    """Gateways that reuse one message id lose no answer to a later prompt."""
    assert texts(parse(answer("ok"), prompt("again"), answer("ok"))) == [["ok"], ["again"], ["ok"]]


def test_equal_blocks_of_one_line() -> None:
    """A line may really say the same thing twice."""
    line = answer("a")
    line["message"]["content"] *= 2
    assert texts(parse(line)) == [["a", "a"]]


def test_answers_without_an_id_are_all_told() -> None:
    """Without a message id nothing can be told to be a repetition."""
    line = {"type": "assistant", "message": {"content": "same"}}
    assert texts(parse(line, line)) == [["same"], ["same"]]


def test_the_state_stays_small() -> None:
    """Whatever a file repeats, a bounded part of it is remembered."""
    parser = ClaudeParser(MAIN, {})
    for number in range(1000):
        parser.parse(answer(f"text {number}", "m1"))
        parser.parse(answer("x", f"m{number}"))
        parser.parse({"type": f"kind {number}", "word": "x"})
        parser.parse({"type": "tool_use", "name": f"tool {number}", "id": "i"})
    assert len(json.dumps(parser.state())) < 12_000


@pytest.mark.parametrize(
    "state",
    [
        {"ts": "x", "messages": [], "notes": 5, "calls": None},
        {"ts": None, "messages": {"a": 5, "b": [1]}, "notes": {"a": 1}, "calls": {"a": []}},
    ],
)
def test_a_foreign_state_is_no_obstacle(state: dict[str, Any]) -> None:
    """A state that another version wrote costs at most a repetition."""
    parser = ClaudeParser(MAIN, state)
    assert parser.parse(answer("a")).events[0].text == "a"
    json.dumps(parser.state())


def test_the_state_is_a_copy() -> None:
    """A state that was handed out does not change with the records that follow."""
    parser = ClaudeParser(MAIN, {})
    parser.parse(answer("a"))
    state = parser.state()
    before = json.dumps(state)
    parser.parse(answer("b"))
    assert json.dumps(state) == before


@pytest.mark.parametrize(
    ("text", "block", "status"),
    [
        ("done", {}, "ok"),
        ("done", {"is_error": False}, "ok"),
        ("Exit code 1", {"is_error": True}, "error"),
        ("The user doesn't want to proceed with this tool use.", {"is_error": True}, "denied"),
        ("Permission to use Bash has been denied.", {"is_error": True}, "denied"),
        ("x [Request interrupted by user for tool use]", {"is_error": True}, "denied"),
        ("Permission to use this photo is granted.", {}, "ok"),
    ],
)
def test_result_status(text: str, block: dict[str, Any], status: str) -> None:
    """A call failed only if its result says so, and was denied only if it did not run."""
    assert parse(result(text, **block))[0].results[0].status == status


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/a/tool-results/b1.txt", "b1.txt"),
        ("C:\\a\\b1.txt", "b1.txt"),
        ("b1.txt", "b1.txt"),
        ("/a/..", None),
        ("/a/.hidden", None),
        ("/a/b\x00c", None),
        ("/a/", None),
        (5, None),
    ],
)
def test_overflow_names(path: Any, name: str | None) -> None:
    """Of a saved output's path only a plain file name is taken, from any system."""
    line = result("preview")
    line["toolUseResult"] = {"persistedOutputPath": path}
    assert parse(line)[0].results[0].overflow == name


def test_cache_writes() -> None:
    """A partial split leaves the rest to the short lifetime; a split alone is the total."""

    def writes(**usage: Any) -> tuple[int, int]:
        line = {"type": "assistant", "message": {"id": "m", "usage": usage}}
        used = parse(line)[0].usage
        assert used is not None
        return used.cache_write_tokens, used.cache_write_1h_tokens

    long, short = "ephemeral_1h_input_tokens", "ephemeral_5m_input_tokens"
    assert writes(cache_creation_input_tokens=9) == (9, 0)
    assert writes(cache_creation_input_tokens=9, cache_creation={long: 4, short: 5}) == (9, 4)
    assert writes(cache_creation_input_tokens=9, cache_creation={long: 4}) == (9, 4)
    assert writes(cache_creation_input_tokens=9, cache_creation={}) == (9, 0)
    assert writes(cache_creation={long: 4, short: 5}) == (9, 4)


def test_aliases() -> None:
    """The session id of a record matters only where it is not the file's own."""
    line = prompt("a", sessionId="s2")
    assert parse(line)[0].session_alias == "s2"
    assert parse(line, spec=SessionSpec("s2"))[0].session_alias is None
    assert parse(line, spec=SessionSpec("agent-1", kind="subagent"))[0].session_alias is None


def test_titles_of_sidechains() -> None:
    """What an agent asks its subagent entitles the subagent, not the session it is written in."""
    line = prompt("count the knots", isSidechain=True)
    assert parse(line)[0].titles == []
    subagent = SessionSpec("agent-1", kind="subagent", parent="s1")
    assert parse(line, spec=subagent)[0].titles == [Title("count the knots", 1)]


def test_prompt_titles() -> None:
    """A title is one line of at most 200 code points."""
    assert prompt_title(" a \n b ") == "a b"
    assert prompt_title("ü" * 500) == "ü" * 199 + "…"
    assert prompt_title("WARMUP") is None
    assert is_weak(prompt_title("/compact keep the plan") or "")
    assert not is_weak(prompt_title("/home is full") or "")


def test_unclosed_elements() -> None:
    """A cut element holds the rest of the text; nothing is lost."""
    assert split_prompt("<system-reminder>cut off") == [Segment("system", "reminder", "cut off")]
    assert split_prompt("see\n<system-reminder>cut off") == [
        Segment("user", None, "see\n<system-reminder>cut off")
    ]


def test_elements_inside_a_sentence() -> None:
    """A person may write about the tags: only those on lines of their own are injected."""
    text = "what is\n<system-reminder>x</system-reminder> for?"
    assert split_prompt(text) == [Segment("user", None, text)]


@pytest.mark.parametrize(
    "text",
    [
        "<system-reminder>x</system-reminder>" * 50_000,
        "a" + "\n<system-reminder>" * 100_000,
        "a" + "\n<system-reminder>" * 100_000 + "</system-reminder> b",
        "a" + "\n<system-reminder>x</system-reminder>" * 50_000,
        "<task-notification>" + "<task-id>" * 100_000,
    ],
    ids=["leading", "unclosed", "inline", "embedded", "ids"],
)
def test_hostile_prompts(text: str) -> None:
    """Megabytes of tags are read in one pass and keep every letter that is no tag."""
    assert split_prompt(text)
    assert len(parse(prompt(text))) == 1


def test_terminal_codes() -> None:
    """Colours and titles go, words stay, even behind a code that never ends."""
    coloured = "\x1b[1mbold\x1b[22m \x1b]0;title\x07plain \x1b[?25l\x1b]open"
    assert escape.without_sequences(coloured) == "bold plain open"


def test_deep_nesting() -> None:
    """JSON nested deeper than Python calls may go is read all the same."""
    deep: Any = "bottom"
    for _ in range(5000):
        deep = [deep]
    records = parse(
        {"type": "novel", "deep": deep},
        {"type": "attachment", "attachment": {"type": "x", "deep": deep}},
        {"type": "tool_use", "name": "T", "input": {"deep": deep}},
        result({"deep": deep}),
    )
    assert [r.events[0].text for r in records[:2]] == ["bottom", "bottom"]
    assert records[2].events[0].input == "bottom"
    assert records[3].results[0].output == "bottom"


NAMES = st.sampled_from(
    [
        *("type", "uuid", "timestamp", "message", "content", "role", "text", "thinking", "usage"),
        *("input", "name", "id", "tool_use_id", "toolUseResult", "is_error", "attachment", "data"),
        *("prompt", "operation", "subtype", "error", "origin", "compactMetadata", "cache_creation"),
        *("persistedOutputPath", "durationMs", "durationSeconds", "agentId", "display", "costUSD"),
    ]
)
WORDS = st.sampled_from(
    [
        *("user", "assistant", "system", "attachment", "progress", "queue-operation", "summary"),
        *("tool_use", "tool_result", "text", "thinking", "image", "document", "pr-link", "enqueue"),
        *("queued_command", "compact_boundary", "agent_progress", "web_search_tool_result"),
        *("<command-name>", "<persisted-output>saved to: ", "2026-01-01T00:00:00Z", "Edit", "Task"),
    ]
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=20)
JSON = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(NAMES | st.text(max_size=5), inner, max_size=6)
    ),
    max_leaves=25,
)
RECORDS = st.dictionaries(NAMES, JSON, max_size=8)


@pytest.mark.slow
@settings(max_examples=amount(50, 450), deadline=None)
@given(st.lists(RECORDS, max_size=5))
def test_no_record_raises(values: list[dict[str, Any]]) -> None:
    """Any JSON object gives one record that can be stored, and a state that is JSON."""
    parser = ClaudeParser(MAIN, {})
    for value in values:
        record = parser.parse(value)
        assert record.kind
        for event in record.events:
            assert event.type in {"user", "assistant", "thinking", "tool_use", "system", "summary"}
            assert event.text or event.type == "tool_use"
        assert all(result.call_id for result in record.results)
        assert all(link.native_id and link.call_id for link in record.links)
        parser = ClaudeParser(MAIN, json.loads(json.dumps(parser.state())))
