"""Tasks of VS Code extensions: what their golden homes do not show."""

from __future__ import annotations

import json

import pytest
from tests.must import must

from sessiond.families.editor_tasks import sent, timeline
from sessiond.families.editor_tasks.calls import describe, status_of, written_pieces
from sessiond.families.editor_tasks.sent import Messages
from sessiond.sources.cline import ClineSource


def test_a_written_file_may_contain_the_tags_of_calls():
    """The content of a file ends at the last closing tag, and a tag in prose is no call."""
    page = "<content>\n</content>\n</write_to_file>"
    text = (
        "Use <read_file> for this.\n<write_to_file>\n<path>a.md</path>\n<content>\n"
        f"{page}\n</content>\n</write_to_file>"
    )
    said, call = written_pieces(text)
    assert (said.kind, said.text) == ("text", "Use <read_file> for this.")
    assert call.arguments == {"path": "a.md", "content": page}


def test_a_call_that_was_cut_off_keeps_what_was_written():
    """An interrupted answer ends anywhere."""
    (call,) = written_pieces("<execute_command>\n<command>make al")
    assert (call.tool, call.arguments) == ("execute_command", {"command": "make al"})


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("<task>\nfix it\n</task>\n<file_content path='a'>x</file_content>", ["fix it"]),
        ('<user_input mode="plan"><mode_notice>plan</mode_notice>look</user_input>', ["look"]),
        ("[TASK RESUMPTION] This task was interrupted.", []),
        ('<user_input mode="act">[TASK RESUMPTION] go on</user_input>', []),
        ("<environment_details>\n# Current Mode\n</environment_details>", []),
        ("plain words", ["plain words"]),
    ],
)
def test_only_what_a_person_typed_is_a_prompt(text, typed):
    """Tags tell the words of people from those of the extension."""
    assert sent.split_prompt(text, plain=True).typed == typed


def test_after_a_tagged_prompt_untagged_text_is_the_extensions():
    """Hooks and warnings are added to messages without any mark of their own."""
    reader = Messages("1")
    asked = {"role": "user", "content": "<task>\nfix it\n</task>"}
    added = {"role": "user", "content": [{"type": "text", "text": "A hook ran."}]}
    assert [event.type for event in reader.read("0", asked, "").events] == ["user"]
    assert [event.type for event in reader.read("1", added, "").events] == ["system"]


def test_a_file_that_was_read_asks_nothing():
    """A result may quote the tags of prompts."""
    reader = Messages("1")
    call = {"type": "tool_use", "id": "c", "name": "read_file", "input": {"path": "a"}}
    reader.read("0", {"role": "assistant", "content": [call]}, "")
    result = {"type": "tool_result", "tool_use_id": "c", "content": "<task>\nno prompt\n</task>"}
    record = reader.read("1", {"role": "user", "content": [result]}, "")
    assert (record.events, record.results[0].status) == ([], "ok")


@pytest.mark.parametrize(
    ("text", "tool", "status"),
    [
        ("The user denied this operation.", "write_to_file", "denied"),
        ('{"status":"denied","message":"no"}', "write_to_file", "denied"),
        ('{"status":"error","message":"The tool execution failed"}', "read_file", "error"),
        ("Exit code: 0\nOutput:\nexit code 7", "execute_command", "ok"),
        ("Command exited with code 3", "execute_command", "error"),
        ("exit code 3 is documented here", "read_file", "ok"),
        ("Tool [x] was not executed because a tool has already been used", "x", "error"),
    ],
)
def test_how_a_call_ended_is_said_in_words(text, tool, status):
    """Older versions record no flag."""
    assert status_of(text, tool) == status


NOVEMBER = 1_761_955_200_000


@pytest.mark.parametrize(
    ("since", "when", "protocol", "provider", "expected"),
    [
        (None, NOVEMBER, None, "anthropic", 500),
        (None, NOVEMBER, None, "openai", 200),
        (NOVEMBER, NOVEMBER, "anthropic", None, 200),
        (NOVEMBER, NOVEMBER - 1, "anthropic", None, 500),
        (NOVEMBER, NOVEMBER - 1, "openai", None, 200),
    ],
)
def test_input_never_includes_the_cache(since, when, protocol, provider, expected):
    """What extensions count as input depends on their version and the provider."""
    counts = {"tokensIn": 500, "tokensOut": 1, "cacheReads": 250, "cacheWrites": 50}
    message = {
        "ts": when,
        "text": json.dumps(counts | {"apiProtocol": protocol}),
        "modelInfo": {"providerId": provider},
    }
    usage = timeline.Meter("1", since).usage(message, None)
    assert usage is not None
    assert (usage.input_tokens, usage.cache_read_tokens) == (expected, 250)


def test_requests_without_numbers_or_times_belong_to_answers_in_turn():
    """The first versions recorded neither."""
    sent = [{"role": role} for role in ("user", "assistant", "user", "assistant")]
    shown = [{"say": "api_req_started", "ts": number} for number in (1, 2)]
    assert timeline.match_requests(sent, shown) == {1: 0, 3: 1}


def test_a_changed_list_of_what_was_shown_concerns_the_messages_too(tmp_path):
    """They are read together: the daemon is told about one of them."""
    source = ClineSource(environ={"HOME": str(tmp_path)}, platform="linux")
    folder = f"{source.places()[0]}/1"
    assert source.readers(f"{folder}/ui_messages.json") == (
        f"{folder}/api_conversation_history.json",
    )


def test_variants_of_the_editing_tool_are_edits():
    """One extension names them after the models that they suit."""
    edit = {"file_path": "a.py", "old_string": "1", "new_string": "2"}
    described = describe("edit_file_x", edit)
    assert (described.kind, described.summary) == ("edit", "a.py (edit)")
    assert [(one.old, one.new) for one in described.edits] == [("1", "2")]


def test_what_a_request_used_may_be_noted_when_it_has_finished():
    """In a second message; both are one request."""
    begun = {"ts": 1_717_203_600_000, "say": "api_req_started", "text": '{"tokensIn": 10}'}
    ended = {"ts": 1_717_203_601_000, "say": "api_req_finished", "text": '{"tokensOut": 5}'}
    begun, said, ended = timeline.whole_requests([begun, {"say": "text"}, ended])
    assert (said, ended["say"]) == ({"say": "text"}, "api_req_finished")
    used = must(timeline.Meter("t").usage(begun, None))
    assert (used.input_tokens, used.output_tokens) == (10, 5)
