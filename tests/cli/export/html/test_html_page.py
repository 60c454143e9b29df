"""`sess export html` without a browser: the file, its policy, what is in it and what is not."""

from __future__ import annotations

import json
import os
import random
import re
import stat
from base64 import b64decode
from contextlib import closing
from hashlib import pbkdf2_hmac
from io import BytesIO

import pytest
import zstandard
from tests.must import must

from sess_cli.export.html import chunks, encrypted, page, shell
from sess_cli.export.story import Story
from sess_schema.connection import open_reader
from sess_schema.queries import sessions

MAIN = "11111111-1111-4111-8111-111111111111"
PASSPHRASE = "kettle orbit maple lantern"
BLOCK = re.compile(r'<script type="application/octet-stream" data-what="(\w+)">([^<]*)</script>')


@pytest.fixture
def talk(world):
    t = world.transcript(MAIN)
    t.append(
        t.prompt("please fix the flaky test"),
        t.call("c1", command="make test"),
        t.result("c1", "FAIL", is_error=True),
        t.answer("It is fixed."),
    )
    world.ingest()
    return t


def longer(t, rounds):
    for number in range(rounds):
        t.append(
            t.prompt(f"prompt {number}"),
            t.call(f"x{number}", command=f"step {number}"),
            t.result(f"x{number}", "ok"),
            t.answer(f"answer {number}"),
        )


def drawn(world, **look):
    out = BytesIO()
    with closing(open_reader(world.state / "index.db")) as db:
        page.write(Story(db, sessions.resolve(db, MAIN)), out, page.Look(utc=True, **look))
    return out.getvalue().decode()


def unpacked(html, name):
    """Packs after the first refer to what it has."""
    blocks = [b64decode(data)[4:] for what, data in BLOCK.findall(html) if what == name]
    first = zstandard.decompress(blocks[0]) if blocks else b""
    kind = zstandard.DICT_TYPE_RAWCONTENT
    reader = zstandard.ZstdDecompressor(zstandard.ZstdCompressionDict(first, dict_type=kind))
    rest = [reader.decompress(block) for block in blocks[1:]]
    return [raw.decode() for raw in (first, *rest)] if blocks else []


def export(world, *arguments, check=0, **options):
    return world.run("sess", "export", "html", "--no-sync", *arguments, check=check, **options)


def test_the_file_is_named_after_the_session_and_private(world, talk, tmp_path):
    done = export(world, "1111", cwd=tmp_path)
    path = tmp_path / f"{MAIN}.html"
    assert done.stdout == ""
    assert done.stderr.startswith(f"wrote {MAIN}.html (")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "please fix the flaky test" in path.read_text()


def test_a_dash_is_standard_output(world, talk):
    done = export(world, "last", "-o", "-")
    assert done.stdout.startswith("<!doctype html>")
    assert done.stdout.endswith("</html>\n")
    assert done.stderr == ""


def test_the_same_session_gives_the_same_bytes(world, talk):
    assert drawn(world) == drawn(world)


@pytest.mark.parametrize("style", ["timeline", "pages"])
def test_other_styles_are_written_by_name(world, talk, tmp_path, style):
    export(world, "last", "--style", style, "-o", tmp_path / "out")
    path = tmp_path / "out" / ("index.html" if style == "pages" else "")
    assert "flaky" in path.read_text()


def test_the_level_and_the_repository_can_be_chosen(world, talk, tmp_path):
    talk.append(
        talk.call("c2", command="git commit -m x"),
        talk.result("c2", "[main abc1234] Fix the test\n 1 file changed"),
    )
    world.ingest()
    path = tmp_path / "a.html"
    export(world, "last", "--level", "everything", "--repo", "me/it", "-o", path)
    html = path.read_text()
    assert '<html lang="en" data-level="everything">' in html
    assert 'href="https://github.com/me/it/commit/abc1234"' in html
    assert "invalid repository" in export(world, "last", "--repo", "x", check=2).stderr
    assert export(world, "last", "--level", "all", check=2).stdout == ""


def test_a_page_that_cannot_be_written_is_an_error_of_one_line(world, talk):
    done = export(world, "last", "-o", "/nowhere/x.html", check=2)
    assert done.stderr == ('sess: no such directory: "/nowhere"\nhint: `mkdir -p "/nowhere"`\n')
    done = export(world, "last", "--style", "pages", "-o", "-", check=2)
    assert "`-o -` cannot be combined" in done.stderr
    assert export(world, "nothing-like-it", check=1).stderr.startswith("sess: ")


