"""The site: every session once, redrawn only when it changed."""

from __future__ import annotations

import json
import os
import re
import stat

import pytest

A, B, C = (f"{letter * 8}-1111-4111-8111-111111111111" for letter in "abc")


@pytest.fixture
def three(world):
    for session, place in ((A, "/code/one/app"), (B, "/code/two/app"), (C, "/code/one/app")):
        t = world.transcript(session, folder=place.replace("/", "-"))
        t.append(
            t.prompt(f"begin {session[0]}", cwd=place),
            t.call("c", command="make"),
            t.result("c", f"output of {session[0]}", is_error=session == B),
            t.answer(f"done {session[0]}"),
        )
    world.ingest()
    return world


@pytest.fixture
def site(three, tmp_path):
    return tmp_path / "site"


def build(world, site, *options, code=0):
    return world.run("sess", "export", "site", "-o", site, "--no-sync", *options, check=code).stderr


def stamps(site):
    return {
        str(path.relative_to(site)): (path.stat().st_mtime_ns, path.stat().st_ino)
        for path in site.rglob("*")
        if path.is_file()
    }


def pages(site):
    return sorted(path.name for path in (site / "sessions").iterdir())


def test_every_session_has_a_page_and_every_link_leads_somewhere(three, site):
    assert "3 drawn, 0 unchanged" in build(three, site)
    assert pages(site) == [f"claude-{session}.html" for session in (A, B, C)]
    for page in site.rglob("*.html"):
        for link in re.findall(r'(?:href|src)="([^"#]+)', page.read_text()):
            assert os.path.exists(page.parent / link), (page, link)


def test_projects_of_one_name_are_kept_apart(three, site):
    build(three, site)
    index = (site / "index.html").read_text()
    assert "one/app" in index
    assert "two/app" in index
    assert len([*(site / "projects").iterdir()]) == 2


def test_nothing_changed_writes_nothing(three, site):
    build(three, site)
    before = stamps(site)
    assert "0 drawn, 3 unchanged" in build(three, site)
    assert stamps(site) == before


def test_one_session_that_grew_is_drawn_alone(three, site):
    build(three, site)
    before = stamps(site)
    t = three.transcript(B, folder="-code-two-app")
    t.count = 4
    t.append(t.prompt("and one more"), t.answer("here it is"))
    three.ingest()
    assert "1 drawn, 2 unchanged" in build(three, site)
    after = stamps(site)
    changed = {name for name in after if after[name] != before.get(name)}
    own = {name for name in changed if name.startswith(("sessions", "projects"))}
    assert f"sessions/claude-{B}.html" in own
    assert not any(A in name or C in name for name in changed)
    assert sum(name.startswith("projects/") for name in own) == 1
    assert changed - own == {"index.html", "search/000.js", ".sessiond-site.json"}
    assert "here it is" in (site / "sessions" / f"claude-{B}.html").read_text()


def test_a_result_that_comes_later_and_another_choice_draw_again(three, site):
    t = three.transcript(A, folder="-code-one-app")
    t.count = 4
    t.append(t.call("late", command="sleep"))
    three.ingest()
    build(three, site)
    t.append(t.result("late", "slept"))
    three.ingest()
    assert "1 drawn, 2 unchanged" in build(three, site)
    assert "3 drawn, 0 unchanged" in build(three, site, "--utc")


def test_pages_of_sessions_that_are_not_chosen_go_and_nothing_else(three, site):
    build(three, site)
    note = site / "sessions" / "mine.html"
    note.write_text("not of the site")
    assert "1 removed" in build(three, site, "--project", "/code/one")
    assert pages(site) == [f"claude-{A}.html", f"claude-{C}.html", "mine.html"]
    assert len([*(site / "projects").iterdir()]) == 1
    assert B not in (site / "search" / "000.js").read_text()


def test_a_manifest_from_elsewhere_removes_nothing_outside(three, site, tmp_path):
    build(three, site)
    outside = tmp_path / "precious.html"
    outside.write_text("keep")
    manifest = site / ".sessiond-site.json"
    data = json.loads(manifest.read_text())
    data["files"] += ["../precious.html", str(outside)]
    manifest.write_text(json.dumps(data))
    build(three, site)
    assert outside.exists()


def test_a_dry_run_lists_the_changes_and_writes_nothing(three, site):
    done = three.run("sess", "export", "site", "-o", site, "--dry-run", "--no-sync", check=0)
    assert "would draw 3, keep 0, remove 0" in done.stdout
    assert "/code/two/app: 1 session" in done.stdout
    assert not site.exists()


def test_a_directory_of_somebody_else_is_left_alone(three, site):
    site.mkdir()
    (site / "thesis.txt").write_text("years of work")
    told = build(three, site, code=2)
    assert "has other files in it" in told
    assert [*site.iterdir()] == [site / "thesis.txt"]


def test_one_session_that_cannot_be_drawn_stops_no_other(three, site):
    """A directory blocks its page: it is reported, and drawn once possible."""
    blocked = site / "sessions" / f"claude-{B}.html"
    blocked.mkdir(parents=True)
    (site / ".sessiond-site.json").write_text("{}")
    told = build(three, site, code=5)
    assert "2 drawn" in told
    assert f"1 session could not be drawn:\n  {B}: " in told
    assert f"claude-{B}.html" not in (site / "index.html").read_text()
    blocked.rmdir()
    assert "1 drawn, 2 unchanged" in build(three, site)


def test_a_site_is_private_and_masked(three, site):
    t = three.transcript(A, folder="-code-one-app")
    t.count = 4
    secret = "ghp_" + "a1B2" * 9
    t.append(t.answer(f"the token is {secret}"))
    three.ingest()
    assert "masked 1 token" in build(three, site)
    for path in site.rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600)
        assert path.is_dir() or secret not in path.read_text()


def test_a_session_whose_file_is_gone_stays(three, site):
    build(three, site)
    page = site / "sessions" / f"claude-{A}.html"
    before = page.read_bytes()
    (three.projects / "-code-one-app" / f"{A}.jsonl").unlink()
    three.ingest()
    build(three, site)
    assert page.read_bytes() == before


def test_a_subagent_whose_parent_was_never_read_has_a_page(three, site):
    agent = three.transcript("agent-lost", folder=f"-code-one-app/{'d' * 8}-gone/subagents")
    agent.append(agent.prompt("dig", isSidechain=True), agent.answer("found", isSidechain=True))
    three.ingest()
    assert "4 drawn" in build(three, site)
    assert "claude-agent-lost.html" in pages(site)


def test_the_directory_has_a_name_without_o_and_quiet_prints_nothing(three, tmp_path):
    """`sess-site`, below the current directory."""
    command = ("sess", "export", "site", "--no-sync")
    done = three.run(*command, "-q", cwd=tmp_path, check=0)
    assert (done.stdout, done.stderr) == ("", "")
    assert pages(tmp_path / "sess-site") == [f"claude-{session}.html" for session in (A, B, C)]
    done = three.run(*command, cwd=tmp_path, check=0)
    assert done.stderr == "sess-site/index.html: 0 drawn, 3 unchanged\n"
