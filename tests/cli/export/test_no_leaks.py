"""Random secrets in every place of a session: none is left in any export."""

from __future__ import annotations

import json
import os
import random
import re
import zlib
from base64 import b64decode

import pytest
import zstandard
from tests.cli.export.film.filmed import Session
from tests.secrets_grid import cases, leaks

MAIN = "11111111-1111-4111-8111-111111111111"
PACKED = re.compile(rb'(data-what="pack">)?([A-Za-z0-9+/]{200,}={0,2})')


def _planted(world, rounds):
    """Each syntax in turn as a prompt, an answer, an input, an output, a written file, an edit."""
    t = world.transcript()
    made = []
    for n, (_, text, secret) in enumerate(cases(random.Random(11), rounds)):
        made.append((text, secret))
        call = f"c{n}"
        match n % 6:
            case 0:
                t.append(t.prompt(text))
            case 1:
                t.append(t.prompt("go"), t.answer(text))
            case 2:
                t.append(t.call(call, command=text), t.result(call, "ok"))
            case 3:
                t.append(t.call(call, command="cat f"), t.result(call, text))
            case 4:
                t.append(
                    t.call(call, "Write", file_path="/x/f", content=text), t.result(call, "ok")
                )
            case _:
                t.append(
                    t.call(call, "Edit", file_path="/x/f", old_string="a", new_string=text),
                    t.result(call, "ok"),
                )
    world.ingest()
    return made


def _told(folder):
    """Every byte of the files, also what is packed in pages; JSON strings as their text."""
    texts = []
    for path in sorted(folder.rglob("*")) if folder.is_dir() else [folder]:
        if not path.is_file():
            continue
        raw = path.read_bytes()
        texts.append(raw.decode("utf-8", "replace"))
        first = None
        for is_card, found in PACKED.findall(raw):
            text = _unpacked(b64decode(found, validate=True), first if is_card else None)
            texts.append(text.decode("utf-8", "replace"))
            first = first or (text if is_card else None)
    return "\n".join(texts)


def _unpacked(data, first):
    """As the page does it; later packs of cards refer to the first. Nothing may be left packed:
    a secret in there would not be seen."""
    if data[4:8] != zstandard.FRAME_HEADER:
        return zlib.decompress(data)
    known = first and zstandard.ZstdCompressionDict(first, zstandard.DICT_TYPE_RAWCONTENT)
    text = zstandard.ZstdDecompressor(dict_data=known).decompress(data[4:])
    assert len(text) == int.from_bytes(data[:4], "little")
    return text


# Every format, with what makes it say the most.
EXPORTS = (
    ("html", MAIN), ("html", MAIN, "--static"), ("html", MAIN, "--style", "timeline"),
    ("html", MAIN, "--style", "pages"), ("html", "--agent", "claude"), ("site",),
    ("md", MAIN, "--full"), ("json", MAIN), ("sqlite", MAIN), ("cast", MAIN), ("tape", MAIN),
    ("atif", MAIN), ("otel", MAIN),
)  # fmt: skip


@pytest.mark.slow
def test_no_export_has_a_piece_of_any_secret(world, tmp_path):
    """Nor the report of what was masked, a tree of notes, or a brief for another agent."""
    made = _planted(world, 1)
    said: list[tuple[object, str]] = []
    for n, export in enumerate(EXPORTS):
        out = tmp_path / f"out{n}"
        world.run("sess", "export", *export, "-o", out, "--no-sync", check=0)
        said.append((export, _told(out)))
    notes = tmp_path / "notes"
    report = ("sess", "export", "md", "--tree", notes, "--full", "--redaction-report", "--no-sync")
    said.append(("report", world.run(*report, check=0).stderr))
    said.append(("notes", _told(notes)))
    said.append(("handoff", world.run("sess", "handoff", MAIN, "--no-sync", check=0).stdout))
    for where, told in said:
        assert told
        unescaped = told.replace('\\"', '"').replace("\\\\", "\\")
        unmarked = re.sub(r"</?span[^>]*>", "", told)
        for form in (told, unescaped, unmarked):
            assert [(where, text) for text, one in made if leaks(form, one, 8)] == []


