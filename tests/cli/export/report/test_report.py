"""`sess stats --html` and `--png`: the numbers of `sess stats`, drawn."""

from __future__ import annotations

import itertools
import re
import stat
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from tests.must import must

from sess_cli.export.report import calendar_png, page
from sess_cli.render.tallies import money
from sess_common import installation
from sess_common.errors import SessError
from sess_schema.connection import open_reader
from sess_schema.queries.stats import Stats

MAIN = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"
MODELS = (
    "claude-sonnet-4-5-20250929", "claude-opus-4-5-20251101", "claude-haiku-4-5-20251001",
    "claude-sonnet-4-20250514", "claude-opus-4-20250514", "claude-opus-4-1-20250805",
    "claude-3-5-haiku-20241022", "nobody-knows-1",
)  # fmt: skip
NEW_YORK = ZoneInfo("America/New_York")


class Report(HTMLParser):
    """The data tables of a page by id, as the exact numbers in them, and the tiles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html = html
        self.tables: dict[str, dict[str, list[int]]] = {}
        self.heads: dict[str, list[str]] = {}
        self.tiles: dict[str, int] = {}
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.words: list[str] = []
        self._at = ""
        self._part = ""
        self._row = ""
        self._cells: list[int] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        told = dict(attrs)
        self.tags.add(tag)
        self.attributes |= set(told)
        if tag in ("details", "div") and "id" in told:
            self._at = told["id"]
            self.tables.setdefault(self._at, {})
            self.heads.setdefault(self._at, [])
        if tag in ("thead", "tbody", "tfoot", "td"):
            self._part = tag
        if tag == "tr":
            self._row, self._cells = "", []
        if tag == "th":
            self._part = "head" if told.get("scope") == "col" else "name"
            self.heads.get(self._at, []).append("") if self._part == "head" else None
        if tag == "data":
            self._cells.append(int(told["value"]))
            if self._at.startswith("total-"):
                self.tiles.setdefault(self._at.removeprefix("total-"), int(told["value"]))

    def handle_endtag(self, tag):
        if tag == "details":
            self._at = ""
        if tag == "tr" and self._at and self._row:
            self.tables[self._at][self._row] = self._cells

    def handle_data(self, data):
        self.words.append(data)
        if self._part == "name":
            self._row += data
        elif self._part == "head" and self._at:
            self.heads[self._at][-1] += data


@pytest.fixture
def spent(world):
    """Eight models, several days, two projects, calls that fail, one day of New York in two."""
    numbers = itertools.count(1)
    begin = datetime(2025, 12, 30, 3, 30, tzinfo=UTC)
    for session, folder in ((MAIN, "/code/demo"), (OTHER, "/code/other")):
        t = world.transcript(session, folder.replace("/", "-"))
        for model in MODELS:
            number = next(numbers)
            told = {
                "timestamp": f"{begin + timedelta(hours=7 * number):%Y-%m-%dT%H:%M:%S}.000Z",
                "cwd": folder,
            }
            t.append(t.prompt(f"do {number}", **told))
            record = t.call(f"c{number}", "Bash" if number % 3 else "Read", command="ls")
            record["message"]["model"] = model
            record["message"]["stop_reason"] = "tool_use"
            record["message"]["usage"] = {
                "input_tokens": 11 * number,
                "output_tokens": 101 * number,
                "cache_creation_input_tokens": 1003,
                "cache_read_input_tokens": 50_021,
            }
            t.append(record | told)
            failed = number % 4 == 0
            text = "Exit code 1\ncommand not found" if failed else "fine"
            t.append(t.result(f"c{number}", text, is_error=failed, **told))
    world.ingest()
    return world


def index(world):
    return closing(open_reader(world.state / "index.db"))


def report(world, asked):
    with index(world) as db:
        page.write(db, asked, str(world.root / "report.html"))
        return Report((world.root / "report.html").read_text()), asked.total(db)


QUESTIONS = (
    Stats(zone=UTC),
    Stats(zone=NEW_YORK),
    Stats(zone=UTC, models=("claude-opus",)),
    Stats(zone=UTC, projects=("/code/other",)),
    Stats(zone=UTC, since=int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000),
          until=int(datetime(2026, 1, 2, 12, tzinfo=UTC).timestamp() * 1000)),
)  # fmt: skip


@pytest.mark.parametrize("asked", QUESTIONS)
def test_every_total_in_the_page_is_the_total_of_stats(spent, asked):
    shown, total = report(spent, asked)
    assert total.requests > 1
    tokens = (total.input_tokens, total.output_tokens, total.cache_write_tokens,
              total.cache_read_tokens)  # fmt: skip
    group = [total.cost_nano, *tokens, len(total.sessions), total.prompts, total.requests,
             total.tool_calls, total.tool_errors]  # fmt: skip
    assert shown.tables["cost-data"]["total"][-1] == total.cost_nano
    assert shown.tables["tokens-data"]["total"][-1] == total.tokens
    assert shown.tables["models-data"]["total"] == group
    assert shown.tables["projects-data"]["total"] == group
    assert shown.tables["tools-data"]["total"] == [total.tool_calls, total.tool_errors, 0, 0]
    assert shown.tables["clock-data"]["total"][:2] == [total.prompts, total.requests]
    assert shown.tiles["cost"] == total.cost_nano
    assert shown.tiles["tokens"] == total.tokens
    assert shown.tiles["sessions"] == len(total.sessions)
    assert shown.tiles["prompts"] == total.prompts
    assert shown.tiles["responses"] == total.requests
    assert shown.tiles["calls"] == total.tool_calls


@pytest.mark.parametrize("asked", QUESTIONS)
def test_rows_add_up_to_the_totals_below_them(spent, asked):
    shown, total = report(spent, asked)
    for id_ in ("cost-data", "tokens-data", "models-data", "tools-data", "clock-data"):
        table = dict(shown.tables[id_])
        foot = table.pop("total")
        sums = [sum(column) for column in zip(*table.values(), strict=True)]
        if id_ == "models-data":  # a session may have several models
            del sums[5], foot[5]
        assert sums == foot, id_
    if total.tool_errors:
        assert shown.tables["errors-data"]["total"] == [total.tool_errors]
        assert shown.tables["failures-data"]["total"] == [total.tool_calls, total.tool_errors]


def test_days_are_those_of_the_zone(spent):
    for zone in (UTC, NEW_YORK):
        asked = Stats(zone=zone)
        shown, _ = report(spent, asked)
        with index(spent) as db:
            groups = asked.groups(db, "day")
        found = {day: row[:3] for day, row in shown.tables["calendar-data"].items()}
        assert found == {
            day: [tally.prompts, tally.requests, tally.tool_calls] for day, tally in groups.items()
        }


def test_at_most_six_series_the_rest_is_other(spent):
    shown, _ = report(spent, Stats(zone=UTC))
    heads = shown.heads["cost-data"]
    assert len(heads) == 9
    assert heads[-2:] == ["other", "total"]
    assert set(re.findall(r'class="(s\d)"', shown.html)) == {f"s{n}" for n in range(7)}


def test_series_and_bars_are_sorted_by_size(spent):
    shown, _ = report(spent, Stats(zone=UTC))
    series = shown.tables["cost-data"]["total"][:-2]
    assert series == sorted(series, reverse=True)
    for id_ in ("models-data", "projects-data"):
        costs = [row[0] for name, row in shown.tables[id_].items() if name != "total"]
        assert costs == sorted(costs, reverse=True)
    for id_ in ("tools-data", "latency-data"):
        calls = {name: row[0] for name, row in shown.tables[id_].items() if name != "total"}
        assert calls == {"Bash": 11, "Read": 5}
        assert [*calls] == ["Bash", "Read"]


def test_tools_with_the_most_timed_calls_come_first_in_latencies(world):
    """Equal ones by name."""
    t = world.transcript()
    for tool, count in (("Bash", 1), ("Zip", 2), ("Read", 3), ("Grep", 2)):
        for number in range(count):
            t.append(t.call(f"{tool}{number}", tool), t.result(f"{tool}{number}", "fine"))
    world.ingest()
    shown, _ = report(world, Stats(zone=UTC))
    order = ["Read", "Grep", "Zip", "Bash"]
    assert list(shown.tables["latency-data"]) == order


def test_models_of_unknown_price_are_named(spent):
    shown, total = report(spent, Stats(zone=UTC))
    assert total.unpriced == 2
    assert "2 responses without a known price" in "".join(shown.words)
    assert "nobody-knows-1" in shown.html.partition('id="unpriced"')[2].partition("</p>")[0]


def test_an_unknown_price_is_not_nothing(spent):
    """In the total and in the model's row: unknown is not $0."""
    shown, total = report(spent, Stats(zone=UTC))
    assert f'<data value="{total.cost_nano}">{money(total.cost_nano)}+</data>' in shown.html
    table = shown.html.partition('id="models-data"')[2].partition("</details>")[0]
    row = table.partition("nobody-knows-1")[2].partition("</tr>")[0]
    assert '<data value="0">unknown</data>' in row


