"""What is typed, and what the list shows for it."""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import closing

import pytest
from tests.cli.finder.screen import PATIENCE, drive

from sess_cli.finder import query
from sess_cli.finder.app import Finder, Found
from sess_cli.finder.query import Answer, Finding, Request
from sess_cli.finder.worker import Latest
from sess_common.errors import SessError
from sess_schema.connection import open_reader, open_writer
from sess_schema.queries.fields import Setting


def test_nothing_typed_shows_the_newest_sessions(shop):
    """The list begins with the last activity, one line per session, subagents left out."""

    async def script(screen):
        assert screen.summary() == "newest sessions"
        assert [line.split("  ")[0].strip("▌ ") for line in screen.list()] == [
            "rename the timeout setting",
            "the checkout times out",
        ]

    drive(shop, script)


def test_typing_finds_and_the_last_word_is_a_beginning(shop):
    """`gatew` finds gateway, grouped below the session's title; the match is highlighted."""

    async def script(screen):
        await screen.type("gatew")
        assert screen.summary() == "3 hits"
        title, *hits = screen.list()
        assert title.startswith(" the checkout times out")
        assert len(hits) == 3
        assert set(screen.marked(screen.app._results)) == {"gateway"}

    drive(shop, script)


def test_a_subagent_stands_below_its_parent(shop):
    """A hit of a subagent is listed under the parent's title, and marked as a subagent's."""

    async def script(screen):
        await screen.type("socket ")
        assert screen.list()[0].startswith(" the checkout times out")
        assert screen.list()[1].startswith("▌ ↳ assistant")
        await screen.until(lambda: "subagent" in screen.heading())

    drive(shop, script)


def test_the_query_language_works_in_the_line(shop):
    """Filters, exclusions, phrases and alternatives mean what they mean to `sess search`."""

    async def script(screen):
        for typed, hits in (
            ("timeout tool:Bash", ["Bash error"]),
            ("is:error", ["Bash error"]),
            ("timeout -gateway", ["user", "↳ assistant"]),
            ('"gateway timeout"', ["Bash error"]),
            ("rename OR socket", ["user", "↳ assistant"]),
            ("nowhere", []),
        ):
            await screen.type(typed)
            shown = [line[2:18].strip() for line in screen.list() if line[1] == " "]
            assert sorted(shown) == sorted(hits), typed
        assert screen.summary() == "nothing found"

    drive(shop, script)


def test_a_filter_that_is_being_typed_is_not_searched_for(shop):
    """`gateway is:err` keeps showing the gateway until the filter is whole, and says so."""

    async def script(screen):
        await screen.type("gateway is:erro")
        assert screen.summary() == '3 hits · without the unfinished filter "is:erro"'
        await screen.type("gateway is:error")
        assert screen.summary() == "1 hit"

    drive(shop, script)


@pytest.mark.parametrize(
    ("typed", "searched"),
    [
        ("time", "time*"),
        ("ti", "ti"),
        ("retry time", "retry time*"),
        ("time ", "time "),
        ("-time", "-time"),
        ("this OR", "this OR"),
        ('"exit cod', '"exit cod"*'),
        ('"exit code"', '"exit code"'),
        ("src/ro", "src/ro"),
        ("src/rou", "src/rou*"),
        ("tool:Ba", "tool:Ba*"),
        ("is:error", "is:error"),
        ("time*", "time*"),
        ("", ""),
    ],
)
def test_what_a_beginning_is(typed, searched):
    """Three letters or more of the last word, unless it is excluded, finished or a filter."""
    assert query.open_ended(typed) == searched


