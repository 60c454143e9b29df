"""`--style timeline`: the file, without a browser."""

from __future__ import annotations

import re
from contextlib import closing
from html import unescape
from io import BytesIO

import pytest
from tests.must import must

from sess_cli.export.html import timeline
from sess_cli.export.story import Story
from sess_schema.connection import open_reader
from sess_schema.queries import sessions

MAIN = "11111111-1111-4111-8111-111111111111"
ROW = re.compile(r'<details class="event.*?</details>', re.DOTALL)


@pytest.fixture
def page(world):
    """Records to page."""

    def drawn(*records, session=MAIN):
        if records:
            world.transcript(session).append(*records)
        world.ingest()
        with closing(open_reader(world.state / "index.db")) as db:
            out = BytesIO()
            timeline.write(Story(db, sessions.resolve(db, session)), out, utc=True)
        return out.getvalue().decode()

    return drawn


def rows_of(html):
    return ROW.findall(html.partition("<body>")[2].partition("<script>")[0])


def plain(html):
    return unescape(re.sub(r"<[^>]*>", "", html))


class Pieces(BytesIO):
    """Remembers what is written at once."""

    def __init__(self):
        super().__init__()
        self.sizes = []

    def writelines(self, pieces):
        for piece in pieces:
            self.write(piece)

    def write(self, piece):
        self.sizes.append(len(piece))
        return super().write(piece)


def test_a_long_session_is_written_row_by_row(world):
    t = world.transcript()
    t.append(*(t.prompt(f"{n}: " + "word " * 2_000) for n in range(100)))
    world.ingest()
    out = Pieces()
    with closing(open_reader(world.state / "index.db")) as db:
        timeline.write(Story(db, sessions.resolve(db, MAIN)), out, utc=True)
    assert len(rows_of(out.getvalue().decode())) == 100
    assert sum(out.sizes) > 1_000_000
    assert max(out.sizes) < 30_000


def test_the_header_has_id_start_duration_calls_and_failures(world, page):
    t = world.transcript()
    html = page(
        t.prompt("fix it"),
        t.call("c1", command="make"),
        t.result("c1", "no rule", is_error=True),
        t.call("c2", command="ls"),
        t.result("c2", "a"),
    )
    facts = must(re.search(r'<div class="facts">(.*?)</div>', html))[1]
    spans = [plain(one) for one in re.findall(r"<(?:h1|span)[^>]*>(.*?)</(?:h1|span)>", facts)]
    assert spans == [
        "fix it",
        "11111111",
        "2026-02-01 10:00:01",
        "4.0s",
        "1 prompt",
        "2 tool calls",
        "1 failed",
    ]


def test_a_session_without_events_has_no_tool_calls_and_no_errors(world, page):
    html = page({"type": "file-history-snapshot", "sessionId": MAIN, "snapshot": {}})
    assert "0 tool calls" in html
    assert 'class="errors"' not in html
    assert "This session has no events." in html
    assert not rows_of(html)


def test_every_event_is_a_row_with_number_kind_and_tool(world, page):
    t = world.transcript()
    html = page(
        t.prompt("look"),
        t.answer("I will"),
        t.call("c1", "Read", file_path="/code/demo/a.py"),
        t.result("c1", "gone", is_error=True),
    )
    rows = rows_of(html)
    assert [must(re.search(r'id="([^"]*)" data-type="([^"]*)"', row)).groups() for row in rows] == [
        ("evt-0", "user"),
        ("evt-1", "assistant"),
        ("evt-2", "tool_use"),
    ]
    assert [row.startswith('<details class="event error"') for row in rows] == [False, False, True]
    assert 'data-tool="Read"' in rows[2]
    assert [
        must(re.search(r'<span class="tool ([\w ]+)">([^<]*)', row)).groups() for row in rows
    ] == [
        ("user", "User"),
        ("assistant", "Assistant"),
        ("call read", "Read"),
    ]
    assert ["\u2713" in row or "\u2717" in row for row in rows] == [False, False, True]
    assert "10:00:01" in rows[0]


def test_the_width_cuts_a_row_and_nothing_its_body(world, page):
    t = world.transcript()
    long = "echo " + "x" * 5000
    html = page(t.call("c1", command=long), t.result("c1", "y" * 300_000))
    (row,) = rows_of(html)
    head, body = row.split('<div class="event-body">')
    shown = must(re.search(r'<span class="input">([^<]*)</span>', head))[1]
    assert len(shown) == 400, "more than the widest window shows"
    assert shown.endswith("…")
    assert long in body
    assert "y" * 300_000 in body


@pytest.mark.parametrize(
    ("tool", "given", "labels"),
    [
        ("Bash", {"command": "ls"}, ["Command"]),
        ("Read", {"file_path": "/a"}, ["Target"]),
        ("Grep", {"pattern": "x"}, ["Target"]),
        ("Glob", {"pattern": "*.py"}, ["Target"]),
        ("Write", {"file_path": "/a", "content": "b"}, ["File", "Content"]),
        ("Edit", {"file_path": "/a", "old_string": "b", "new_string": "c"}, ["File", "Change"]),
        ("Invented", {"deep": {"er": ["é"]}}, ["Command"]),
    ],
)
def test_the_input_is_named_for_what_the_tool_does(world, page, tool, given, labels):
    t = world.transcript()
    (row,) = rows_of(page(t.call("c1", tool, **given)))
    assert re.findall(r'<div class="label">([^<]*)', row) == labels, (
        "and no output, for there is none"
    )


