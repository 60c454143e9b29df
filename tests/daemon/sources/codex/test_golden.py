"""Whole rollouts against what the parser must make of them.

`SESSIOND_REGOLD=1 pytest ...` writes the expectations anew; read the difference before you keep it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.daemon.sources.claude.test_golden import brief

from sessiond.sourcekit.base import SessionSpec
from sessiond.sources.codex import CodexParser

GOLDEN = Path(__file__).parents[3] / "golden" / "codex"
CASES = sorted(path.parent.name for path in GOLDEN.glob("*/input.jsonl"))
SPEC = SessionSpec("019f1111-0000-7000-8000-00000000000a")


def read_case(case):
    lines = (GOLDEN / case / "input.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("case", CASES)
def test_golden(case):
    """Every record of the case yields exactly the expected events, results, usage and titles."""
    parser = CodexParser(SPEC, {})
    got = json.loads(json.dumps([brief(parser.parse(value)) for value in read_case(case)]))
    expected = GOLDEN / case / "expected.json"
    if os.environ.get("SESSIOND_REGOLD"):
        text = json.dumps(got, ensure_ascii=False, indent=1)
        expected.write_text(text + "\n", encoding="utf-8")
    assert got == json.loads(expected.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES)
def test_a_restart_anywhere_changes_nothing(case):
    """A parser that gets the state of another through JSON goes on as that one would have."""
    values = read_case(case)
    whole = CodexParser(SPEC, {})
    expected = [whole.parse(value) for value in values]
    for cut in range(len(values) + 1):
        first = CodexParser(SPEC, {})
        records = [first.parse(value) for value in values[:cut]]
        second = CodexParser(SPEC, json.loads(json.dumps(first.state())))
        records += [second.parse(value) for value in values[cut:]]
        assert records == expected
        assert second.state() == whole.state()
