"""What every output says about a session, to compare with its numbers (docs/numbers.md)."""

from __future__ import annotations

import io
import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, redirect_stdout
from datetime import UTC
from pathlib import Path

import apsw
from tests.must import must

from sess_cli.export import data, markdown
from sess_cli.export.files import Failures
from sess_cli.export.film import storyboard
from sess_cli.export.html import page, pages, timeline
from sess_cli.export.site import plan
from sess_cli.export.site.build import Site, Wanted
from sess_cli.export.story import Story
from sess_cli.options import Matching
from sess_cli.render import amounts, transcript
from sess_cli.render import listing as lists
from sess_cli.render.stats import dashboard
from sess_cli.render.stats import session as session_stats
from sess_cli.terminal import Terminal
from sess_schema import numbers, objects
from sess_schema.marks import Marks
from sess_schema.numbers import Numbers
from sess_schema.queries import sessions
from sess_schema.queries.sessions import Listing, SessionRow
from sess_schema.queries.stats import Stats
from sess_schema.queries.views import failures, files, tools
from sess_schema.session import Entry, Reader
from sess_schema.sums import Tally

Said = dict[str, object]
JSON = {
    "duration_ms": "duration", "active_ms": "active", "user_ms": "user", "events": "events",
    "prompts": "prompts", "tool_calls": "calls", "tool_errors": "failed", "tool_denied": "denied",
    "requests": "responses", "output_tokens": "output",
}  # fmt: skip
TEXT = ("duration", "active")


def defined(of: Numbers) -> dict[str, int]:
    return {
        "duration": of.duration_ms,
        "active": of.active_ms,
        "user": of.user_ms,
        "events": of.events,
        "prompts": of.prompts,
        "calls": of.calls,
        "failed": of.failed,
        "denied": of.denied,
        "responses": of.total.requests,
        "output": of.total.output_tokens,
    }


def differences(db: apsw.Connection, folder: Path, *, sqlite: bool = False) -> Iterator[str]:
    """Every number that an output gives and that is not the session's.

    `sqlite`: also in a database, which has the objects of the JSON export and takes long to make.
    """
    rows = [*Listing(every=True, limit=0).rows(db)]
    many = numbers.of_many(db, rows)
    sites = _site(db, folder / "site")
    copies = _database(db, rows, folder / "sessions.db") if sqlite else {}
    groups = Stats().groups(db, "session")
    alone = Stats().total(db)
    assert _added(groups) == alone
    yield from _differences_of_views(db, alone)
    for row in rows:
        wanted = defined(numbers.of(db, row))
        outputs = {
            "list --json": _json(objects.session(row, "", many[row.key], Marks(db))),
            **_of_stats(db, row),
            **_of_show(db, row),
            **_of_exports(db, row, folder / f"pages-{row.key}"),
        }
        if plan.key_of(row) in sites:
            outputs["site"] = sites[plan.key_of(row)]
        if sqlite:
            outputs["sqlite"] = copies[row.session, row.source]
        for name, said in outputs.items():
            for what, value in said.items():
                right: object = wanted[what]
                if isinstance(value, str) and what in TEXT:
                    right = amounts.duration(wanted[what])
                if value != right:
                    yield f"{row.session}: {what} in {name} is {value!r}, not {right!r}"


def _json(found: dict[str, object]) -> Said:
    return {JSON[name]: value for name, value in found.items() if name in JSON}