def test_an_unfinished_word_gives_way(shop):
    """One or two letters that find nothing do not empty the list."""
    assert query.short_word("retry b") == "b"
    assert query.short_word("src/ro") == "ro"
    assert query.short_word("retry bac") == ""
    with closing(open_reader(shop.state / "index.db")) as db:
        for typed, unfinished in (
            ("gateway is:", "is:"),
            ("gateway -is:x", "-is:x"),
            ("gateway is:ok", ""),
            ("gateway http://x", ""),
        ):
            assert query.unfinished_filter(db, typed, Setting(0)) == unfinished

    async def script(screen):
        await screen.type("gateway zq")
        assert screen.summary() == '3 hits · without "zq", which finds nothing'
        for beginning in ('"', "-", "(", "  "):
            await screen.type(beginning)
            assert screen.summary() == "newest sessions", beginning
        for beginning in ("is:", "tool:", '"zq'):
            await screen.type(beginning)
            word = beginning.strip('"')
            assert screen.summary().startswith("newest sessions · without "), beginning
            assert f'"{word}"' in screen.summary()

    drive(shop, script)


def test_two_characters_are_a_word_in_scripts_that_write_them_so(world):
    """`超时` finds what contains it; one that is nowhere finds nothing, not something else."""
    t = world.transcript()
    t.append(t.prompt("网关超时了"), t.answer("タイムアウト 시간 초과"))
    world.ingest()

    async def script(screen):
        for typed in ("超时", "초과", "時"):
            await screen.type(typed)
            found = typed != "時"
            assert screen.summary() == ("1 hit" if found else "nothing found"), typed
            assert screen.marked(screen.app._results) == [typed] * found

    drive(world, script)


def test_a_near_spelling_is_shown_as_such(shop):
    """A word that nobody wrote shows the hits of a similar one, and the list says which."""

    async def script(screen):
        await screen.type("gatway ")
        assert screen.summary().startswith("nothing found")
        near = '3 hits · "gateway" instead of "gatway"'
        await screen.until(lambda: screen.summary() == near)
        assert set(screen.marked(screen.app._results)) == {"gateway"}
        await screen.type("imeou ")
        await screen.until(lambda: screen.summary().endswith(" · inside words"))
        await screen.type("socket tool:Bash ")
        await screen.until(lambda: screen.summary() == "nothing found · 1 without the filters")

    drive(shop, script)


def test_older_results_are_called_that(shop, monkeypatch):
    """While a search takes long, what the list still shows is named as what it is."""
    go_on = threading.Event()
    steps = Finding._steps

    def slow(self, db, request, wanted):
        if wanted.text == "timeout":
            go_on.wait(PATIENCE)
        return steps(self, db, request, wanted)

    monkeypatch.setattr(Finding, "_steps", slow)

    async def script(screen):
        await screen.type("gateway")
        screen.app._line.value = "timeout"
        await screen.until(lambda: screen.summary() == 'searching … · still showing "gateway"')
        go_on.set()
        await screen.settle()
        assert screen.summary().endswith(" hits")

    drive(shop, script)


def test_the_hits_of_a_session_can_all_be_shown(world):
    """A conversation shows its three best hits; the line below opens the others in place."""
    t = world.transcript()
    t.append(*(t.prompt(f"needle number {n}") for n in range(8)))
    world.ingest()

    async def script(screen):
        await screen.type("needle")
        assert [line.strip() for line in screen.list()][-1] == "5 more hits here"
        await screen.press("tab", "end", "enter")
        assert len(screen.list()) == 9
        assert "needle" in screen.list()[-1]
        assert screen.app.item.event is not None
        assert not screen.app.item.more

    drive(world, script)


def test_the_newest_stand_in_until_the_best_are_ranked(world, monkeypatch):
    """Where ranking takes long, the newest matches come first and are then replaced."""
    monkeypatch.setattr(query, "_RARE", 0)
    monkeypatch.setattr(query, "PAUSE", 0.01)
    t = world.transcript()
    t.append(t.prompt("needle needle needle"), t.answer("hay " * 50 + "needle"))
    world.ingest()
    answers = []
    done = threading.Event()

    def show(answer):
        answers.append(answer)
        if len(answers) == 3:
            done.set()

    finding = Finding(world.state / "index.db", show, utc=True)
    finding.ask(Request(1, "needle", (), 10, 60))
    assert done.wait(PATIENCE)
    finding.close()
    orders = [[hit.type for hit in one.conversations[0].hits] for one in answers]
    assert orders == [["assistant", "user"], ["user", "assistant"], ["user", "assistant"]]