@pytest.mark.slow
def test_no_frame_caption_or_chapter_of_a_film_has_a_piece_of_any_secret(world, monkeypatch):
    """The cells of every frame, from which pictures are painted, and its lines joined."""
    session = Session(world, monkeypatch)
    made = _planted(world, 1)
    film = session.film(columns=140, lines=40)
    told = {film.title, *(one.title for one in film.chapters), *(one.text for one in film.captions)}
    for frame in film.frames():
        lines = ["".join(text for text, _ in row) for row in frame.rows]
        told |= {*lines, "".join(line.strip(" │") for line in lines)}
    assert len(told) > len(made)
    whole = "\n".join(told)
    assert [text for text, one in made if leaks(whole, one, 8)] == []


@pytest.mark.slow
def test_no_gist_has_a_piece_of_any_secret(world, tmp_path):
    """What `gh` is given: the names of files, and what is in them."""
    made = _planted(world, 1)
    program = tmp_path / "bin" / "gh"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/given\necho https://gist.example/1\n'
    )
    program.chmod(0o755)
    world.env["PATH"] = f"{program.parent}{os.pathsep}{world.env['PATH']}"
    out = tmp_path / "pages"
    world.run(
        "sess", "export", "html", MAIN, "--style", "pages", "--gist", "--yes", "-o", out,
        "--no-sync",
        check=0,
    )  # fmt: skip
    given = (tmp_path / "given").read_text()
    assert f"{out}/index.html" in given
    told = given + _told(out)
    assert [text for text, one in made if leaks(told, one, 8)] == []


def test_own_rules_and_the_report(world, tmp_path):
    """`--redact`, config.toml and `--redaction-report`: kinds and places, never the secret."""
    t = world.transcript()
    t.append(t.prompt("badge 4711 of ACME-123456"), t.answer("ok"))
    t.append(t.call("c1", command="login --password hunter2x"), t.result("c1", "done"))
    world.ingest()
    (world.state / "config.toml").write_text("[redact]\npatterns = ['ACME-[0-9]{6}']\n")
    done = world.run(
        "sess", "export", "json", MAIN, "-o", "-", "--no-sync", "--redact", "badge ([0-9]+)",
        "--redaction-report", check=0,
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert told["events"][0]["text"] == "badge [redacted: own rule] of [redacted: own rule]"
    assert re.search(rf"masked 2 own rules in {MAIN}#\w+, user", done.stderr)
    assert re.search(rf"masked 1 password in {MAIN}#\w+, input", done.stderr)
    for secret in ("4711", "123456", "hunter2x"):
        assert secret not in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("options", "says"), [(["--redaction-report"], "nothing was masked\n"), ([], "")]
)
@pytest.mark.parametrize("command", [("export", "md", MAIN, "-o", "-"), ("handoff", MAIN)])
def test_a_report_says_that_nothing_was_masked(world, command, options, says):
    t = world.transcript()
    t.append(t.prompt("go"), t.answer("ok"))
    world.ingest()
    assert world.run("sess", *command, "--no-sync", *options, check=0).stderr == says


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            ["--redact", "("],
            '"(": missing ), unterminated subpattern at position 0\nhint: put a backslash before',
        ),
        (["--redact", "x", "--no-redact"], "cannot be combined"),
    ],
)
def test_bad_rules_are_told_in_one_line_with_a_hint(world, options, says):
    t = world.transcript()
    t.append(t.prompt("go"), t.answer("ok"))
    world.ingest()
    done = world.run("sess", "export", "md", MAIN, "-o", "-", "--no-sync", *options, check=2)
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_site_is_drawn_again_when_the_rules_change(world, tmp_path):
    t = world.transcript()
    t.append(t.prompt("badge 4711"), t.answer("ok"))
    world.ingest()
    out = tmp_path / "site"
    world.run("sess", "export", "site", "-o", out, "--no-sync", check=0)
    assert "4711" in _told(out)
    world.run("sess", "export", "site", "-o", out, "--no-sync", "--redact", "4711", check=0)
    assert "4711" not in _told(out)
    assert os.path.exists(out)
