"""Rich text, JSON inside strings, and binaries inside texts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.daemon.sources.cursor.stored_bubbles import PNG, lexical, paragraph, word

from sessiond.sources.cursor.richtext import plain, readable, unwrap


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (lexical(paragraph(word("a"), word("b")), paragraph(word("c"))), "ab\nc"),
        (lexical(paragraph(word("a")), paragraph(), paragraph(word("b"))), "a\n\nb"),
        (lexical(paragraph(word("a"), {"type": "linebreak"}, word("b"))), "a\nb"),
        (lexical(paragraph({"type": "link", "children": [word("site")]})), "site"),
        (
            lexical({"type": "code", "language": "py", "children": [word("x = 1")]}),
            "```py\nx = 1\n```",
        ),
        ({"type": "doc", "content": [{"type": "paragraph", "content": [word("a")]}]}, "a"),
        (
            {"type": "doc", "content": [{"type": "paragraph", "content": [{"type": "hardBreak"}]}]},
            "",
        ),
        ({"type": "doc", "content": []}, ""),
        (lexical(), ""),
        (None, ""),
        (5, ""),
    ],
)
def test_documents_as_text(document: Any, expected: str) -> None:
    """Paragraphs are lines; breaks, links and code stay readable."""
    assert plain(document) == expected
    if isinstance(document, dict):
        assert plain(json.dumps(document)) == expected


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ({"type": "mention", "text": "src/a.py", "mentionName": "a.py"}, "see @src/a.py"),
        ({"type": "mention", "text": "@a.py"}, "see @a.py"),
        ({"type": "mention", "mentionName": "a.py"}, "see @a.py"),
        ({"type": "mention", "attrs": {"id": "7", "label": "Web"}}, "see @Web"),
        ({"type": "mention"}, "see"),
    ],
)
def test_mentions(node: dict[str, Any], expected: str) -> None:
    """A mention shows what it names."""
    assert plain(lexical(paragraph(word("see "), node))) == expected


def test_lists_of_lexical() -> None:
    """Every item has a line; a nested list does not make an empty one."""
    inner = {"type": "list", "children": [{"type": "listitem", "children": [word("b")]}]}
    items = [
        {"type": "listitem", "children": [word("a")]},
        {"type": "listitem", "children": [inner]},
        {"type": "listitem", "children": [word("c")]},
    ]
    document = lexical({"type": "list", "listType": "number", "children": items})
    assert plain(document) == "1. a\n- b\n2. c"


def test_lists_of_prosemirror() -> None:
    """The paragraph inside an item stands on the bullet's line."""
    items = [
        {"type": "listItem", "content": [{"type": "paragraph", "content": [word(letter)]}]}
        for letter in "ab"
    ]
    document = {"type": "doc", "content": [{"type": "bulletList", "content": items}]}
    assert plain(document) == "- a\n- b"


@pytest.mark.parametrize("text", ["", "hello", "{not JSON", '{"a": 1}', "[1, 2]", '"quoted"'])
def test_text_that_is_no_document(text: str) -> None:
    """A string is itself unless it holds a document."""
    assert plain(text) == text


def test_deep_documents() -> None:
    """A document nested deeper than Python calls may go is read all the same."""
    node: Any = word("bottom")
    for _ in range(100_000):
        node = {"type": "quote", "children": [node]}
    assert plain({"root": node}) == "bottom"
    while isinstance(node, dict):  # or its destruction would nest as deep
        node = node.pop("children", [None])[0]


def test_documents_too_deep_to_decode() -> None:
    """A string of JSON that no decoder takes is kept as it is."""
    text = '{"root":{"children":' + "[" * 100_000
    assert plain(text) == text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('{"a": 1}', {"a": 1}),
        (b'{"a": 1}', {"a": 1}),
        (json.dumps('{"a": 1}'), {"a": 1}),
        (json.dumps(json.dumps('{"a": 1}')), {"a": 1}),
        ('"word"', "word"),
        (b'"\xff"', "\ufffd"),
        ('"\\ud800"', "\ufffd"),
        ({"a": 1}, {"a": 1}),
        ("{", None),
        ("", None),
        (None, None),
        ("[" * 100_000, None),
    ],
)
def test_unwrapping(value: Any, expected: Any) -> None:
    """JSON comes out of every string around it; what is none is None."""
    assert unwrap(value) == expected


def test_images_inside_text() -> None:
    """An image in running text leaves a mark and is counted."""
    text = f"before data:image/png;base64,{PNG} between {PNG} after"
    assert readable(text) == ("before [image] between [image] after", 2)


def test_long_binaries_inside_text() -> None:
    """A word of a thousand mixed letters is a binary; one letter repeated is not."""
    assert readable("a " + "Ab1/" * 300 + " b") == ("a  b", 0)
    assert readable("x" * 5000) == ("x" * 5000, 0)
