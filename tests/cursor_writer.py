"""A program that writes to a database as Cursor does, while others read it.

    python -m tests.cursor_writer DATABASE [--conversations 20] [--seed 1] [--style insert|update]

It keeps a WAL database open and never waits for a lock: if another program holds one, it exits with
3. At the end it prints `done` and then, as JSON, what a reader must have found. It closes the
database when its standard input is closed. The seed determines every byte that it writes.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # when run by its path

from tests.cursor_databases import (
    CREATED,
    bubble,
    composer,
    encoded,
    header_entry,
    make_global,
    picture,
    prompt,
    put_item,
    terminal,
    thought,
)

LOCKED = 3
AT_ONCE = 4  # concurrent conversations
LONG_ENOUGH = 0.15  # seconds in which a watching reader has seen what was written
PROSE = (
    "the parser reads a line and keeps its offset while another thread writes the cache so that"
    " every retry finds what was there before and nothing is lost when the process ends early"
)
# What happens to a conversation at its end; the rest just stays.
FATES = ("kept", "deleted", "kept", "emptied", "kept", "deleted row by row", "kept")


@dataclass
class Conversation:
    """What the database holds of one composer."""

    id: str
    name: str
    status: str = "none"
    headers: list[tuple[str, int]] = field(default_factory=list)
    rows: dict[str, dict] = field(default_factory=dict)
    expected: dict[str, list] = field(default_factory=dict)  # what a reader must show of each row
    orphaned: bool = False
    deleted: bool = False
    started: int = CREATED

    def shown(self):
        """Bubbles that are there, in order."""
        order = self.rows if self.orphaned else [name for name, _ in self.headers]
        return [[name, *self.expected[name]] for name in order if name in self.rows]


class Cursor:
    """The writer: every change goes to the database at once."""

    def __init__(self, db, seed, style, pace):
        self.db, self.style, self.pace = db, style, pace
        self.rng = Random(seed)
        self.count = 0
        self.clock = CREATED
        self.talks: list[Conversation] = []
        self.superseded: list[str] = []  # words that were replaced before the end
        self.reverted: list[str] = []  # words of bubbles that were taken away
        self.skipped: list[str] = []  # words outside of conversations
        self.secrets: list[str] = []
        self.hidden: list[str] = []  # composers that are not conversations
        self.writes, self.slowest = 0, 0.0

    # -- words and times, from the seed only

    def number(self):
        self.count += 1
        return self.count

    def word(self, kind):
        """A word that occurs nowhere else."""
        return f"{kind}{self.number():05d}"

    def uuid(self):
        return f"{self.rng.getrandbits(32):08x}-{self.number():04x}-4000-8000-{0xC0DE:012x}"

    def now(self):
        self.clock += self.rng.randint(5, 900)
        return self.clock

    def prose(self, least=4, most=60):
        return " ".join(self.rng.choices(PROSE.split(), k=self.rng.randint(least, most)))

    # -- the database

    def execute(self, sql, values=()):
        began = time.perf_counter()
        self.db.execute(sql, values)
        self.slowest = max(self.slowest, time.perf_counter() - began)
        self.writes += 1

    def put(self, key, value):
        if self.style == "update":  # keeps the rowid of an existing row
            sql = "INSERT INTO cursorDiskKV VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = "
            self.execute(f"{sql}excluded.value", (key, encoded(value)))
        else:
            self.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", (key, encoded(value)))

    def delete(self, key):
        self.execute("DELETE FROM cursorDiskKV WHERE key = ?", (key,))

    def rowid(self, key):
        return self.db.execute("SELECT rowid FROM cursorDiskKV WHERE key = ?", (key,)).fetchone()

    def save(self, talk, **more):
        """The conversation's own row; it grows with each bubble."""
        value = composer(
            talk.id,
            name=talk.name,
            at=talk.started,
            status=talk.status,
            lastUpdatedAt=self.now(),
            fullConversationHeadersOnly=[
                {"bubbleId": name, "type": kind} for name, kind in talk.headers
            ],
        )
        value |= more
        value["workspaceIdentifier"] = header_entry(value)["workspaceIdentifier"]
        self.put(f"composerData:{talk.id}", value)

    def set_bubble(self, talk, value, type_, text, status=None):
        talk.rows[value["bubbleId"]] = value
        talk.expected[value["bubbleId"]] = [type_, text, status]
        self.put(f"bubbleId:{talk.id}:{value['bubbleId']}", value)

    def drop_bubble(self, talk, name, *, reverted=True):
        del talk.rows[name]
        if reverted:
            words = talk.expected[name][1].split()
            self.reverted.extend(word for word in words if word[-1].isdigit())
        self.delete(f"bubbleId:{talk.id}:{name}")

    # -- what happens in a conversation; a `yield` lets the others go on

    def talk(self, talk, fate):
        self.save(talk, name=None)
        yield
        for _ in range(self.rng.randint(2, 4)):
            yield from self.request(talk)
            luck = self.rng.random()
            if luck < 0.2:
                yield from self.revert(talk)
            elif luck < 0.35:
                self.drop_bubble(talk, self.rng.choice([*talk.rows]))  # its header stays
            elif luck < 0.55:
                self.write_twice_at_one_place(talk)
            elif luck < 0.65:
                self.take_the_place_of_another(talk)
            yield
        if fate == "deleted":
            self.execute("BEGIN IMMEDIATE")
            self.erase(talk)
            self.execute("COMMIT")
        elif fate == "deleted row by row":
            self.erase(talk)
        elif fate == "emptied":
            talk.headers, talk.orphaned, talk.status = [], True, "aborted"
            self.save(talk)

    def request(self, talk):
        """A prompt and what the agent does about it."""
        said = f"{self.word('ask')} {self.prose()}"
        images = [picture(self.rng.randint(50, 400), self.number())] * (self.rng.random() < 0.1)
        value = prompt(self.uuid(), said, at=self.now(), images=images)
        talk.headers.append((value["bubbleId"], 1))
        talk.status = "generating"
        self.set_bubble(talk, value, "user", said)
        self.save(talk)
        yield
        for _ in range(self.rng.randint(2, 6)):
            step = self.rng.choice((self.answer, self.think, self.call, self.call))
            yield from step(talk)
        talk.status = "completed"
        self.save(talk)
        yield

    def stream(self, talk, make, type_):
        """Text that grows in place; the header comes a moment after the bubble."""
        name, at, final = self.uuid(), self.now(), f"{self.prose()} {self.word('final')}"
        self.set_bubble(talk, make(name, "", at=at), type_, "")
        talk.headers.append((name, 2))
        yield
        self.save(talk, generatingBubbleIds=[name])
        for part in range(self.rng.randint(2, 9)):
            self.superseded.append(self.word("partial"))
            draft = f"{final[: len(final) * part // 9]} {self.superseded[-1]}"
            self.set_bubble(talk, make(name, draft, at=at), type_, draft)
            yield
        self.set_bubble(talk, make(name, final, at=at), type_, final)
        yield

    def answer(self, talk):
        def make(name, text, at):
            code = {"content": text, "languageId": "python", "codeBlockIdx": 0}
            return bubble(name, text=text, at=at, codeBlocks=[code] if len(text) % 3 == 0 else [])

        return self.stream(talk, make, "assistant")

    def think(self, talk):
        return self.stream(talk, thought, "thinking")

    def call(self, talk):
        """pending, loading, then done; now and then one fails or never ends."""
        name, at = self.uuid(), self.now()
        command, said = f"make {self.word('command')}", f"{self.prose()} {self.word('output')}"
        ends = self.rng.choices(("completed", "error", "loading"), (8, 3, 1))[0]
        for status in ("pending", "loading"):
            value = terminal(name, command if status == "loading" else "", status=status, at=at)
            self.set_bubble(talk, value, "tool_use", "", "pending")
            if status == "pending":
                talk.headers.append((name, 2))
                self.save(talk)
            yield
        if ends == "completed":
            value = terminal(name, command, said, at=at)
            self.set_bubble(talk, value, "tool_use", said, "ok")
        elif ends == "error":
            value = terminal(name, command, status="error", error=said, at=at)
            self.set_bubble(talk, value, "tool_use", said, "error")
        yield

    def revert(self, talk):
        """The user goes back to an earlier message: headers first, rows after."""
        keep = self.rng.randint(1, max(1, len(talk.headers) - 1))
        gone = [name for name, _ in talk.headers[keep:] if name in talk.rows]
        del talk.headers[keep:]
        together = self.rng.random() < 0.5
        if together:
            self.execute("BEGIN IMMEDIATE")
        self.save(talk)
        for name in gone:
            self.drop_bubble(talk, name)
            if not together:
                yield
        if together:
            self.execute("COMMIT")

    def write_twice_at_one_place(self, talk):
        """Delete and insert the newest row: it changes and keeps its rowid."""
        if not (name := self.some_answer(talk)):
            return
        key, at = f"bubbleId:{talk.id}:{name}", self.now()
        stale, final = self.word("partial"), f"{self.prose()} {self.word('final')}"
        self.superseded += [stale, talk.expected[name][1].split()[-1]]
        self.delete(key)
        self.set_bubble(talk, bubble(name, text=stale, at=at), "assistant", stale)
        self.save(talk)
        time.sleep(LONG_ENOUGH if self.pace else 0)
        self.delete(key)
        self.set_bubble(talk, bubble(name, text=stale, at=at), "assistant", stale)
        before = self.rowid(key)
        time.sleep(LONG_ENOUGH if self.pace else 0)
        self.execute("BEGIN IMMEDIATE")
        self.delete(key)
        self.set_bubble(talk, bubble(name, text=final, at=at), "assistant", final)
        self.execute("COMMIT")
        assert self.rowid(key) == before
        self.save(talk)

    def take_the_place_of_another(self, talk):
        """Delete the newest bubble, and give its rowid to another one."""
        old, new, at = self.uuid(), self.uuid(), self.now()
        stale, final = self.word("final"), self.word("final")
        self.set_bubble(talk, bubble(old, text=stale, at=at), "assistant", stale)
        before = self.rowid(f"bubbleId:{talk.id}:{old}")
        time.sleep(LONG_ENOUGH if self.pace else 0)
        self.execute("BEGIN IMMEDIATE")
        self.drop_bubble(talk, old)
        self.set_bubble(talk, bubble(new, text=final, at=at), "assistant", final)
        self.execute("COMMIT")
        assert self.rowid(f"bubbleId:{talk.id}:{new}") == before
        talk.headers.append((new, 2))
        self.save(talk)

    def some_answer(self, talk):
        answers = [name for name in talk.rows if talk.expected[name][0] == "assistant"]
        # An emptied conversation is ordered by time, so only the last one may get a new time.
        return answers[-1] if answers and answers[-1] == [*talk.rows][-1] else None

    def erase(self, talk):
        for name in [*talk.rows]:
            self.drop_bubble(talk, name, reverted=False)
        self.delete(f"composerData:{talk.id}")
        talk.deleted = True

    # -- what else is written to the file

    def begin(self):
        secret = f"eyJhbGciOi{self.rng.getrandbits(128):032x}"
        self.secrets = [f"{secret}access", f"{secret}refresh", f"{secret}vault"]
        put_item(self.db, "cursorAuth/accessToken", self.secrets[0])
        put_item(self.db, "cursorAuth/refreshToken", self.secrets[1])
        put_item(self.db, 'secret://{"extensionId":"x","key":"y"}', self.secrets[2])
        for name, more in (("ghost", {"name": None}), ("draft", {"isDraft": True})):
            unsent = self.word("unsent")
            value = composer(self.uuid(), text=unsent if name == "draft" else "", **more)
            self.put(f"composerData:{value['composerId']}", value)
            self.hidden.append(value["composerId"])
            self.superseded.append(unsent)

    def fill(self, bubbles):
        """Old conversations, too many to read all of them at each change."""
        while bubbles > 0:
            talk = Conversation(self.uuid(), "Old talk", "completed", started=self.now())
            self.execute("BEGIN IMMEDIATE")
            for _ in range(500):
                said = self.word("old")
                value = {"_v": 2, "type": 2, "bubbleId": self.uuid(), "text": said}
                talk.headers.append((value["bubbleId"], 2))
                self.set_bubble(talk, value, "assistant", said)
            self.save(talk)
            self.execute("COMMIT")
            self.talks.append(talk)
            bubbles -= 500

    def noise(self):
        """The window's state, which is most of what Cursor writes, and rows beside the messages."""
        put_item(self.db, "workbench.view.state", {"at": self.now(), "sizes": [self.number()] * 9})
        put_item(self.db, "cursorAuth/accessToken", self.secrets[0])
        if self.rng.random() < 0.3:
            payload = {"role": "assistant", "content": self.word("wire")}
            self.skipped.append(payload["content"])
            self.put(f"agentKv:blob:{self.rng.getrandbits(256):064x}", payload)
            self.put(f"checkpointId:{self.uuid()}:{self.uuid()}", {"files": []})
        if self.rng.random() < 0.2:
            self.db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def play(self, conversations):
        """Run concurrent conversations until all have ended."""
        self.begin()
        waiting = list(range(conversations))
        going: list = []
        while waiting or going:
            if waiting and len(going) < AT_ONCE:
                number = waiting.pop(0)
                talk = Conversation(self.uuid(), f"Talk {number}", started=self.now())
                self.talks.append(talk)
                going.append(self.talk(talk, FATES[number % len(FATES)]))
            chosen = self.rng.choice(going)
            if next(chosen, self) is self:
                going.remove(chosen)
            if self.rng.random() < 0.15:
                self.noise()
            if self.pace:
                time.sleep(self.pace)

    def outcome(self):
        return {
            "composers": {talk.id: talk.shown() for talk in self.talks if not talk.deleted},
            "names": {talk.id: talk.name for talk in self.talks if not talk.deleted},
            "deleted": [talk.id for talk in self.talks if talk.deleted],
            "hidden": self.hidden,
            "superseded": self.superseded,
            "reverted": self.reverted,
            "skipped": self.skipped,
            "secrets": self.secrets,
            "writes": self.writes,
            "slowest_ms": round(self.slowest * 1000, 1),
        }


def main():
    parser = argparse.ArgumentParser(description="Write a database as Cursor does.")
    parser.add_argument("database", type=Path)
    parser.add_argument("--conversations", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--style", choices=("insert", "update"), default="insert")
    parser.add_argument("--old", type=int, default=0, help="bubbles that were there before")
    parser.add_argument("--pace", type=float, default=0.002, help="seconds between two writes")
    args = parser.parse_args()
    try:
        db = make_global(args.database)
        cursor = Cursor(db, args.seed, args.style, args.pace)
        cursor.fill(args.old)
        cursor.play(args.conversations)
    except sqlite3.OperationalError as error:
        print(f"{error.sqlite_errorname}: {error}", flush=True)
        return LOCKED
    print(f"done\n{json.dumps(cursor.outcome())}", flush=True)
    sys.stdin.read()
    db.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
