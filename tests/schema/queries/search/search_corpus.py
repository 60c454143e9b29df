"""A corpus for searching: sessions of every kind, full of near misses, always the same."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.conftest import World

MAIN = "11111111-1111-4111-8111-111111111111"
FORK = "22222222-2222-4222-8222-222222222222"
SHOP = "33333333-3333-4333-8333-333333333333"
UNDATED = "44444444-4444-4444-8444-444444444444"
REWRITTEN = "55555555-5555-4555-8555-555555555555"
LATER = "66666666-6666-4666-8666-666666666666"
SUBAGENT = "agent-ab12cd34"
FIRST_DAY = datetime(2026, 1, 5, 8, tzinfo=UTC)
NOW = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp() * 1000)
DEEP = "deepword"

# Words of which queries are made, and others that begin, end or are cut alike.
WORDS = [
    "retry", "retries", "retrying", "test", "tests", "testing", "error", "errors", "user",
    "username", "getUserName", "getusername", "name", "parse", "parser", "index", "indexes",
    "build", "go", "run", "file", "files", "cache", "caches", "timeout", "deploy", "config",
    "Config", "CONFIG", "setting", "memory", "leak", "token", "tokens", "socket", "thread",
    "queue", "is", "an", "the", "of", "foo", "bar", "no", "verify", "hosts", "etc", "x", "y", "1",
    "2", "42", "404", "2026",
]  # fmt: skip
# Each beside what almost looks like it.
NEAR_MISSES = [
    "is_error", "IS_ERROR", "is_errors", "this_error", "is error", "is-error", "iserror",
    "go test ./...", "go  test\t./...", "go\ntest ./...", "go\r\ntest ./...", "go test ./..",
    "cargo test ./...", "go test ./internal/...", "go test",
    "foo.bar()", "FOO.BAR()", "xfoo.bar()", "foo.bar()x", "foo.bar", "foo bar()", "foo.barn()",
    "foo_bar", "foo__bar", "_foo", "foo_", "foo-bar", "foo.bar(baz)",
    "C++", "c++", "C++17", "ABC++", "C+", "C#",
    "--no-verify", "--no-verify-ssl", "no-verify", "---no-verify", "no verify",
    "/etc/hosts", "/etc/hosts.allow", "/usr/etc/hosts", "etc/hosts", "/etc hosts", "/ETC/HOSTS",
    "getUserName()", "getUserNames", "GetUserName", "user_name", "userName",
    "E0308", "error[E0308]: mismatched types", "E03080", "ECONNREFUSED", "connect ECONNREFUSED ::1",
    "0x80070005", "0X80070005", "x80070005", "TS2345", "TS23456", "error TS2345:",
    "3f2504e0-4f89-41d3-9a0c-0305e82c3301", "3f2504e0-4f89-41d3-9a0c-0305e82c3302", "3f2504e0",
    "a3f2504e0", "da39a3ee5e6b4b0d3255bfef95601890afd80709", "da39a3ee5e6b", "da39a3e", "da39a3f",
    "DA39A3EE5E6B", "1234567", "12345678", "123456", "cafe42", "cafe421", "decade",
    "データベースの設定を変更しました", "設定", "ベース", "数据库连接失败了", "数据库", "据库连",
    "데이터베이스를 설정했습니다", "설정", "การตั้งค่าฐานข้อมูล", "ฐานข้อมูล", "設定file.txt",
    "🚀", "🚀launch", "launch 🚀🎉", "👩\u200d💻 done", "✔️ ok",
    "café", "cafe\u0301", "cafe", "CAFÉ", "cafés", "naïve résumé", "nai\u0308ve re\u0301sume\u0301",
    "naive resume", "Ångström", "A\u030angstro\u0308m", "São Paulo", "sao paulo",
    "Straße", "STRASSE", "strasse", "STRAẞE", "straße.txt", "İstanbul", "istanbul", "ISTANBUL",
    "ıstanbul", "Istanbul/x", "İstanbul/x", "ΟΔΟΣ", "οδος", "ΟΔΟΣΤΑΣΗ", "\u212aelvin", "kelvin",
    "Kelvin/x",
    'say "hello" to it', "say 'hello' to it", "say “hello” to it", "say «hello»", "`hello`", "it's",
    "it’s", "100%", "100 %", "%d items", "%s", "LIKE '%a_b%'", "a_b", "aXb", "a\\b", "C:\\code\\x",
    "\\n", "a*b", "a**b", "**bold**", "*.py", "[x]", "[main]", "{x}", "(x)", "f(x)", "<x>", "a|b",
    "a && b", "$HOME", "${HOME}", "user@host", "#42", "key: value", "key:value", "key=value",
    "retry\ttest", "retry\ntest", "retry\r\ntest", "retry\u00a0test", "retry,test", "retry_test",
    "retry test", "test retry", "Retry Test", "retry   test.", "retry; test", "retry-test",
    "-rf", "rm -rf /tmp/x", "a.b.c", "1.2.3", "v1.2.3", "1,000", "x=1", "=>", "->", "!=", "...",
]  # fmt: skip
TERMS = [text for text in dict.fromkeys((*WORDS, *NEAR_MISSES)) if '"' not in text]
SYNTAX = re.compile(r'[\s"]|^[-()]|\*$|^[a-z]+:')  # what means something outside quotes
FILES = [
    "/code/demo/retry.go", "/code/demo/src/retry.go", "/code/demo/src/util/parse_test.py",
    "/code/shop/README.md", "/code/shop/src/app.tsx", "/code/shop/src/[slug].tsx", "notes.md",
]  # fmt: skip


class Corpus:
    """Writes the sessions, with a seed."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._random = random.Random(20260105)
        self._calls = 0

    def write(self) -> None:
        main = self.world.transcript(MAIN)
        shared = [*self._talk(main, 0, 12)]
        main.append(*shared, *self._talk(main, 0, 60), *self._everything(main))
        main.append(*self._failures(main), {"type": "custom-title", "customTitle": "Retry Über"})
        fork = self.world.transcript(FORK)
        fork.count = 100
        fork.append(*shared, *self._talk(fork, 9, 25, gitBranch="fix/retry"))
        shop = self.world.transcript(SHOP, "-code-shop")
        place = {"cwd": "/code/shop", "gitBranch": "feature/Login"}
        shop.append(*self._talk(shop, 20, 70, model="claude-sonnet-4-5", **place))
        shop.append(*self._talk(shop, 30, 30, model="claude-haiku-4-5", **place))
        shop.append({"type": "ai-title", "aiTitle": "Login form"})
        undated = self.world.transcript(UNDATED, "-code-demo-sub")
        for record in self._talk(undated, 0, 30, cwd="/code/demo/sub"):
            undated.append(record | {"timestamp": None})
        agent = self.world.transcript(SUBAGENT, f"-code-demo/{MAIN}/subagents")
        inside = {"isSidechain": True, "agentId": SUBAGENT[6:], "sessionId": MAIN}
        agent.append(*self._talk(agent, 0, 30, **inside))
        rewritten = self.world.transcript(REWRITTEN, "-code-demo")
        lines = [rewritten.encode(record) for record in self._talk(rewritten, 40, 40)]
        rewritten.append(*lines)
        self.world.ingest()
        rewritten.path.write_bytes(b"".join(lines[:10] + lines[25:]))
        copies = fork.path.read_bytes().splitlines(keepends=True)
        fork.path.write_bytes(b"".join(copies[5:]))  # what it no longer shares stays with the other
        self.world.ingest()

    def more(self, number: int) -> None:
        """Another session that has all the words once more."""
        later = self.world.transcript(LATER[:-1] + str(number))
        later.append(*self._talk(later, 10, 40))
        self.world.ingest()

    def text(self) -> str:
        pick = self._random
        pieces = pick.choices(WORDS, k=pick.randint(0, 7))
        pieces += pick.choices(NEAR_MISSES, k=pick.randint(0, 3))
        pick.shuffle(pieces)
        return "".join(
            piece + pick.choices([" ", "\n", ", ", ". ", "\t", "\r\n"], [20, 2, 1, 1, 1, 1])[0]
            for piece in pieces or ["empty"]
        )

    def _talk(self, t, day, number, **more) -> Iterator[dict]:
        pick = self._random
        moment = FIRST_DAY + timedelta(days=day)
        model = more.pop("model", "claude-opus-4-5")
        for _ in range(number):
            moment += timedelta(seconds=pick.choice([0, 1, 60, 5000, 40_000]))
            more["timestamp"] = f"{moment:%Y-%m-%dT%H:%M:%S}.000Z"
            kind = pick.choices(["user", "answer", "thinking", "call"], [3, 4, 1, 6])[0]
            if kind == "user":
                yield t.prompt(self.text(), **more)
            elif kind == "call":
                for record in self._call(t):
                    message = record["message"]
                    if message["role"] == "assistant":
                        message["model"] = model
                    yield record | more
            else:
                name = "thinking" if kind == "thinking" else "text"
                record = t.assistant([{"type": name, name: self.text()}], **more)
                record["message"]["model"] = model
                yield record

    def _call(self, t) -> Iterator[dict]:
        pick = self._random
        self._calls += 1
        call_id = f"call_{self._calls}"
        known: list[tuple[str, dict[str, Any]]] = [
            ("Bash", {"command": self.text()}),
            ("Bash", {"command": "git commit -m x"}),
            ("Edit", {"file_path": pick.choice(FILES), "new_string": self.text()}),
            ("Read", {"file_path": pick.choice(FILES)}),
            ("WebFetch", {"url": "https://example.com/" + pick.choice(WORDS)}),
            ("mcp__tracker__search", {"query": self.text(), "limit": 5}),
        ]
        tool, given = pick.choice(known)
        yield t.call(call_id, tool, **given)
        outcome = pick.choices(["ok", "error", "denied", "pending"], [6, 2, 1, 1])[0]
        if outcome == "pending":
            return
        output = self.text()
        if outcome == "denied":
            output = "The user doesn't want to proceed with this tool use. " + output
        elif given.get("command", "").startswith("git"):
            output = f"[main {pick.getrandbits(28):07x}] {pick.choice(WORDS)}\n 1 file changed"
        content: list[dict[str, Any]] = [{"type": "text", "text": output}]
        if pick.random() < 0.1:
            content.append({"type": "image", "source": {"type": "base64", "data": "AA=="}})
        yield t.result(call_id, content, is_error=outcome != "ok")

    def _everything(self, t) -> Iterator[dict]:
        """Each near miss alone, and a text too long for any limit."""
        for number, piece in enumerate(NEAR_MISSES):
            more = {"timestamp": f"{FIRST_DAY + timedelta(hours=number):%Y-%m-%dT%H:%M:%S}.000Z"}
            yield t.prompt(piece, **more) if number % 2 else t.answer(piece, **more)
        yield t.prompt([{"type": "image", "source": {}}, {"type": "text", "text": "retry image"}])
        yield t.call("long", command="cat long.txt")
        yield t.result("long", "lorem ipsum " * 90_000 + DEEP)

    def _failures(self, t) -> Iterator[dict]:
        """A failure that says nothing of errors, and a summary."""
        yield t.call("bare", command="exit 3")
        yield t.result("bare", "quietly", is_error=True)
        yield t.call("padded", command="cat it")
        yield t.result("padded", "\n\n  padded output  \n")
        yield t.prompt("what happened before: retry", isCompactSummary=True)
        yield t.record("system", None, content="retry notice", subtype="info")
