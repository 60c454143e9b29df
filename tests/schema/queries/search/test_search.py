"""Searching a real index."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sess_common.errors import SessError
from sess_schema.connection import open_reader
from sess_schema.migrate import migrations
from sess_schema.queries.search import TOKENIZER, Filter, Search

if TYPE_CHECKING:  # it is not there at run time
    from sess_schema.queries.search.terms import Mode

FORK = "22222222-2222-4222-8222-222222222222"


@pytest.fixture
def index(world):
    """A session with a failure, a refusal and a fork that repeats its beginning."""
    t = world.transcript()
    shared = [t.prompt("please fix the flaky retry test"), t.answer("Looking at retry now.")]
    t.append(
        *shared,
        t.call("c1", command="go test ./...", description="run them"),
        t.result("c1", "FAIL: retry was called 2 times", is_error=True),
        t.call("c2", "Edit", file_path="/code/demo/retry.go", old_string="2", new_string="3"),
        t.result("c2", "The user doesn't want to proceed with this tool use.", is_error=True),
        t.call("c3", command="go vet"),
        t.result("c3", "x" * 3_000_000 + " deepword " + "データベースの設定 café => done"),
    )
    fork = world.transcript(FORK)
    fork.append(*shared, fork.prompt("now in the fork", timestamp="2026-02-03T10:00:00.000Z"))
    world.ingest()
    with closing(open_reader(world.state / "index.db")) as db:
        yield db


def found(db, text, limit=20, superseded=False, **filters):
    given = [Filter(field, value) for field, values in filters.items() for value in values]
    search = Search(text, given, limit, superseded=superseded)
    return [(hit.type, hit.tool, hit.status) for hit in search.hits(db)]


def test_the_tokenizer_is_that_of_the_index():
    """Queries are cut into words as the texts were."""
    (sql,) = (sql for _, name, sql in migrations() if name.endswith("0001_tables"))
    assert f'tokenize = "{TOKENIZER[0]} {" ".join(TOKENIZER[1])}"' in sql


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("请修复React组件的bug", ["React", "bug", "组件", "复React组", "REACT"]),
        ("日本語テストDockerコンテナ", ["Docker", "コンテナ", "テスト"]),
        ("使用foo.bar()方法 foo baz", ["foo.bar()", '"foo bar"', '"foo baz"']),
        ("使用foo baz 和", ['"foo baz"', "baz -foo.bar"]),
        ("ﾃｽﾄｹｰｽｦ走らせる", ["ｹｰｽ"]),
        ("🤖glued 🧪🟢green 100₽ \ue0a0main", ["glued", "green", "100", "main", "🤖", "🟢"]),
        ("ยินดีต้อนรับworldครับ", ["world", "ต้อนรับ"]),
        ("שלום עולם", ["עולם", "שלום"]),
        ("ΟΔΟΣΤΑΣΗ", ["οδοστασησ"[:-1]]),
    ],
)
def test_words_beside_other_scripts_are_words(world, prompt, words):
    """Chinese, emoji and glyphs of terminal fonts part words as spaces do."""
    t = world.transcript()
    t.append(t.prompt(prompt))
    world.ingest()
    with closing(open_reader(world.state / "index.db")) as db:
        for word in words:
            (hit,) = Search(word).hits(db)
            assert hit.snippet.spans, word


def test_the_mark_of_a_failure_is_no_word(world):
    """`is_error` finds a failed call, `error` only what says it."""
    t = world.transcript()
    t.append(t.call("c1", command="ls"), t.result("c1", "no such file", is_error=True))
    world.ingest()
    with closing(open_reader(world.state / "index.db")) as db:
        counts: list[tuple[str, Mode, int]] = [
            ("is_error", "words", 1),
            ("is_error", "substring", 1),
            ("error", "words", 0),
            ("err*", "words", 0),
            ("error", "substring", 0),
            ("err", "regex", 0),
        ]
        for text, mode, count in counts:
            assert Search(text, mode=mode).results(db).count() == count, (text, mode)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("flaky retry", [("user", None, None)]),
        ("FLAKY", [("user", None, None)]),
        ('"retry now"', [("assistant", None, None)]),
        ('"now retry"', []),
        ("loo*", [("assistant", None, None)]),
        ("retry -flaky -fail", [("assistant", None, None), ("tool_use", "Edit", "denied")]),
        ("go test ./...", [("tool_use", "Bash", "error")]),
        ("go ./....", []),
        ("is_error", [("tool_use", "Edit", "denied"), ("tool_use", "Bash", "error")]),
        ("deepword", [("tool_use", "Bash", "ok")]),
        ("cafe", [("tool_use", "Bash", "ok")]),
        ("ベース", [("tool_use", "Bash", "ok")]),
        ("=>", [("tool_use", "Bash", "ok")]),
        ("ベース -deepword", []),
        ("ベース -flaky", [("tool_use", "Bash", "ok")]),
        ("=> -deep*", []),
        ('=> -"deepword データベースの設定"', []),
        ("retry.go", [("tool_use", "Edit", "denied")]),
        ("-flaky", [("user", None, None)]),
        ("nowhere", []),
    ],
)
def test_a_query_finds(index, text, expected):
    """Each form of query finds exactly the events it describes, at any depth of an output."""
    assert sorted(map(str, found(index, text))) == sorted(map(str, expected))


@pytest.mark.parametrize(
    ("scope", "count"),
    [
        ({}, 4),
        ({"type": ["user"]}, 1),
        ({"type": ["prompt", "assistant"]}, 2),
        ({"type": ["error"]}, 2),
        ({"is": ["failed"]}, 2),
        ({"is": ["error"]}, 1),
        ({"is": ["denied"]}, 1),
        ({"is": ["failed"], "tool": ["bash"]}, 1),
        ({"tool": ["B*", "edit"]}, 2),
        ({"agent": ["claude"]}, 4),
        ({"agent": ["codex"]}, 0),
        ({"project": ["/code/demo"]}, 4),
        ({"project": ["/code"]}, 4),
        ({"project": ["/code/dem"]}, 0),
        ({"project": ["DEM"]}, 4),
        ({"project": ["%"]}, 0),
        ({"since": ["2026-02-01T10:00:03Z"]}, 2),
        ({"until": ["2026-02-01T10:00:03Z"]}, 2),
        ({"since": ["2026-02-01T10:00:02Z"], "until": ["2026-02-01T10:00:03Z"]}, 1),
        ({"file": ["retry.go"]}, 1),
        ({"file": ["demo/*.go"]}, 1),
        ({"file": ["etry.go"]}, 0),
        ({"role": ["tool"]}, 2),
    ],
)
def test_filters_narrow(index, scope, count):
    """Filters count exactly the events inside them."""
    assert len(found(index, "retry", **scope)) == count


def test_an_unknown_type_is_a_usage_error(index):
    """The hint lists the types there are."""
    with pytest.raises(SessError, match='no such type: "tool_usage"') as caught:
        found(index, "retry", type=["tool_usage"])
    assert "tool_use, system, summary, error" in (caught.value.hint or "")


def test_what_was_said_ranks_over_what_was_printed(index):
    """Prompts come before answers, and these before what tools were asked and printed."""
    assert [kind for kind, _, _ in found(index, "retry")] == [
        "user",
        "assistant",
        "tool_use",
        "tool_use",
    ]
    scores = [hit.score for hit in Search("retry").hits(index)]
    assert scores == sorted(scores, reverse=True)


def test_a_copy_is_found_once_and_in_both_sessions(index):
    """The original owns a shared event; asking inside the fork finds it as well."""
    assert [hit.session[:4] for hit in Search("flaky").hits(index)] == ["1111"]
    assert len(found(index, "flaky", session=[FORK])) == 1
    assert found(index, "deepword", session=[FORK]) == []


def test_the_limit_limits(index):
    """A limit gives the best ones, 0 gives all."""
    everything = found(index, "retry", limit=0)
    assert found(index, "retry", limit=2) == everything[:2]
    assert len(everything) == 4


def test_what_was_rewritten_is_found_only_when_asked(world, index):
    """A record that left its file stays searchable behind a flag."""
    t = world.transcript()
    lines = t.path.read_bytes().splitlines(keepends=True)
    t.path.write_bytes(b"".join(lines[:2]))
    world.ingest()
    assert found(index, "deepword") == []
    assert found(index, "deepword", superseded=True) == [("tool_use", "Bash", "ok")]


def test_expressions_need_no_re2(index, monkeypatch):
    """Where RE2 has no wheel, Python's engine finds the same."""
    fast = [hit.event for hit in Search(r"re\w+ \w+ called", mode="regex").hits(index)]
    monkeypatch.setitem(sys.modules, "re2", None)
    slow = [hit.event for hit in Search(r"re\w+ \w+ called", mode="regex").hits(index)]
    assert fast == slow
    assert len(fast) == 1


def test_an_expression_cannot_run_for_ever(world):
    """RE2 refuses at once what would keep Python's engine busy for years."""
    t = world.transcript()
    t.append(t.prompt("a" * 60 + "!"))
    world.ingest()
    with closing(open_reader(world.state / "index.db")) as db:
        assert Search(r"(a+)+[b-z]", mode="regex").results(db).count() == 0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(alphabet='retyflak "*-_.()日\0', min_size=1, max_size=30))
def test_no_query_fails_on_an_index(index, text):
    """Any text is answered or is nothing to search for."""
    search = Search(text, limit=3)
    try:
        search.check()
    except SessError:
        return
    for hit in search.hits(index):
        assert hit.snippet.text
