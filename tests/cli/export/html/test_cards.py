"""Each kind of event as the card that a reader sees."""

from __future__ import annotations

import json
import re
from html import unescape
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.export.html.card_items import Looked, body, call, drawn, item

from sess_cli.export.forge import Repository
from sess_cli.export.html import markup
from sess_cli.export.html.cards import Drawer
from sess_cli.export.json_values import Image
from sess_cli.export.story import Commit, Spent
from sess_schema.edits import Edit

MOMENT = 1_771_597_805_250  # 2026-02-20T14:30:05.250Z
PATCH = [{"oldStart": 9, "newStart": 9, "lines": [" a", "-b = 1", "+b = 2", " c"]}]


def test_the_whole_card_of_a_call():
    event = call(
        "Bash", {"command": "ls", "description": "List"}, "a.txt", number=7, ts=MOMENT,
        duration_ms=1500, summary="ls", spent=Spent(1, 1000, 200),
    )  # fmt: skip
    assert drawn(event) == (
        '<article class="card k-tool_use t-shell" id="k1" data-n="7" data-kind="tool_use"'
        ' data-tool="Bash" data-status="ok" data-ts="1771597805250" aria-label="Bash, ls, ok">'
        '<header><span class="who">Bash</span> <span class="gist">List</span>'
        ' <span class="facts"><span class="status s-ok"><span aria-hidden="true">✓</span> ok</span>'
        ' <span class="took">1.5s</span>'
        ' <span class="spent" title="1,000 in, 200 out, 0 cache write, 0 cache read">'
        "1,200 tokens</span>"
        ' <a class="at" href="#k1"><time datetime="2026-02-20T14:30:05.250Z"'
        ' title="2026-02-20 14:30:05">14:30:05</time></a></span></header>'
        '<div class="body"><pre class="command"><code>ls</code></pre>'
        '<pre class="out" dir="auto">a.txt</pre></div></article>'
    )


def test_a_prefix_precedes_the_id_and_its_link():
    html = Drawer().card(item(text="x"), "p-")
    assert 'id="p-k1"' in html
    assert 'href="#p-k1"' in html


def test_an_event_without_a_time_is_named_by_its_number():
    assert '<a class="at" href="#k1">#3</a>' in drawn(item(text="x", number=3))
    assert "data-ts" not in drawn(item(text="x"))


@pytest.mark.parametrize("moment", [-1, 253_402_300_800_000, 2**62])
def test_a_time_that_no_calendar_knows_is_no_time(moment):
    assert "<time" not in drawn(item(text="x", ts=moment))


# -- prompts and answers


def test_a_prompt_is_markdown():
    assert body(item("user", text="do **it**")) == (
        '<div class="prose" dir="auto"><p>do <strong>it</strong></p></div>'
    )


def test_a_slash_command_is_a_chip_with_its_arguments():
    event = item("user", label="command", text="/review the <b>tests</b>")
    assert 'class="card k-user u-command"' in drawn(event)
    assert body(event) == (
        '<p class="slash"><code class="chip">/review</code> the &lt;b&gt;tests&lt;/b&gt;</p>'
    )


def test_a_slash_command_of_several_lines_is_shown_whole():
    event = item("user", label="command", text="/review\nfirst *line*\n\nsecond line")
    assert body(event) == (
        '<p class="slash"><code class="chip">/review</code></p><div class="prose" dir="auto">'
        "<p>first <em>line</em></p><p>second line</p></div>"
    )


def test_a_prompt_that_is_json_is_pretty():
    shown = body(item("user", text='{"task":"fix","files":["a.py"]}'))
    assert shown.startswith('<pre class="code"')
    assert unescape(re.sub("<[^>]*>", "", shown)) == (
        '{\n  "task": "fix",\n  "files": [\n    "a.py"\n  ]\n}'
    )


def test_a_notice_of_an_unknown_kind_is_its_json():
    """Not the words in it without their names."""
    block = {"type": "hologram", "depth": 3, "caption": "a <cat>"}
    shown = body(item("system", label="hologram", text="a <cat>", unknown=block))
    assert json.loads(unescape(re.sub("<[^>]*>", "", shown.partition("</summary>")[2]))) == block


def test_a_bash_line_is_shown_as_typed():
    assert body(item("user", label="bash", text="! ls -l")) == (
        '<pre class="command" dir="auto"><span class="bang">!</span> ls -l</pre>'
    )