def test_no_element_has_a_style_or_a_handler(world, talk):
    html = re.sub(r"<(script|style)>.*?</\1>", "", drawn(world), flags=re.DOTALL)
    assert re.search(r"<[^>]* (style|on\w+)=", html) is None


def test_the_header_has_the_facts_of_the_session(world, talk):
    html = drawn(world)
    facts = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", html.split("</header>")[0]))
    assert facts == {
        "Agent": "claude 2.1.0",
        "Project": "/code/demo",
        "Branch": "main",
        "When": "2026-02-01 10:00 UTC",
        "Duration": "3.0s",
        "Prompts": "1",
        "Tool calls": "1",
        "Failed": "1",
        "Models": "claude-opus-4-5",
        "Tokens": "26",
        "Cost": "$0.0005",
        "Session": MAIN,
    }


@pytest.mark.parametrize("style", ["reader", "timeline", "pages"])
def test_a_title_is_readable_though_it_is_the_beginning_of_a_prompt(world, tmp_path, style):
    t = world.transcript(MAIN)
    t.append(t.prompt("Make it **really** fast.\n\n## Context\n\n```python\nslow()\n```"))
    world.ingest()
    target = tmp_path / "out"
    export(world, MAIN[:8], "-o", str(target), "--style", style)
    html = (target / "index.html" if style == "pages" else target).read_text()
    assert re.search("<title>(11111111 )?Make it really fast. …</title>", html)
    assert re.search(r"<h1[^>]*>Make it (<b>)?really(</b>)? fast. …</h1>", html)


def test_a_short_session_is_plain_html(world, talk):
    html = drawn(world)
    assert unpacked(html, "pack") == []
    assert html.count("<article") == 3


def test_a_long_session_is_packed_after_its_first_screens(world, talk):
    longer(talk, 100)
    world.ingest()
    html = drawn(world)
    plain = html.count("<article")
    packs = unpacked(html, "pack")
    cards = [card for pack in packs for card in pack.split("\0")]
    assert plain == 40
    assert plain + len(cards) == 303
    assert all(card.startswith("<article") for card in cards)
    assert [len(pack.split("\0")) for pack in packs] == json.loads(unpacked(html, "facts")[0])[
        "packs"
    ]


def test_what_the_first_pack_has_costs_the_others_nothing(world, talk):
    chance = random.Random(3)
    output = "\n".join(f"{chance.getrandbits(64):x}" for _ in range(5_000))
    for number in range(45):
        call = f"again{number}"
        talk.append(talk.call(call, command="cat it"), talk.result(call, output))
    world.ingest()
    html = drawn(world)
    sizes = [len(data) for what, data in BLOCK.findall(html) if what == "pack"]
    packs = unpacked(html, "pack")
    assert len(sizes) > 2
    assert sizes[0] > len(output) / 2
    assert max(sizes[1:]) < 20_000
    assert sum(pack.count(output) for pack in packs) + html.count(output) == 45


def test_static_puts_every_card_into_the_page(world, talk):
    longer(talk, 100)
    world.ingest()
    html = drawn(world, static=True)
    assert html.count("<article") == 303
    assert unpacked(html, "pack") == []


def test_links_stay_when_the_session_grows(world, talk):
    before = re.findall(r'<article[^>]* id="(\w+)"', drawn(world))
    longer(talk, 3)
    world.ingest()
    assert re.findall(r'<article[^>]* id="(\w+)"', drawn(world))[:3] == before


def test_the_outline_sums_up_what_followed_each_prompt(world, talk):
    talk.append(
        talk.prompt("and commit"),
        talk.call("c2", command="git commit -m x"),
        talk.result("c2", "[main abc1234] Fix the test\n 1 file changed"),
    )
    world.ingest()
    outline = must(re.search(r"<nav.*?</nav>", drawn(world), re.DOTALL))[0]
    first, second = re.findall(r"<small>(.*?)</small>", outline)
    assert first == "10:00 · 3.0s · 1 Bash · 26 tokens · $0.0005 <em>1 failed</em>"
    assert second == "10:00 · 2.0s · 1 Bash · 13 tokens · $0.0003 <i>⎇ abc1234</i>"


def test_an_empty_session_is_a_page_too(world):
    t = world.transcript(MAIN)
    t.append(b"\n", {"type": "summary", "summary": "Nothing yet", "leafUuid": "x"})
    world.ingest()
    assert "<h1" in drawn(world)


