"""`--style pages`: the files, without a browser."""

from __future__ import annotations

import json
import os
import re
import zlib
from base64 import b64decode
from contextlib import closing
from html import unescape

import pytest
from tests.must import must

from sess_cli.export import forge
from sess_cli.export.html import pages
from sess_cli.export.html.pages import navigation
from sess_cli.export.story import Story
from sess_common.errors import SessError
from sess_schema.connection import open_reader
from sess_schema.queries import sessions

MAIN = "11111111-1111-4111-8111-111111111111"


@pytest.fixture
def written(world):
    """Turns records into a folder of pages: content by file name."""

    def drawn(*records, repository=None, **options):
        world.transcript().append(*records)
        world.ingest()
        folder = world.root / "new" / "pages"
        with closing(open_reader(world.state / "index.db")) as db:
            story = Story(db, sessions.resolve(db, MAIN))
            pages.write(story, str(folder), repository=repository, utc=True, **options)
        return {
            path.name: path.read_text("utf-8")
            for path in sorted(folder.glob("[ip]*.html"))
            if path.exists()
        }

    return drawn


def plain(html):
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def main_of(html):
    return must(re.search(r"<main.*?</main>", html, re.DOTALL))[0]


def stats(files):
    return must(re.search(r'<p class="stats">([^<]*)', files["index.html"]))[1]


def indexed(files):
    """The search data of the index page, by page."""
    return {
        name: json.loads(zlib.decompress(b64decode(packed)))
        for name, packed in re.findall(
            r'<script type="text/plain" data-page="([^"]*)">([^<]*)', files["index.html"]
        )
    }


def test_five_prompts_make_a_page(world, written):
    t = world.transcript()
    files = written(*(t.prompt(f"prompt {n}") for n in range(1, 12)))
    assert list(files) == ["index.html", "page-001.html", "page-002.html", "page-003.html"]
    for name, expected in (("page-001.html", "12345"), ("page-003.html", ["11"])):
        found = re.findall(r'<h2 class="number">Prompt (\d+)', files[name])
        assert found == [*expected]
    assert stats(files) == "11 prompts · 11 messages · 0 tool calls · 0 commits · 3 pages"


def said_in_index(index):
    return re.findall(r'<div class="said">(.*?)</div></div>(?=<p class="tools">|</article>)', index)


@pytest.mark.parametrize(
    ("asked", "drawn"),
    [
        ("# Fix\n\n- **one**", '<div class="prose" dir="auto"><h3>Fix</h3>'),
        ("see [it](https://a.test)", '<a href="https://a.test" rel="noopener'),
        ("run `make`\n```sh\nls\n```", '<pre class="code" tabindex="0"><code>ls\n</code></pre>'),
        ('{"a":1,"b":[2]}', '<code>{\n  <span class="hf">"a":</span> <span class="hn">1</span>,\n'),
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
    ],
)
def test_the_index_draws_prompts_as_the_pages_do(world, written, asked, drawn):
    files = written(world.transcript().prompt(asked))
    index, [said] = files["index.html"], said_in_index(files["index.html"].replace("\n", "\0"))
    assert drawn in said.replace("\0", "\n")
    assert drawn in main_of(files["page-001.html"])
    assert re.findall(r"<h\d", index)[:2] == ["<h1", "<h2"]


def test_a_prompt_in_the_index_is_named_in_its_heading_and_no_block_is_in_it(world, written):
    index = written(world.transcript().prompt('# The "plan"\n\ntext'))["index.html"]
    [heading] = re.findall(r"<h2>(.*?)</h2>", index)
    assert '<span class="unseen">: # The "plan" text</span>' in heading, "no label hides the words"
    assert re.findall(r"<(\w+)", heading) == ["a", "b", "time", "span"]


@pytest.mark.parametrize(
    ("asked", "drawn"),
    [
        ("word " * 200, f"<p>{('word ' * 100).strip()}…</p>"),
        ("```\n" + "x\n" * 20 + "```", "<code>" + "x\n" * 7 + "…</code></pre>"),
        ("```\nx\n```\n" + "y\n" * 20, "<code>x\n</code></pre><p>" + "y\n" * 5 + "…</p>"),
        ("short\n\n" + "**bold** " * 90, "<p>short</p><p>…</p>"),
        ("- a\n" * 8, "<li>a</li>" * 8 + "</ul>"),
        (json.dumps([*range(20)]), '<span class="hn">6</span>,\n…</code>'),
    ],
)
def test_the_index_cuts_long_prompts_between_lines_or_words(world, written, asked, drawn):
    index = written(world.transcript().prompt(asked))["index.html"]
    assert drawn in main_of(index)


def test_an_endless_line_in_the_index_is_in_runs_as_on_its_page(world, written):
    t = world.transcript()
    files = written(t.prompt("go"), t.answer(f"`{'x' * 40_000}`"))
    for name in files:
        assert main_of(files[name]).count(f'<span class="run">{"x" * 8000}</span>') == 5


