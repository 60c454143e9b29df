"""The security policy of every kind of page we write, exactly."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256

import pytest

PASSPHRASE = "kettle orbit maple lantern"
KINDS = {
    "one page": ("export", "html", "last", "-o"),
    "timeline": ("export", "html", "last", "--style", "timeline", "-o"),
    "numbered pages": ("export", "html", "last", "--style", "pages", "-o"),
    "site": ("export", "site", "-o"),
    "statistics": ("stats", "--html"),
}
KINDS |= {
    f"{kind}, encrypted": (*KINDS[kind][:-1], "--encrypt", "-o")
    for kind in ("one page", "timeline", "numbered pages")
}


@pytest.fixture
def written(world, tmp_path):
    """What a command writes: text by file name."""
    t = world.transcript()
    t.append(*(t.prompt(f"question {number}") for number in range(12)), t.answer("done"))
    world.ingest()

    def run(kind):
        if "encrypted" in kind:
            pytest.importorskip("cryptography")
        out = tmp_path / "out"
        world.env = {**world.env, "SESS_PASSPHRASE": PASSPHRASE}
        world.run("sess", *KINDS[kind], out, "--no-sync")
        files = [out] if out.is_file() else sorted(out.rglob("*.html"))
        return {path.name: path.read_text() for path in files}

    return run


def exact(html, *, images=True):
    """What may run is what is inside, or for pages with links, what lies beside them."""

    def hashes(tag):
        inside = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        digests = (b64encode(sha256(text.encode()).digest()).decode() for text in inside)
        return "".join(f" 'sha256-{digest}'" for digest in digests)

    linked = '<link rel="stylesheet"' in html
    scripts, styles = hashes("script"), hashes("style")
    assert scripts.count("sha256") == (1 if linked else 2)
    assert styles.count("sha256") == (0 if linked else 1)
    beside = " 'self'" if linked else ""
    return (
        f"default-src 'none'; script-src{scripts}{beside}; style-src{styles}{beside};"
        f"{' img-src data:;' if images else ''} base-uri 'none'; form-action 'none'"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_runs_its_own_scripts_and_reaches_nothing(written, kind):
    files = written(kind)
    assert len(files) >= (3 if kind.startswith(("numbered", "site")) else 1)
    for name, html in files.items():
        (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', html)
        assert policy == exact(html, images=kind != "statistics"), name
        assert html.index("Content-Security-Policy") < html.index("<script"), name
        assert 'name="referrer" content="no-referrer"' in html, name