def test_the_period_and_the_filters_are_shown(spent):
    asked = Stats(
        zone=NEW_YORK,
        since=int(datetime(2026, 1, 1, 5, tzinfo=UTC).timestamp() * 1000),
        agents=("claude",),
        subagents="exclude",
    )
    shown, _ = report(spent, asked)
    head = shown.html.partition("<header>")[2].partition("</header>")[0]
    for said in ("since 2026-01-01 ", "America/New_York", "claude</bdi>", "exclude</bdi>"):
        assert said in head


def test_one_session_is_named_and_alone(spent):
    ((key,),) = spent.sql("SELECT id FROM sessions WHERE native_id = ?", OTHER)
    shown, total = report(spent, Stats(zone=UTC, session=key))
    assert f"{OTHER}</bdi>" in shown.html.partition("</header>")[0]
    assert shown.tables["models-data"]["total"][5:8] == [1, total.prompts, total.requests]
    assert set(shown.tables["projects-data"]) == {"/code/other", "total"}


def test_what_has_no_date_is_counted_and_not_drawn(world):
    t = world.transcript()
    records = [t.prompt("go"), t.call("c1", command="ls"), t.result("c1", "no", is_error=True)]
    for record in records:
        del record["timestamp"]
    t.append(*records)
    world.ingest()
    shown, total = report(world, Stats(zone=UTC))
    assert (total.requests, total.tool_errors) == (1, 1)
    assert shown.tables["tokens-data"]["undated"][-1] == total.tokens
    said = "".join(shown.words)
    assert said.count("Nothing of it has a date") == 3  # cost, tokens and failed calls
    assert "No activity" in said