def test_a_newer_request_stops_the_running_one(shop):
    """An endless query is interrupted, and nothing of it is ever shown."""
    started, shown = threading.Event(), []

    def work(db, request):
        if request == "endless":
            started.set()
            sql = "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n)"
            for _ in db.execute(f"{sql} SELECT max(i) FROM n"):
                pass
        shown.append(request)
        finished.set()

    finished = threading.Event()
    latest = Latest(shop.state / "index.db", work, lambda _, error: shown.append(error))
    latest.ask("endless")
    assert started.wait(PATIENCE)
    latest.ask("second")
    assert finished.wait(PATIENCE)
    latest.close()
    assert shown == ["second"]


def test_an_interrupt_that_comes_too_late_costs_nothing(shop):
    """What a stray interrupt stopped is begun again."""
    tries, finished = [], threading.Event()

    def work(db, request):
        tries.append(request)
        if len(tries) == 1:
            db.set_progress_handler(lambda: True, 1)
            try:
                db.execute("SELECT count(*) FROM events").get  # noqa: B018
            finally:
                db.set_progress_handler(None)
        finished.set()

    latest = Latest(shop.state / "index.db", work, lambda *_: None)
    latest.ask("once")
    assert finished.wait(PATIENCE)
    latest.close()
    assert tries == ["once", "once"]


def test_a_late_answer_is_not_shown(shop):
    """The answer to an earlier text never replaces what belongs to the present one."""

    async def script(screen):
        await screen.type("gateway")
        before = screen.list()
        old = Answer(Request(1, "gat", (), 10, 60))
        screen.app.post_message(Found(old))
        await screen.pilot.pause(0)
        assert screen.list() == before

    drive(shop, script)


def test_an_error_is_told_in_the_list(shop, monkeypatch):
    """A query that fails says so and leaves the finder usable."""

    def broken(self, db, request, wanted):
        raise ValueError(f"cannot look for {wanted.text}")

    async def script(screen):
        with monkeypatch.context() as patch:
            patch.setattr(Finding, "_events", broken)
            await screen.type("gateway")
            assert screen.summary() == "cannot look for gateway"
        await screen.type("nowhere")
        assert screen.summary() == "nothing found"

    drive(shop, script)


def test_without_an_index_nothing_opens(world):
    """The finder says what is missing before it touches the screen."""
    with pytest.raises(SessError, match="no index at"):
        Finder(world.state / "index.db")


def test_an_empty_index_says_so(world):
    """Without sessions every key is harmless."""
    world.state.mkdir()
    open_writer(world.state / "index.db").close()

    async def script(screen):
        assert screen.summary() == "no sessions yet"
        await screen.type("needle")
        await screen.press("down", "end", "home", "pagedown", "y", "m", "e", "r", "enter", "f5")
        assert screen.list() == []
        assert not screen.said()

    drive(world, script)


def test_it_opens_without_what_only_other_commands_need():
    """Neither the option parser nor anything that draws whole transcripts delays the screen."""
    code = (
        "import sys; import sess_cli.start, sess_cli.fresh; from sess_cli import finder;"
        " finder.load(); print(*sorted(sys.modules))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    others = {"typer", "click", "markdown_it", "pygments", "sess_cli.main", "sess_cli.export"}
    others |= {"sess_cli.render.markdown", "sess_cli.render.transcript"}
    assert not others & set(loaded.stdout.decode().split())


def test_other_commands_do_not_pay_for_it():
    """Asking whether the finder can run imports nothing of what draws it."""
    code = (
        "import sys; from sess_cli import finder; finder.has_screen();"
        " sys.exit('textual' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
