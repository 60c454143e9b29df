"""Only what a person typed is a prompt."""

from __future__ import annotations

import json

import pytest

from sess_schema import labels
from sessiond.sourcekit.base import Event, SessionSpec
from sessiond.sources.claude.transcript import ClaudeParser

IDLE = '{"type":"idle_notification","from":"ann"}'
ANN = '<teammate-message teammate_id="ann" color="red" summary="tea">\ncounted\n</teammate-message>'
BOB = '<teammate-message teammate_id="bob">poured</teammate-message>'


def events(value):
    return ClaudeParser(SessionSpec("s1"), {}).parse(value).events


def said(text, **more):
    return events({"type": "user", "message": {"role": "user", "content": text}, **more})


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("[SUGGESTION MODE: Suggest what the user might naturally type next.]", "suggest"),
        ("[SUGGESTION MODE]\n\nTASK: Find the next step.", "suggest"),
        ("Your task is to create a detailed summary of the conversation so far.", "summarize"),
        ("Base directory for this skill: /skills/tea\n\n# Tea", "skill"),
        ("Stop hook feedback:\n- not yet", "hook-feedback"),
        ("PreCompact hook feedback: wait", "hook-feedback"),
        ("PostToolUse:Edit hook feedback: wait", "hook-feedback"),
    ],
)
def test_what_the_client_writes_is_no_prompt(text, label):
    assert said(text) == [Event("system", text, label=label)]


@pytest.mark.parametrize("kind", ["task-notification", "coordinator", "hook", "scheduled"])
def test_the_client_says_who_wrote(kind):
    """Only a human is a person."""
    assert said("go on", origin={"kind": kind}) == [Event("system", "go on", label=kind)]
    assert said("go on", origin={"kind": "human"}) == [Event("user", "go on")]


@pytest.mark.parametrize(
    "text", ["Your task is to brew tea", "Stop the hook", "a hook feedback: b"]
)
def test_similar_words_are_a_persons(text):
    assert said(text) == [Event("user", text)]


def test_messages_of_teammates_have_their_sender():
    """Each is an event; what teammates announce by themselves is told apart."""
    message = Event("system", "ann: counted", label=labels.TEAMMATE)
    assert said(ANN) == [message]
    assert said(f"Another Claude session sent a message:\n{ANN}\n{BOB}\nthe end") == [
        message,
        Event("system", "bob: poured", label=labels.TEAMMATE),
        Event("system", "the end", label=labels.TEAMMATE),
    ]
    idle = ANN.replace("counted", IDLE)
    assert said(idle) == [Event("system", f"ann: {IDLE}", label="teammate-notice")]
    assert said("Another Claude session sent a message: hi") == [
        Event("system", "hi", label=labels.TEAMMATE)
    ]


def test_messages_of_teammates_in_a_mailbox():
    mail = [{"from": "ann", "text": "counted"}, {"from": "bob", "text": IDLE}, {"text": ""}, 7]
    attachment = {"type": "teammate_mailbox", "messages": mail}
    assert events({"type": "attachment", "attachment": attachment}) == [
        Event("system", "ann: counted", label=labels.TEAMMATE),
        Event("system", f"bob: {IDLE}", label="teammate-notice"),
    ]


def test_a_command_with_words_after_it_is_one_prompt():
    """Whether they are in the same text or in the next block."""
    command = "<command-name>review</command-name><command-args>a.py</command-args>"
    prompt = Event("user", "/review a.py\nmind the tests", label=labels.COMMAND)
    assert said(f"{command}\nmind the tests") == [prompt]
    blocks = [{"type": "text", "text": text} for text in (command, "mind the tests")]
    assert said(blocks) == [prompt]


@pytest.mark.parametrize(
    "markup",
    [
        "<command-name>/review</command-name>",
        "<command-name>review</command-name>",
        "<command-message>review</command-message>\n<command-name>/review</command-name>",
    ],
)
def test_a_command_is_found_by_what_people_type(world, markup):
    """Whether it was typed, waited in the queue, or the client repeats it."""
    t = world.transcript()
    line = t.record("queue-operation", None, operation="enqueue", content=markup)
    attached = {"type": "queued_command", "prompt": markup, "commandMode": "prompt"}
    told = {"subtype": "local_command", "content": markup}
    t.append(
        t.prompt(markup),
        {name: value for name, value in line.items() if name not in ("uuid", "message")},
        t.record("attachment", None, attachment=attached),
        t.record("system", None, **told),
        t.prompt(markup, isMeta=True),
    )
    world.run("sessiond", "sync", check=0)
    done = world.run("sess", "search", "/review", "--json", "--no-sync", check=0)
    hits = [json.loads(line) for line in done.stdout.splitlines()]
    assert [hit["snippet"] for hit in hits] == ["/review"] * 5


@pytest.mark.parametrize("contents", ["read\nall", '{"type": "text", "text": "read\\nall"}'])
def test_what_a_command_stands_for_is_kept(contents):
    """It is no part of what was typed."""
    command = f"<command-name>go</command-name><command-contents>{contents}</command-contents>"
    assert said(command) == [
        Event("user", "/go", label=labels.COMMAND),
        Event("system", "read\nall", label="command-contents"),
    ]
