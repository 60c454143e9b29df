"""Markdown and code: what is drawn, and what stays text."""

from __future__ import annotations

import re
import sys
from contextlib import closing

import pytest
from tests.cli.export.html.card_items import Looked

from sess_cli.export.html import highlight, markup, prose
from sess_cli.export.html.cards import Drawer
from sess_cli.export.story import Story
from sess_schema.connection import open_reader
from sess_schema.queries import sessions

MAIN = "11111111-1111-4111-8111-111111111111"


def drawn(source):
    html = prose.html(source)
    Looked(html)
    return html.removeprefix('<div class="prose" dir="auto">').removesuffix("</div>")


SAME = [
    "**a** <b> *c* `d` ~~e~~",
    "one\ntwo\n\n- a\n- b\n  1. c\n\n> q",
    "# One\n## Two",
    "[x](https://e.com/a?b=1&c=2) <https://e.com> [y](javascript:alert(1)) ![z](https://e.com/c.png)",
    "| a | b |\n|:-|-:|\n| 1 | <i> |",
    "```py\nprint('<')\n```",
]


@pytest.mark.parametrize("source", SAME)
def test_the_slower_renderer_draws_the_same(source, monkeypatch):
    """Without the fast renderer, Markdown is still drawn."""
    quick = drawn(source)
    monkeypatch.setitem(sys.modules, "comrak", None)
    prose._renderer.cache_clear()
    try:
        slower = drawn(source)
    finally:
        prose._renderer.cache_clear()
    assert '<pre class="prose plain' not in slower
    assert "".join(slower.split()) == "".join(quick.split())


DRAWN = {
    "so:\n- a\n- b": "<p>so:</p><ul><li>a</li><li>b</li></ul>",
    "one\ntwo": "<p>one\ntwo</p>",
    "~~old~~ __new__": "<p><del>old</del> <strong>new</strong></p>",
    "# One\n## Two\n###### Six": "<h3>One</h3><h4>Two</h4><h5>Six</h5>",
    "3. c\n4. d": '<ol start="3"><li>c</li><li>d</li></ol>',
    "a  \nb\n\n---": "<p>a<br>b</p><hr>",
    "<b>x</b> y": "<p>&lt;b&gt;x&lt;/b&gt; y</p>",
    "`<i>`": "<p><code>&lt;i&gt;</code></p>",
    "- [x] a": (
        '<ul><li><span class="box" aria-hidden="true">☑</span>'
        '<span class="unseen">done: </span> a</li></ul>'
    ),
    "- [ ] b": (
        '<ul><li><span class="box" aria-hidden="true">☐</span>'
        '<span class="unseen">to do: </span> b</li></ul>'
    ),
    "see https://e.com/a?b=1&c=2 or a@e.com": (
        '<p>see <a href="https://e.com/a?b=1&amp;c=2" rel="noopener noreferrer nofollow">'
        'https://e.com/a?b=1&amp;c=2</a> or <a href="mailto:a@e.com"'
        ' rel="noopener noreferrer nofollow">a@e.com</a></p>'
    ),
    "![chart](https://e.com/c.png)": (
        '<p><a href="https://e.com/c.png" rel="noopener noreferrer nofollow">image: chart</a></p>'
    ),
    "[a](docs/a.md)": (
        '<p><span class="unlinked">a</span> <span class="target">(docs/a.md)</span></p>'
    ),
    "|a|b|\n|:-|-:|\n|1|2|": (
        '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table><thead><tr>'
        '<th class="left">a</th><th class="right">b</th></tr></thead><tbody><tr>'
        '<td class="left">1</td><td class="right">2</td></tr></tbody></table></div>'
    ),
    '```py title="x"\nreturn "<b>"\n```': (
        '<div class="caption">py title="x"</div><pre class="code" tabindex="0"><code>'
        '<span class="hk">return</span> <span class="hs">"&lt;b&gt;"</span>\n</code></pre>'
    ),
    "    x = 1": '<pre class="code" tabindex="0"><code>x = 1\n</code></pre>',
}


@pytest.mark.parametrize("source", DRAWN)
def test_markdown(source):
    assert drawn(source) == DRAWN[source]


@pytest.mark.parametrize("source", ["[note]: something", "|a|\n|-|\n|b|lost|"])
def test_the_source_follows_if_markdown_drops_words(source):
    assert markup.text(source) in drawn(source)
    assert "Original text" in drawn(source)


def test_nesting_that_nobody_writes_is_shown_as_plain_text():
    source = ">" * 100 + " deep"
    assert prose.html(source) == (
        f'<pre class="prose plain" dir="auto">{markup.text(source)}</pre>'
    )