def test_results_and_continuations_begin_no_prompt(world, written):
    t = world.transcript()
    files = written(
        t.prompt("start"),
        t.call("c1", "Read", file_path="/a"),
        t.result("c1", "text"),
        t.prompt("This session is being continued. SUMMED UP", isCompactSummary=True),
        t.call("c2", command="ls"),
        t.result("c2", "a"),
        t.prompt("Stop hook feedback: not yet"),
        t.call("c3", command="pwd"),
        t.result("c3", "/"),
    )
    assert stats(files).startswith("1 prompt · ")
    assert "3 tool calls" in stats(files)
    tools = re.findall(r'<p class="tools">([^<]*)', files["index.html"])
    assert tools == ["2 Bash · 1 Read"], "what followed the continuation belongs to the prompt"
    folded = must(
        re.search(r'<details class="continuation">(.*?)</article>', files["page-001.html"])
    )
    assert folded[1].startswith("<summary>Session continuation summary</summary>")
    assert "SUMMED UP" in folded[1]


def test_what_came_before_the_first_prompt_is_on_its_page(world, written):
    t = world.transcript()
    files = written(t.answer("early words"), *(t.prompt(f"prompt {n}") for n in range(5)))
    assert list(files) == ["index.html", "page-001.html"]
    assert '<h2 class="number">Before the first prompt</h2>' in files["page-001.html"]
    assert "early words" in files["page-001.html"]
    assert stats(files).startswith("5 prompts · 6 messages")


def test_a_session_without_messages_is_an_index(world, written):
    files = written({"type": "file-history-snapshot", "sessionId": MAIN, "snapshot": {}})
    assert list(files) == ["index.html"]
    assert stats(files) == "0 prompts · 0 messages · 0 tool calls · 0 commits · 0 pages"
    assert "This session has no messages." in files["index.html"]


def test_empty_messages_are_left_out(world, written):
    t = world.transcript()
    thinking = t.assistant([{"type": "thinking", "thinking": "", "signature": "x"}])
    files = written(t.prompt("hi"), thinking, t.answer("yes"))
    assert stats(files).startswith("1 prompt · 2 messages")


def test_the_index_lists_prompts_with_tools_long_answers_and_commits(world, written):
    t = world.transcript()
    long = "A long answer. " * 30
    files = written(
        t.prompt("x" * 700),
        t.answer("short"),
        t.answer(long),
        *(t.call(f"w{n}", "WebSearch", query="q") for n in range(3)),
        t.call("c1", "TodoWrite", todos=[]),
        t.call("c2", command="git commit -m 'Fix the <b>'"),
        t.result("c2", "[main abcdef1] Fix the <b>\n 1 file changed"),
        t.prompt("next"),
        repository=forge.parse("me/it"),
    )
    index = files["index.html"]
    prompts = re.findall(r'<b>#(\d)</b><time datetime="([^"]*)".*?<p>([^<]*)', index)
    assert prompts == [
        ("1", "2026-02-01T10:00:01.000Z", "x" * 500 + "…"),
        ("2", "2026-02-01T10:00:10.000Z", "next"),
    ]
    assert re.findall(r"<h\d", index) == ["<h1", "<h2", "<h2"]
    assert re.findall(r'<p class="tools">([^<]*)', index) == ["3 search · 1 todo · 1 Bash"]
    assert re.findall(r'<div class="answer">.*?</a>', index)[0].count("A long answer.") == 30
    assert ">short<" not in index
    commit = must(re.search(r'<article class="commit">.*?</article>', index))[0]
    assert 'href="https://github.com/me/it/commit/abcdef1"' in commit
    assert plain(commit) == "abcdef1 Fix the <b> main 2026-02-01 10:00"
    assert index.index("commit/abcdef1") < index.index("<b>#2</b>")
    assert "1 commit ·" in stats(files)


def test_a_push_links_to_what_was_pushed(world, written):
    t = world.transcript()
    files = written(
        t.prompt("push it"),
        t.call("c1", command="git push"),
        t.result("c1", "To github.com:me/it.git\n   1111111..2222222  main -> main"),
        repository=forge.parse("me/it"),
    )
    link = re.search(r'<p class="pushed"><a href="([^"]*)"[^>]*>([^<]*)', files["page-001.html"])
    assert must(link).groups() == ("https://github.com/me/it/commit/2222222", "View on GitHub")


def test_anchors_are_moments_and_unique(world, written):
    t = world.transcript()
    same = {"timestamp": "2026-02-01T10:00:00.000Z"}
    files = written(
        t.prompt("a", **same), t.answer("b", **same), t.answer("c", timestamp=None), t.prompt("d")
    )
    page = files["page-001.html"]
    anchors = re.findall(r'<div class="message" id="([^"]*)"', page)
    assert anchors[:2] == ["msg-1769940000000", "msg-1769940000000-2"]
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    for target in re.findall(r'href="page-001.html#([^"]*)"', files["index.html"]):
        assert target in anchors


def test_notices_are_folded_but_failures_are_shown(world, written):
    t = world.transcript()
    files = written(
        t.prompt("hi"),
        t.prompt("hidden instructions", isMeta=True),
        t.prompt("[Request interrupted by user]"),
    )
    page = files["page-001.html"]
    assert "1 prompt ·" in stats(files)
    folded = must(re.search(r'<details class="asides">.*?</details>', page, re.DOTALL))[0]
    assert "hidden instructions" in folded
    assert "Interrupted" in page.replace(folded, "")
    assert "Interrupted" not in folded


