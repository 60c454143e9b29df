"""A damaged, interrupted or foreign site is repaired by the next run."""

from __future__ import annotations

import json

import pytest

A, B = (f"{letter * 8}-1111-4111-8111-111111111111" for letter in "ab")
MANIFEST = ".sessiond-site.json"


@pytest.fixture
def site(world, tmp_path):
    for session in (A, B):
        t = world.transcript(session)
        t.append(t.prompt(f"begin {session[0]}"), t.answer(f"done {session[0]}"))
    world.ingest()
    build(world, tmp_path / "site")
    return tmp_path / "site"


def build(world, site):
    return world.run("sess", "export", "site", "-o", site, "--no-sync", check=0).stderr


def contents(site):
    return {
        str(path.relative_to(site)): path.read_bytes() for path in site.rglob("*") if path.is_file()
    }


@pytest.mark.parametrize("left", [None, b"", b'sessTexts("sessions/'], ids=["gone", "empty", "cut"])
def test_lost_search_texts_are_written_again(world, site, left):
    before = contents(site)
    bundle = site / "search" / "000.js"
    bundle.unlink() if left is None else bundle.write_bytes(left)
    assert "2 drawn" in build(world, site)
    assert contents(site) == before


def test_a_page_that_was_cut_is_drawn_again(world, site):
    before = contents(site)
    page = site / "sessions" / f"claude-{A}.html"
    page.write_bytes(page.read_bytes()[:1000])
    assert "1 drawn, 1 unchanged" in build(world, site)
    assert contents(site) == before


@pytest.mark.parametrize(
    "manifest",
    ["", "[]", "null", "{", '{"format": 1}', '{"format":1,"options":{},"files":[1],"sessions":[]}'],
)
def test_a_damaged_manifest_draws_everything(world, site, manifest):
    before = contents(site)
    (site / MANIFEST).write_text(manifest)
    assert "2 drawn, 0 unchanged" in build(world, site)
    assert contents(site) == before


@pytest.mark.parametrize(
    ("name", "value"), [("file", "../evil.html"), ("bundle", "x"), ("title", 5), ("ended", "now")]
)
def test_a_manifest_from_elsewhere_writes_nothing_outside(world, site, tmp_path, name, value):
    before = contents(site)
    data = json.loads(before[MANIFEST])
    data["sessions"][0] |= {name: value, "print": "changed"}
    (site / MANIFEST).write_text(json.dumps(data))
    build(world, site)
    assert contents(site) == before
    assert not (tmp_path / "evil.html").exists()


def test_ids_that_differ_only_in_case_have_pages_that_differ_more(world, tmp_path):
    for session in ("abcdef", "ABCDEF"):
        t = world.transcript(session)
        t.append(t.prompt(session), t.answer("ok"))
    world.ingest()
    build(world, tmp_path / "site")
    names = {path.name.casefold() for path in (tmp_path / "site" / "sessions").iterdir()}
    assert len(names) == 2


@pytest.mark.parametrize("kind", ["site", "sqlite"])
def test_a_site_or_database_cannot_go_to_standard_output(world, site, tmp_path, kind):
    done = world.run("sess", "export", kind, "-o", "-", "--no-sync", check=2, cwd=tmp_path)
    named = {"site": "a site", "sqlite": "a database"}[kind]
    assert f"cannot write {named} to stdout" in done.stderr
    assert not (tmp_path / "-").exists()
