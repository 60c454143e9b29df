"""Values that no honest agent writes: every export survives them, and JSON loses nothing."""

from __future__ import annotations

import json

import pytest

MAIN = "11111111-1111-4111-8111-111111111111"
FORMATS = (
    ("html",), ("html", "--style", "timeline"), ("html", "--style", "pages"), ("md",), ("json",),
    ("sqlite",), ("atif",), ("otel",),
)  # fmt: skip


def with_input(t, call_id, raw):
    """A call whose input is this JSON."""
    return t.encode(t.call(call_id, "Odd", x="HERE")).replace(b'{"x":"HERE"}', raw)


def with_member(t, text, raw):
    return t.encode(t.prompt(text))[:-2] + b"," + raw + b"}\n"


@pytest.fixture
def odd(world):
    t = world.transcript()
    t.append(
        t.prompt("go"),
        with_input(t, "deep", b'{"a":' * 800 + b"1" + b"}" * 800),
        t.result("deep", "ok"),
        with_input(t, "large", b'{"n":%d,"not":NaN,"half":"\\ud800"}' % 10**40),
        t.result("large", "ok"),
        t.call("edit", "Edit", file_path=5, old_string="a", new_string=["b"]),
        t.result("edit", "ok", toolUseResult={"structuredPatch": 5}),
        t.call("hunk", "Edit", file_path="a", old_string="a", new_string="b"),
        t.result(
            "hunk", "ok", toolUseResult={"structuredPatch": [{"oldStart": "x", "lines": [1, {}]}]}
        ),
        t.call("todo", "TodoWrite", todos=[1, None, {"content": 5, "status": {}}, []]),
        t.result("todo", [1, None, {"type": "text", "text": 5}]),
        with_member(t, "twice", b'"n":1,"n":2,"large":123456789012345678901234567890'),
        with_member(t, "deep", b'"deep":' + b"[" * 900 + b"]" * 900),
        t.encode(t.prompt("bytes")).replace(b"bytes", b"by\xfftes"),
    )
    world.ingest()
    return t


@pytest.mark.parametrize("options", FORMATS, ids=" ".join)
def test_every_export_is_written(world, odd, tmp_path, options):
    world.run("sess", "export", *options, MAIN, "-o", tmp_path / "out", "--no-sync", check=0)
    assert (tmp_path / "out").exists()


def test_records_are_there_to_the_last_byte(world, odd):
    """As values where JSON can tell them, else as text, else as bytes."""
    done = world.run("sess", "export", "json", MAIN, "-o", "-", "--no-redact", check=0)
    lines = odd.path.read_bytes().splitlines()
    told = done.stdout.splitlines()
    for record, line in zip(json.loads(done.stdout)["records"], lines, strict=True):
        if "base64" in record:
            assert b"by\xfftes" in line
        elif "text" in record:
            assert record["text"] == line.decode()
        else:
            assert any(line.decode() in one for one in told)