def _differences_of_views(db: apsw.Connection, total: Tally) -> Iterator[str]:
    """Sums over the views for people that are not those of `sess stats`."""
    events = {
        "prompts": total.prompts,
        "calls": total.tool_calls,
        "failed": total.tool_errors,
        "denied": total.tool_denied,
    }
    spent = {
        "responses": total.requests,
        "tokens": total.input_tokens
        + total.cache_write_tokens
        + total.cache_read_tokens
        + total.output_tokens,
        "nano-dollars": total.cost_nano,
    }
    counted = {
        "cached": total.cache_read_tokens,
        "reasoning": total.reasoning_tokens,
        "saved": total.saved_nano,
        "unpriced": total.unpriced,
    }
    edited = files.read_edits(db, Stats()).total
    touched = files.most_edited(db, Stats())
    nano = "CAST(round(coalesce(sum({}), 0) * 1e9) AS INTEGER)"
    for view, columns, wanted in (
        (
            "v_sessions",
            (
                "sum(prompts), sum(tool_calls), sum(tool_errors), sum(tool_denied), sum(requests),"
                f" sum(tokens), {nano.format('cost_usd')}"
            ),
            events | spent,
        ),
        (
            "v_events",
            (
                "count(*) FILTER (WHERE type = 'user' AND session_kind <> 'subagent'),"
                " count(*) FILTER (WHERE type = 'tool_use' AND unjoined IS NULL)"
            ),
            {"prompts": total.prompts, "calls": total.tool_calls},
        ),
        (
            "v_calls",
            (
                "count(*), count(*) FILTER (WHERE status = 'error'),"
                " count(*) FILTER (WHERE status = 'denied')"
            ),
            {name: events[name] for name in ("calls", "failed", "denied")},
        ),
        (
            "v_usage",
            (
                f"count(*), sum(tokens), {nano.format('cost_usd')}, sum(cache_read_tokens),"
                f" sum(reasoning_tokens), {nano.format('saved_usd')},"
                " count(*) FILTER (WHERE cost_usd IS NULL)"
            ),
            spent | counted,
        ),
        (
            "v_files WHERE status = 'ok'",
            (
                "count(DISTINCT path), count(*) FILTER (WHERE action = 'edit'),"
                " count(*) FILTER (WHERE action = 'write'), count(*) FILTER (WHERE action = 'read')"
            ),
            {
                "files": len(touched),
                "edits": sum(file.edits for file in touched),
                "writes": sum(file.writes for file in touched),
                "reads": sum(file.reads for file in touched),
            },
        ),
        (
            "v_edits WHERE status = 'ok'",
            "sum(added), sum(removed)",
            {"added": edited.added, "removed": edited.removed},
        ),
    ):
        found = [value or 0 for value in next(db.execute(f"SELECT {columns} FROM {view}"))]
        if found != [*wanted.values()]:
            yield f"{view} adds up to {dict(zip(wanted, found, strict=True))}, not {wanted}"


def _of_stats(db: apsw.Connection, row: SessionRow) -> dict[str, Said]:
    asked = Stats(session=row.key, zone=UTC)
    total = asked.total(db)
    out = io.StringIO()
    with redirect_stdout(out):
        session_stats.write(db, asked, row, utc=True)
    text = dict(re.findall(r"^([A-Z][\w. ]+): +(.+)$", out.getvalue(), re.MULTILINE))
    drawn = io.StringIO()
    dashboard.write(db, asked, Terminal(drawn))
    board = dict(re.findall(r"^(\w+) {2,}(.+)$", drawn.getvalue(), re.MULTILINE))
    used = tools.read_tools(db, asked).tools.values()
    return {
        "stats --session --json": _json(objects.group("", total)),
        "stats ID --json": _json(session_stats.facts(db, asked, row)),
        "stats ID": {
            "duration": text["Duration"],
            "active": text["Active Time"],
            "events": _number(text["Events"]),
            "prompts": _number(text["Prompts"]),
            "calls": _number(text["Tool Calls"]),
            **_outcomes(text.get("Outcomes", "")),
        },
        "stats --session": {
            **_counted(board["work"], prompts="prompt", responses="response"),
            **({"active": board["time"].split(" active")[0]} if "time" in board else {}),
        },
        "stats tools": {
            "calls": sum(use.calls for use in used),
            "failed": sum(use.errors for use in used),
            "denied": sum(use.denied for use in used),
        },
        "stats errors": {"failed": len(failures.read(db, asked, Path("/nowhere")).calls)},
        "stats --by tool": _json(objects.sums(_added(asked.groups(db, "tool")))),
        "stats --by day": _json(objects.sums(_added(asked.groups(db, "day")))),
    }


