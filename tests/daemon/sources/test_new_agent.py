"""A new agent is one module in `sources/`: nothing else has to know it."""

from __future__ import annotations

import ast
import json
import runpy
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests import golden_home
from tests.must import must

import sess_cli
import sess_schema
import sessiond
from sess_schema.connection import open_reader, open_writer
from sess_schema.queries import sessions
from sessiond import sources
from sessiond.config import Config
from sessiond.ingest import Ingest
from sessiond.reading.territory import Territory
from sessiond.service import agents, install
from sessiond.sourcekit import base
from sessiond.writing.transaction import Store

MODULE = """
from __future__ import annotations

import os
from typing import Any

from sess_schema import kinds
from sess_schema.edits import Edit
from sessiond.sourcekit.base import (
    TITLE_PROMPT, Described, Event, Parser, Record, Result, SessionSpec, Source, Title, Usage,
)
from sessiond.sourcekit.values import as_time


class TeapotParser:
    def __init__(self, spec: SessionSpec, state: dict[str, Any]) -> None:
        self._spec = spec

    def state(self) -> dict[str, Any]:
        return {}

    def parse(self, value: dict[str, Any]) -> Record:
        record = Record(str(value.get("kind")), native_id=value.get("id"), cwd="/code/pot")
        record.ts = as_time(value.get("at"))
        if record.kind == "said":
            record.events.append(Event("user", value["text"]))
            record.titles.append(Title(value["text"], TITLE_PROMPT))
        elif record.kind == "poured":
            edit = Edit("/code/pot/tea.txt", old="hot\\n", new="hotter\\n")
            record.events.append(Event(
                "tool_use", tool="pour", status="pending", summary="tea.txt", call_id=value["id"],
                kind=kinds.EDIT, input="hotter", edits=(edit,), files=((edit.path, "edit"),),
            ))
            record.usage = Usage(value["id"], None, "teapot-1", "end", 10, 20, 0, 0, 0)
        elif record.kind == "spilled":
            record.results.append(Result(value["of"], "tea on the floor", "error"))
        elif record.kind == "served":
            record.results.append(Result(value["of"], "tea", "ok"))
        return record


class TeapotSource(Source):
    agent = "teapot"
    title = "Teapot"
    variables = ("TEAPOT_HOME",)
    reads = "Every pot."
    leaves = (("leaves.txt", "they are only leaves"),)
    known_from = "its source code"

    def places(self) -> list[str]:
        return [self.environ.get("TEAPOT_HOME") or os.path.join(self.folders.home(), ".teapot")]

    def classify(self, path: str) -> str | None:
        return "transcript" if path.endswith(".tea") else None

    def claims(self, path: str, head: bytes) -> bool:
        return b"teapot" in head

    def identify(self, path: str, head: bytes) -> SessionSpec:
        name = os.path.basename(path).removesuffix(".tea")
        return SessionSpec(name, resume=("teapot", "--again", name))

    def parser(self, spec: SessionSpec, state: dict[str, Any]) -> Parser:
        return TeapotParser(spec, state)

    def probe(self, word: str) -> dict[str, bytes]:
        return {os.path.join(self.places()[0], "probe.tea"): word.encode()}


SOURCE = TeapotSource
"""
RECORDS = [
    {"kind": "said", "id": "1", "at": "2026-02-01T10:00:00Z", "text": "brew some tea"},
    {"kind": "poured", "id": "2", "at": "2026-02-01T10:00:01Z"},
    {"kind": "spilled", "id": "3", "at": "2026-02-01T10:00:05Z", "of": "2"},
    {"kind": "poured", "id": "4", "at": "2026-02-01T10:00:06Z"},
    {"kind": "served", "id": "5", "at": "2026-02-01T10:00:09Z", "of": "4"},
]
# Words that name agents, and where shared code may use them all the same.
AGENTS = ("claude", "codex", "gemini", "cursor-agent", "vscdb")
MAY_NAME = {
    "sessiond/config.py",  # the example of a config.toml
    "sessiond/prices/__init__.py",  # models have names
    "sess_schema/queries/views/windows.py",  # the same
    "sess_cli/render/listing.py",  # the same
    "sess_cli/export/otel.py",  # the same
    "sess_cli/export/html/encrypted.py",  # words that are guessed first
    "sess_redaction/names.py",  # services whose keys are secrets
    "sess_cli/commands/demo.py",  # the sample is of one agent
}