@pytest.mark.parametrize(
    ("current", "total", "shown"),
    [
        (0, 0, "[Index]"),
        (1, 1, "Index"),
        (0, 1, "[Index] (← Prev) 1 Next →"),
        (0, 3, "[Index] (← Prev) 1 2 3 Next →"),
        (1, 3, "Index (← Prev) [1] 2 3 Next →"),
        (2, 3, "Index ← Prev 1 [2] 3 Next →"),
        (3, 3, "Index ← Prev 1 2 [3] (Next →)"),
        (20, 40, "Index ← Prev 1 … 17 18 19 [20] 21 22 23 … 40 Next →"),
    ],
)
def test_the_navigation_knows_where_it_is(current, total, shown):
    html = navigation(current, total)
    html = re.sub(r'<span class="here"[^>]*>([^<]*)</span>', r"[\1]", html)
    html = re.sub(r'<span class="off"[^>]*>([^<]*)</span>', r"(\1)", html)
    said = " ".join(re.findall(r"\[[^\]]*\]|\([^)]*\)|(?<=>)[^<>]+(?=<)", html))
    assert said == shown


def test_navigation_is_above_and_below_on_every_page(world, written):
    t = world.transcript()
    files = written(*(t.prompt(f"prompt {n}") for n in range(6)))
    for html in files.values():
        assert html.count('<nav class="pages"') == 2
        assert html.index("<nav") < html.index("<main") < html.rindex("<nav")
    assert 'href="page-002.html" rel=next' in files["page-001.html"]


def test_the_search_knows_every_message_in_full(world, written):
    t = world.transcript()
    files = written(
        *(t.prompt(f"prompt {n}") for n in range(6)),
        t.call("c1", command="make"),
        t.result("c1", "x" * 50_000 + " needle"),
        t.answer("see `foo.bar(1)` & **that**"),
    )
    texts = indexed(files)
    assert list(texts) == ["page-001.html", "page-002.html"]
    assert [text for _, _, text in texts["page-001.html"]] == [f"User prompt {n}" for n in range(5)]
    ((_, name, text),) = [one for one in texts["page-002.html"] if "needle" in one[2]]
    assert name == "Bash"
    assert "make" in text
    assert any("see foo.bar(1) & that" in one[2] for one in texts["page-002.html"])


def test_pages_of_an_earlier_run_go_and_those_of_others_stay(world, written):
    t = world.transcript()
    folder = world.root / "new" / "pages"
    written(*(t.prompt(f"prompt {n}") for n in range(12)))
    (folder / "page-009.html").write_text("<p>mine")
    (folder / "notes.html").write_text("mine too")
    os.symlink("page-003.html", folder / "page-004.html")
    written(per_page=6)
    assert sorted(path.name for path in folder.iterdir()) == [
        "index.html", "notes.html", "page-001.html", "page-002.html", "page-004.html",
        "page-009.html",
    ]  # fmt: skip
    assert (folder / "page-009.html").read_text() == "<p>mine"


def test_a_page_that_somebody_else_made_is_not_overwritten(world, written):
    folder = world.root / "new" / "pages"
    folder.mkdir(parents=True)
    (folder / "index.html").write_text("my home page")
    with pytest.raises(SessError, match="was not written by sess"):
        written(world.transcript().prompt("hi"))
    assert [path.name for path in folder.iterdir()] == ["index.html"]
    assert (folder / "index.html").read_text() == "my home page"


def test_the_folder_is_made_and_only_its_owner_reads_it(world, written):
    written(world.transcript().prompt("hi"))
    folder = world.root / "new" / "pages"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_a_file_in_place_of_the_folder_is_reported(world, written):
    (world.root / "new").write_text("")
    with pytest.raises(SessError, match="is not a directory"):
        written(world.transcript().prompt("hi"))


def test_a_gist_has_the_index_and_every_page(world, tmp_path):
    t = world.transcript()
    t.append(*(line for n in range(7) for line in (t.prompt(f"do {n}"), t.answer("ok"))))
    world.ingest()
    tools = tmp_path / "bin"
    tools.mkdir()
    gh = tools / "gh"
    gh.write_text(
        '#!/bin/sh\nprintf "%s\\n" "$@" > "$HOME/asked"\necho https://gist.test/me/abc1\n'
    )
    gh.chmod(0o755)
    world.env["PATH"] = f"{tools}:/usr/bin:/bin"
    target = tmp_path / "out"
    asked = (
        "export",
        "html",
        t.session,
        "--style",
        "pages",
        "-o",
        target,
        "--gist",
        "--yes",
        "--no-sync",
    )
    done = world.run("sess", *asked, check=0)
    assert "7 prompts on 2 pages" in done.stderr
    assert "preview: https://gistpreview.github.io/?abc1\n" in done.stderr
    names = ["index.html", "page-001.html", "page-002.html"]
    assert (world.root / "asked").read_text().splitlines()[3:] == [str(target / n) for n in names]