@pytest.mark.parametrize(
    ("path", "code", "marks"),
    [
        ("a.py", "# no\nx = 'a' + b1 + 12", [("hc", "# no"), ("hs", "'a'"), ("hn", "12")]),
        ("a.py", '"""a\nb""" if x', [("hs", '"""a\nb"""'), ("hk", "if")]),
        ("a.ts", "const u = 'http://x' // y", [("hk", "const"), ("hs", "'http://x'"),
                                              ("hc", "// y")]),
        ("a.rs", "fn f<'a>(x: &'a str)", [("hk", "fn")]),
        ("a.go", "/* open", [("hc", "/* open")]),
        ("a.sql", "SELECT 'it' -- x", [("hk", "SELECT"), ("hs", "'it'"), ("hc", "-- x")]),
        ("a.yaml", "key: true # x", [("hf", "key"), ("hk", "true"), ("hc", "# x")]),
        ("a.json", '{"k": "v", "n": 1}', [("hf", '"k":'), ("hs", '"v"'), ("hf", '"n":'),
                                          ("hn", "1")]),
        ("a.html", '<!-- c --><a href="x">', [("hc", "<!-- c -->"), ("hk", "<a"), ("hs", '"x"'),
                                             ("hk", ">")]),
        ("a.css", "a { color: #fff; /* c */ }", [("hn", "#fff"), ("hc", "/* c */")]),
        ("a.sh", 'if [ -f "$x" ]; # c', [("hk", "if"), ("hf", "-f"), ("hs", '"$x"'),
                                         ("hc", "# c")]),
        ("a.diff", "+a\n-b\n c", [("hs", "+a"), ("hk", "-b")]),
        ("Makefile", "x", []),
        ("a.unknown", "if x", []),
    ],
)  # fmt: skip
def test_tokens(path, code, marks):
    html = highlight.coloured(markup.text(code), highlight.family_of_path(path))
    found = re.findall(r'<span class="(\w+)">(.*?)</span>', html, re.DOTALL)
    assert [(name, Looked(text).text) for name, text in found] == marks
    assert Looked(html).text == code


def test_long_code_is_coloured_at_its_beginning_and_kept_whole():
    code = "x = 1\n" * 5000
    html = highlight.coloured(markup.text(code), "hash")
    assert Looked(html).text == code
    assert html.endswith("\nx = 1\n")


@pytest.fixture
def family(world):
    """A session, a subagent that one of its calls started, and one that no known call did."""
    main = world.transcript(MAIN)
    main.append(
        main.prompt("go"),
        main.call("c1", "Task", description="Look", prompt="look *around*"),
        main.result("c1", "found **it**"),
    )
    for number, started in (("1", "c1"), ("2", "unknown")):
        child = world.transcript(f"agent-{number}", folder=f"-code-demo/{MAIN}/subagents")
        side = {"sessionId": MAIN, "agentId": number, "isSidechain": True}
        records = [child.prompt(f"task {number}"), child.answer(f"answer {number}")]
        child.append(*({**record, **side} for record in records))
        (child.path.parent / f"agent-{number}.meta.json").write_text(
            f'{{"agentType":"Explore","toolUseId":"{started}"}}'
        )
    world.ingest()
    with closing(open_reader(world.state / "index.db")) as db:
        yield Story(db, sessions.resolve(db, MAIN))


def test_a_subagents_session_is_between_its_prompt_and_its_result(family):
    event = next(event for event in family.items() if event.tool == "Task")
    html = Drawer(utc=True).card(event)
    Looked(html)
    said = ("look <em>around</em>", "task 1", "answer 1", "found <strong>it</strong>")
    places = [html.index(one) for one in said]
    assert places == sorted(places)
    assert html.count('<section class="agent" data-session="agent-1"') == 1
    assert '<span class="who">Explore</span>' in html


def test_a_subagent_that_no_call_started_can_be_drawn_by_itself(family):
    html = Drawer().agent(family.loose[0], "loose-")
    Looked(html)
    assert "answer 2" in html
    assert 'id="loose-' in html


def test_ids_are_unique_over_all_conversations(family):
    drawer = Drawer()
    html = "".join(drawer.card(event) for event in family.items())
    html += "".join(drawer.agent(child, "loose-") for child in family.loose)
    ids = re.findall(r' id="([^"]+)"', html)
    assert len(ids) == len(set(ids)) == 6


def test_agents_within_agents_end_somewhere(family):
    """A conversation that contains itself is drawn a few times, not forever."""

    class Endless(Story):
        def items(self):
            for event in super().items():
                if event.tool == "Task":
                    event.agent = self
                yield event

    story = Endless(family.db, family.row)
    html = Drawer().agent(story)
    Looked(html)
    assert html.count(f'<section class="agent" data-session="{MAIN}"') == 8
    assert "nested too deep to show" in html
