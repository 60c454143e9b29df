"""What is fuzzed: a name, inputs to begin with, and a function that raises if an input is fatal.

Each takes bytes. An agent's first byte says which of its golden files the rest is in the place of.
"""

from __future__ import annotations

import atexit
import json
import re
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from tests import golden_damage as damage
from tests.cli.export.film import tape_grammar
from tests.cli.export.film.test_film_tape import HOSTILE
from tests.cli.export.html.card_items import Looked, call, drawn, item
from tests.cli.export.html.test_cards_hostile import PAYLOADS
from tests.conftest import World
from tests.golden_home import GoldenWorld, agents
from tests.must import must

from sess_cli.export import ansi
from sess_cli.export.film import tape
from sess_cli.export.film.scenes import Call
from sess_cli.export.html import prose
from sess_cli.render import markdown
from sess_common.decode import decode
from sess_common.errors import SessError
from sess_common.escape import safe
from sess_redaction import Redactor
from sess_redaction.shapes import SHAPES
from sess_schema import archive
from sess_schema.connection import open_reader
from sess_schema.queries.search import Search
from sessiond.engines.documents import NotAnArray, array_elements
from sessiond.engines.lines import LogReader
from sessiond.reading.tracked import Progress
from sessiond.sourcekit.base import NotReady
from sessiond.sourcekit.masking import Masker

LINES = 8  # of a log, in one input
CRASHED = re.compile(r"^\w*(Error|Exception|Iteration|Exit)\b|^parser failed")
KEYS = [shape.sample for shape in SHAPES]


class Target(NamedTuple):
    begin: list[bytes]
    check: Callable[[bytes], None]


# -- agents


@cache
def _home(agent: str) -> GoldenWorld:
    folder = tempfile.TemporaryDirectory(prefix="sess-fuzz-")
    atexit.register(folder.cleanup)
    world = GoldenWorld(Path(folder.name), agent)
    world.lay_all()
    return world


@cache
def _parts(agent: str, kind: str) -> list:
    world = _home(agent)
    return [
        part
        for part in world.parts
        if world.kind(part) == kind and not part.is_database and not part.path.endswith(".zst")
    ]


def _logs(agent: str) -> list[bytes]:
    return [
        bytes([number]) + b"".join(lines[at : at + LINES])
        for number, part in enumerate(_parts(agent, "transcript")[:256])
        if (lines := part.data.splitlines(keepends=True))
        for at in range(0, len(lines), LINES)
    ]


def _documents(agent: str) -> list[bytes]:
    return [bytes([n]) + part.data for n, part in enumerate(_parts(agent, "document")[:256])]


def _chosen(agent: str, kind: str, data: bytes) -> str:
    parts = _parts(agent, kind)
    return str(_home(agent).file(parts[(data or b"\0")[0] % len(parts)]))


def log(agent: str, data: bytes) -> None:
    """Every record can be written, none crashes the parser, and no byte is skipped."""
    path, raw, source = _chosen(agent, "transcript", data), data[1:], _home(agent).source
    spec = source.identify(path, raw[: 64 << 10])
    assert [*damage.misfits(spec)] == []
    parser = source.parser(spec, {})
    with tempfile.TemporaryFile() as file:
        file.write(raw)
        file.flush()
        read = b""
        for one in LogReader(file.fileno(), spec, parser, Progress()).slices():
            read += one.raw
            for placed in one.records:
                assert [*damage.misfits(placed.record)] == []
            assert [p.reason for p in one.problems if CRASHED.search(p.reason)] == []
            json.dumps(parser.state())
        assert raw.startswith(read)
        assert b"\n" not in raw[len(read) :]


def document(agent: str, data: bytes) -> None:
    """It is read, or said not to be ready; what is read can be written."""
    path, raw, source = _chosen(agent, "document", data), data[1:], _home(agent).source
    read = must(source.documents).conversations
    try:
        parts = [raw]
        if source.streams:
            parts = list(array_elements(lambda length, offset: raw[offset : offset + length]))
        found = [one for part in parts for one in read(path, part)]
    except (NotReady, NotAnArray):
        return
    for conversation in found:
        assert [*damage.misfits(conversation.spec)] == []
        for one in conversation.items:
            assert isinstance(one.key, str)
            assert one.record is None or [*damage.misfits(one.record)] == []


# -- the query language


@cache
def _index():
    folder = tempfile.TemporaryDirectory(prefix="sess-fuzz-")
    atexit.register(folder.cleanup)
    world = World(Path(folder.name))
    t = world.transcript()
    t.append(t.prompt("retry is_error in test"), t.call("c", command="go test ./..."))
    t.append(t.result("c", "FAIL: café 100%"), t.answer("done: naïve"))
    world.ingest()
    db = open_reader(world.state / "index.db")
    atexit.register(db.close)
    return db


def query(data: bytes) -> None:
    """Any text finds something or nothing, or is a usage error of one line."""
    text = _text(data)
    for mode in ("words", "substring", "tools"):
        with suppress(SessError):
            assert 0 <= Search(text, mode=mode).results(_index()).count() <= 4
    with suppress(SessError):
        Search(text, mode="regex").results(_index())


