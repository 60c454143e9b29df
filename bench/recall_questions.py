"""Questions for bench/recalling.py, and the conversations that answer them.

Our own are in stories.toml. LongMemEval-S and LoCoMo are read from files that whoever runs it has.
"""

import re
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
from apsw import Connection
from harness import SESSIOND, SYNC_OK, Store, run

from sess_cli.commands.demo import install_sample
from sess_schema.connection import open_reader

HERE = Path(__file__).parent
PLANTED = 0xA5
TOLD = 2000  # characters of a turn that a place must hold
DAY = timedelta(days=1)
ADVERSARIAL = 5  # category of LoCoMo's questions that have no answer
LAST = datetime(2026, 2, 20, 9, tzinfo=UTC)
Talk = tuple[datetime, list[tuple[str, str]]]  # when it began; role and text of each turn


@dataclass
class Case:
    """A question, and what answers it."""

    question: str
    sessions: frozenset[str]
    right: Callable[[str], bool]  # whether the text of a place holds the answer


# -- our own questions


class Writer:
    """Transcripts as Claude Code writes them, with as little as recall reads."""

    def __init__(self, folder: Path, session: str, began: datetime, cwd: str) -> None:
        self.session, self.cwd, self.at, self.count = session, cwd, began, 0
        self.path = folder / f"{session}.jsonl"
        folder.mkdir(parents=True, exist_ok=True)
        self.lines: list[bytes] = []

    def line(self, role: str, content: Any) -> None:
        self.count += 1
        self.at += timedelta(seconds=20)
        message = {"role": role, "content": content}
        if role == "assistant":
            message |= {"id": f"msg_{self.session[-12:]}_{self.count}", "model": "claude-opus-4-5"}
        record = {
            "type": role,
            "uuid": str(UUID(int=UUID(self.session).int ^ self.count)),
            "sessionId": self.session,
            "timestamp": f"{self.at:%Y-%m-%dT%H:%M:%S}.000Z",
            "cwd": self.cwd,
            "version": "2.1.114",
            "message": message,
        }
        self.lines.append(orjson.dumps(record) + b"\n")

    def call(self, tool: str, result: str, *, failed: bool = False, **given: str) -> None:
        name = f"toolu_{self.count}"
        self.line("assistant", [{"type": "tool_use", "id": name, "name": tool, "input": given}])
        block = {"type": "tool_result", "tool_use_id": name, "content": result}
        self.line("user", [block | ({"is_error": True} if failed else {})])

    def say(self, text: str) -> None:
        self.line("assistant", [{"type": "text", "text": text}])

    def close(self) -> None:
        self.path.write_bytes(b"".join(self.lines))


@dataclass
class Stories:
    questions: list[Case]
    errors: list[Case]
    foreign: list[str]


def named(number: int) -> str:
    return str(UUID(int=PLANTED << 96 | number << 32, version=4))


def plant(store: Store) -> Stories:
    """Put the stories among the sessions of a store, and load them."""
    given = tomllib.loads((HERE / "stories.toml").read_text("utf-8"))
    folder = store.home / ".claude" / "projects" / "-home-dev-shop"
    cases, errors = list[Case](), list[Case]()
    for number, story in enumerate(given["story"]):
        t = Writer(folder, named(number), LAST - number * 2 * DAY, "/home/dev/shop")
        t.line("user", story["prompt"])
        t.call("Bash", story["output"], command=story["command"])
        t.say(story["answer"])
        t.line("user", "Good, commit that.")
        t.call("Bash", "[main 1a2b3c4] done", command="git commit -am done")
        t.say("Committed.")
        t.close()
        cases.append(case(story["question"], t.session, story["expect"]))
    for number, error in enumerate(given["error"]):
        t = Writer(folder, named(500 + number), LAST - number * 3 * DAY, "/home/dev/shop")
        t.line("user", "Does it run? Make it so.")
        t.call("Bash", error["output"], failed=True, command=error["command"])
        t.say(error["said"])
        t.call(
            "Edit", "updated", file_path="/home/dev/shop/src/a",
            old_string=error["old"], new_string=error["new"],
        )  # fmt: skip
        t.call("Bash", "ok", command=error["command"])
        t.say("It runs.")
        t.close()
        errors.append(case(error["pasted"], t.session, error["expect"]))
    install_sample(store.home / ".claude" / "projects")
    cases += [case(one["question"], one["session"], one["expect"]) for one in given["shipped"]]
    store.sync()
    return Stories(cases, errors, given["foreign"])