def test_every_argument_is_shown_once(world, page):
    t = world.transcript()
    edit = {"file_path": "/a.py", "old_string": "one", "new_string": "two", "replace_all": True}
    (row,) = rows_of(page(t.call("c1", "Edit", **edit)))
    body = plain(row.split('<div class="event-body">')[1])
    shown = 'File\n/a.pyChange\n-one\n+twoArguments\n{\n  "replace_all": true\n}'
    assert body == f"Link to this event{shown}"


def test_subagents_follow_the_call_that_started_them(world, page):
    t = world.transcript()
    child = world.transcript("agent-1", folder=f"-code-demo/{MAIN}/subagents")
    call = t.call("c1", "Task", description="d", prompt="look around")
    world.transcript(MAIN).append(t.prompt("go"), call, t.result("c1", "done"), t.answer("ok"))
    child.append(
        {**child.prompt("look around"), "sessionId": MAIN, "agentId": "1", "isSidechain": True},
        {
            **child.call("k1", command="rm x"),
            "sessionId": MAIN,
            "agentId": "1",
            "isSidechain": True,
        },
    )
    (child.path.parent / "agent-1.meta.json").write_text('{"agentType":"Explore","toolUseId":"c1"}')
    html = page()
    assert re.findall(r'<details class="event[^>]*id="([^"]*)"', html) == [
        "evt-0", "evt-1", "evt-1-0", "evt-1-1", "evt-2",
    ]  # fmt: skip
    assert "2 tool calls" in html


def test_rows_after_the_first_are_there_for_readers_without_scripts(world, page):
    t = world.transcript()
    html = page(*(t.prompt(f"prompt number {n}") for n in range(200)))
    first, rest = html.split('<noscript id="rest">')
    assert len(ROW.findall(first)) == 60
    assert len(ROW.findall(rest.split("</noscript>")[0])) == 140


def test_prompts_are_headings_below_the_title(world, page):
    t = world.transcript()
    html = page(t.prompt("fix it"), t.answer("done"), t.prompt("and that"))
    found = re.findall(r"<(h\d) class[^>]*>([^<]*)", html)
    assert found == [("h1", "fix it"), ("h2", "fix it"), ("h2", "and that")]


def test_a_record_without_a_time_says_so_and_notices_have_their_names(world, page):
    t = world.transcript()
    html = page({"type": "summary", "summary": "All of it", "leafUuid": "x"}, t.prompt("hi"))
    row = next(row for row in rows_of(html) if "All of it" in row)
    assert "<time>no time</time>" in row
    assert plain(row).startswith("no timeSummary")


def test_a_printed_diff_has_its_colours(world, page):
    t = world.transcript()
    html = page(t.call("c", command="git diff"), t.result("c", "@@ -1 +1 @@\n-<a>\n+b\n"))
    assert "<del>-&lt;a&gt;\n</del><ins>+b" in html


def test_a_new_day_is_marked_once(world, page):
    t = world.transcript()
    late = [{**t.prompt(str(n)), "timestamp": f"2026-02-0{n}T10:00:00Z"} for n in (1, 1, 2, 2, 3)]
    assert re.findall(r'data-day="([^"]*)"', page(*late)) == ["2026-02-02", "2026-02-03"]


def test_transcript_text_is_escaped_everywhere(world, page):
    t = world.transcript()
    evil = '"><script>alert(1)</script>&amp;\x1b[31m'
    html = page(
        t.prompt(evil),
        t.call("c1", evil, **{evil: evil}),
        t.result("c1", evil),
        t.call("c2", "Edit", file_path=evil, old_string=evil, new_string=evil),
    )
    assert html.count("<script") == 2
    assert html.count("</script") == 2
    assert "\x1b" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&amp;amp;" in html


def test_no_element_has_a_style_a_handler_or_an_address(world, page):
    html = page(world.transcript().prompt("hi"))
    assert not re.search(r'<[^>]+ (?:style|on\w+)="', html)
    assert "http://" not in html
    assert "https://" not in html


def test_a_row_has_one_stop_and_no_link_inside_its_summary(world, page):
    t = world.transcript()
    html = page(t.prompt("go"), t.call("c1", command="ls"), t.result("c1", "a"))
    for summary in re.findall(r"<summary.*?</summary>", html, re.DOTALL):
        assert not re.search(r"<(a|button|input)\b", summary)


def test_a_call_without_a_summary_begins_with_what_it_says(world, page):
    t = world.transcript()
    asked = {"questions": [{"question": "Black or green?", "options": [{"label": "Green"}]}]}
    (row,) = rows_of(page(t.call("c1", "AskUserQuestion", **asked)))
    assert '<span class="input">Black or green?</span>' in row


def test_what_an_agent_wraps_a_notice_in_is_not_shown_in_its_row(world, page):
    t = world.transcript()
    queued = {"type": "queued_command", "prompt": "<ide_selection>the pot</ide_selection> brew"}
    html = page(t.prompt("go"), t.record("attachment", None, attachment=queued))
    assert "&lt;ide_selection" not in "".join(re.findall(r"<summary.*?</summary>", html, re.DOTALL))


def test_a_timeline_may_replace_itself(world, page, tmp_path):
    from sess_schema import outputs

    path = tmp_path / "timeline.html"
    path.write_text(page(world.transcript().prompt("go")))
    outputs.check_replacing(str(path), force=False)