@pytest.fixture
def teapot(tmp_path, monkeypatch):
    """The agent as a module that lies beside the others."""
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "teapot.py").write_text(MODULE)
    monkeypatch.setattr(sources, "__path__", [*sources.__path__, str(folder)])
    sources.source_classes.cache_clear()
    yield
    sources.source_classes.cache_clear()


def test_one_module_is_enough(teapot, world, monkeypatch):
    """Found, read, listed, searched, shown, counted, priced, drawn and resumed."""
    monkeypatch.setenv("HOME", str(world.root))
    log = world.root / ".teapot" / "pot-1.tea"
    log.parent.mkdir()
    log.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    every = sources.all_sources(Config())
    world.state.mkdir(mode=0o700, exist_ok=True)
    with closing(open_writer(world.state / "index.db")) as db:
        summary = Ingest(Store(db)).reconcile(Territory(every).places)
    assert (summary.records, summary.skipped) == (5, [])
    with closing(open_reader(world.state / "index.db")) as db:
        row = sessions.resolve(db, "pot-1")
    assert (row.agent, row.title, row.project) == ("teapot", "brew some tea", "/code/pot")
    assert json.loads(row.resume or "") == ["teapot", "--again", "pot-1"]

    (hit,) = _objects(world, "search", "is_error")
    assert (hit["agent"], hit["tool"], hit["status"]) == ("teapot", "pour", "error")
    (total,) = _objects(world, "stats")
    assert (total["prompts"], total["tool_calls"], total["tool_errors"]) == (1, 2, 1)
    assert (total["input_tokens"], total["output_tokens"]) == (20, 40)
    shown = world.run("sess", "show", "pot-1", "--no-sync", check=0).stdout
    assert "brew some tea" in shown
    assert "hotter" in shown  # the edit, as a diff
    drawn = world.run("sess", "export", "md", "pot-1", "-o", "-", "--no-sync", check=0).stdout
    assert "- hot\n+ hotter\n" in drawn


def _objects(world, *arguments):
    done = world.run("sess", *arguments, "--json", "--no-sync", check=0)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_service_and_doctor_ask_the_source(teapot, tmp_path, monkeypatch):
    """Its variable is passed on to the service, and doctor writes what it says."""
    assert "TEAPOT_HOME" in install.variables()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert "teapot" in agents.write_probes("kettle")
    assert (tmp_path / "home" / ".teapot" / "probe.tea").read_text() == "kettle"


def test_a_new_agent_is_laid_out_in_two_folders_and_fails_one_fact(tmp_path, monkeypatch):
    """`make new-source` touches no shared file; what it makes is read, but for the answers."""
    script = Path(__file__).parents[3] / "scripts" / "new_source.py"
    laid_out = runpy.run_path(str(script))["lay_out"]
    folder = tmp_path / "daemon" / "sessiond" / "sources"
    folder.mkdir(parents=True)
    made = laid_out("tea-urn", tmp_path)
    assert [str(path.relative_to(tmp_path)) for path in made] == [
        "daemon/sessiond/sources/tea_urn.py",
        "tests/golden/tea-urn/home/.tea-urn/sessions/first.jsonl",
        "tests/golden/tea-urn/facts.json",
    ]
    everything = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert everything == set(made)
    for taken in ("tea-urn", "No Name"):
        with pytest.raises(SystemExit):
            laid_out(taken, tmp_path)

    monkeypatch.setattr(sources, "__path__", [*sources.__path__, str(folder)])
    monkeypatch.setattr(golden_home, "GOLDEN", tmp_path / "tests" / "golden")
    sources.source_classes.cache_clear()
    try:
        world = golden_home.GoldenWorld(tmp_path, "tea-urn")
        world.lay_all()
        world.ingest()
        found = golden_home.facts(world)["sessions"]["first"]
    finally:
        sources.source_classes.cache_clear()
    expected = golden_home.expected("tea-urn")["sessions"]["first"]
    assert found == {**expected, "events": {"user": 1}}
    assert expected["events"] == {"user": 1, "assistant": 1}