def case(question: str, session: str, expect: str) -> Case:
    pattern = re.compile(expect, re.DOTALL)
    return Case(question, frozenset({session}), lambda text: pattern.search(text) is not None)


# -- other people's questions


@contextmanager
def history(sessions: dict[str, Talk]) -> Iterator[Connection]:
    """An index of conversations that are only words, in a home of its own."""
    with tempfile.TemporaryDirectory() as place:
        home, env = Path(place), {"HOME": place, "SESSIOND_HOME": f"{place}/state"}
        (home / "state").mkdir(mode=0o700)
        for number, (began, turns) in enumerate(sessions.values()):
            t = Writer(home / ".claude" / "projects" / "-h", named(number), began, "/h")
            for role, text in turns:
                t.line(role, text if role == "user" else [{"type": "text", "text": text}])
            t.close()
        run([SESSIOND, "sync"], env, SYNC_OK)
        with closing(open_reader(home / "state" / "index.db")) as db:
            yield db


def words_of(text: str) -> str:
    return " ".join(text.split())


def one_of(texts: Iterable[str]) -> Callable[[str], bool]:
    """Whether a place holds one of the turns that have the answer."""
    wanted = [words_of(text)[:TOLD] for text in texts]
    return lambda text: any(one in words_of(text) for one in wanted)


def longmemeval(path: Path, limit: int) -> Iterator[tuple[Connection, Case]]:
    """LongMemEval-S: a history for each question; those without an answer are left out."""
    asked = [one for one in orjson.loads(path.read_bytes()) if "_abs" not in one["question_id"]]
    for one in asked[:: max(1, len(asked) // limit)] if limit else asked:
        dates = [_date(date, "%Y/%m/%d (%a) %H:%M") for date in one["haystack_dates"]]
        talks = [[(t["role"], t["content"]) for t in talk] for talk in one["haystack_sessions"]]
        ids = one["haystack_session_ids"]
        told = dict(zip(ids, zip(dates, talks, strict=True), strict=True))
        names = {name: named(number) for number, name in enumerate(told)}
        right = [t["content"] for talk in one["haystack_sessions"] for t in talk
                 if t.get("has_answer")]  # fmt: skip
        wanted = frozenset(names[name] for name in one["answer_session_ids"])
        with history(told) as db:
            yield db, Case(one["question"], wanted, one_of(right))


def locomo(path: Path, limit: int) -> Iterator[tuple[Connection, Case, bool]]:
    """LoCoMo: each question, and whether the conversation answers it."""
    for talk in orjson.loads(path.read_bytes()):
        whole = talk["conversation"]
        told, texts, where = dict[str, Any](), dict[str, str](), dict[str, str]()
        for number in range(1, 100):
            turns = whole.get(f"session_{number}")
            if not turns:
                continue
            name = named(len(told))
            began = _date(whole[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y")
            lines = []
            for turn in turns:
                said = f"{turn['speaker']}: {turn['text']}"
                texts[turn["dia_id"]], where[turn["dia_id"]] = said, name
                role = "user" if turn["speaker"] == whole["speaker_a"] else "assistant"
                lines.append((role, said))
            told[name] = (began, lines)
        questions = talk["qa"][:limit] if limit else talk["qa"]
        with history(told) as db:
            for one in questions:
                known = [name for name in one.get("evidence", []) if name in texts]
                if known:
                    sessions = frozenset(where[name] for name in known)
                    right = one_of(texts[name] for name in known)
                    yield db, Case(one["question"], sessions, right), one["category"] != ADVERSARIAL


def _date(text: str, form: str) -> datetime:
    return datetime.strptime(text, form).replace(tzinfo=UTC)
