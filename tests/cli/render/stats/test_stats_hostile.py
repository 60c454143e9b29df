"""Names in tables that other programs open: spreadsheets, forges, terminals."""

from __future__ import annotations

import csv
import io
import json

import pytest
from tests.cli.render.stats.test_stats_terminal import seen

FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1")


@pytest.fixture
def named(world):
    """Models and tools that a spreadsheet would compute."""
    t = world.transcript()
    t.append(t.prompt("go"))
    for number, name in enumerate((*FORMULAS, "a\\|b", "x\x1b[2J")):
        call = t.call(f"call{number}", name)
        call["message"]["model"] = name
        t.append(call, t.result(f"call{number}", "ok"))
    world.ingest()
    return world


def rows(world, *arguments):
    done = world.run("sess", "stats", "--no-sync", "--csv", *arguments, check=0)
    return list(csv.DictReader(io.StringIO(done.stdout, newline="")))


@pytest.mark.parametrize(
    ("arguments", "column"),
    [(("--by", "model"), "group"), (("--by", "tool"), "group"), (("tools",), "tool")],
)
def test_no_cell_begins_like_a_formula(named, arguments, column):
    cells = {row[column] for row in rows(named, *arguments)}
    assert {f"'{name}" for name in FORMULAS} <= cells
    assert not any(cell.startswith(("=", "+", "-", "@", "\t")) for cell in cells)


def test_a_number_below_zero_stays_a_number(world):
    """Money that the cache did not save but cost: writes that nobody read."""
    t = world.transcript()
    record = t.answer("done")
    record["message"]["usage"]["cache_creation_input_tokens"] = 1_000_000
    t.append(t.prompt("go"), record)
    world.ingest()
    assert [row["saved_usd"] for row in rows(world, "cache")] == ["-1.25", "-1.25"]


def test_json_has_names_as_they_are(named):
    done = named.run("sess", "stats", "--no-sync", "--by", "tool", "--json", check=0)
    groups = {json.loads(line)["group"] for line in done.stdout.splitlines()}
    assert groups == {*FORMULAS, "a\\|b", "x\x1b[2J", "none"}


def test_a_terminal_obeys_nothing_in_csv(named):
    for arguments in (("--by", "model"), ("tools",)):
        assert "\x1b" not in seen(named, *arguments, "--csv")


@pytest.mark.parametrize("arguments", [("--by", "tool"), ("tools",)])
def test_a_bar_never_ends_a_markdown_cell(named, arguments):
    done = named.run("sess", "stats", "--no-sync", "--md", *arguments, check=0)
    assert "| a\\\\\\|b |" in done.stdout