def test_other_prompts_are_labelled():
    assert body(item("user", label="queued", text="later")).startswith(
        '<p><span class="chip">queued</span></p>'
    )


def test_images_can_be_enlarged_with_the_keyboard():
    event = item("user", text="[image]", pictures=[Image("image/png", "aGk=")])
    assert body(event) == (
        '<div class="images"><button type="button" class="zoom"><img loading="lazy"'
        ' alt="Image 1 of 1" src="data:image/png;base64,aGk="></button></div>'
    )


def test_thinking_is_folded_under_its_first_words():
    assert body(item("thinking", text="**Plan** it\n\nthen go")) == (
        '<details class="thought"><summary>Plan it then go</summary><div class="inside">'
        '<div class="prose" dir="auto"><p><strong>Plan</strong> it</p><p>then go</p></div>'
        "</div></details>"
    )


def test_an_api_error_is_a_failure_in_any_event():
    assert 'class="card k-assistant failed"' in drawn(item(label="api_error", text="overloaded"))


# -- calls


def test_a_failed_command_has_its_exit_code_only_in_the_header():
    html = drawn(call("Bash", {"command": "false"}, "Exit code 3\noh no", status="error"))
    assert 'class="card k-tool_use t-shell failed"' in html
    assert '<span class="status s-error"><span aria-hidden="true">✗</span> exit 3</span>' in html
    assert '<pre class="out bad" dir="auto">oh no</pre>' in html


@pytest.mark.parametrize(
    ("status", "words"),
    [("ok", "✓ ok"), ("error", "✗ failed"), ("denied", "⊘ denied"), ("pending", "… no result")],
)
def test_a_status_is_a_mark_and_a_word(status, words):
    assert words in Looked(drawn(call("Bash", {"command": "x"}, status=status))).text


def test_terminal_colours_are_classes():
    event = call("Bash", {"command": "x"}, "\x1b[1;31mred\x1b[0m \x1b[38;2;30;120;200mblue\x1b[m.")
    assert body(event).endswith(
        '<pre class="out" dir="auto"><span class="ab a1">red</span> '
        '<span class="a4">blue</span>.</pre>'
    )


def test_an_edit_has_the_line_numbers_of_the_file_and_its_words_marked():
    event = call("Edit", {"file_path": "/code/demo/a.py", "old_string": "b = 1",
                          "new_string": "b = 2"}, "done", patch=PATCH)  # fmt: skip
    html = drawn(event)
    assert '<span class="path"><bdi>/code/demo/<b>a.py</b></bdi></span>' in html
    assert body(event) == (
        '<div class="diff w2"><span data-l=" 9  9  ">a\n</span>'
        '<del data-l="10    -">b = <b>1</b>\n</del><ins data-l="   10 +">b = <b>2</b>\n</ins>'
        '<span data-l="11 11  ">c\n</span></div>'
        '<details class="more"><summary>Result</summary><div class="inside">'
        '<pre class="out" dir="auto">done</pre></div></details>'
    )


def test_an_edit_of_an_unknown_place_has_no_line_numbers():
    event = call(
        "Edit", {"file_path": "a", "old_string": "x y", "new_string": "x z"}, status="pending"
    )
    assert body(event) == (
        '<div class="diff"><del data-l="-">x <b>y</b>\n</del>'
        '<ins data-l="+">x <b>z</b>\n</ins></div>'
    )


def test_what_a_diff_tells_is_not_told_again():
    """Whatever an agent calls the texts of an edit, only its other arguments stand below it."""
    change = Edit("f", "x y", "x z")
    for arguments in (
        {"TargetFile": "f", "TargetContent": "x y", "ReplacementContent": "x z\n", "all": False},
        {"edit": {"old": "x y", "new": "x z"}, "all": False},
    ):
        html = body(item("tool_use", tool="e", kind="edit", given=arguments, edits=[change]))
        assert re.sub("<[^>]+>", " ", html).split() == ["x", "y", "x", "z", "all", "false"]


