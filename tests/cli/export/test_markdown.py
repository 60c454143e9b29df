"""Sessions and events as Markdown, read back by a parser of CommonMark."""

from __future__ import annotations

import io
from contextlib import closing

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from sess_cli.export import markdown as document
from sess_cli.export.story import Story
from sess_cli.render import markdown
from sess_common.escape import safe
from sess_redaction import Redactor
from sess_schema.citations import Citations
from sess_schema.connection import open_reader
from sess_schema.queries import sessions

MAIN = "11111111-1111-4111-8111-111111111111"
MARKS = st.text(st.sampled_from("`~#<>!-=*_[]() ab\n\t"), max_size=60)


def parsed(text):
    return MarkdownIt("commonmark").parse(text)


def written(world, event=None):
    with closing(open_reader(world.state / "index.db")) as db:
        row = sessions.resolve(db, MAIN)
        if event is None:
            whole = io.BytesIO()
            document.write(Story(db, row), whole, utc=True)
            return whole.getvalue().decode()
        return markdown.event_text(db, row, event, utc=True)


def headings(text):
    """Those of the document itself, not inside a quotation or a list."""
    tokens = parsed(text)
    return [
        (token.tag, tokens[at + 1].content)
        for at, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0
    ]


def test_a_session_reads_as_a_document(world):
    """The title, what is known, a heading per prompt, calls with fenced input and output."""
    t = world.transcript()
    t.append(
        t.prompt("fix the *flaky* test"),
        t.assistant([{"type": "thinking", "thinking": "hm"}]),
        t.answer("I run **it**."),
        t.call("c1", command="pytest -x"),
        t.result("c1", "FAILED", is_error=True),
        t.call("c2", "Edit", file_path="/code/a.py", old_string="two", new_string="three"),
        t.prompt("and\nnow?"),
    )
    world.ingest()
    assert (
        written(world)
        == f"""\
# fix the \\*flaky\\* test

- session `{MAIN}` of claude, `claude-opus-4-5`
- project `/code/demo` on `main`
- 2026-02-01 10:00 UTC (6.0s)
- 2 prompts, 2 tool calls, 1 failed
- 52 tokens, $0.0011

## 1. fix the \\*flaky\\* test

> fix the *flaky* test

<details><summary>Thinking</summary>

> hm

</details>

I run **it**.

<details><summary><b>Bash</b> <code>pytest -x</code> failed, 1.0s</summary>

```sh
pytest -x
```

Output:

```text
FAILED
```

</details>

<details><summary><b>Edit</b> <code>/code/a.py (edit)</code> no result</summary>

```diff
- two
+ three
```

</details>

## 2. and now?

> and
> now?

"""
    )


def test_an_event_says_where_it_is_from(world):
    """One event alone: what happened, and the id that leads back to it."""
    t = world.transcript()
    t.append(t.prompt("go"), t.call("c1", command="ls"), t.result("c1", "a\nb"))
    world.ingest()
    prompt, call = [number for (number,) in world.sql("SELECT id FROM events ORDER BY id")]
    with closing(open_reader(world.state / "index.db")) as db:
        key = Citations(db).key(prompt)
    assert written(world, prompt) == (
        f"**user**\n\n> go\n\nFrom `{MAIN}#{key}`, project `/code/demo` on `main`,"
        " 2026-02-01 10:00.\n"
    )
    assert "```text\nls\n```" in written(world, call)
    assert "```text\na\nb\n```" in written(world, call)
    assert written(world, 999) == ""


def test_long_outputs_are_shortened_and_say_so(world):
    """The beginning and the end stay."""
    t = world.transcript()
    output = "\n".join(f"line {n}" for n in range(500)) + "\n" + "x" * 10_000
    t.append(t.prompt("go"), t.call("c1", command="cat"), t.result("c1", output))
    world.ingest()
    text = written(world)
    assert "line 39\n… 446 lines left out …\nline 486\n" in text
    assert "line 100\n" not in text
    assert max(map(len, text.splitlines())) <= markdown.WIDEST


