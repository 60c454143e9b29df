"""Whole chats against what the parser must make of them.

`SESSIOND_REGOLD=1 pytest ...` writes the expectations anew; read the difference before you keep it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.daemon.sources.claude.test_golden import brief

from sessiond.sourcekit.base import SessionSpec
from sessiond.sources.gemini import GeminiParser

GOLDEN = Path(__file__).parents[3] / "golden" / "gemini"
CASES = sorted(path.parent.name for path in GOLDEN.glob("*/input.jsonl"))
SPEC = SessionSpec("5e551000-5555-4555-8555-555555555555")


def read_case(case: str) -> list[dict[str, Any]]:
    lines = (GOLDEN / case / "input.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("case", CASES)
def test_golden(case: str) -> None:
    """Every line of the case yields exactly the expected events, usage, titles and operations."""
    parser = GeminiParser(SPEC, {})
    got = [brief(parser.parse(value)) for value in read_case(case)]
    expected = GOLDEN / case / "expected.json"
    if os.environ.get("SESSIOND_REGOLD"):
        text = json.dumps(got, ensure_ascii=False, indent=1)
        expected.write_text(text + "\n", encoding="utf-8")
    assert got == json.loads(expected.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES)
def test_a_restart_anywhere_changes_nothing(case: str) -> None:
    """A parser that gets the state of another through JSON goes on as that one would have."""
    values = read_case(case)
    whole = GeminiParser(SPEC, {})
    expected = [whole.parse(value) for value in values]
    for cut in range(len(values) + 1):
        first = GeminiParser(SPEC, {})
        records = [first.parse(value) for value in values[:cut]]
        second = GeminiParser(SPEC, json.loads(json.dumps(first.state())))
        records += [second.parse(value) for value in values[cut:]]
        assert records == expected
        assert second.state() == whole.state()
