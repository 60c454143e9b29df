"""Writes a realistic, large Cursor database, the same every time.

    python bench/cursor_corpus.py OUT_DIR --mb 2000 [--seed 1]

HOME=OUT_DIR then makes the programs find it. Values have 6.7 KB on average, as in real ones.
"""

import argparse
import base64
import sqlite3
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from random import Random
from uuid import UUID

import orjson
from outputs import source
from textpool import Project
from toolcalls import command, read

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))  # the builders of values are those of the tests

from tests import cursor_databases as cursor  # noqa: E402

GENERATOR = ("cursor_corpus.py", "outputs.py", "textpool.py", "toolcalls.py", "words.txt")
BUBBLES_PER_MB = 150
BUBBLES_PER_COMPOSER = 100
COMPOSERS_PER_PROJECT = 60
BYTES_PER_SCREENSHOT = 50_000_000
SCREENSHOT = 1_000_000
FIRST_DAY_MS = 1_740_000_000_000
SPREAD_MS = 365 * 86_400_000
KINDS = ("prompt", "answer", "thought", "terminal", "file", "edit")
SHARES = (5, 20, 20, 25, 20, 10)
AT_ONCE = 500  # rows


@dataclass
class CursorStats:
    """`bytes` counts the values of bubbles and conversations, `file_bytes` the whole database."""

    bytes: int = 0
    file_bytes: int = 0
    rows: int = 0
    composers: int = 0
    bubbles: int = 0
    screenshots: int = 0


