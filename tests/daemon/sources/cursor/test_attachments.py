"""What people attach to their prompts, and what else a bubble says beside its text."""

from __future__ import annotations

import json

import pytest
from tests.daemon.sources.cursor.stored_bubbles import answer, prompt

from sess_schema import labels
from sessiond.sourcekit.values import is_weak
from sessiond.sources.cursor.bubbles import attachments, parse_bubble

URI = {"$mid": 1, "fsPath": "/code/a.py", "path": "/code/a.py", "scheme": "file"}


@pytest.mark.parametrize(
    ("bubble", "expected"),
    [
        ({}, ""),
        ({"context": {"fileSelections": [{"uri": URI, "isCurrentFile": True}]}}, "/code/a.py"),
        ({"context": {"folderSelections": [{"relativePath": "src"}]}}, "src"),
        (
            {
                "context": {
                    "selections": [
                        {
                            "uri": URI,
                            "rawText": "def f():\n    pass",
                            "range": {"selectionStartLineNumber": 3, "positionLineNumber": 4},
                        }
                    ]
                }
            },
            "/code/a.py:3-4\ndef f():\n    pass",
        ),
        (
            {"context": {"terminalSelections": [{"text": "make: *** [test] Error 1"}]}},
            "make: *** [test] Error 1",
        ),
        ({"context": {"externalLinks": [{"url": "https://a.test/b", "uuid": "1"}]}},
         "https://a.test/b"),
        ({"externalLinks": ["https://a.test/b"], "context": {"externalLinks": []}},
         "https://a.test/b"),
        (
            {
                "attachedCodeChunks": [
                    {
                        "relativeWorkspacePath": "b.py",
                        "startLineNumber": 7,
                        "lines": ["x = 1", {"text": "y = 2"}],
                    }
                ]
            },
            "b.py:7\nx = 1\ny = 2",
        ),
        (
            {
                "context": {"selections": [{"uri": URI, "text": "same"}]},
                "selections": [{"uri": URI, "text": "same"}],
            },
            "/code/a.py\nsame",
        ),
        ({"context": {"selections": [None, 5, {}, [], {"uri": 7}], "fileSelections": "x"}}, ""),
    ],
)  # fmt: skip
def test_attachments_are_named_with_their_texts(bubble, expected):
    """The same thing in the bubble and in its context is named once."""
    assert attachments(bubble) == expected


def test_attachments_precede_the_prompt_and_do_not_name_the_session():
    """They are context, not what a person typed."""
    record = parse_bubble(prompt(text="fix it", context={"fileSelections": [{"uri": URI}]}))
    assert [(e.type, e.label, e.text) for e in record.events] == [
        ("system", labels.CONTEXT, "/code/a.py"),
        ("user", None, "fix it"),
    ]
    assert [title.text for title in record.titles] == ["fix it"]


def test_what_cursor_attaches_to_answers_is_no_context():
    assert [e.type for e in parse_bubble(answer(text="a", externalLinks=["x"])).events] == [
        "assistant"
    ]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"text": ""}, "Summarized the chat."),
        ({"text": "Chat context summarized."}, "Chat context summarized."),
        ({"conversationSummary": json.dumps({"summary": "in short"})}, "in short"),
        ({"conversationSummary": {"summary": "in short"}}, "in short"),
    ],
)
def test_a_summary_that_a_person_asked_for(more, expected):
    """`/summarize` leaves a mark, which is neither an answer nor a prompt."""
    record = parse_bubble(answer(capabilityType=22, **more))
    assert [(e.type, e.label, e.text) for e in record.events] == [
        ("summary", labels.COMPACT, expected)
    ]


def test_an_answer_with_a_summary_of_what_preceded_it():
    record = parse_bubble(answer(text="go on", conversationSummary={"summary": "in short"}))
    assert [(e.type, e.text) for e in record.events] == [
        ("assistant", "go on"),
        ("summary", "in short"),
    ]


def test_an_answer_that_failed_says_why():
    details = {"generationUUID": "g1", "message": "Premature close"}
    record = parse_bubble(answer(text="", errorDetails=details))
    assert [(e.type, e.label, e.text) for e in record.events] == [
        ("system", labels.ERROR, "Premature close")
    ]


def test_a_prompt_about_the_session_itself_is_hardly_a_title():
    """One of a command gives way to any other; one of a warm-up is none."""
    (title,) = parse_bubble(prompt(text="/clear")).titles
    assert is_weak(title.text)
    assert parse_bubble(prompt(text="warmup")).titles == []