# -- what is shown and exported


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def cards(data: bytes) -> None:
    """Cards have only known tags and attributes, all closed; links lead nowhere odd."""
    text = _text(data)
    Looked(drawn(item(text=text)))
    Looked(drawn(call(text[:40], text, text, summary=text)))
    try:
        value, _ = decode(data)
    except (ValueError, RecursionError):
        return
    for tool in ("Edit", "Bash", "TodoWrite", "Task", "Read", "mcp__x__y"):
        Looked(drawn(call(tool, value, text)))


def prose_html(data: bytes) -> None:
    """Markdown becomes known tags, and loses no word."""
    Looked(prose.html(_text(data)))


def prose_markdown(data: bytes) -> None:
    """Foreign Markdown inside ours opens no HTML, and every fence is closed."""
    text = _text(data)
    shown = [*markdown.prose(text)]
    fence = ""
    for line in shown:
        found = re.match(r" {0,3}(`{3,}|~{3,})(.*)", line)
        if fence:
            if found and found[1].startswith(fence) and not found[2].strip():
                fence = ""
        elif found and not (found[1][0] == "`" and "`" in found[2]):
            fence = found[1]
        else:
            assert not re.search(r"<(?:script|img|iframe|style|svg|a|/)", line, re.IGNORECASE), line
    assert fence == ""
    for line in (markdown.escaped(text), markdown.code(text)):
        assert "\n" not in line


def keys(data: bytes) -> None:
    """A tape says to VHS what it should type, and nothing else."""
    text = _text(data)
    half = len(text) // 2
    for kind in ("shell", "read", "agent"):
        one = Call(kind, "Bash", text[:half], text[half:], "ok")
        for line, _ in tape._of_call(one):
            said = tape_grammar.read("\n".join(tape._typed(line)))
            assert {command.name for command in said} <= {"Type", "Enter"}
            assert "".join(tape_grammar.keys(said)) == " ".join(safe(line).split("\n")) + "\r"


def terminal(data: bytes) -> None:
    """No control character reaches a terminal but newlines and tabs."""
    text = _text(data)
    for shown in (safe(text), "".join(piece for piece, _ in ansi.runs(text))):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", safe(shown))


def redaction(data: bytes) -> None:
    """A key in the middle of any text is gone at the first pass; a second one changes nothing."""
    text = _text(data[1:])
    secret = KEYS[(data or b"\0")[0] % len(KEYS)]
    before, after = text[: len(text) // 2], text[len(text) // 2 :]
    once = Redactor("/home/demo")(f"{before} {secret} {after}")
    assert once.count(secret) <= before.count(secret) + after.count(secret)
    assert Redactor("/home/demo")(once) == once


_MASKER = Masker(["ACME-[0-9]{6}"])


def masking(data: bytes) -> None:
    """A mask keeps the length, and JSON its structure; a second time changes nothing."""
    text = _text(data[1:])
    secret = KEYS[(data or b"\0")[0] % len(KEYS)]
    line = json.dumps({"a": [f"{text} {secret}", 1], "password": text[:40]}).encode()
    for raw in (data, line):
        masked = _MASKER.raw(raw)
        assert archive.is_same(raw, masked, masked=True)
        assert _MASKER.raw(masked) == masked
    assert len(json.loads(masked)["a"]) == 2
    assert json.dumps(secret)[1:-1].encode() not in masked or secret in text


_PROSE = [
    text.encode("utf-8", "surrogateescape") for text in PAYLOADS + HOSTILE if "\ud800" not in text
]
_PROSE += [b"# Title\n\n- a\n- b `c`\n\n```py\nx = 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"]
_QUERIES = [
    b"is_error", b'"go test" OR retry', b"-done agent:claude", b"is:error after:2026-01-01",
    b"(a OR b) -c tool:Bash", b"caf\xc3\xa9*", b'project:"x y" kind:shell', b"x.*y|[z-", b"",
]  # fmt: skip
_SECRETS = [bytes([n]) + one.encode() for n, one in enumerate(KEYS)]
_SECRETS += [b"\0password: =@bearer x", b"\1curl -u a:b https://u:p@h/?sig=", b"\2-----BEGIN"]


@cache
def targets() -> dict[str, Target]:
    found = {
        "query": Target(_QUERIES, query),
        "cards": Target(
            [*_PROSE, b'{"command": "ls", "file_path": "/a", "old_string": "x"}'], cards
        ),
        "prose-html": Target(_PROSE, prose_html),
        "prose-markdown": Target(_PROSE, prose_markdown),
        "tape": Target(_PROSE, keys),
        "terminal": Target(_PROSE, terminal),
        "redaction": Target(_SECRETS, redaction),
        "masking": Target(_SECRETS, masking),
    }
    for agent in agents():
        if _parts(agent, "transcript"):
            found[f"{agent}-log"] = Target(_logs(agent), partial(log, agent))
        if _parts(agent, "document"):
            found[f"{agent}-document"] = Target(_documents(agent), partial(document, agent))
    return found