class Writer:
    """Draws conversations one after the other until the budget is used up."""

    def __init__(self, megabytes: float, seed: int) -> None:
        self.rng = Random(f"cursor {seed} {megabytes}")
        self.budget = int(megabytes * 1_000_000)
        self.bubbles = round(megabytes * BUBBLES_PER_MB)
        self.stats = CursorStats()
        self.project = Project(Random(0), 0)
        self.clock = FIRST_DAY_MS
        self.next_screenshot = BYTES_PER_SCREENSHOT // 4

    def uuid(self) -> str:
        return str(UUID(int=self.rng.getrandbits(128), version=4))

    def rows(self) -> Iterator[tuple[str, str]]:
        """Each row as Cursor inserts it: bubbles first, their conversation after them."""
        composers = max(2, self.bubbles // BUBBLES_PER_COMPOSER)
        # Few conversations are long, and they hold most of the bubbles.
        weights = [self.rng.lognormvariate(0, 1.1) for _ in range(composers)]
        scale = self.bubbles / sum(weights)
        for number, weight in enumerate(weights):
            if number % COMPOSERS_PER_PROJECT == 0:
                self.project = Project(Random(f"{self.rng.random()}"), number)
            self.clock = FIRST_DAY_MS + SPREAD_MS * number // composers
            yield from self.conversation(max(2, round(weight * scale)))

    def conversation(self, length: int) -> Iterator[tuple[str, str]]:
        p, composer_id = self.project, self.uuid()
        p.rewrite()
        started, heads = self.clock, []
        for number in range(length):
            self.clock += self.rng.randint(500, 60_000)
            value = self.bubble("prompt" if number == 0 else None)
            heads.append({"bubbleId": value["bubbleId"], "type": value["type"]})
            self.stats.bubbles += 1
            yield self.row(f"bubbleId:{composer_id}:{value['bubbleId']}", value)
        value = cursor.composer(composer_id, name=p.phrase().title(), at=started)
        value["fullConversationHeadersOnly"] = heads
        value["lastUpdatedAt"] = self.clock
        where = {"$mid": 1, "fsPath": p.cwd, "path": p.cwd, "scheme": "file"}
        value["workspaceIdentifier"] = {"id": f"{hash_of(p.cwd)}", "uri": where}
        self.stats.composers += 1
        yield self.row(f"composerData:{composer_id}", value)
        # Rows that are not messages.
        yield f"agentKv:blob:{self.rng.getrandbits(256):064x}", p.prose(3000)
        yield f"checkpointId:{composer_id}:{self.uuid()}", '{"files":[]}'

    def row(self, key: str, value: dict[str, object]) -> tuple[str, str]:
        text = orjson.dumps(value)
        self.stats.bytes += len(text)
        return key, text.decode()

    def bubble(self, kind: str | None) -> dict[str, object]:
        p, name, at = self.project, self.uuid(), self.clock
        left = max(1, self.bubbles - self.stats.bubbles)
        room = max(2000, (self.budget - self.stats.bytes) / left)
        size = int(min(60_000, room * 0.75 * self.rng.lognormvariate(-0.5, 1.0)))
        match kind or self.rng.choices(KINDS, SHARES)[0]:
            case "prompt":
                return self.prompt(name, p.prose(min(size, 900)), at)
            case "answer":
                code = p.code("py", 8)
                block = {"content": "\n".join(code), "languageId": "python", "codeBlockIdx": 0}
                text = "\n".join([p.prose(size // 2), "```python", *code, "```"])
                return cursor.bubble(name, text=text, at=at, codeBlocks=[block])
            case "thought":
                return cursor.thought(name, p.prose(size // 2), at=at)
            case "terminal":
                call = command(p, size)
                line = str(call.input["command"])
                if self.rng.random() < 0.1:
                    return cursor.terminal(name, line, status="error", error=p.phrase(), at=at)
                return cursor.terminal(name, line, str(call.output), at=at)
            case "file":
                call = read(p, size * 3)
                return cursor.reading(name, str(call.input["file_path"]), str(call.output), at=at)
            case _:
                path = f"{p.cwd}/{p.path()}"
                new = source(p, size)
                given = {"relativeWorkspacePath": path, "contents": new, "noCodeblock": True}
                return cursor.tool(name, "edit_file_v2", params=given, result={}, at=at)

    def prompt(self, name: str, text: str, at: int) -> dict[str, object]:
        images = []
        if self.stats.bytes >= self.next_screenshot:
            self.next_screenshot += BYTES_PER_SCREENSHOT
            self.stats.screenshots += 1
            data = base64.b64encode(self.rng.randbytes(SCREENSHOT * 3 // 4)).decode()
            images = [{"uuid": name, "dimension": {"width": 1600, "height": 900}, "data": data}]
        return cursor.prompt(name, text, at=at, images=images)


def hash_of(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()


def fingerprint() -> str:
    """Changes with the generator, so that a cached corpus is not taken for the current one."""
    here = Path(__file__).parent
    built = [cursor.prompt("1", "text"), cursor.thought("2", "text"), cursor.composer("3")]
    built += [cursor.terminal("4", "text", "text"), cursor.reading("5", "text", "text")]
    parts = [(here / name).read_bytes() for name in GENERATOR] + [orjson.dumps(built)]
    return blake2b(b"".join(parts)).hexdigest()[:16]


def write_corpus(out: Path, megabytes: float, seed: int = 1) -> CursorStats:
    """Writes what it did to corpus.json."""
    path = cursor.global_database(out)
    path.parent.mkdir(parents=True)
    db = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode = off", "synchronous = off", "cache_size = -400000"):
        db.execute(f"PRAGMA {pragma}")
    for table in ("ItemTable", "cursorDiskKV"):
        db.execute(cursor.TABLE.format(table))
    writer = Writer(megabytes, seed)
    db.execute("BEGIN")
    cursor.put_item(db, "cursorAuth/accessToken", "made up")
    batch: list[tuple[str, str]] = []
    for row in writer.rows():
        batch.append(row)
        if len(batch) == AT_ONCE:
            db.executemany("INSERT INTO cursorDiskKV VALUES (?, ?)", batch)
            batch.clear()
    db.executemany("INSERT INTO cursorDiskKV VALUES (?, ?)", batch)
    db.execute("COMMIT")
    stats = writer.stats
    stats.rows = db.execute("SELECT max(rowid) FROM cursorDiskKV").fetchone()[0]
    db.execute("PRAGMA journal_mode = wal")
    db.close()
    stats.file_bytes = path.stat().st_size
    about = {"generator": fingerprint(), "seed": seed, "mb": megabytes}
    (out / "corpus.json").write_bytes(orjson.dumps(about | asdict(stats)))
    return stats


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a database of Cursor.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--mb", type=float, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if cursor.global_database(args.out).exists():
        sys.exit(f"{args.out} already holds a database")
    began = time.perf_counter()
    stats = write_corpus(args.out, args.mb, args.seed)
    took = time.perf_counter() - began
    for name, value in asdict(stats).items():
        print(f"{name:15} {value:>13,}")
    print(f"{'MB/s':15} {stats.bytes / 1e6 / took:>13.1f}")


if __name__ == "__main__":
    main()