def test_the_list_of_agents_has_it(teapot, world, monkeypatch, capsys):
    """`sessiond agents` says where it looked and what the source says about itself."""
    monkeypatch.setenv("HOME", str(world.root))
    monkeypatch.setenv("SESSIOND_HOME", str(world.state))
    (world.root / ".teapot").mkdir()
    agents.show(as_json=True, every=True)
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (pot,) = [facts for facts in told if facts["agent"] == "teapot"]
    assert pot == {
        "agent": "teapot",
        "title": "Teapot",
        "places": [{"path": str(world.root / ".teapot"), "exists": True}],
        "found": True,
        "excluded": False,
        "sessions": 0,
        "last_activity": None,
        "reads": "Every pot.",
        "not_read": [{"what": "leaves.txt", "why": "they are only leaves"}],
        "known_from": "its source code",
        "records_tokens": True,
        "subscription": False,
        "variables": ["TEAPOT_HOME"],
    }


def test_every_source_says_what_it_reads():
    """Users must be able to know; `known_from` uses one of four words."""
    words = {base.REAL_FILES, base.SOURCE_CODE, base.DOCUMENTATION, base.ONE_READER}
    for made in sources.source_classes():
        assert made.reads.endswith("."), made.agent
        assert made.known_from in words, made.agent
        assert all(what and why for what, why in made.leaves), made.agent


def test_a_stranger_is_no_agent_that_is_read():
    """`sess doctor` does not call an agent unknown that a source reads."""
    every = [made((), {"HOME": "~"}) for made in sources.source_classes()]
    read = [place for source in every for place in source.places()]
    for title, folders in agents.STRANGERS.items():
        assert title not in {source.title for source in every}
        assert not [place for place in read if place.startswith(folders)], title


def test_shared_code_names_no_agent():
    """Outside of `sources/`, no string is an agent's name: what differs is asked of its source."""
    found = []
    for package in (sess_schema, sessiond, sess_cli):
        top = Path(must(package.__file__)).parent
        for file in top.rglob("*.py"):
            name = f"{top.name}/{file.relative_to(top)}"
            if name.startswith("sessiond/sources/") or name in MAY_NAME:
                continue
            found += [
                f"{name}:{node.lineno}"
                for node in ast.walk(ast.parse(file.read_text("utf-8")))
                if isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and any(agent in node.value.casefold() for agent in AGENTS)
                and not _is_prose(node.value)
            ]
    assert found == []


def _is_prose(text: str) -> bool:
    return text[:1].isupper() or "\n" in text


def test_an_agent_that_is_not_there_costs_next_to_nothing():
    """Asking every agent for its places loads no engine, no database and few modules.

    A small agent is one module with its parser; parsers that need more have modules of their own.
    """
    script = (
        "import sys; from sessiond.sources import all_sources; from sessiond.config import Config;"
        " from sessiond.reading.territory import Territory;"
        " every = all_sources(Config()); Territory(every);"
        " print(len(every), *sorted(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    count, *loaded = done.stdout.split()
    heavy = {
        "zoneinfo", "urllib.request", "sessiond.engines", "sessiond.writing", "sessiond.prices",
        "sessiond.sourcekit.foreign", "sessiond.sources.claude.transcript",
        "sessiond.sources.cursor.database", "sessiond.families.editor_tasks.sent",
        "sessiond.families.rollouts.rollout",
    }  # fmt: skip
    assert heavy.isdisjoint(loaded)
    own = [name for name in loaded if name.startswith(("sessiond.sources.", "sessiond.families."))]
    assert len(own) <= 1.5 * int(count)
