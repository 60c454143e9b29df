"""Whole logs against what the parser of their agent must make of them.

A folder `tests/golden/AGENT/CASE` holds `input.jsonl` and `expected.json`, `AGENT/session` an id.
`SESSIOND_REGOLD=1 pytest ...` writes the expectations again: read the difference
before you keep it.
"""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest

from sessiond.config import Config
from sessiond.sourcekit.base import Parser, SessionSpec
from sessiond.sources import all_sources

GOLDEN = Path(__file__).parents[2] / "golden"
CASES = sorted(str(path.parent.relative_to(GOLDEN)) for path in GOLDEN.glob("*/*/input.jsonl"))
SOURCES = {source.agent: source for source in all_sources(Config())}


def brief(value: Any) -> Any:
    """A record without the fields that hold their defaults."""
    if isinstance(value, list | tuple):
        return [brief(item) for item in value]
    if not dataclasses.is_dataclass(value):
        return value
    shown = {}
    for field in dataclasses.fields(value):
        content = getattr(value, field.name)
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if content != default:
            shown[field.name] = brief(content)
    return shown


def read_case(case: str) -> list[dict[str, Any]]:
    lines = (GOLDEN / case / "input.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def parser_of(case: str, state: dict[str, Any] | None = None) -> Parser:
    agent = Path(case).parts[0]
    spec = SessionSpec((GOLDEN / agent / "session").read_text("utf-8").strip())
    return SOURCES[agent].parser(spec, state or {})


@pytest.mark.parametrize("case", CASES)
def test_golden(case: str) -> None:
    """Every record of the case yields exactly the expected events, results, titles and links."""
    parser = parser_of(case)
    got = json.loads(json.dumps([brief(parser.parse(value)) for value in read_case(case)]))
    expected = GOLDEN / case / "expected.json"
    if os.environ.get("SESSIOND_REGOLD"):
        text = json.dumps(got, ensure_ascii=False, indent=1)
        expected.write_text(text + "\n", encoding="utf-8")
    assert got == json.loads(expected.read_text("utf-8"))


@pytest.mark.parametrize("case", CASES)
def test_a_restart_anywhere_changes_nothing(case: str) -> None:
    """A parser that gets the state of another through JSON continues as that one would have."""
    values = read_case(case)
    whole = parser_of(case)
    expected = [whole.parse(value) for value in values]
    for cut in range(len(values) + 1):
        first = parser_of(case)
        records = [first.parse(value) for value in values[:cut]]
        second = parser_of(case, json.loads(json.dumps(first.state())))
        records += [second.parse(value) for value in values[cut:]]
        assert records == expected
        assert second.state() == whole.state()
