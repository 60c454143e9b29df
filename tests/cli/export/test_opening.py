"""`sess search --open`: the best hit in its session's page."""

from __future__ import annotations

import re

from tests.must import must


def test_the_browser_opens_the_page_at_the_hit(world, tmp_path):
    t = world.transcript()
    t.append(t.prompt("first"), t.answer("the needle is here"), t.prompt("last"))
    world.ingest()
    browser = tmp_path / "browser"
    browser.write_text('#!/bin/sh\nprintf "%s" "$1" > "$HOME/asked"\n')
    browser.chmod(0o755)
    world.env["BROWSER"] = f"{browser} %s"
    done = world.run("sess", "search", "needle", "--open", check=0)
    address = (world.root / "asked").read_text()
    assert done.stderr.strip() == address
    path, key = must(re.fullmatch(r"file://(.+)#([0-9a-f]{12})", address)).groups()
    with open(path, encoding="utf-8") as file:
        card = re.search(rf'id="{key}".*?</article>', file.read(), re.DOTALL)
    assert "the needle is here" in must(card)[0]
    assert world.run("sess", "search", "nowhere", "--open").returncode == 1
    assert world.run("sess", "search", "needle", "--open", "--ids").returncode == 2


def test_without_a_browser_the_export_is_there_and_one_line_says_what_to_do(world, tmp_path):
    """For pages, sites and search: exit code 69, the file named in the hint."""
    t = world.transcript()
    t.append(t.prompt("needle"))
    world.ingest()
    world.env |= {"BROWSER": "no-such-browser", "PATH": str(tmp_path)}
    page, site = tmp_path / "page.html", tmp_path / "site"
    for what, command in (
        (f'open "{page}" yourself', ("export", "html", "last", "-o", page)),
        (f'open "{site}/index.html" yourself', ("export", "site", "-q", "-o", site)),
        ("open the address above", ("search", "needle")),
    ):
        done = world.run("sess", *command, "--open", "--no-sync", check=69)
        assert done.stderr.splitlines()[-2:] == ["sess: cannot open a browser", f"hint: {what}"]
    assert page.exists()
    assert (site / "index.html").exists()
