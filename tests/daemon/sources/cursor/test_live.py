"""A program writes as Cursor does while ours read: they agree with it, and it never notices."""

from __future__ import annotations

import hashlib
import json
import random
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.at_length import AT_LENGTH, count, seeds
from tests.cursor_databases import global_database, user_directory
from tests.cursor_generations import GENERATIONS
from tests.must import must
from tests.waiting import LIMIT, let_it_write, wait_until

from sess_schema import archive
from sess_schema.connection import open_reader
from sess_schema.queries.search import Search
from sess_schema.session import Reader

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[4]
STYLES = ["insert", "update"]
BOTH = pytest.mark.parametrize("style", STYLES)
INSERT, UPDATE = (
    pytest.mark.parametrize("style", STYLES if AT_LENGTH else [style]) for style in STYLES
)
ZSTD = b"\x28\xb5\x2f\xfd"


class Writer:
    """The writer as a process: it goes on by itself, and keeps its database open at the end."""

    def __init__(self, database, *options):
        self.database = database
        self.options = [str(option) for option in options]
        self.process = subprocess.Popen(
            self.command(database),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.stdin, self.stdout = must(self.process.stdin), must(self.process.stdout)
        self.outcome = None

    def command(self, database, *more):
        program = [sys.executable, "-m", "tests.cursor_writer", str(database)]
        return [*program, *self.options, *more]

    @property
    def busy(self):
        """It writes; when it has ended it says so."""
        return not select.select([self.stdout], [], [], 0)[0]

    def end(self):
        """Wait for its last write."""
        said = self.stdout.readline()
        assert said == "done\n", f"the writer met a lock: {said}"
        self.outcome = json.loads(self.stdout.readline())

    def close(self):
        """Let it close its database."""
        self.stdin.close()
        assert self.process.wait(LIMIT) == 0

    def digest_alone(self, folder):
        """What the database is like after a run that nobody looked at."""
        path = folder / "alone" / "state.vscdb"
        subprocess.run(
            self.command(path, "--pace", "0"),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            check=True,
            timeout=LIMIT,
        )
        return digest(path)


@pytest.fixture
def write(world):
    """Start a writer on the global database of the world."""
    started = []

    def start(*options):
        path = global_database(world.root)
        path.parent.mkdir(parents=True, exist_ok=True)
        started.append(Writer(path, *options))
        return started[-1]

    yield start
    for writer in started:
        writer.process.kill()
        writer.process.wait()
        writer.stdin.close()
        writer.stdout.close()


def a_line_is_read(world, text):
    """A line of another agent, once the daemon has read it: it has done all that came before."""
    t = world.transcript()
    line = t.encode(t.prompt(text, uuid=text))
    t.append(line)
    wait_until((world.state / "index.db").exists)
    wait_until(lambda: world.found(text))
    return len(line)


def quiet(status):
    """What the daemon tells about itself, once it has nothing new to tell for three beats."""
    facts = json.loads(status.read_text())
    return facts if time.time() * 1000 - facts["at"] > 3000 else None


@pytest.fixture
def daemon(world):
    """A running daemon; stopped at the end however the test went."""
    process = world.start()
    wait_until((world.state / "status.json").exists)
    yield process
    stop(process)


def stop(process):
    if process.poll() is None:
        process.terminate()
    process.wait(LIMIT)


def digest(path):
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_below(folder):
    """Everything about the files that reading them must not change."""
    return {
        str(path.relative_to(folder)): (digest(path), path.stat().st_mtime_ns, path.stat().st_ino)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# -- what the index says


def told(world):
    """Per conversation: bubble, type, text and output, status of each event, in their order."""
    with closing(open_reader(world.state / "index.db")) as db, db:
        bubbles = dict(
            iter(
                db.execute(
                    "SELECT e.id, t.native_id FROM events e JOIN records t ON t.id = record_id"
                )
            )
        )
        sessions = "SELECT id, native_id FROM sessions WHERE agent = 'cursor' AND records > 0"
        return {
            composer: [
                (bubbles[entry.id], entry.type, f"{entry.text}{entry.output}", entry.status)
                for entry in Reader(db, key).entries()
            ]
            for key, composer in db.execute(sessions)
        }


def difference(world, outcome):
    """Where the index tells something else than the database; None when it does not."""
    try:
        index = told(world)
    except Exception as error:
        return f"cannot be read: {error}"
    for composer, bubbles in outcome["composers"].items():
        if composer not in index:
            return f"{composer} is missing"
        found = index[composer]
        for number, (wanted, there) in enumerate(zip(bubbles, found, strict=False)):
            bubble, type_, text, status = wanted
            if (bubble, type_, status) != (there[0], there[1], there[3]) or text not in there[2]:
                return f"{composer} at {number} of {len(bubbles)}: {there}, not {wanted}"
        if len(bubbles) != len(found):
            return f"{composer} has {len(found)} events, not {len(bubbles)}"
    for composer in outcome["hidden"]:
        if index.get(composer):
            return f"{composer} is no conversation"
    live = "SELECT s.native_id FROM sessions s JOIN session_sources m ON m.session_id = s.id"
    live += " JOIN sources r ON r.id = m.source_id WHERE r.state <> 'gone'"
    for (composer,) in world.sql(live):
        if composer in outcome["deleted"]:
            return f"{composer} was deleted and is not called gone"
    return None


def assert_converges(world, outcome):
    """In the end the index says what the database says."""
    wait_until(lambda: not difference(world, outcome), lambda: difference(world, outcome))


def assert_right(world, outcome):
    """No duplicates; what was replaced is not found; what was deleted is said to be gone."""
    assert difference(world, outcome) is None
    twice = "SELECT session_id, native_id FROM records WHERE retired = 0 AND native_id IS NOT NULL"
    assert world.sql(f"{twice} GROUP BY 1, 2 HAVING count(*) > 1") == []
    events = "SELECT record_id, block FROM events WHERE retired = 0"
    assert world.sql(f"{events} GROUP BY 1, 2 HAVING count(*) > 1") == []
    final = [
        text.rsplit(maxsplit=1)[-1]
        for bubbles in outcome["composers"].values()
        for _, type_, text, _ in bubbles
        if text and type_ != "user"
    ]
    told_now = {
        word
        for composer, events in told(world).items()
        if composer not in outcome["deleted"]  # such a one stays as it was last seen
        for _, _, text, _ in events
        for word in text.split()
    }
    rng = random.Random(0)
    with closing(open_reader(world.state / "index.db")) as db:
        for word in rng.sample(final, 40):
            assert len(list(Search(word).hits(db))) == 1, word
        for kind in ("superseded", "reverted", "skipped"):
            assert not told_now & set(outcome[kind]), kind
            for word in rng.sample(outcome[kind], min(40, len(outcome[kind]))):
                found = {hit.session for hit in Search(word).hits(db)}
                assert found <= set(outcome["deleted"]), (kind, word)
    done = world.run("sess", "list", "--no-sync", "--all", "--json", "--limit", "0", check=0)
    listed = {row["session"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert outcome["composers"].keys() <= listed.keys()
    assert listed.keys() <= outcome["composers"].keys() | set(outcome["deleted"])
    for composer, row in listed.items():
        assert row["source_gone"] is (composer in outcome["deleted"]), row
        assert row["title"] == outcome["names"].get(composer, row["title"])
    world.check()


def assert_shown(world, outcome):
    """The programs tell the same: `show`, `search` and `restore`."""
    composer, bubbles = max(outcome["composers"].items(), key=lambda item: len(item[1]))
    done = world.run("sess", "show", "--no-sync", composer, "--json", check=0)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(event["type"], event["status"]) for event in events] == [
        (type_, status) for _, type_, _, status in bubbles
    ]
    done = world.run("sess", "restore", "--no-sync", composer, "-o", "-", check=0)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["composerId"] for line in lines} == {composer}
    assert [line["bubble"]["bubbleId"] for line in lines] == [bubble for bubble, *_ in bubbles]
    _, _, text, _ = bubbles[-1]
    if text:
        word = text.rsplit(maxsplit=1)[-1]
        done = world.run("sess", "search", "--no-sync", "--json", word, check=0)
        assert composer in done.stdout


def logical(world, composers):
    """What the index says about some conversations, without when and how often it was read."""
    shown = told(world)
    sessions = world.sql(
        "SELECT native_id, home, alias, kind, call_id, project, title, git_branch, models, version,"
        " started_at, ended_at, events, prompts, tool_calls FROM sessions ORDER BY 1"
    )
    details = world.sql(
        "SELECT t.native_id, e.block, e.type, e.label, e.tool, e.ts, e.duration_ms, e.summary,"
        " e.images, e.call_id, x.text, x.input, x.output, x.marks FROM events e"
        " JOIN event_texts x ON x.id = e.id JOIN records t ON t.id = e.record_id"
        " JOIN sessions s ON s.id = t.session_id"
        " WHERE t.retired = 0 AND e.retired = 0 ORDER BY s.native_id, t.native_id, e.block"
    )
    own = {bubble for composer in composers for bubble, *_ in shown[composer]}
    return {
        "shown": {composer: shown[composer] for composer in composers},
        "sessions": [row for row in sessions if row[0] in composers],
        "details": [row for row in details if row[0] in own],
    }


def assert_as_read_at_once(world, writer, tmp_path):
    """Another home with the closed database, read in one go, has the same index."""
    fresh = type(world)(tmp_path / "fresh")
    target = global_database(fresh.root)
    target.parent.mkdir(parents=True)
    shutil.copy(writer.database, target)
    fresh.run("sessiond", "sync", check=0)
    composers = writer.outcome["composers"]
    watched, at_once = logical(world, composers), logical(fresh, composers)
    for part, rows in at_once.items():
        assert watched[part] == rows, part


# -- the daemon beside the writer


def follow(world, writer, daemon, tmp_path):
    """What must hold when a writer has ended beside a daemon, and then when both have stopped."""
    writer.end()
    assert_converges(world, writer.outcome)
    assert_right(world, writer.outcome)
    assert_shown(world, writer.outcome)
    stop(daemon)
    writer.close()
    assert digest(writer.database) == writer.digest_alone(tmp_path)
    assert_as_read_at_once(world, writer, tmp_path)


@BOTH
def test_the_daemon_follows_a_writer(world, write, daemon, tmp_path, style):
    """After the last write all is told, once; the file is as if nobody had read it."""
    follow(world, write("--conversations", 10, "--style", style), daemon, tmp_path)


@UPDATE
def test_the_daemon_follows_a_writer_of_a_large_database(world, write, daemon, tmp_path, style):
    """The same among so many old bubbles that their keys are not compared each time."""
    options = ("--conversations", 8, "--style", style, "--old", 11_000)
    follow(world, write(*options), daemon, tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("seed", seeds(24, 12))
def test_the_daemon_follows_other_writers(world, write, daemon, tmp_path, seed):
    """The same with other conversations."""
    style, old = STYLES[seed % 2], seed // 2 % 2 * 11_000
    options = ("--conversations", 20, "--style", style, "--seed", seed, "--old", old)
    follow(world, write(*options), daemon, tmp_path)


def disturb(world, writer, tmp_path, seed):
    """Start and kill daemons while the writer goes on; the last one tells all of it."""
    rng = random.Random(seed)
    kills = 0
    while writer.busy and kills < 12:
        process = world.start()
        let_it_write(world, rng.randrange(6), or_until=lambda: not writer.busy)
        process.kill()
        count("kills", process.wait() == -signal.SIGKILL)
        kills += 1
    process = world.start()
    try:
        writer.end()
        assert_converges(world, writer.outcome)
        assert_right(world, writer.outcome)
    finally:
        stop(process)
    writer.close()
    assert digest(writer.database) == writer.digest_alone(tmp_path)
    assert_as_read_at_once(world, writer, tmp_path)
    return kills


@INSERT
def test_killing_the_daemon_meanwhile_changes_nothing(world, write, tmp_path, style):
    """kill -9 again and again; the last daemon tells what an undisturbed one does."""
    writer = write("--conversations", 14, "--style", style, "--seed", 2, "--pace", 0.004)
    assert disturb(world, writer, tmp_path, seed=2) > 5


@pytest.mark.soak
@BOTH
@pytest.mark.parametrize("seed", seeds(10, 6))
def test_killing_the_daemon_beside_other_writers(world, write, tmp_path, style, seed):
    """The same with other conversations."""
    writer = write("--conversations", 20, "--style", style, "--seed", seed, "--pace", 0.004)
    assert disturb(world, writer, tmp_path, seed) > 5


@UPDATE
def test_syncing_meanwhile_gives_what_one_reading_gives(world, write, tmp_path, style):
    """`sessiond sync` in a loop beside the writer; each of them reads a whole state."""
    writer = write("--conversations", 10, "--style", style, "--seed", 3)
    while writer.busy:
        world.run("sessiond", "sync", check=0)
    writer.end()
    world.run("sessiond", "sync", check=0)
    assert_right(world, writer.outcome)
    writer.close()
    assert_as_read_at_once(world, writer, tmp_path)


def test_reading_leaves_the_files_as_the_writer_left_them(world, write):
    """While it holds the database open and idle: the same bytes in the file and in its log."""
    writer = write("--conversations", 5, "--pace", 0)
    writer.end()
    log = writer.database.with_name("state.vscdb-wal")
    before = digest(writer.database), digest(log)
    assert log.stat().st_size > 0
    for _ in range(3):
        world.run("sessiond", "sync", check=0)
        world.run("sess", "search", "the", check=0)
    process = world.start()
    try:
        assert_converges(world, writer.outcome)
        world.run("sess", "list", check=0)
        a_line_is_read(world, "marker")
    finally:
        stop(process)
    assert (digest(writer.database), digest(log)) == before


def test_our_reading_does_not_wake_us(world, write, daemon):
    """When the writer rests the daemon rests: between two lines it reads only the second."""
    writer = write("--conversations", 5)
    writer.end()
    assert_converges(world, writer.outcome)
    a_line_is_read(world, "first")
    status, log = world.state / "status.json", world.state / "sessiond.log"
    before, logged = wait_until(lambda: quiet(status)), log.read_text()
    for _ in range(8):
        world.run("sess", "search", "the", check=0)
    size = a_line_is_read(world, "second")
    wait_until(lambda: json.loads(status.read_text())["records"] > before["records"])
    after = json.loads(status.read_text())
    assert after["records"] == before["records"] + 1
    assert after["read_bytes"] == before["read_bytes"] + size
    assert after["hints"] - before["hints"] < 8
    assert log.read_text() == logged


@pytest.mark.parametrize("make", GENERATIONS, ids=lambda make: make.__name__)
def test_a_closed_database_gets_no_files_beside_it(world, make):
    """No -wal, no -shm, no other bytes or times, by sync, daemon or search."""
    composer = make(world.root)
    folder = user_directory(world.root)
    before = files_below(folder)
    world.run("sessiond", "sync", check=0)
    process = world.start()
    try:
        a_line_is_read(world, "marker")
        assert files_below(folder) == before
        done = world.run("sess", "show", composer, "--json", check=0)
        assert len(done.stdout.splitlines()) >= 2
    finally:
        stop(process)
    world.run("sess", "search", "question OR fixed", check=0)
    assert files_below(folder) == before


def test_secrets_stay_where_they_are(world, write, daemon):
    """Tokens of the ItemTable are in no file of ours, packed or not, and in no output."""
    writer = write("--conversations", 6)
    writer.end()
    assert_converges(world, writer.outcome)
    secrets = [secret.encode() for secret in writer.outcome["secrets"]]
    assert secrets
    said = [
        world.run(*command).stdout + world.run(*command).stderr
        for command in (
            ("sessiond", "status", "--json", "--all"),
            ("sessiond", "logs"),
            ("sess", "doctor", "--json"),
            ("sess", "search", "--json", "--limit", "0", "e*"),
        )
    ]
    for secret in secrets:
        assert secret.decode() not in "".join(said)
    stop(daemon)
    for path in world.state.iterdir():
        if path.is_file():
            raw = path.read_bytes()
            assert not any(secret in raw for secret in secrets), path
    packed = 0
    with closing(open_reader(world.state / "index.db")) as db:
        tables = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
        for (table,) in list(db.execute(tables)):
            for row in db.execute(f'SELECT * FROM "{table}"'):
                for value in row:
                    if isinstance(value, bytes) and value.startswith(ZSTD):
                        packed += 1
                        raw = archive.unpack(value)
                        assert not any(secret in raw for secret in secrets), table
    assert packed > 0
