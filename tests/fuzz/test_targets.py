"""Parsers of all agents, query language, pages, Markdown, tapes and redaction on changed inputs.

A few inputs in `make test`, 100,000 in `make faults`; `make fuzz` goes on with coverage as guide.
"""

from __future__ import annotations

import hypothesis
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.at_length import SEED, amount, count
from tests.fuzz.edits import EDITS, changed
from tests.fuzz.targets import targets


@pytest.mark.parametrize("name", targets())
def test_no_input_is_fatal(name):
    """Hypothesis shrinks what is to the fewest changes, and prints them and the input."""
    begin, check = targets()[name]
    assert begin

    def one(number, edits):
        count("inputs")
        data = changed(begin[number % len(begin)], edits, begin)
        hypothesis.note(f"input: {data!r}")
        check(data)

    how = settings(
        max_examples=amount(12, 2600),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    body = given(number=st.integers(0, len(begin) - 1), edits=EDITS)(one)
    hypothesis.seed(SEED)(how(body))()
