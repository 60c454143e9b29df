"""Filters against brute force: each field means the same everywhere that it can be written."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from datetime import UTC, datetime
from fnmatch import fnmatchcase

import pytest
from tests.schema.queries.search.search_corpus import (
    FORK,
    MAIN,
    NOW,
    REWRITTEN,
    SHOP,
    SUBAGENT,
    UNDATED,
)
from tests.schema.queries.search.search_oracle import Ask, Index, excluding, rows, term

from sess_common.errors import SessError
from sess_schema import kinds
from sess_schema.queries import fields
from sess_schema.queries.search import Filter, Search, ranking

DAY = 86_400_000


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    with Index(tmp_path_factory.mktemp("corpus")) as index:
        yield index


@pytest.fixture(scope="module")
def facts(index):
    return Facts(index.db)


class Facts:
    """What the other tables say about events."""

    def __init__(self, db):
        self.sessions = {row["id"]: row for row in rows(db, "SELECT * FROM sessions")}
        self.files = defaultdict(set)
        for row in rows(db, "SELECT * FROM files"):
            self.files[row["event_id"]].add(row["path"])
        self.committed = {row["event_id"] for row in rows(db, "SELECT * FROM commits")}
        self.shown = defaultdict(set)  # native id of a session to the records it shows
        for row in rows(db, "SELECT * FROM records"):
            if row["retired"] == 0:
                name = self.sessions[row["session_id"]]["native_id"]
                self.shown[name].add(row["copy_of"] or row["id"])

    def of(self, event):
        return self.sessions[event.session_id]


def ms(year, month, day, hour=0):
    return int(datetime(year, month, day, hour, tzinfo=UTC).timestamp() * 1000)


def below(path):
    return lambda f, e: (f"{f.of(e)['project']}/").startswith(f"{path}/")


def does(kind):
    return lambda _, e: e.kind == kind


def of_shop(f, e):
    """The session that was labelled and pinned."""
    return f.of(e)["native_id"] == SHOP


def named(part):
    return lambda f, e: part in f.of(e)["project"].lower()


def tool(glob):
    return lambda _, e: fnmatchcase((e.tool or "").lower(), glob)


def kind(*types):
    return lambda _, e: e.type in types


def typed(f, e):
    """What a person typed; nobody types into a subagent."""
    return e.type == "user" and f.of(e)["kind"] != "subagent"


def status(*states):
    return lambda _, e: e.status in states


def model(part):
    return lambda f, e: any(part in name for name in json.loads(f.of(e)["models"]))


def branch(glob):
    return lambda f, e: fnmatchcase(f.of(e)["git_branch"].lower(), glob)


def shown_in(session):
    return lambda f, e: e.record_id in f.shown[session]


def touches(*globs):
    return lambda f, e: any(fnmatchcase(path, glob) for path in f.files[e.id] for glob in globs)


def titled(part):
    return lambda f, e: part in (f.of(e)["title"] or f.of(e)["first_prompt"] or "").lower()


def since(moment):
    return lambda _, e: e.ts is not None and e.ts >= moment


def until(moment):
    return lambda _, e: e.ts is not None and e.ts < moment


def always(f, e):
    return True


def never(f, e):
    return False


# What somebody writes, and which events a person would say it means.
FILTERS = [
    ("agent", "claude", always), ("agent", "Cla", always), ("agent", "codex", never),
    ("project", "/code/demo", below("/code/demo")), ("project", "/code", always),
    ("project", "/code/demo/sub/", below("/code/demo/sub")), ("project", "/code/dem", never),
    ("project", "DEM", named("dem")), ("project", "shop", named("shop")),
    ("project", "demo/sub", named("demo/sub")), ("project", "%", never), ("project", "d_mo", never),
    ("tool", "Bash", tool("bash")), ("tool", "eDIT", tool("edit")), ("tool", "Bas", never),
    ("tool", "mcp__*", tool("mcp__*")), ("tool", "*__search", tool("*__search")),
    ("tool", "[be]*", tool("[be]*")), ("tool", "?ead", tool("read")), ("tool", "%", never),
    *[("kind", name, does(name)) for name in kinds.ALL], ("kind", "SHELL", does("shell")),
    *[("type", name, kind(name)) for name in fields.TYPES], ("type", "tool", kind("tool_use")),
    ("type", "prompt", typed), ("type", "error", status("error", "denied")),
    ("model", "opus", model("opus")), ("model", "HAIKU", model("haiku")), ("model", "gpt", never),
    ("model", "claude-sonnet-4-5", model("sonnet")),
    ("branch", "main", branch("main")), ("branch", "feature/*", branch("feature/*")),
    ("branch", "FIX/retry", branch("fix/retry")), ("branch", "feature", never),
    *[("session", name, shown_in(name)) for name in (MAIN, FORK, SHOP, UNDATED, SUBAGENT)],
    ("session", SUBAGENT[6:11], shown_in(SUBAGENT)), ("session", SHOP[:8], shown_in(SHOP)),
    ("session", REWRITTEN, shown_in(REWRITTEN)),
    ("session", f"{MAIN[:6]}/{SUBAGENT}", shown_in(SUBAGENT)),
    ("file", "retry.go", touches("*/retry.go")), ("file", "code", never),
    ("file", "src/retry.go", touches("*/src/retry.go")), ("file", "*.go", touches("*.go")),
    ("file", "/code/demo/retry.go", touches("/code/demo/retry.go")), ("file", "etry.go", never),
    ("file", "src/", touches("*/src/*")), ("file", "parse_????.py", touches("*_test.py")),
    ("file", "/code/demo/", touches("/code/demo/*")),
    ("file", "notes.md", touches("notes.md")), ("file", "./src/app.tsx", touches("*/src/app.tsx")),
    ("file", "/code/*/retry.go", touches("*/retry.go")),
    *[("is", name, status(name)) for name in ("ok", "error", "denied", "pending")],
    ("is", "failed", status("error", "denied")),
    ("is", "subagent", lambda f, e: f.of(e)["kind"] == "subagent"),
    ("is", "pinned", of_shop), ("label", "review", of_shop), ("label", "REV*", of_shop),
    ("label", "rev", never),
    ("has", "image", lambda _, e: e.images > 0),
    ("has", "commit", lambda f, e: e.id in f.committed),
    ("since", "2026-01-10", since(ms(2026, 1, 10))),
    ("since", "2026-01-07T08", since(ms(2026, 1, 7, 8))),
    ("since", "40d", since(NOW - 40 * DAY)), ("since", "2027", never), ("since", "2026", since(0)),
    ("until", "2026-01-10", until(ms(2026, 1, 11))), ("until", "2026-01", until(ms(2026, 2, 1))),
    ("until", "2026-01-07T08:00Z", until(ms(2026, 1, 7, 8))),
    ("until", "4w", until(NOW - 28 * DAY)),
    ("role", "user", typed), ("role", "tool", kind("tool_use")),
    ("role", "assistant", kind("assistant", "thinking", "tool_use")),
    ("role", "system", kind("system", "summary")),
    ("title", "RETRY über", titled("retry über")), ("title", "login", titled("login")),
    ("title", "Cache Bar", titled("cache bar")), ("title", "%", titled("%")),
]  # fmt: skip
EACH = pytest.mark.parametrize("case", FILTERS, ids=lambda case: ":".join(case[:2]))


def written(field, value):
    return f'{field}:"{value}"' if " " in value else f"{field}:{value}"


def test_every_field_is_proved():
    """No field is missing below."""
    assert {field for field, _, _ in FILTERS} == set(fields.FIELDS)


@EACH
def test_a_filter_means_the_same_everywhere(index, facts, monkeypatch, case):
    """In the query, as an option, excluded, with words, instead of words, in small pools."""
    field, value, means = case
    inline = Ask(written(field, value), lambda event: bool(means(facts, event)))
    as_option = {"filters": [Filter(field, value)]}
    retry, test = term("retry"), term("foo.bar()", quoted=True)
    index.check(inline)
    index.check(Ask("", inline.holds), **as_option)
    index.check(excluding(inline))
    for words in (retry | test, term("設定"), retry & excluding(term("test"))):
        index.check(words & inline)
        index.check(Ask(words.text, (words & inline).holds), **as_option)
        index.check(words & excluding(inline))
    index.check(retry | excluding(inline))
    index.check((retry & inline) | (test & excluding(inline)))
    monkeypatch.setattr(ranking, "POOL", 3)
    monkeypatch.setattr(ranking, "LATER_POOL", 4)
    index.check(retry & inline)
    index.check(retry & excluding(inline))


@EACH
def test_a_filter_narrows_every_mode(index, facts, case):
    """Regular expressions, parts of words and tool calls are filtered like words."""
    field, value, means = case
    option = {"filters": [Filter(field, value)]}

    def narrowed(holds):
        return lambda e: means(facts, e) and any(map(holds, e.lowered))

    for text, mode, holds in (
        ("re.ry", "regex", lambda text: "retry" in text),
        ("etr", "substring", lambda text: "etr" in text),
    ):
        index.check(Ask(text, narrowed(holds)), mode=mode, **option)
    if field != "type":
        in_tools = Ask(
            "e",
            lambda e: means(facts, e) and e.type == "tool_use" and "e" in "".join(e.lowered[1:3]),
        )
        index.check(in_tools, mode="tools", **option)


@pytest.mark.slow
def test_filters_are_combined(index, facts):
    """Those of a field with one value are alternatives, all others must hold together."""
    pick = random.Random(10)
    either = {
        "agent",
        "project",
        "tool",
        "kind",
        "type",
        "model",
        "branch",
        "session",
        "role",
        "file",
    }
    for _ in range(150):
        chosen = pick.sample(FILTERS, pick.choice([1, 2, 3]))
        chosen.append(pick.choice([one for one in FILTERS if one[0] == chosen[0][0]]))
        text = " ".join(written(field, value) for field, value, _ in chosen)
        groups = defaultdict(list)
        for number, (field, value, means) in enumerate(chosen):
            single = field in either or (field == "is" and value != "subagent")
            groups[field if single else number].append(means)

        def holds(event, groups=groups):
            return all(any(m(facts, event) for m in some) for some in groups.values())

        index.check(Ask(text, holds))
        index.check(Ask("", holds), filters=[Filter(field, value) for field, value, _ in chosen])

        def holds_or_is(event, holds=holds):
            return holds(event) or term("is").holds(event)

        index.check(Ask(f"is OR {text}", holds_or_is))


def test_what_is_excluded_twice_is_neither(index, facts):
    """Exclusions are no alternatives."""
    pick = random.Random(11)
    for _ in range(60):
        (a, x, first), (b, y, second) = pick.sample(FILTERS, 2)

        def neither(event, first=first, second=second):
            return not first(facts, event) and not second(facts, event)

        index.check(Ask(f"-{written(a, x)} -{written(b, y)}", neither))


def test_superseded_events_are_filtered_too(index, facts):
    """What left its file still has its tool, its session and its time."""
    for field, value, means in FILTERS:
        if field != "session":

            def holds(event, means=means):
                return means(facts, event)

            index.check(Ask(written(field, value), holds), superseded=True)
    ask = Ask(f"session:{REWRITTEN}", lambda e: facts.of(e)["native_id"] == REWRITTEN)
    index.check(ask, superseded=True)
    assert ask.among(index.rewritten)


@pytest.mark.parametrize(
    "text",
    ["type:bogus", "is:open", "has:money", "role:king", "since:never", "session:0000ffff",
     "key:value", "file:", "file:///etc/hosts"],
)  # fmt: skip
def test_what_is_no_filter_is_searched_for(index, text):
    """As an option it is a mistake, in a query it is what somebody looks for."""
    field, _, value = text.partition(":")
    index.check(Ask(text, term(text.rstrip(":")).holds))
    if field in fields.FIELDS and not value.startswith("/") and value:
        with pytest.raises(SessError):
            [*Search("retry", [Filter(field, value)]).hits(index.db)]


# -- what went wrong before


@pytest.mark.parametrize(
    ("value", "means"), [("error", status("error", "denied")), ("user", never)]
)
def test_a_type_narrows_tool_calls(index, facts, value, means):
    """In a search of tool calls another type is no alternative to them."""
    ask = Ask("e", lambda e: means(facts, e) and "e" in "".join(e.lowered[1:3]))
    index.check(ask, mode="tools", filters=[Filter("type", value)])


def test_an_exclusion_excludes_beside_an_option(index):
    """`-retry` with `--tool Bash` is `tool:Bash -retry`."""
    ask = Ask("-retry", lambda e: e.tool == "Bash" and not term("retry").holds(e))
    index.check(ask, filters=[Filter("tool", "Bash")])


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("file:[slug].tsx", lambda path: path.endswith("/[slug].tsx")),
        ("file:./notes.md", lambda path: path == "notes.md"),
        ("file:readme.md", lambda path: path.endswith("/README.md")),
        ("file:README.md file:app.tsx", lambda path: path.endswith(("/README.md", "/app.tsx"))),
    ],
)
def test_files_are_found_as_people_write_them(index, facts, text, means):
    """Names with brackets, in the current directory, in another case, one of two."""
    index.check(Ask(text, lambda e: any(map(means, facts.files[e.id]))))
