"""`sessiond config`: what applies, where from, and how to change it."""

from __future__ import annotations

import json
import stat

import pytest

from sessiond import config


def told(world, *arguments):
    done = world.run("sessiond", "config", "--json", *arguments, check=0)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_without_a_file_everything_is_a_default(world):
    """Every key that has a name is there, and nothing is made."""
    values = {one["key"]: (one["value"], one["from"]) for one in told(world) if "key" in one}
    assert values["daemon.reconcile_seconds"] == (120, "default")
    assert values["search.history"] == (False, "default")
    assert {origin for _, origin in values.values()} == {"default"}
    assert not world.state.exists()


def test_what_the_file_says_is_marked(world):
    """With the places of file, index and log, in both forms."""
    world.state.mkdir()
    (world.state / "config.toml").write_text(
        '[edit]\nkeep_days = 7\n[roots]\nclaude = ["~/x"]\n[prices.m]\ninput = 1\noutput = 2\n'
    )
    found = told(world)
    places = {one["place"]: one["path"] for one in found if "place" in one}
    assert places["config"] == str(world.state / "config.toml")
    assert places["index"] == str(world.state / "index.db")
    assert places["log"].endswith("sessiond.log")
    values = {one["key"]: one["value"] for one in found if one.get("from") == "config.toml"}
    assert values == {
        "edit.keep_days": 7, "roots.claude": ["~/x"], 'prices."m"': {"input": 1, "output": 2}
    }  # fmt: skip
    text = world.run("sessiond", "config", check=0).stdout
    assert f"config   {world.state / 'config.toml'}\n" in text
    assert "edit.keep_days = 7" in text


def test_the_example_has_every_key_and_is_valid(tmp_path):
    """As it stands, and with every line but the comments removed."""
    path = tmp_path / "config.toml"
    path.write_text(config.example_file())
    loaded = config.load(path)
    assert loaded.roots["claude"]
    assert "my-model" in loaded.prices
    path.write_text(config.example_file(commented=True))
    assert config.load(path) == config.Config()


@pytest.mark.parametrize(
    "text", ["[nonsense]", "[search]\nhistory = 1", "[output]\npager = true", "[output]\nx = 1"]
)
def test_a_mistake_is_named(world, text):
    """By section and key, with the way to mend it, in every command that reads it."""
    world.state.mkdir()
    (world.state / "config.toml").write_text(text)
    for verb in ("config", "sync"):
        done = world.run("sessiond", verb, check=2)
        assert done.stderr.startswith(f'sessiond: configuration "{world.state}/config.toml": ')
        assert done.stderr.endswith(
            "hint: `sessiond config --edit` opens it; docs/config.md describes every key\n"
        )


@pytest.mark.parametrize(
    ("text", "section"),
    [('[roots]\ncluade = ["~/x"]', "roots"), ('[exclude]\nagents = ["cluade"]', "exclude")],
)
def test_an_agent_that_nobody_knows_is_named(world, text, section):
    """A slip would silently read nothing, or leave nothing out."""
    world.state.mkdir()
    (world.state / "config.toml").write_text(text)
    for verb in ("config", "sync"):
        assert world.run("sessiond", verb, check=2).stderr == (
            f'sessiond: configuration: unknown agent "cluade" in [{section}]\n'
            "hint: did you mean claude? `sessiond config --edit` opens the file\n"
        )


def test_edit_opens_a_new_file_with_every_key_as_a_comment(world, tmp_path):
    """Private, and checked afterwards; an editor that is missing is 69."""
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\necho '[edit]' >> \"$1\"; echo 'keep_days = 3' >> \"$1\"\n")
    editor.chmod(0o755)
    world.env["EDITOR"] = str(editor)
    world.env.pop("VISUAL", None)
    world.run("sessiond", "config", "--edit", check=0)
    path = world.state / "config.toml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for key in config.KEYS:
        assert f"#{key.example}\n" in path.read_text()
    assert {"key": "edit.keep_days", "value": 3, "from": "config.toml"} in told(world)
    world.env["EDITOR"] = "no-such-editor"
    done = world.run("sessiond", "config", "--edit", check=69)
    assert done.stderr.startswith("sessiond: cannot run the editor `no-such-editor`: ")