def _added(groups):
    total = Tally()
    for tally in groups.values():
        total.add(tally)
    return total


def _of_show(db: apsw.Connection, row: SessionRow) -> dict[str, Said]:
    terminal = Terminal(io.StringIO())
    names = sessions.ShortIds(db)
    head = dict(
        line.split(maxsplit=1)
        for line in transcript.header_lines(db, terminal, row, names, utc=True)
        if re.match(r"(when|counts) ", line)
    )
    (line,) = lists.lines(
        db, terminal, lists.Chosen([row], numbers.of_many(db, [row]), 1), utc=True
    )
    shown = {
        "show": {
            **_counted(head["counts"], prompts="prompt", calls="tool call", events="event"),
            **_outcomes(head["counts"]),
            **_spans(head["when"]),
        },
        "show --json": _shown(db, row),
    }
    if len(sessions.agents(db)) == 1:
        shown["list"] = {"events": _number(line.split()[-1])}
    return shown


def _shown(db: apsw.Connection, row: SessionRow) -> Said:
    """Counted one by one, with the events of subagents, each once."""
    seen: dict[int, Entry] = {}
    asked = 0
    for key in sessions.family(db, row.key):
        own = sessions.by_key(db, key)
        for entry in Reader(db, key).entries():
            if entry.id not in seen and entry.type == "user":
                asked += own.kind != "subagent"
            seen.setdefault(entry.id, entry)
    calls = [
        entry for entry in seen.values() if entry.type == "tool_use" and entry.unjoined is None
    ]
    return {
        "events": len(Reader(db, row.key).order),
        "prompts": asked,
        "calls": len(calls),
        "failed": sum(entry.status == "error" for entry in calls),
        "denied": sum(entry.status == "denied" for entry in calls),
    }


def _of_exports(db: apsw.Connection, row: SessionRow, folder: Path) -> dict[str, Said]:
    story = Story(db, row, images=False)
    written = {}
    for name, write in (
        ("md", markdown.write), ("html", page.write), ("timeline", timeline.write),
        ("json", data.write_json),
    ):  # fmt: skip
        out = io.BytesIO()
        write(story, out, **({"utc": True} if name in ("md", "timeline") else {}))
        written[name] = out.getvalue().decode()
    document = json.loads(written["json"])
    made = pages.write(story, str(folder), utc=True)
    index = (folder / "index.html").read_text("utf-8")
    return {
        "export md": _markdown(written["md"]),
        "export html": _page(written["html"]),
        "export timeline": _timeline(written["timeline"]),
        "export json": {**_json(document["session"]), "events": len(document["events"])},
        "export pages": {
            **_spans(f"({_inside(index, 'about').split(' · ')[-1]})"),
            **_counted(index, prompts="prompt", calls="tool call"),
            **_outcomes(_inside(index, "stats")),
        },
        "pages": {"prompts": made.prompts},
        "film": _film(story),
    }


def _markdown(text: str) -> Said:
    _, head, _ = text.split("\n\n", 2)
    (counts,) = re.findall(r"^- (\d[\d,]* prompts?, .*)$", head, re.MULTILINE)
    (when,) = re.findall(r"^- ((?:no date|\d{4}-).*)$", head, re.MULTILINE)
    return {
        **_counted(counts, prompts="prompt", calls="tool call"), **_outcomes(counts), **_spans(when)
    }  # fmt: skip


def _page(text: str) -> Said:
    facts = dict(re.findall(r"<dt>([\w ]+)</dt><dd>([^<]*)</dd>", text))
    said = {"duration": facts.get("Duration", "0ms")}
    if "Active" in facts:
        said["active"] = facts["Active"]
    names = {"prompts": "Prompts", "calls": "Tool calls", "failed": "Failed", "denied": "Denied"}
    return said | {what: _number(facts.get(name, "0")) for what, name in names.items()}


