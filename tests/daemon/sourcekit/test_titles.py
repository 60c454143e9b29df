"""Titles made from prompts."""

from __future__ import annotations

import pytest

from sessiond.sourcekit.values import prompt_title, title_line


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("put  the\nkettle on", "put the kettle on"),
        ("x" * 200, "x" * 200),
        ("x" * 201, "x" * 199 + "…"),
        ("word " * 40, ("word " * 40).strip()),
        ("word " * 41, ("word " * 40)[:199].rstrip() + "…"),
        ("kettle" + " " * 3000 + "on", "kettle…"),
    ],
)
def test_a_title_that_is_cut_ends_in_an_ellipsis(text, title):
    """It never has more than 200 characters, and no space before the ellipsis."""
    assert title_line(text) == title
    assert prompt_title(text) == title
