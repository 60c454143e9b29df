"""The documentation says what the programs do."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from tests import forked
from tests.must import must

from sess_schema.connection import open_writer

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def generator():
    made = loaded("generate")
    if forked.possible("sess", os.environ, {}):
        made.printed = lambda *command: forked.run(*command).stdout
    return made


def loaded(name):
    spec = must(importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    must(spec.loader).exec_module(module)
    return module


def test_the_command_page_is_up_to_date(generator):
    """docs/commands.md is what the programs print; `python docs/generate.py` renews it."""
    assert generator.TARGET.read_text("utf-8") == generator.page()


def test_the_stored_help_is_up_to_date(generator):
    """`sess --help` prints a text that is stored; `python docs/generate.py` renews it."""
    assert generator.HELP.read_text("utf-8") == generator.short_help()


def test_the_schema_page_is_up_to_date():
    """docs/schema.md is what the migrations make and say; `python docs/generate.py` renews it."""
    schema_page = loaded("schema_page")
    assert schema_page.TARGET.read_text("utf-8") == schema_page.page()


def test_the_configuration_page_is_up_to_date():
    """docs/config.md has every key; `python docs/generate.py` renews it."""
    config_page = loaded("config_page")
    assert config_page.TARGET.read_text("utf-8") == config_page.page()


def test_the_map_is_up_to_date():
    """ARCHITECTURE.md names every folder and module; `python docs/generate.py` renews it."""
    module_map = loaded("module_map")
    assert module_map.TARGET.read_text("utf-8") == module_map.page()


def test_the_agents_are_up_to_date():
    """docs/agents.md and README.md say what the sources do; `python docs/generate.py` renews it."""
    agents_page = loaded("agents_page")
    assert agents_page.TARGET.read_text("utf-8") == agents_page.page()
    assert agents_page.README.read_text("utf-8") == agents_page.readme()


def test_the_architecture_names_only_what_is_there():
    """A file that the prose mentions exists, in the project or in one of its packages."""
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    tops = [ROOT, *(ROOT / package for package in loaded("module_map").PACKAGES)]
    named = {name.rstrip("/") for name in re.findall(r"`([\w./-]+(?:\.py|\.sql|/))`", text)}
    assert [name for name in sorted(named) if not any((top / name).exists() for top in tops)] == []


def test_the_queries_of_the_schema_page_run(tmp_path):
    """Each example is SQL that the index understands."""
    text = (ROOT / "docs" / "schema.md").read_text("utf-8")
    with closing(open_writer(tmp_path / "index.db")) as db:
        for query in must(re.search("```sql\n(.+?)```", text, re.DOTALL))[1].split("\n\n"):
            assert list(db.execute(query)) == []


def test_every_command_is_on_the_page(generator):
    """A verb that is added to a program must be added to the page."""
    for program, verbs in generator.COMMANDS.items():
        listed = []
        for verb in listing(generator, [program]):
            listed.append(verb)
            if verb == "export":
                listed += [f"export {kind}" for kind in listing(generator, [program, verb])]
        assert listed == verbs


def listing(generator, words):
    commands = generator.help_of(words).partition("Commands:")[2]
    return re.findall(r"^  ([\w-]+)  ", commands, re.MULTILINE)


def test_the_readme_names_only_files_that_exist():
    """Each link leads somewhere, wherever the page is shown: registries know no relative ones."""
    text = (ROOT / "README.md").read_text("utf-8")
    assert re.findall(r"\]\((?!https://|#)", text) == []
    targets = re.findall(r"/sessiond/(?:blob/)?main/([\w./-]+?)(?:#[\w-]+)?[)\n]", text)
    assert len(targets) > 10
    for target in targets:
        assert (ROOT / target).exists(), target
    named = set(re.findall(r"(?<!!)\[([\w./ -]+\.md|testing)\](?![(:])", text))
    assert named <= set(re.findall(r"^\[([^\]]+)\]: https://", text, re.MULTILINE))


def test_the_manual_pages_are_up_to_date():
    """They say what the commands say of themselves."""
    man_pages = loaded("man_pages")
    for name, command in man_pages.programs().items():
        assert (ROOT / "man" / f"{name}.1").read_text("utf-8") == man_pages.page(name, command)


@pytest.mark.skipif(not shutil.which("man"), reason="needs man")
@pytest.mark.parametrize("name", ["sess", "sessiond"])
def test_manual_pages_are_without_fault(name):
    """`man` warns of nothing, and shows what was written: roff takes no text for a request."""
    done = subprocess.run(
        ["man", "--warnings=all", "-E", "UTF-8", "-l", "-Tutf8", str(ROOT / "man" / f"{name}.1")],
        env={**os.environ, "MANWIDTH": "100", "LC_ALL": "C.UTF-8", "MAN_KEEP_FORMATTING": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    shown = re.sub(r".\x08|\x1b\[[\d;]*m", "", done.stdout)
    assert f"{name.upper()}(1)" in shown
    assert "EXIT STATUS" in shown


@pytest.mark.parametrize("page", ["README.md", "docs/search.md", "docs/export.md"])
def test_the_examples_name_only_commands_and_options_that_exist(page):
    """Each `$ sess` and `$ sessiond` line uses a command of docs/commands.md and its options."""
    commands = (ROOT / "docs" / "commands.md").read_text("utf-8")
    helps = dict(
        re.findall(r"^##+ ([^\n]+)\n\n```text\n(.+?)```", commands, re.MULTILINE | re.DOTALL)
    )
    lines = re.findall(r"^\$ (sess.*)", (ROOT / page).read_text("utf-8"), re.MULTILINE)
    assert lines
    for line in lines:
        words = shlex.split(line, comments=True)
        depth = min(len(words), 3 if words[1:2] == ["export"] else 2)
        usage = helps.get(" ".join(words[:depth]))
        assert usage is not None, line
        known = set(re.findall(r"(?<!\S)--?[a-zA-Z][\w-]*", usage))
        given = {word for word in words[depth:] if word.startswith("-") and len(word) > 1}
        if words[1:2] == ["search"]:  # a single dash excludes a word
            given = {word for word in given if word.startswith("--")}
        assert given <= known, line