def _timeline(text: str) -> Said:
    head = _inside(text, "facts", "div")
    spans = re.findall(r"<span>([^<]*)</span>", head)
    return {
        **_spans(f"({spans[1]})"),
        **_counted(head, prompts="prompt", calls="tool call"),
        **_outcomes(head),
    }


def _film(story: Story) -> Said:
    card = storyboard._closing(story, "", 80, 0, 0)
    facts = {}
    for line in card.rows:
        words = "".join(str(piece[0]) for piece in line)
        if found := re.match(r"(duration|prompts|tool calls|failed|denied) +(\S+)", words):
            facts[found[1]] = found[2]
    return {
        "duration": facts.get("duration", "0ms"),
        "prompts": _number(facts["prompts"]),
        "calls": _number(facts["tool calls"]),
        "failed": _number(facts["failed"]),
        "denied": _number(facts.get("denied", "0")),
    }


def _site(db: apsw.Connection, folder: Path) -> dict[str, Said]:
    """By session, what the index of a site says."""
    rows = [*Matching().listing(utc=True).rows(db)]
    site = Site(db, str(folder), rows, Wanted(utc=True))
    assert not site.build(None).failed
    files = {entry.file: key for key, entry in must(plan.load(str(folder))).sessions.items()}
    found = {}
    for html in [folder / "index.html", *folder.glob("projects/*.html")]:
        for file, said in re.findall(
            r'<li data-file="([^"]+)">.*?<p>(.*?)</p></li>', html.read_text("utf-8")
        ):
            spans = re.findall(r"<span>([^<]*)</span>", said)
            text = " · ".join(spans)
            found[files[file.removeprefix("../")]] = {
                "duration": spans[1]
                if re.fullmatch(r"[\d.]+m?s|\d+m\d+s|\d+h\d+m|\d+d\d+h", spans[1])
                else "0ms",
                **_counted(text, prompts="prompt", calls="tool call"),
                **_outcomes(said),
            }
    assert len(found) == len(rows)
    return found


def _database(db: apsw.Connection, rows: list[SessionRow], path: Path) -> dict[object, Said]:
    alone = [
        row for row in rows if row.parent_key is None or not sessions.is_read(db, row.parent_key)
    ]
    failed = Failures()
    data.write_database((Story(db, row, images=False) for row in alone), str(path), failed)
    assert failed.found == []
    with closing(sqlite3.connect(path)) as made:
        made.row_factory = sqlite3.Row
        return {
            (row["session"], row["source"]): _json(dict(row))
            for row in made.execute("SELECT * FROM sessions")
        }


# -- reading


def _number(text: str) -> int:
    assert re.fullmatch(r"\d{1,3}(,\d{3})*", text), text
    return int(text.replace(",", ""))


def _counted(text: str, **names: str) -> Said:
    found: Said = {}
    for what, name in names.items():
        count, plural = must(re.search(rf"\b(\d[\d,]*) {name}(s?)\b", text)).groups()
        found[what] = _number(count)
        assert bool(plural) == (found[what] != 1), text
    return found


def _outcomes(text: str) -> Said:
    found: Said = {}
    for what in ("failed", "denied"):
        match = re.search(rf"\b(\d[\d,]*) {what}\b", text)
        found[what] = _number(match[1]) if match else 0
    return found


def _spans(when: str) -> Said:
    """`... (1h5m)` or `... (1h5m, 3m2s active)`."""
    found = re.search(r"\(([\w.]+)(?:, ([\w.]+) active)?\)", when)
    if found is None:
        return {"duration": "0ms"}
    return {"duration": found[1], "active": found[2]} if found[2] else {"duration": found[1]}


def _inside(html: str, name: str, tag: str = "p") -> str:
    return must(re.search(rf'<{tag} class="{name}">(.*?)</{tag}>', html, re.DOTALL))[1]
