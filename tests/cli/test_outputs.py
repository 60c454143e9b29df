"""Every file that people name for writing is opened in one place, `sess_schema.outputs`."""

from __future__ import annotations

import importlib
import shutil

import pytest
from typer.main import get_command

MAIN = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"

# What writes a file, by program, verb and option: how to call it.
WRITERS = {
    ("sess", "doctor", "--bundle"): ["doctor", "--bundle"],
    ("sess", "export cast", "--output"): ["export", "cast", MAIN, "-o"],
    ("sess", "export gif", "--output"): ["export", "gif", MAIN, "-o"],
    ("sess", "export html", "--output"): ["export", "html", MAIN, "-o"],
    ("sess", "export atif", "--output"): ["export", "atif", MAIN, "-o"],
    ("sess", "export json", "--output"): ["export", "json", MAIN, "-o"],
    ("sess", "export md", "--output"): ["export", "md", MAIN, "-o"],
    ("sess", "export md", "--tree"): ["export", "md", MAIN, "--tree"],
    ("sess", "export otel", "--output"): ["export", "otel", MAIN, "-o"],
    ("sess", "export site", "--output"): ["export", "site", "-o"],
    ("sess", "export sqlite", "--output"): ["export", "sqlite", MAIN, "-o"],
    ("sess", "export tape", "--output"): ["export", "tape", MAIN, "-o"],
    ("sess", "export video", "--output"): ["export", "video", MAIN, "-o"],
    ("sess", "handoff", "--output"): ["handoff", MAIN, "-o"],
    ("sess", "restore", "--output"): ["restore", MAIN, "-o"],
    ("sess", "stats", "--html"): ["stats", "--html"],
    ("sess", "stats", "--png"): ["stats", "--png"],
    ("sess", "backup", "target"): ["backup"],
    ("sessiond", "status", "--prometheus"): ["status", "--prometheus"],
}
READ = {"--project"}  # and every argument but that of `backup`
SUFFIX = {"gif": ".gif", "video": ".mp4"}  # the name decides the format


def leaves(command, path=()):
    if not hasattr(command, "commands"):
        yield " ".join(path), command
        return
    for name, inner in command.commands.items():
        yield from leaves(inner, (*path, name))


def test_every_option_that_names_a_file_is_known():
    """A new way to write a file is added to `WRITERS`, so that it is tried below."""
    known = set()
    for program in ("sess", "sessiond"):
        module = "sess_cli.main" if program == "sess" else "sessiond.main"
        for verb, command in leaves(get_command(importlib.import_module(module).app)):
            for parameter in command.params:
                name = max(parameter.opts, key=len)
                names_a_file = name.startswith("-") or name == "target"
                if (
                    names_a_file
                    and name not in READ
                    and any(word in str(parameter.metavar) for word in ("FILE", "DIR", "PATH"))
                ):
                    known.add((program, verb, name))
    assert known == {*WRITERS}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Two sessions, one of which is still where its agent wrote it."""
    from tests.conftest import World

    world = World(tmp_path_factory.mktemp("told"))
    for session in (MAIN, OTHER):
        t = world.transcript(session)
        t.append(t.prompt("go"), t.answer("ok"))
    world.ingest()
    (world.state / "config.toml").touch(mode=0o600)
    return world


def targets(world, tmp_path, suffix):
    """What must stay what it is, whatever is asked for; and a file that only --force replaces."""
    notes = tmp_path / f"notes{suffix}"
    notes.write_text("mine")
    film = tmp_path / f"behind{suffix}"
    film.symlink_to(world.state / "index.db")
    theirs = world.transcript(OTHER).path
    if suffix:  # a film may only be asked for by a name that says so
        return [film], notes
    return [world.state / "index.db", world.state / "config.toml", theirs, film], notes


@pytest.mark.parametrize("writer", WRITERS, ids=" ".join)
def test_nothing_of_ours_an_agents_or_the_users_is_replaced(told, tmp_path, writer):
    program, verb, _ = writer
    if verb in ("export gif", "export video"):
        pytest.importorskip("av")
    protected, notes = targets(told, tmp_path, SUFFIX.get(verb.rpartition(" ")[2], ""))
    help_text = told.run(program, *verb.split(), "--help", check=0).stdout
    force = ["--force"] if "--force" in help_text else []
    quiet = ["--no-sync"] if "--no-sync" in help_text else []
    for target in (*protected, notes):
        before = target.read_bytes()
        asked = [*WRITERS[writer], target, *quiet, *(force if target is not notes else [])]
        done = told.run(program, *asked)
        assert done.returncode == 2, (asked, done.stdout, done.stderr)
        assert "hint: " in done.stderr
        assert target.read_bytes() == before
    told.run("sess", "check", check=0)


@pytest.mark.parametrize("name", ["index.db", "upkeep.json", "reading.json", "config.toml"])
def test_no_name_of_ours_is_taken_while_it_is_free(tmp_path, name):
    from tests.conftest import World

    world = World(tmp_path)
    t = world.transcript()
    t.append(t.prompt("go"))
    world.ingest()
    shutil.copy(world.state / "index.db", tmp_path / "kept.db")
    (world.state / name).unlink(missing_ok=True)
    if name == "index.db":
        shutil.copy(tmp_path / "kept.db", world.state / name)
    done = world.run("sess", "restore", MAIN, "--force", "-o", world.state / name, "--no-sync")
    assert done.returncode == 2
    assert "belongs to sessiond itself" in done.stderr


def test_figures_replace_earlier_figures_only(told, tmp_path):
    target = tmp_path / "figures.prom"
    for _ in range(2):
        told.run("sessiond", "status", "--prometheus", target, check=0)
    assert target.read_text().startswith("# HELP sessiond_")
    assert target.stat().st_mode & 0o777 == 0o644


def test_a_site_writes_through_no_link_in_its_folder(told, tmp_path):
    site, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    told.run("sess", "export", "site", "-o", site, "--no-sync", check=0)
    shutil.rmtree(site / "sessions")
    elsewhere.mkdir()
    (site / "sessions").symlink_to(elsewhere)
    done = told.run("sess", "export", "site", "-o", site, "--no-sync")
    assert done.returncode
    assert "symbolic link" in done.stderr
    assert [*elsewhere.iterdir()] == []