def test_every_edit_of_several_is_shown():
    edits = [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d"}]
    html = body(call("MultiEdit", {"file_path": "f", "edits": edits}))
    assert html.count('<div class="diff">') == 2


def test_a_patch_is_a_diff_and_kept_as_given():
    patch = "*** Begin Patch\n*** Update File: a.py\n@@ def f\n-x\n+y\n*** End Patch"
    html = body(call("apply_patch", patch))
    assert "<i>Update File: a.py\n</i>" in html
    assert '<del data-l="-">x\n</del><ins data-l="+">y\n</ins>' in html
    assert "*** End Patch" in html


def test_a_written_file_is_highlighted_beside_its_line_numbers():
    html = body(call("Write", {"file_path": "a.py", "content": 'import os\nx = "1"\n'}))
    assert html == (
        '<div class="lines" tabindex="0" role="group" aria-label="Code">'
        '<pre class="gutter" aria-hidden="true">1\n2</pre><pre class="code"><code>'
        '<span class="hk">import</span> os\nx = <span class="hs">"1"</span></code></pre></div>'
    )


def test_a_file_that_was_read_keeps_its_numbers_and_what_follows():
    answer = "    41→def f():\n    42→\treturn 1\n\n<system-reminder>be good</system-reminder>\n"
    html = body(call("Read", {"file_path": "a.py", "offset": 41, "limit": 2}, answer))
    assert '<pre class="gutter" aria-hidden="true">41\n42</pre>' in html
    assert '<span class="hk">def</span> f():\n\t<span class="hk">return</span>' in html
    assert "&lt;system-reminder&gt;be good&lt;/system-reminder&gt;" in html
    assert "lines 41–42" in drawn(call("Read", {"file_path": "a", "offset": 41, "limit": 2}))


def test_todos_are_a_list_whose_states_have_words():
    todos = [
        {"content": "one", "status": "completed"},
        {"content": "two", "status": "in_progress"},
        {"content": "three", "status": "pending"},
    ]
    event = call("TodoWrite", {"todos": todos})
    assert '<span class="gist">1 of 3 done</span>' in drawn(event)
    assert body(event) == (
        '<ul class="todos"><li class="done"><span class="box" aria-hidden="true">✓</span>'
        '<span class="unseen">done: </span>one</li>'
        '<li class="doing"><span class="box" aria-hidden="true">▸</span>'
        '<span class="unseen">in progress: </span>two</li>'
        '<li class="open"><span class="box" aria-hidden="true">○</span>'
        '<span class="unseen">to do: </span>three</li></ul>'
    )


def test_a_search_shows_its_pattern_path_and_other_arguments():
    event = call("Grep", {"pattern": "x<y", "path": "/code/demo", "-n": True}, "a.py:1:x<y")
    assert '<code>x&lt;y</code> <span class="where">in /code/demo</span>' in drawn(event)
    assert body(event) == (
        '<dl class="args small"><div><dt>-n</dt><dd><code class="hk">true</code></dd></div></dl>'
        '<pre class="out" dir="auto">a.py:1:x&lt;y</pre>'
    )


def test_links_that_a_search_found_can_be_followed():
    answer = 'Found:\nLinks: [{"title":"T<1>","url":"https://e.com/?a=1&b=2"}]\nAll *good*.'
    looked = Looked(drawn(call("WebSearch", {"query": "q"}, answer)))
    assert "https://e.com/?a=1&b=2" in looked.links
    assert "T<1>" in looked.text
    assert "em" in looked.tags


def test_a_question_shows_what_was_chosen():
    questions = [{"question": "Which?", "header": "Kind",
                  "options": [{"label": "A", "description": "first"}, {"label": "B"}]}]  # fmt: skip
    html = body(call("AskUserQuestion", {"questions": questions}, 'Answered: "Which?"="B".'))
    assert html.startswith(
        '<div class="question"><p><span class="chip">Kind</span> Which?</p><ul>'
        '<li class="open"><span class="box" aria-hidden="true">○</span>'
        '<span><b>A</b> <span class="why">first</span></span></li>'
        '<li class="done"><span class="box" aria-hidden="true">✓</span>'
        '<span class="unseen">chosen: </span><span><b>B</b></span></li></ul></div>'
    )


def test_a_plan_is_markdown():
    html = drawn(call("ExitPlanMode", {"plan": "# Plan\n1. go"}, "approved"))
    assert "t-plan" in html
    assert "<h3>Plan</h3><ol><li>go</li></ol>" in html


def test_a_tool_of_a_server_is_named_after_both():
    html = drawn(call("mcp__files__read_all", {"path": "x"}))
    assert '<span class="who">files · read_all</span>' in html
    assert "t-mcp" in html


def test_any_other_tool_lists_its_arguments_in_forms_that_suit_them():
    given = {"url": "https://e.com", "n": 3, "none": None, "deep": {"a": [1, "b"]}}
    assert body(call("Strange", given)) == (
        '<dl class="args small"><div><dt>url</dt><dd><a href="https://e.com"'
        ' rel="noopener noreferrer nofollow">https://e.com</a></dd></div>'
        '<div><dt>n</dt><dd><code class="hn">3</code></dd></div>'
        '<div><dt>none</dt><dd><code class="hk">null</code></dd></div></dl>'
        '<dl class="args"><div><dt>deep</dt><dd><pre class="code" tabindex="0"><code>{\n'
        '  <span class="hf">"a":</span> [\n    <span class="hn">1</span>,\n'
        '    <span class="hs">"b"</span>\n  ]\n}</code></pre></dd></div></dl>'
    )


def test_json_is_put_on_lines_without_touching_its_values():
    html = body(call("X", None, '{"a":[1.50,12345678901234567890123,{}],"a":""}'))
    assert Looked(html).text == (
        '{\n  "a": [\n    1.50,\n    12345678901234567890123,\n    {}\n  ],\n  "a": ""\n}'
    )


def test_what_only_looks_like_json_is_text():
    assert body(call("X", None, "[not json]")) == '<pre class="out" dir="auto">[not json]</pre>'


def test_a_commit_links_to_the_forge():
    event = call(
        "Bash", {"command": "git commit"}, commits=[Commit("abcdef0123", "main", "Fix <it>")]
    )
    html = Drawer(Repository("https://github.com/o/r")).card(event)
    assert (
        '<div class="commit"><span class="who">Commit</span>'
        ' <a href="https://github.com/o/r/commit/abcdef0123" rel="noopener noreferrer nofollow">'
        '<code>abcdef0</code></a> <span class="gist">Fix &lt;it&gt;</span>'
        ' <span class="chip">main</span></div>'
    ) in html
    assert "<a href" not in body(event)


# -- notices


def test_a_short_notice_is_one_line():
    html = drawn(item("system", label="interrupted", text="[Request interrupted by user]"))
    assert '<span class="who">Interrupted</span>' in html
    assert '<span class="gist">[Request interrupted by user]</span>' in html
    assert "body" not in html


def test_a_notice_does_not_say_its_name_twice():
    html = drawn(item("system", label="interrupted", text="interrupted"))
    assert html.casefold().count(">interrupted<") == 1


def test_a_long_notice_is_folded():
    event = item("system", label="reminder", text="first line\nsecond line")
    assert 'class="card k-system quiet"' in drawn(event)
    assert body(event).startswith('<details class="more"><summary>first line second line</summary>')


def test_a_label_that_nobody_knows_is_read_as_words():
    assert '<span class="who">Brand new thing</span>' in drawn(
        item("system", label="brand_new-thing", text="x")
    )


def test_output_of_typed_commands_is_output():
    event = item("system", label="bash-output", text="a\n  b")
    assert body(event) == '<pre class="out" dir="auto">a\n  b</pre>'


def test_compaction_is_a_boundary_with_its_summary_folded():
    event = item("summary", label="compact", text="# So far\nall good")
    assert 'class="card k-summary boundary"' in drawn(event)
    assert body(event).startswith('<details class="more"><summary>Summary</summary>')


def test_the_notice_of_a_compaction_says_it_once():
    for rest, gist in (("", ""), (" (manual, 9000 tokens)", "manual, 9000 tokens")):
        html = drawn(item("system", label="compact", text=f"Conversation compacted{rest}"))
        assert html.count("Conversation compacted</span>") == 1
        assert f'<span class="gist">{gist}</span>' in html or not gist
    summary = drawn(item("summary", label="compact", text="all good"))
    assert "Conversation compacted" not in summary
    assert "Errors were found" in drawn(item("system", label="error", text="Errors were found"))


def test_a_title_is_a_line():
    html = drawn(item("summary", label="ai-title", text="Fix the parser"))
    assert '<span class="who">Title</span> <span class="gist">Fix the parser</span>' in html


def test_an_unknown_kind_is_drawn_as_a_notice():
    html = drawn(item("Odd Kind!", text="hello"))
    assert 'class="card k-odd-kind-"' in html
    assert "hello" in html


def test_long_texts_are_kept_whole_and_may_be_folded():
    answer = "\n".join(f"line {n}" for n in range(5000))
    html = body(call("Bash", {"command": "seq"}, answer))
    assert '<div class="fold"><pre class="out"' in html
    assert Looked(html).text.endswith(answer)


@pytest.mark.parametrize("kind", ["user", "assistant", "tool_use"])
def test_an_endless_line_is_laid_out_in_pieces(kind):
    """No browser breaks a line of megabytes in time; text and entities stay whole."""
    endless = 20_000 * "a&b<" + "\nshort"
    given = {"output": endless, "tool": "Bash"} if kind == "tool_use" else {"text": endless}
    html = drawn(item(kind, **given))
    nodes = re.findall(">([^<]+)<", html)
    assert max(map(len, nodes)) < 80_000
    assert unescape("".join(re.findall('class="run">([^<]+)<', html))) == 20_000 * "a&b<"
    assert not [node for node in nodes if re.search("&[a-z]*$|^[a-z]*;", node)]


def test_lines_of_usual_length_and_attributes_are_left_alone():
    long = "\n".join(["x" * 9_000] * 10)
    assert 'class="run"' not in drawn(item("assistant", text=f"```\n{long}\n```"))
    picture = Image("image/png", "A" * 200_000)
    assert "A" * 200_000 in drawn(item("user", text="see", pictures=[picture]))


def test_a_prompt_is_a_heading_that_says_what_was_asked():
    html = drawn(item("user", text="why does it whistle?"))
    assert '<h2 class="who" aria-label="User, why does it whistle?">User</h2>' in html
    assert "<h2" not in drawn(item("assistant", text="# Because"))


@given(st.lists(st.integers(1, 6), min_size=1, max_size=12))
def test_no_level_of_headings_is_left_out(levels):
    """Whatever levels an answer uses, they begin below the prompt and go down one by one."""
    html = drawn(item("assistant", text="\n\n".join("#" * level + " x" for level in levels)))
    found = [2, *map(int, re.findall(r"<h(\d)>", html))]
    assert len(found) == len(levels) + 1
    assert all(after <= before + 1 for before, after in pairwise(found))
    assert re.findall(r"<h(\d)>", html) == re.findall(r"</h(\d)>", html)


def test_a_printed_diff_has_colours_and_its_own_signs():
    output = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@ def f\n a\n-b <\n+c\n"
    html = body(call("Bash", {"command": "git diff"}, output + "- not a change"))
    assert "@@ -1,2 +1,2 @@ def f\n a\n<del>-b &lt;\n</del><ins>+c\n</ins>" in html
    assert html.count("<ins>") == 1
    assert unescape(re.sub("<[^>]+>", "", html)).endswith(output + "- not a change")


def test_what_failed_is_folded_to_its_end():
    lines = "\n".join(map(str, range(50)))
    assert '<div class="fold tail"><pre class="out bad"' in body(
        call("Bash", {"command": "x"}, lines, status="error")
    )
    assert "tail" not in body(call("Bash", {"command": "x"}, lines))


def test_a_title_shows_code_and_bold_words_as_such_and_nothing_else_as_markup():
    assert markup.title("Run `act` for **all** <b>") == (
        "Run <code>act</code> for <b>all</b> &lt;b&gt;"
    )
    assert markup.title("2 ** 3 and a lone ` stay") == "2 ** 3 and a lone ` stay"


def test_a_mask_is_set_apart_where_it_is_shown_and_not_in_an_attribute():
    mask = "[redacted: API key]"
    shown = drawn(item("user", text=f"use {mask} and `{mask}`"))
    assert shown.count(f'<span class="mask">{mask}</span>') == 2
    named = drawn(
        call("Bash", {"command": f"echo {mask} > f", "description": mask}, mask, summary=mask)
    )
    assert f'<span class="mask">{mask}</span>' in named
    assert all(
        "<span" not in value
        for value in re.findall(r'="([^"]*)"', named.replace('class="mask"', ""))
    )
    assert markup.set_apart(markup.set_apart(f"<p>{mask}</p>")).count("<span") == 1
