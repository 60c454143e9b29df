"""Views of random sessions equal what a plain reading of the transcripts gives."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.at_length import amount
from tests.conftest import World

from sess_schema.connection import open_reader, open_writer
from sess_schema.queries.stats import Stats, percentile
from sess_schema.queries.views import (
    digests,
    explain,
    failures,
    files,
    interruptions,
    parts,
    tools,
    usage,
    windows,
)

HOUR = 3_600_000
BEGIN = datetime(2026, 2, 1, 10, 20, tzinfo=UTC)
REFUSED = "The user doesn't want to proceed with this tool use. The tool use was rejected"
IDS = [f"{n}{n}{n}{n}{n}{n}{n}{n}-1111-4111-8111-111111111111" for n in range(1, 4)]
FILES = ["/code/demo/a.py", "/code/demo/b.py"]
# Short rests, the lives of the cache, exact hours and windows, long rests.
RESTS = st.sampled_from([1, 700, 5_000, 299_999, 300_001, 40 * 60_000, HOUR, 5 * HOUR, 7 * HOUR])
CALLS = st.tuples(
    st.sampled_from(["Bash", "Read", "Edit", "Grep", "mcp__web__get"]),
    st.sampled_from(["ok", "error", "denied", "none"]),
    st.sampled_from(FILES),
)
STEPS = st.one_of(
    st.just(("prompt",)),
    st.just(("interrupted",)),
    st.just(("api_error",)),
    st.tuples(
        st.just("answer"),
        st.lists(CALLS, max_size=3),
        st.sampled_from(["claude-opus-4-5", "claude-sonnet-4-5"]),
        st.sampled_from([None, "end_turn"]),
        st.tuples(*[st.integers(0, 90_000)] * 3),
        st.booleans(),
    ),
)
SESSIONS = st.lists(
    st.lists(st.tuples(RESTS, STEPS), min_size=1, max_size=14), min_size=1, max_size=3
)


class Writer:
    """Writes the steps of one session as Claude Code would."""

    def __init__(self, world: World, session: str) -> None:
        self.transcript = world.transcript(session)
        self.clock = BEGIN + timedelta(milliseconds=17 * int(session[0]))
        self.count = 0

    def rest(self, milliseconds: int) -> None:
        self.clock += timedelta(milliseconds=milliseconds)

    def add(self, kind, message, **more) -> None:
        stamp = f"{self.clock:%Y-%m-%dT%H:%M:%S}.{self.clock.microsecond // 1000:03d}Z"
        record = self.transcript.record(kind, message, timestamp=stamp, **more)
        self.transcript.append(record)

    def step(self, kind, *given) -> None:
        self.count += 1
        name = f"{self.transcript.session[:4]}-{self.count}"
        if kind == "prompt":
            self.add("user", {"role": "user", "content": f"do {name}"})
        elif kind == "interrupted":
            text = "[Request interrupted by user]"
            self.add("user", {"role": "user", "content": [{"type": "text", "text": text}]})
        elif kind == "api_error":
            self.add(
                "assistant",
                {
                    "id": f"err-{name}",
                    "role": "assistant",
                    "model": "<synthetic>",
                    "content": [{"type": "text", "text": "API Error: 529 overloaded_error"}],
                },
                isApiErrorMessage=True,
            )
        else:
            self.answer(name, *given)

    def answer(self, name, *told) -> None:
        calls, model, stop, counts, long = told
        fresh, written, read = counts
        blocks: list[dict[str, Any]] = [{"type": "text", "text": f"now {name}"}]
        for number, (tool, _, path) in enumerate(calls):
            given = {
                "Bash": {"command": f"echo {name}", "description": "say"},
                "Edit": {"file_path": path, "old_string": "a\nb", "new_string": "a\nB\nc"},
                "Read": {"file_path": path},
            }.get(tool, {"pattern": name})
            blocks.append(
                {"type": "tool_use", "id": f"call-{name}-{number}", "name": tool, "input": given}
            )
        self.add(
            "assistant",
            {
                "id": f"msg-{name}",
                "role": "assistant",
                "model": model,
                "stop_reason": stop,
                "content": blocks,
                "usage": {
                    "input_tokens": fresh,
                    "output_tokens": 40,
                    "cache_creation_input_tokens": written,
                    "cache_read_input_tokens": read,
                    "cache_creation": {
                        "ephemeral_5m_input_tokens": 0 if long else written,
                        "ephemeral_1h_input_tokens": written if long else 0,
                    },
                },
            },
            requestId=f"req-{name}",
        )
        for number, (_, status, _) in enumerate(calls):
            if status == "none":
                continue
            self.rest(211 * (number + 1))
            block: dict[str, Any] = {
                "type": "tool_result",
                "tool_use_id": f"call-{name}-{number}",
                "content": {"ok": "fine", "error": "Exit code 1", "denied": REFUSED}[status],
            }
            if status != "ok":
                block["is_error"] = True
            self.add("user", {"role": "user", "content": [block]})


class Plain:
    """What the files say, line by line, with no index in between."""

    def __init__(self, folder: Path) -> None:
        self.sessions = {}
        for path in sorted(folder.rglob("*.jsonl")):
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            self.sessions[path.stem] = [(ms(line["timestamp"]), line) for line in lines]

    def results(self):
        found = {}
        for lines in self.sessions.values():
            for ts, line in lines:
                for block in blocks_of(line):
                    if block["type"] == "tool_result":
                        found[block["tool_use_id"]] = (ts, state_of(block))
        return found

    def calls(self):
        """(session, tool, id, time)"""
        for session, lines in self.sessions.items():
            for ts, line in lines:
                for block in blocks_of(line):
                    if block["type"] == "tool_use":
                        yield session, block["name"], block["id"], ts

    def responses(self):
        """(session, time, message)"""
        for session, lines in self.sessions.items():
            for ts, line in lines:
                if line["type"] == "assistant" and "usage" in line["message"]:
                    yield session, ts, line["message"]

    def turns(self):
        """Lists of what happened from one prompt to the next."""
        for lines in self.sessions.values():
            current: list[tuple[int, dict]] | None = None
            for ts, line in lines:
                text = line["message"]["content"]
                if line["type"] == "user" and isinstance(text, str):
                    if current is not None:
                        yield current
                    current = []
                elif current is not None:
                    current.append((ts, line))
            if current is not None:
                yield current


def ms(text):
    return int(datetime.fromisoformat(text).timestamp() * 1000 + 0.5)


def blocks_of(line):
    content = line["message"]["content"]
    return content if isinstance(content, list) else []


def state_of(block):
    if not block.get("is_error"):
        return "ok"
    return "denied" if block["content"] == REFUSED else "error"


@pytest.fixture(scope="module")
def homes(tmp_path_factory):
    return tmp_path_factory


def indexed(homes, sessions):
    world = World(homes.mktemp("home"))
    for session, steps in zip(IDS, sessions, strict=False):
        writer = Writer(world, session)
        for rest, step in steps:
            writer.rest(rest)
            writer.step(*step)
    world.ingest()
    return world, Plain(world.projects)


@pytest.mark.slow
@settings(max_examples=amount(10, 90), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SESSIONS)
def test_every_view_equals_a_plain_reading(homes, sessions):
    """Tools, errors, latency, interruptions, edits, cache, context, windows and explanations; also
    from digests."""
    world, plain = indexed(homes, sessions)
    same_views(world, plain)
    with closing(open_writer(world.state / "index.db")) as db:
        parts.begin_anew(db)
        digests.make_all(db)
    same_views(world, plain)


def same_views(world, plain):
    with closing(open_reader(world.state / "index.db")) as db:
        asked = Stats(zone=UTC)
        same_tools(tools.read_tools(db, asked), plain)
        same_failures(failures.read(db, asked, world.root), plain)
        same_waits(tools.read_speeds(db, asked), plain)
        same_interruptions(interruptions.read_interruptions(db, asked), plain)
        same_edits(files.read_edits(db, asked), plain)
        same_cache(usage.read_cache(db, asked), plain)
        same_context(usage.read_context(db, asked), plain)
        same_windows(windows.read_windows(db, asked), plain)
        same_explanations(db, asked)


def same_tools(found, plain):
    results = plain.results()
    wanted: dict[str, list[Any]] = defaultdict(lambda: [0, 0, 0, 0, []])
    for _, tool, call, ts in plain.calls():
        one = wanted[tool]
        one[0] += 1
        answered, state = results.get(call, (None, "none"))
        one[1] += state == "error"
        one[2] += state == "denied"
        one[3] += state == "none"
        if state in ("ok", "error"):
            one[4].append(answered - ts)
    assert {
        name: [use.calls, use.errors, use.denied, use.orphans, use.times]
        for name, use in found.tools.items()
    } == {name: [*one[:4], sorted(one[4])] for name, one in wanted.items()}
    assert sum(use.calls for use in found.servers.values()) == wanted["mcp__web__get"][0]


def same_failures(found, plain):
    results = plain.results()
    failed = Counter(
        tool for _, tool, call, _ in plain.calls() if results.get(call, (0, ""))[1] == "error"
    )
    assert Counter(one.tool for one in found.calls) == failed
    assert {one.name for one in found.calls} <= {"exit code"}
    refused = sum(
        bool(line.get("isApiErrorMessage")) for ls in plain.sessions.values() for _, line in ls
    )
    assert [one.name for one in found.service] == ["overloaded (529)"] * refused


def same_waits(found, plain):
    wanted = defaultdict(list)
    for session, lines in plain.sessions.items():
        answers = [(ts, message["model"]) for s, ts, message in plain.responses() if s == session]
        since = None
        for ts, line in lines:
            asked = line["type"] == "user" and (
                isinstance(line["message"]["content"], str)
                or blocks_of(line)[0]["type"] == "tool_result"
            )
            if asked:
                since = ts
            elif (
                line["type"] == "assistant"
                and not line.get("isApiErrorMessage")
                and since is not None
            ):
                model = next(name for at, name in answers if at >= ts)
                wanted[model].append(ts - since)
                since = None
    assert {name: speed.waits for name, speed in found.items() if speed.waits} == {
        name: sorted(waits) for name, waits in wanted.items()
    }


def same_interruptions(found, plain):
    results = plain.results()
    stopped = markers = refusals = 0
    requests, calls = [], []
    for one in plain.turns():
        marked = sum(
            block.get("text", "").startswith("[Request interrupted")
            for _, line in one
            for block in blocks_of(line)
            if line["type"] == "user"
        )
        used = [b["id"] for _, line in one for b in blocks_of(line) if b["type"] == "tool_use"]
        denied = sum(results.get(call, (0, ""))[1] == "denied" for call in used)
        markers, refusals = markers + marked, refusals + denied
        stopped += bool(marked or denied)
        requests.append(sum("usage" in line["message"] for _, line in one))
        calls.append(len(used))
    assert (found.turns, found.interrupted_turns) == (len(calls), stopped)
    assert (found.markers, found.refusals) == (markers, refusals)
    assert found.requests_per_turn == sorted(requests)
    assert found.calls_per_turn == sorted(calls)
    assert sum(sized.turns for sized in found.by_calls.values()) == len(calls)


def same_edits(found, plain):
    results = plain.results()
    succeeded = files = turns = one_shot = 0
    touched = set()
    inputs = {
        block["id"]: block
        for lines in plain.sessions.values()
        for _, line in lines
        for block in blocks_of(line)
        if block["type"] == "tool_use"
    }
    for _, tool, call, _ in plain.calls():
        if tool == "Edit" and results.get(call, (0, ""))[1] == "ok":
            succeeded += 1
            touched.add(inputs[call]["input"]["file_path"])
    for one in plain.turns():
        steps = [
            (b["name"], b["input"].get("file_path"))
            for _, line in one
            for b in blocks_of(line)
            if b["type"] == "tool_use"
            and (b["name"] == "Bash" or results.get(b["id"], (0, ""))[1] == "ok")
        ]
        edited = [n for n, (name, _) in enumerate(steps) if name == "Edit"]
        if not edited:
            continue
        turns += 1
        again = any(
            steps[a][1] == steps[b][1] and any(name == "Bash" for name, _ in steps[a:b])
            for n, a in enumerate(edited)
            for b in edited[n + 1 :]
        )
        one_shot += not again
    files = len(touched)
    total = found.total
    assert (total.calls, len(total.files)) == (succeeded, files)
    assert (total.added, total.removed) == (2 * succeeded, succeeded)
    assert (found.turns, found.one_shot) == (turns, one_shot)


def same_cache(found, plain):
    read = fresh = written = expired = 0
    for session in plain.sessions:
        before = kept = None
        for _, ts, message in (row for row in plain.responses() if row[0] == session):
            usage = message["usage"]
            fresh += usage["input_tokens"]
            read += usage["cache_read_input_tokens"]
            new = usage["cache_creation_input_tokens"]
            written += new
            prompt = new + usage["input_tokens"] + usage["cache_read_input_tokens"]
            if kept is not None and 2 * new > prompt and ts - before > kept:
                expired += 1
            if new:
                long = usage["cache_creation"]["ephemeral_1h_input_tokens"]
                kept = HOUR if long else HOUR // 12
            before = ts
    total = found.total
    assert (total.input_tokens, total.cache_read_tokens) == (fresh, read)
    assert (total.cache_write_tokens, total.expired) == (written, expired)


def same_context(found, plain):
    wanted = defaultdict(list)
    for session, _, message in plain.responses():
        usage = message["usage"]
        parts = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        wanted[session].append(sum(usage[name] for name in parts))
    assert {one.session: (one.requests, one.peak, one.p90) for one in found} == {
        session: (len(sizes), max(sizes), percentile(sorted(sizes), 90))
        for session, sizes in wanted.items()
    }


def same_windows(found, plain):
    """The rule as ccusage has it, response by response."""
    blocks: list[tuple[int, list[int]]] = []
    for ts in sorted(ts for _, ts, _ in plain.responses()):
        if blocks and ts - blocks[-1][0] <= 5 * HOUR and ts - blocks[-1][1][-1] <= 5 * HOUR:
            blocks[-1][1].append(ts)
        else:
            blocks.append((ts // HOUR * HOUR, [ts]))
    assert [(one.start, one.first, one.last, one.requests) for one in found] == [
        (start, times[0], times[-1], len(times)) for start, times in blocks
    ]
    assert all(a.last < b.first for a, b in pairwise(found))


def same_explanations(db, asked):
    """The lines of a group add up to it."""
    for by in ("day", "model", "tool", "session", "file"):
        for group, tally in asked.groups(db, by).items():
            lines = [*explain.lines(db, asked, by, group)]
            for name in ("input_tokens", "cost_nano", "requests", "prompts", "tool_calls"):
                assert sum(getattr(line.tally, name) for line in lines) == getattr(tally, name)