def test_nothing_is_left_out_when_all_is_wanted(world):
    t = world.transcript()
    output = "\n".join(f"line {n}" for n in range(500))
    t.append(t.prompt("go"), t.call("c1", command="cat"), t.result("c1", output))
    world.ingest()
    assert output in world.run("sess", "export", "md", MAIN, "-o", "-", "--full", check=0).stdout


def test_a_prompt_cannot_pose_as_the_document(world):
    """Headings, fences and HTML of others do not change what follows them."""
    evil = "# top\n\nunder\n===\n<!-- hidden\n<details>\n```sh\nnever closed"
    t = world.transcript()
    t.append(
        t.prompt(evil),
        t.answer(evil),
        t.call("c1", "`tool` **x**", command="````\n```\n# no heading"),
        t.prompt("the end"),
    )
    world.ingest()
    found = headings(written(world))
    assert [tag for tag, _ in found if tag in ("h1", "h2")] == ["h1", "h2", "h2"]
    assert found[-1] == ("h2", "2. the end")
    blocks = [token.content for token in parsed(written(world)) if token.type == "html_block"]
    assert {block.strip()[:9] for block in blocks} == {"<details>", "</details"}


def test_control_characters_are_shown(world):
    """A file that somebody prints on a terminal does nothing to it."""
    evil = "\x1b]0;owned\x07 \x1b[31mred\x00\u202e"
    t = world.transcript()
    t.append(t.prompt(evil, gitBranch=evil), t.call("c1", evil, command=evil), t.answer(evil))
    world.ingest()
    assert all(c.isprintable() or c == "\n" for c in written(world))


@given(MARKS)
def test_a_fence_holds_any_text(text):
    """What is fenced comes out of a parser as one block with the same lines."""
    clean = safe(text).strip("\n").rstrip()
    lines = [*markdown.fenced(text)]
    assert bool(lines) == bool(clean)
    if lines:
        (block,) = [one for one in parsed("\n".join(lines)) if one.type != "inline"]
        assert block.type == "fence"
        # A parser reads tabs as they are, and gives the last line an end.
        assert block.content == clean + "\n"


@given(MARKS)
def test_prose_never_swallows_what_follows(text):
    """Behind any Markdown of others, a heading of ours is a heading, and there is no other."""
    lines = [*markdown.prose(text), "", "## ours"]
    found = headings("\n".join(lines))
    assert found[-1] == ("h2", "ours")
    assert [tag for tag, _ in found[:-1] if tag in ("h1", "h2")] == []


@given(MARKS)
def test_an_escaped_title_is_one_plain_line(text):
    """A title has no meaning in Markdown, whatever it consists of."""
    shown = " ".join(safe(text).split())
    tokens = parsed(f"# x {markdown.escaped(text)} x")
    plain = "".join(child.content for child in tokens[1].children)
    assert plain == f"x {shown} x"


def test_unknown_blocks_and_json_prompts_are_json(world):
    """A block of a kind we do not know keeps the names of its values, secrets masked."""
    t = world.transcript()
    t.append(
        t.prompt('{"task":"fix"}'),
        t.assistant([{"type": "hologram", "caption": "a cat", "api_key": "Zq8vR2mK4tW9xL3n"}]),
        t.prompt("<command-name>/go</command-name><command-args>a\n\nb</command-args>"),
    )
    world.ingest()
    with closing(open_reader(world.state / "index.db")) as db:
        out = io.BytesIO()
        document.write(Story(db, sessions.resolve(db, MAIN), Redactor()), out, utc=True)
    text = out.getvalue().decode()
    assert '```json\n{\n  "task": "fix"\n}\n```' in text
    assert "<details><summary>hologram</summary>\n\n```json\n{\n" in text
    assert '  "caption": "a cat",\n  "api_key": "[redacted' in text
    assert "Zq8vR2mK4tW9xL3n" not in text
    assert "> /go a\n>\n> b\n" in text
