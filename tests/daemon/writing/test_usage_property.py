"""Tokens and cost equal a plain reading of all lines, however and in whatever order they came."""

from __future__ import annotations

import json
import random
import tempfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.at_length import amount

pytestmark = pytest.mark.slow

# Dollars per million tokens: input, output, write for 5 minutes, write for an hour, read.
LIST = {
    "claude-sonnet-4-5-20250929": ("3", "15", "3.75", "6", "0.3"),
    "claude-haiku-4-5": ("1", "5", "1.25", "2", "0.1"),
}
MODELS = [*LIST, "nobodys-model-1"]
GATEWAYS = {"gateway_1", "gateway_2"}  # ids that they give to many messages
START = datetime(2026, 5, 4, tzinfo=UTC)


class File:
    """A transcript: its lines, and the name of the session that the index gives it."""

    def __init__(self, place, session, *, parent=None):
        self.place = place
        self.session = session  # as its records call it
        self.name = place.rsplit("/", 1)[-1].removesuffix(".jsonl")
        self.sidechain = parent is not None
        self.lines = []
        self.messages = set()


class Author:
    """Writes a random set of files."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.clock = 0
        self.serial = 0
        self.files = []

    def write(self):
        for _ in range(self.rng.randint(1, 2)):
            self.talk(self.new_file())
        for _ in range(self.rng.randint(0, 4)):
            action = self.rng.choice([self.fork, self.fork, self.subagent, self.go_on])
            action(self.rng.choice([f for f in self.files if not f.sidechain]))
        return self.files

    def number(self):
        self.serial += 1
        return self.serial

    def new_file(self):
        # Names are random, so that the order of names says nothing about the order of time.
        session = f"{self.rng.getrandbits(32):08x}-1111-4111-8111-{self.number():012x}"
        self.files.append(File(f"-p{self.rng.randint(1, 2)}/{session}.jsonl", session))
        return self.files[-1]

    def put(self, file, kind, message, **more):
        self.clock += self.rng.randint(1, 5000)
        moment = START + timedelta(milliseconds=self.clock)
        file.lines.append(
            {
                "type": kind,
                "uuid": f"u{self.number()}",
                "timestamp": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                "sessionId": file.session,
                "message": message,
                **({"isSidechain": True, "agentId": file.name[6:]} if file.sidechain else {}),
                **more,
            }
        )

    def talk(self, file):
        for _ in range(self.rng.randint(1, 3)):
            self.put(file, "user", {"role": "user", "content": f"prompt {self.number()}"})
            if not file.sidechain and self.rng.random() < 0.5:
                file.messages -= GATEWAYS
            for _ in range(self.rng.randint(1, 2)):
                self.respond(file)
        if self.rng.random() < 0.3:
            self.replay(file)

    def respond(self, file):
        message: str | None = f"msg_{self.number()}"
        gateway = f"gateway_{self.rng.randint(1, 2)}"
        if self.rng.random() < 0.2 and gateway not in file.messages:
            message = gateway
        if self.rng.random() < 0.05:
            message = None
        file.messages.add(message)
        named = self.rng.random() < 0.75
        for _ in range(2 if message and self.rng.random() < 0.15 else 1):
            self.stream(file, message, f"req_{self.number()}" if named else None)

    def stream(self, file, message, request):
        model = self.rng.choice(MODELS)
        for left in reversed(range(self.rng.randint(1, 3))):
            cost = {"costUSD": self.rng.choice([0, 0.0123, 1.0000000005])}
            self.put(
                file,
                "assistant",
                {
                    **({"id": message} if message else {}),
                    "role": "assistant",
                    "model": model,
                    "content": [{"type": "text", "text": f"words {self.number()}"}],
                    "stop_reason": "end_turn" if not left and self.rng.random() < 0.7 else None,
                    "usage": self.counts(),
                },
                **({"requestId": request} if request else {}),
                **(cost if self.rng.random() < 0.1 else {}),
            )

    def counts(self):
        rng = self.rng
        short, long = rng.choice([0, 7, 400]), rng.choice([0, 600])
        split = {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": long}
        return {
            "input_tokens": rng.choice([None, 3, 4.0, 11]),
            "output_tokens": rng.choice([1, 1, 8, 50, rng.randint(1, 999)]),
            "cache_creation_input_tokens": short + long + rng.choice([0, 0, 5]),
            "cache_read_input_tokens": rng.choice([0, rng.randint(1, 9999)]),
            **({"cache_creation": split} if rng.random() < 0.7 else {}),
        }

    def replay(self, file):
        """A compaction writes a line again."""
        told = [line for line in file.lines if line["type"] == "assistant"]
        self.put(file, "user", {"role": "user", "content": f"compact {self.number()}"})
        file.lines.append({**self.rng.choice(told), "uuid": f"u{self.number()}"})

    def go_on(self, file):
        self.talk(file)

    def fork(self, file):
        new = self.new_file()
        first = self.rng.choice([0, 0, 0, self.rng.randrange(len(file.lines))])
        kept = file.lines[first : self.rng.randint(first + 1, len(file.lines))]
        more = {"sessionId": new.session}
        if self.rng.random() < 0.5:
            more["forkedFrom"] = {"sessionId": file.session}
        renamed = self.rng.random() < 0.4
        for line in kept:
            name = f"u{self.number()}" if renamed else line["uuid"]
            new.lines.append({**line, **more, "uuid": name})
        new.messages |= file.messages
        if self.rng.random() < 0.8:
            self.talk(new)

    def subagent(self, file):
        name = f"agent-{self.number():07x}"
        place = f"{file.place.removesuffix('.jsonl')}/subagents/{name}.jsonl"
        agent = File(place, file.session, parent=file)
        agent.messages |= GATEWAYS
        self.talk(agent)
        told = [line for line in file.lines if line["type"] == "assistant"]
        if told and self.rng.random() < 0.5:
            again = {**self.rng.choice(told), "isSidechain": True, "agentId": name[6:]}
            again["uuid"] = self.rng.choice([again["uuid"], f"u{self.number()}"])
            if "requestId" in again and self.rng.random() < 0.5:
                again |= {"requestId": f"req_{self.number()}", "uuid": f"u{self.number()}"}
            agent.lines.append(again)
        self.files.append(agent)


# -- the reference: from all lines at once, by the rules of a response


def reference(files):
    """(tokens of each session by class, nano-dollars of all)."""
    began = {file.name: file.lines[0]["timestamp"] for file in files}
    chains = {file.name for file in files if file.sidechain}
    prompts = {
        file.name: [line["timestamp"] for line in file.lines if line["type"] == "user"]
        for file in files
    }
    requests: dict[tuple, list[tuple[str, dict]]] = {}  # id → lines with their sessions
    for file in files:
        for line in file.lines:
            if line["type"] == "assistant":
                message = line["message"].get("id")
                request = line.get("requestId")
                key = (message, request) if request else (message, None, *sameness(line))
                requests.setdefault(key, []).append((file.name, line))
    responses: dict[object, list[tuple]] = {}
    for key, lines in requests.items():
        best = max((line for _, line in lines), key=finality)
        rank = {
            name: (began[name], sameness(line) != sameness(best), "forkedFrom" in line, name)
            for name, line in sorted(lines, key=lambda held: sameness(held[1]) == sameness(best))
        }
        owner = min(rank, key=lambda name: rank[name])
        claim = (key, best, owner, {name for name, _ in lines})
        responses.setdefault(key[0] or key, []).append(claim)
    tokens: Counter[tuple[str, str]] = Counter()
    nano = 0
    for claims in responses.values():
        main = [claim for claim in claims if claim[2] not in chains]
        for group in connected(main, prompts) if main else [claims]:
            best, owner = chosen(group)
            tokens.update({(owner, kind): n for kind, n in classes(best).items()})
            tokens[owner, "responses"] += 1
            nano += cost(best) or 0
    return +tokens, nano


def sameness(line):
    """A copy keeps the moment and the words, whatever its id."""
    return line["timestamp"], line["message"]["content"][0]["text"]


def finality(line):
    message = line["message"]
    ended = message["stop_reason"] is not None
    return ended, message["usage"]["output_tokens"], line["timestamp"]


def connected(claims, prompts):
    """Groups of claims that a chain of common turns of sessions joins."""
    left = [(claim, turns(claim, prompts)) for claim in claims]
    while left:
        group, joined = [], set(left[0][1])
        while found := [one for one in left if one[1] & joined]:
            left = [one for one in left if one not in found]
            group += [claim for claim, _ in found]
            joined = joined.union(*(theirs for _, theirs in found))
        yield group


def turns(claim, prompts):
    """Each session that has it, with the number of prompts before it there."""
    moment = claim[1]["timestamp"]
    return {(name, sum(prompt <= moment for prompt in prompts[name])) for name in claim[3]}


def chosen(group):
    named = sorted((claim[1]["timestamp"], claim[0][1], claim) for claim in group if claim[0][1])
    rivals = [claim for claim in group if claim[0][1] is None]
    _, best, owner, _ = max(
        rivals + [claim for *_, claim in named[:1]], key=lambda claim: finality(claim[1])
    )
    return best, owner


def classes(line):
    usage = line["message"]["usage"]
    split = usage.get("cache_creation", {})
    long = split.get("ephemeral_1h_input_tokens", 0)
    return {
        "input": int(usage["input_tokens"] or 0),
        "output": usage["output_tokens"],
        "short": usage["cache_creation_input_tokens"] - long,
        "long": long,
        "read": usage["cache_read_input_tokens"],
    }


def cost(line):
    if "costUSD" in line:
        return int(Fraction(str(line["costUSD"])) * 10**9 + Fraction(1, 2))
    prices = LIST.get(line["message"]["model"])
    if prices is None:
        return None
    pairs = zip(classes(line).values(), prices, strict=True)
    return int(sum(n * Fraction(price) * 1000 for n, price in pairs) + Fraction(1, 2))


# -- the index


def indexed(world):
    tokens: Counter[tuple[str, str]] = Counter()
    for name, *values in world.sql(
        "SELECT s.native_id, sum(input_tokens), sum(output_tokens),"
        " sum(cache_write_tokens - cache_write_1h_tokens), sum(cache_write_1h_tokens),"
        " sum(cache_read_tokens), count(*) FROM usage u JOIN sessions s ON s.id = u.session_id"
        " WHERE counted = 1 GROUP BY 1"
    ):
        kinds = ("input", "output", "short", "long", "read", "responses")
        tokens.update({(name, kind): n for kind, n in zip(kinds, values, strict=True)})
    [(nano,)] = world.sql("SELECT coalesce(sum(cost_nano), 0) FROM usage WHERE counted = 1")
    return +tokens, nano


def written_in_pieces(world, files, rng):
    """Files in any order, each up to any line or into the middle of one, passes in between."""
    left = {}
    for file in files:
        path = world.projects / file.place
        path.parent.mkdir(parents=True, exist_ok=True)
        left[path] = [json.dumps(line).encode() + b"\n" for line in file.lines]
    while left:
        path = rng.choice(sorted(left))
        lines = left.pop(path)
        count = rng.choice([len(lines), rng.randint(1, len(lines))])
        now, later = b"".join(lines[:count]), lines[count:]
        if later and rng.random() < 0.2:
            cut = rng.randrange(1, len(later[0]) - 1)
            now, later[0] = now + later[0][:cut], later[0][cut:]
        with path.open("ab") as transcript:
            transcript.write(now)
        if later:
            left[path] = later
        if rng.random() < 0.5:
            world.ingest()
    world.ingest()


@settings(
    max_examples=amount(40, 360),
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(seed=st.integers(0, 2**32), order=st.integers(0, 2**32))
def test_tokens_and_cost_equal_a_reading_of_all_lines(world, seed, order):
    """To the last unit, for every session."""
    files = Author(seed).write()
    with tempfile.TemporaryDirectory() as folder:
        home = type(world)(Path(folder))
        written_in_pieces(home, files, random.Random(order))
        assert indexed(home) == reference(files)