def test_secrets_are_masked_unless_asked_otherwise(world, talk, tmp_path):
    secret = "ghp_" + "a1B2" * 9
    talk.append(talk.prompt(f"use {secret} please"))
    world.ingest()
    done = export(world, "last", "-o", tmp_path / "a.html")
    assert "masked 1 " in done.stderr
    assert secret not in (tmp_path / "a.html").read_text()
    export(world, "last", "--no-redact", "-o", tmp_path / "b.html")
    assert secret in (tmp_path / "b.html").read_text()


# -- encryption


def test_an_encrypted_page_follows_the_standards(world, talk, tmp_path):
    """Decrypted with another implementation than the page's own."""
    aead = pytest.importorskip("cryptography.hazmat.primitives.ciphers.aead")
    environment = {**world.env, "SESS_PASSPHRASE": PASSPHRASE}
    world.env = environment
    export(world, "last", "--encrypt", "-o", tmp_path / "a.html")
    html = (tmp_path / "a.html").read_text()
    assert "flaky" not in html
    assert MAIN not in html
    ((_, data),) = [block for block in BLOCK.findall(html) if block[0] == "sealed"]
    rounds, salt, nonce, sealed = data.split(" ")
    assert int(rounds) == 600_000
    key = pbkdf2_hmac("sha256", PASSPHRASE.encode(), b64decode(salt), int(rounds))
    plain = aead.AESGCM(key).decrypt(b64decode(nonce), b64decode(sealed), None)
    title, _, body = zstandard.decompress(plain[4:]).decode().partition("\0")
    assert title == "please fix the flaky test"
    assert "It is fixed." in body


def test_two_encrypted_pages_share_neither_salt_nor_nonce():
    pytest.importorskip("cryptography")
    one, other = (encrypted.Lock("secret").seal(b"x").split(" ") for _ in range(2))
    assert one[0] == other[0]
    assert not set(one[1:]) & set(other[1:])


def test_encryption_needs_a_passphrase_and_somebody_to_ask(world, talk, tmp_path):
    pytest.importorskip("cryptography")
    done = export(world, "last", "--encrypt", "-o", tmp_path / "a.html", check=2, input="")
    assert done.stderr == ("sess: no terminal to ask for a passphrase\nhint: set SESS_PASSPHRASE\n")
    world.env = {**world.env, "SESS_PASSPHRASE": ""}
    done = export(world, "last", "--encrypt", "-o", tmp_path / "a.html", check=2)
    assert done.stderr.startswith("sess: the passphrase is empty\n")
    assert not os.path.exists(tmp_path / "a.html")


@pytest.mark.parametrize("style", ["reader", "timeline", "pages"])
def test_no_style_shows_anything_without_the_passphrase(world, talk, tmp_path, style):
    """Neither content nor title nor session ID is in any file; all files share one salt."""
    pytest.importorskip("cryptography")
    world.env = {**world.env, "SESS_PASSPHRASE": PASSPHRASE}
    export(world, "last", "--encrypt", "--style", style, "-o", tmp_path / "out")
    out = tmp_path / "out"
    written = [path.read_text() for path in (out.iterdir() if out.is_dir() else [out])]
    assert len(written) == (2 if style == "pages" else 1)
    salts, nonces = set(), set()
    for html in written:
        assert not any(word in html for word in ("flaky", "make test", "FAIL", MAIN[:8]))
        assert "<title>Encrypted session</title>" in html
        ((_, data),) = [block for block in BLOCK.findall(html) if block[0] == "sealed"]
        _, salt, nonce, _ = data.split(" ")
        salts.add(salt)
        nonces.add(nonce)
    assert len(salts) == 1
    assert len(nonces) == len(written)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("", "is empty"),
        ("   ", "is empty"),
        ("Xk7#pQ2m", "is too short: 8 characters"),
        ("aaaaaaaaaaaaaaaaaaaaaaaa", "repeats itself"),
        ("Xk7#pQXk7#pQ", "repeats itself"),
        ("Password123!", "is a common one"),
        ("P@ssw0rd2024!!", "is a common one"),
        ("correct horse battery staple", "is a common one"),
        ("correct horse", "has too few kinds of characters for its length of 13"),
        ("7193046285517364", "has too few kinds of characters for its length of 16"),
    ],
)
def test_weak_passphrases_are_refused(given, why):
    assert encrypted.weakness(given) == why