def test_refused_calls_are_no_failures_of_a_tool(world):
    t = world.transcript()
    refused = "The user doesn't want to proceed with this tool use. The tool use was rejected"
    t.append(
        t.prompt("go"),
        t.call("c1", command="rm"),
        t.result("c1", refused, is_error=True),
        t.call("c2", command="ls"),
        t.result("c2", "no", is_error=True),
        t.call("c3", command="ls"),
        t.result("c3", "yes"),
        t.call("c4", command="ls"),
    )
    world.ingest()
    shown, _ = report(world, Stats(zone=UTC))
    assert shown.tables["tools-data"]["Bash"] == [4, 1, 1, 1]
    assert "1 failed, 50.0% of the calls that ran, 1 denied" in "".join(shown.words)


def test_an_empty_report_says_so_in_words(spent):
    shown, total = report(spent, Stats(zone=UTC, since=4_000_000_000_000))
    assert total.requests == 0
    said = "".join(shown.words)
    for words in ("No failed calls in this period", "No tool calls in this period",
                  "No tokens in this period", "No activity in this period",
                  "No projects in this period"):  # fmt: skip
        assert words in said


def test_the_page_needs_nothing_else_and_allows_nothing_else(spent):
    shown, _ = report(spent, Stats(zone=UTC))
    assert not shown.attributes & {"style", "src", "href", "xlink:href", "srcset", "data"}
    assert not {name for name in shown.attributes if name.startswith("on")}
    assert not re.search(r"https?://", shown.html)


def test_the_file_is_for_its_owner_only(spent):
    report(spent, Stats(zone=UTC))
    assert stat.S_IMODE((spent.root / "report.html").stat().st_mode) == 0o600


def test_a_picture_of_the_calendar_needs_no_browser(spent):
    from PIL import Image

    with index(spent) as db:
        calendar_png.write(db, Stats(zone=UTC), str(spent.root / "calendar.png"))
        calendar_png.write(db, Stats(zone=UTC, agents=("nobody",)), str(spent.root / "empty.png"))
    with Image.open(spent.root / "calendar.png") as picture, picture.convert("RGB") as drawn:
        assert picture.format == "PNG"
        assert picture.width == 2400
        found: list[Any] = must(drawn.getcolors(1 << 24))
        colours = {colour for _, colour in found}
        assert {
            tuple(bytes.fromhex(shade[1:])) for shade in calendar_png.COLOURS["dark"].shades
        } <= colours
    with Image.open(spent.root / "empty.png") as picture:
        assert picture.width == 2400


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_the_grid_of_the_picture_ends_at_its_margins(spent, theme):
    """A year of days fills the width between them; nothing is drawn outside."""
    from PIL import Image, ImageChops

    t = spent.transcript("33333333-3333-4333-8333-333333333333")
    t.append(t.prompt("long ago", timestamp="2025-03-01T10:00:00.000Z"))
    spent.ingest()
    path = str(spent.root / "calendar.png")
    with index(spent) as db:
        calendar_png.write(db, Stats(zone=UTC), path, theme)
    colours = calendar_png.COLOURS[theme]
    with Image.open(path) as picture, picture.convert("RGB") as drawn:
        blank = Image.new("RGB", drawn.size, colours.background)
        left, _, right, _ = must(ImageChops.difference(drawn, blank).getbbox())
    margin = 2 * calendar_png._MARGIN
    assert margin <= left <= margin + 6, "letters have a bearing"
    assert right in (2400 - margin, 2400 - margin + 1)


def test_no_streak_is_no_fact_to_show(spent, monkeypatch):
    said = []
    monkeypatch.setattr(calendar_png._Picture, "_say", lambda *given, **_: said.append(given[3]))
    with index(spent) as db:
        calendar_png.write(db, Stats(zone=UTC), str(spent.root / "calendar.png"))
    assert "longest streak" in said
    assert "current streak" not in said
    assert "0 days" not in said


def test_without_pillow_one_line_says_what_to_install(spent, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)  # what an import finds when it is not installed
    with index(spent) as db, pytest.raises(SessError, match="Pillow") as told:
        calendar_png.write(db, Stats(zone=UTC), str(spent.root / "calendar.png"))
    assert told.value.hint == f"`{installation.adding('video')}`"
    assert not (spent.root / "calendar.png").exists()


def test_a_folder_that_is_not_there_is_an_error_of_one_line(spent):
    with index(spent) as db, pytest.raises(SessError, match="no such directory"):
        page.write(db, Stats(zone=UTC), str(spent.root / "nowhere" / "report.html"))
