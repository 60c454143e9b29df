"""What an export may replace, and what leaves the machine."""

from __future__ import annotations

import os
import pty

import pytest

MAIN = "11111111-1111-4111-8111-111111111111"


@pytest.fixture
def told(world):
    t = world.transcript()
    t.append(t.prompt("go \x9b31m \u202e now"), t.answer("ok"))
    world.ingest()
    return world


def export(world, *options, check=0):
    return world.run("sess", "export", *options, "--no-sync", check=check)


@pytest.mark.parametrize("kind", ["html", "md", "json", "sqlite", "cast", "tape"])
def test_a_file_of_the_user_is_replaced_only_by_force(told, tmp_path, kind):
    target = tmp_path / "notes"
    target.write_text("mine")
    done = export(told, kind, MAIN, "-o", target, check=2)
    assert "exists already" in done.stderr
    assert "--force" in done.stderr
    assert target.read_text() == "mine"
    export(told, kind, MAIN, "-o", target, "--force")
    assert target.read_bytes() != b"mine"


@pytest.mark.parametrize("kind", ["html", "md", "json", "cast", "tape"])
def test_so_is_one_with_the_usual_name(told, tmp_path, kind):
    """Without `-o` the session's ID is the name: what was written there may be somebody's notes."""
    target = tmp_path / f"{MAIN}.{kind}"
    target.write_text("mine")
    done = told.run("sess", "export", kind, MAIN, "--no-sync", cwd=tmp_path, check=2)
    assert "exists already" in done.stderr
    assert target.read_text() == "mine"
    told.run("sess", "export", kind, MAIN, "--no-sync", "--force", cwd=tmp_path, check=0)
    assert target.read_bytes() != b"mine"


@pytest.mark.parametrize("options", [(), ("--force",)])
def test_a_file_is_no_directory_for_pages(told, tmp_path, options):
    target = tmp_path / "notes"
    target.write_text("mine")
    done = export(told, "html", MAIN, "--style", "pages", "-o", target, *options, check=2)
    expected = f'sess: "{target}" is not a directory\nhint: name another with `-o`\n'
    assert done.stderr == expected
    assert target.read_text() == "mine"


def test_several_sessions_in_one_document_are_an_earlier_export_too(told, tmp_path):
    for _ in range(2):
        export(told, "json", "--since", "2000-01-01", "-o", tmp_path / "all.json")


@pytest.mark.parametrize("kind", ["html", "json", "sqlite", "atif", "otel"])
def test_an_earlier_export_is_replaced_without_asking(told, tmp_path, kind):
    target = tmp_path / "out"
    export(told, kind, MAIN, "-o", target)
    export(told, kind, MAIN, "-o", target)


@pytest.mark.parametrize("name", ["index.db", "config.toml", "sessiond.lock"])
def test_nothing_replaces_our_own_state_even_by_force(told, name):
    state = told.state / name
    before = state.read_bytes() if state.exists() else None
    done = export(told, "json", MAIN, "-o", state, "--force", check=2)
    assert "belongs to sessiond itself" in done.stderr
    assert (state.read_bytes() if state.exists() else None) == before


def test_a_link_to_our_own_state_is_no_way_around(told, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(told.state / "index.db")
    done = export(told, "json", MAIN, "-o", link, "--force", check=2)
    assert "belongs to sessiond itself" in done.stderr
    assert link.is_symlink()


def test_secrets_are_uploaded_only_if_somebody_says_so(told, tmp_path):
    done = export(told, "md", MAIN, "-o", tmp_path / "a.md", "--gist", "--no-redact", check=2)
    assert "uploads secrets" in done.stderr
    assert "--yes" in done.stderr
    assert not (tmp_path / "a.md").exists()
    done = export(told, "md", MAIN, "-o", tmp_path / "a.md", "--gist", check=2)
    assert "nobody has looked at" in done.stderr
    assert not (tmp_path / "a.md").exists()


@pytest.mark.parametrize("kind", ["json", "md"])
def test_an_export_printed_to_a_terminal_cannot_control_it(told, monkeypatch, kind):
    """Neither C1 control characters nor direction marks reach it."""
    from sess_cli.commands.export import shared

    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as screen:
        monkeypatch.setattr("sys.stdout", screen)
        out = shared.standard_output(json=kind == "json")
        out.write('{"a":"\x9b31m \u202e é"}\n'.encode()[:6])
        out.write('{"a":"\x9b31m \u202e é"}\n'.encode()[6:])
        screen.flush()
    shown = os.read(master, 1000).decode()
    os.close(master)
    assert "\x9b" not in shown
    assert "\u202e" not in shown
    assert "é" in shown
    if kind == "json":
        assert "\\u009b" in shown


def test_a_directory_of_pages_makes_its_parents(told, tmp_path):
    export(told, "html", MAIN, "--style", "pages", "-o", tmp_path / "a/b/c", check=0)
    assert (tmp_path / "a/b/c/index.html").exists()