@pytest.mark.parametrize("given", [PASSPHRASE, "Xk7#pQ2m!vLX", "молоко берёза фонарь стол"])
def test_good_passphrases_are_taken(given):
    assert encrypted.weakness(given) is None


def test_a_weak_passphrase_writes_nothing_and_says_what_is_enough(world, talk, tmp_path):
    pytest.importorskip("cryptography")
    world.env = {**world.env, "SESS_PASSPHRASE": "hunter2"}
    done = export(world, "last", "--encrypt", "-o", tmp_path / "a.html", check=2)
    assert done.stderr == (
        f"sess: the passphrase is too short: 7 characters\nhint: {encrypted.ENOUGH}\n"
    )
    assert not os.path.exists(tmp_path / "a.html")


def test_the_passphrase_is_asked_for_twice_and_never_shown(world, talk, sess, tmp_path):
    pytest.importorskip("cryptography")
    path = str(tmp_path / "a.html")
    shown, code = sess.on_terminal(
        "export",
        "html",
        "last",
        "--encrypt",
        "--no-sync",
        "-o",
        path,
        keys=f"{PASSPHRASE}\n".encode(),
    )
    assert code == 0
    assert "Passphrase: \nAgain: \n" in shown  # nothing echoed in between
    assert 'data-what="sealed"' in (tmp_path / "a.html").read_text()


# -- pieces of the page


def test_packing_loses_nothing():
    for text in ("", "x", "ä€😀" * 1000, "a" * 100_000, "\ud800"):
        data = chunks.squeezed(text)
        raw = zstandard.decompress(data[4:]) if data[4:] else b""
        assert raw == text.encode("utf-8", "replace")
        assert int.from_bytes(data[:4], "little") == len(raw)


@pytest.mark.parametrize(
    ("project", "expected"),
    [
        ("/code/demo", f"cd /code/demo && claude --resume {MAIN}"),
        ("/code/a demo", f"cd '/code/a demo' && claude --resume {MAIN}"),
        ("/code/$(x)", f"cd '/code/$(x)' && claude --resume {MAIN}"),
        ("/code/a\nb", f"claude --resume {MAIN}"),
    ],
)
def test_the_resume_command_is_safe_to_paste(world, project, expected):
    t = world.transcript(MAIN)
    t.append(t.prompt("hello", cwd=project))
    world.ingest()
    with closing(open_reader(world.state / "index.db")) as db:
        assert page.resume_command(Story(db, sessions.resolve(db, MAIN))) == expected


def test_a_session_whose_file_is_gone_is_drawn_the_same(world, talk):
    before = drawn(world)
    talk.path.unlink()
    world.ingest()
    assert drawn(world) == before
    assert "claude --resume" in before


# -- colours


BACKGROUNDS = ("bg", "panel", "raised", "code-bg", "user-bg")


def themes():
    """Names and values of the colours: light, dark by preference, dark by choice."""
    css = shell.asset("palette.css")
    light, by_preference, by_choice = (
        dict(re.findall(r"--([\w-]+): (#\w{6});", block))
        for block in re.findall(r"\{[^{}]*--bg: [^}]*\}", css)[:3]
    )
    return {"light": light, "dark": by_preference, "chosen dark": by_choice}


def luminance(colour):
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    r, g, b = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


SYNTAX = ("s-key", "s-str", "s-num", "s-com", "s-fn", "s-type")
TEXTS = ("text", "dim", "accent", "user", "ok", "error", "warn", "think")
ANSI = tuple(f"a{number}" for number in range(16))


@pytest.mark.parametrize("theme", ["light", "dark", "chosen dark"])
def test_every_pair_of_text_and_background_is_readable(theme):
    colours = themes()[theme]
    pairs = [
        *((text, back) for text in TEXTS for back in BACKGROUNDS),
        *((text, "code-bg") for text in (*SYNTAX, *ANSI)),
        *((text, back) for text in SYNTAX for back in ("panel", "code-bg")),
        *(("text", back) for back in ("add", "del", "add-strong", "del-strong")),
        ("on-found", "found"), ("panel", "accent"), ("bg", "text"),
    ]  # fmt: skip
    poor = {
        pair: round(ratio, 2)
        for pair in pairs
        if (ratio := contrast(colours[pair[0]], colours[pair[1]])) < 4.5
    }
    assert poor == {}


def test_the_dark_theme_is_the_same_however_it_was_chosen():
    assert themes()["dark"] == themes()["chosen dark"]
