"""Whatever a file contains, memory, rows and work per record stay bounded."""

from __future__ import annotations

import json
import os
import random

import pytest
from tests.at_length import amount

from sess_common.decode import decode, is_crowded
from sessiond.engines.lines import MOST_RECORDS, LogReader
from sessiond.reading.tracked import Progress
from sessiond.sourcekit import bounds
from sessiond.sourcekit.base import Record, SessionSpec
from sessiond.sources.claude.transcript import ClaudeParser

SESSION = "22222222-1111-4111-8111-111111111111"
MEGABYTES = 350  # for the daemon and every command


class Quiet:
    """A parser of nothing."""

    def parse(self, _value):
        return Record("note")

    def state(self):
        return {}


def slices(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        yield from LogReader(fd, SessionSpec("s"), Quiet(), Progress()).slices()
    finally:
        os.close(fd)


def test_short_lines_are_read_in_slices_of_bounded_length(tmp_path):
    """Two bytes a line: no slice has more than its number of records, and none is lost."""
    file = tmp_path / "short.jsonl"
    file.write_bytes(b"5\n" * 20_000 + b"{}\n" * 20_000)
    found = list(slices(file))
    assert max(len(one.records) for one in found) == MOST_RECORDS
    assert [placed.line for one in found for placed in one.records] == list(range(1, 40_001))
    assert b"".join(one.raw for one in found) == file.read_bytes()
    assert [one.progress.checkpoint.offset for one in found[:-1]] == [
        one.start for one in found[1:]
    ]


def test_repeated_warnings_are_counted_in_few_rows(world):
    """Of 1,000 broken lines 50 have a row; the counts are those of all lines, also later."""
    t = world.transcript()
    t.append(*[b"5\n"] * 1000)
    assert world.ingest().warnings == 1000
    t.append(*[b"{\n"] * 3, *[b"6\n"] * 100)
    world.ingest()
    assert world.sql("SELECT reason, count(*), sum(times) FROM warnings GROUP BY 1 ORDER BY 2") == [
        ("not JSON: unexpected end of data", 3, 3),
        ("record is not an object", 50, 1100),
    ]
    assert world.sql("SELECT DISTINCT times FROM warnings") == [(1,), (1051,)]
    done = world.run("sess", "doctor")
    assert "1,103 unusual records" in done.stdout
    status = world.run("sessiond", "status", "--json").stdout.splitlines()
    (source,) = (one for one in map(json.loads, status) if one["kind"] == "source")
    assert source["warnings"]["record is not an object"] == 1100


def test_reasons_are_bounded_too(world, monkeypatch):
    """A parser that puts text of the file into its warnings cannot fill the table."""
    original = ClaudeParser.parse

    def parse(self, value):
        record = original(self, value)
        record.warnings += [f"odd: {value['message']['content']}"] * 30
        return record

    monkeypatch.setattr(ClaudeParser, "parse", parse)
    t = world.transcript()
    t.append(*(t.prompt(f"{number} " + "x" * 1000) for number in range(100)))
    world.ingest()
    assert world.sql(
        "SELECT count(DISTINCT reason), sum(times), max(length(reason)) FROM warnings"
    ) == [(21, 2000, 200)]


def test_a_record_of_too_many_parts_is_cut_and_says_so(world):
    """Beyond 10,000 parts a record is archived whole, but only the first ones are events."""
    t = world.transcript()
    blocks = [{"type": "tool_use", "id": f"c{n}", "name": "Bash", "input": {"command": f"w{n}"}}
              for n in range(10_005)]  # fmt: skip
    t.append(t.assistant(blocks), t.prompt("behind it"))
    world.ingest()
    assert world.sql("SELECT count(*) FROM events WHERE type = 'tool_use'") == [(10_000,)]
    assert world.sql("SELECT reason FROM warnings") == [
        ("only the first 10,000 events of a record are indexed",)
    ]
    assert world.found("behind") == ["behind it"]
    assert world.restored(t.path) == t.path.read_bytes()


def test_ids_of_any_length_still_tell_records_apart(world):
    """Ids of a megabyte are stored as short ones; equal ones still join, others do not."""
    long = "x" * 1_000_000
    t = world.transcript()
    t.append(t.call(long + "1", command="one"), t.call(long + "2", command="two"))
    t.append(t.result(long + "1", "first"), t.result(long + "2", "second"))
    world.ingest()
    assert [text for _, text, _ in world.shown(t.session)] == ["onefirst", "twosecond"]
    assert world.sql("SELECT max(length(call_id)) < 200 FROM events") == [(1,)]


def test_json_with_a_million_values_is_not_decoded():
    """Values are counted outside strings only, before memory is taken for them."""
    many = b"[" + b"[]," * 1_000_000 + b"[]]"
    assert is_crowded(many)
    with pytest.raises(ValueError, match="more than 1,000,000 values"):
        decode(many)
    text = json.dumps({"csv": "1,2,[{" * 1_000_000, "and": 'quoted \\" , ' * 10}).encode()
    assert not is_crowded(text)
    assert not is_crowded(b"[" + b"1," * 900_000 + b"1]" + b" " * 1_000_000)


def test_a_text_of_endless_different_words_is_indexed_in_part(monkeypatch):
    """The full-text index takes memory for every new word of a text; the rest is archived."""
    monkeypatch.setattr(bounds, "LONGEST_UNCOUNTED", 10)
    monkeypatch.setattr(bounds, "MOST_WORDS", 3)
    assert bounds.searchable("one two one two three") == "one two one two three"
    assert bounds.searchable("one two one three four five") == (
        "one two one three \n[9 more characters are archived only]"
    )


MEGA = amount(10, 30) << 20  # bytes of a hostile line


def crowded(line):
    """A record whose content is millions of empty lists."""
    return line.replace(b'"HERE"', b"[" + b"[]," * (MEGA // 3) + b"[]]")


def broken(line):
    """A record that ends in the middle of a string."""
    before, _, _ = line.partition(b"HERE")
    return before + b"some words, here and there " * (MEGA // 27) + b"\n"


def nested(line):
    """Brackets that open at random and never close."""
    choose = random.Random(5).choices
    return b"".join(choose((b"[", b'{"a":', b"1,"), weights=(4, 4, 1), k=MEGA * 3 // 10)) + b"\n"


@pytest.mark.slow
@pytest.mark.parametrize("make", [crowded, broken, nested], ids=lambda make: make.__name__)
def test_hostile_lines_need_bounded_memory(world, measured, make):
    """Under 350 MB in the daemon and in the client; the next line is found."""
    t = world.transcript(SESSION)
    t.append(make(t.encode(t.prompt("HERE"))), t.prompt("behind it"))
    done = measured("sessiond", "sync")
    assert (done.code, done.stderr) == (0, "")
    assert done.megabytes < MEGABYTES
    assert world.found("behind") == ["behind it"]
    assert world.sql("SELECT count(*), sum(times) FROM warnings") == [(1, 1)]
    for command in (
        ("search", "--regex", "wor.s"),
        ("export", "html", SESSION, "-o", world.root / "page.html"),
        ("export", "json", SESSION, "-o", world.root / "session.json"),
    ):
        done = measured("sess", *command, "--no-sync")
        assert done.code in (0, 1), (command, done.stderr)
        assert done.megabytes < MEGABYTES, command
