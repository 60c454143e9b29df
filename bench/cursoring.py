"""Cursor's database at full size: the first load of it, one change in it, and its window's noise.

A process of its own holds the database open and writes to it, as Cursor does.
"""

import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import apsw
import orjson
from cursor_corpus import cursor, fingerprint
from harness import (
    DATA,
    FOREIGN,
    HAS_PROC,
    SESSIOND,
    SYNC_OK,
    BenchError,
    Finished,
    Store,
    check,
    children,
    cpu_seconds,
    run,
    run_watched,
    say,
    status_mb,
)
from report import Context, Row

USUAL_MB, QUICK_MB = 200, 20
LATEST = 60.0  # seconds until a word that cannot be found fails the bench
PARSE = """
import orjson, sqlite3, sys
db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro&immutable=1", uri=True)
for (value,) in db.execute("SELECT value FROM cursorDiskKV WHERE key >= 'bubbleId:' AND key < 'd'"):
    orjson.loads(value)
"""
# Each line on its input is a table, a key and a value; it answers when they are written.
WRITER = """
import json, sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
print("open", flush=True)
for line in sys.stdin:
    db.execute("BEGIN")
    for table, key, value in json.loads(line):
        db.execute(f"INSERT INTO {table} VALUES (?, ?)", (key, value))
    db.execute("COMMIT")
    print("written", flush=True)
db.close()
"""


class CursorStore(Store):
    """A copy of the database with a home and an index of its own."""

    def __init__(self, place: Path, source: Path) -> None:
        self.home, self.state = place / "home", place / "state"
        self.about = orjson.loads((source / "corpus.json").read_bytes())
        self.database = cursor.global_database(self.home)
        self.database.parent.mkdir(parents=True)
        shutil.copyfile(cursor.global_database(source), self.database)
        self.state.mkdir(mode=0o700)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith((*FOREIGN, "CURSOR_"))}
        self.env |= {"HOME": str(self.home), "SESSIOND_HOME": str(self.state)}
        self.count = 0
        # Reads the file once, so that the load finds it in the page cache.
        self.parsed = run([sys.executable, "-c", PARSE, str(self.database)]).seconds
        say(f"first load of {self.mb:.0f} MB")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.loaded = run_watched([SESSIOND, "sync"], self.env, SYNC_OK)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.load_cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        self.loaded_mb = self.index_mb()

    @property
    def file_mb(self) -> float:
        return self.database.stat().st_size / 1e6

    @contextmanager
    def writer(self) -> Iterator[Callable[..., None]]:
        """A process that has the database open; yields a function that makes it write rows."""
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(self.database)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdin
            assert process.stdout
            process.stdout.readline()

            def write(*rows: tuple[str, str, str]) -> None:
                assert process.stdin
                assert process.stdout
                process.stdin.write(orjson.dumps(rows).decode() + "\n")
                process.stdin.flush()
                if process.stdout.readline() != "written\n":
                    raise BenchError("the writer of the database met an error")

            yield write
            process.stdin.close()

    def some_bubbles(self, count: int) -> list[str]:
        """Keys from all over the database."""
        db = apsw.Connection(
            f"file:{self.database}?mode=ro", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        )
        rng = random.Random(count)
        last = db.execute("SELECT max(rowid) FROM cursorDiskKV").get
        keys: list[str] = []
        while len(keys) < count:
            sql = "SELECT key FROM cursorDiskKV WHERE rowid >= ? LIMIT 1"
            key = db.execute(sql, (rng.randrange(last),)).get
            if key and key.startswith("bubbleId:"):
                keys.append(key)
        db.close()
        return keys

    def changed(self, key: str) -> tuple[tuple[str, str, str], str]:
        """A bubble with another text, and a word in it that occurs nowhere else."""
        self.count += 1
        word = f"freshbubble{self.count}"
        value = cursor.bubble(key.rpartition(":")[2], text=f"an answer with {word} in it " * 50)
        return ("cursorDiskKV", key, orjson.dumps(value).decode()), word

    def touched(self, key: str) -> tuple[str, str, str]:
        """The conversation of a bubble, changed a moment later."""
        name = f"composerData:{key.split(':')[1]}"
        db = apsw.Connection(
            f"file:{self.database}?mode=ro", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        )
        value = orjson.loads(
            db.execute("SELECT value FROM cursorDiskKV WHERE key = ?", (name,)).get
        )
        db.close()
        value["lastUpdatedAt"] += self.count
        return "cursorDiskKV", name, orjson.dumps(value).decode()

    def find(self, connection: apsw.Connection, word: str) -> None:
        """Wait until a reader of the index finds the word."""
        sql = "SELECT rowid FROM event_index WHERE event_index MATCH ?"
        began = time.perf_counter()
        while not list(connection.execute(sql, (word,))):
            if time.perf_counter() - began > LATEST:
                raise BenchError(f"{word} not searchable after {LATEST:.0f} s")
            time.sleep(0.002)

    def reader(self) -> apsw.Connection:
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        return apsw.Connection(f"file:{self.index}?mode=ro", flags=flags)


def corpus(mb: float) -> Path:
    """The directory of a generated database, made once."""
    home = DATA / f"cursor-{mb:g}mb"
    with suppress(OSError, ValueError):
        if orjson.loads((home / "corpus.json").read_bytes())["generator"] == fingerprint():
            return home
    shutil.rmtree(home, ignore_errors=True)
    DATA.mkdir(exist_ok=True)
    if shutil.disk_usage(DATA).free < mb * 6e6:
        raise BenchError(f"not enough space for a database of {mb:g} MB, its copy and its index")
    say(f"writing a database of {mb:g} MB")
    program = str(Path(__file__).with_name("cursor_corpus.py"))
    run([sys.executable, program, str(home), "--mb", str(mb)])
    return home


def store_of(c: Context) -> CursorStore:
    source = corpus(QUICK_MB if c.quick else USUAL_MB)
    store = c.work.stores.get(source)
    if not isinstance(store, CursorStore):
        place = c.work.root / source.name
        shutil.rmtree(place, ignore_errors=True)
        store = c.work.stores[source] = CursorStore(place, source)
    return store


def load(c: Context) -> None:
    bench, store = "cursor-load", store_of(c)
    seconds = store.loaded.seconds
    what = f"first load, {store.mb:.0f} MB of values, {store.about['bubbles']:,} bubbles"
    to = "time of sqlite3 and orjson alone"
    c.add(Row(bench, what, store.mb / seconds, "MB/s", 15, True, seconds / store.parsed, to))
    c.add(Row(bench, "the same by processor time", store.mb / store.load_cpu, "MB/s"))
    if HAS_PROC:
        c.add(Row(bench, "peak memory", store.loaded.peak_mb, "MB", 350))
    c.add(Row(bench, "index / values", store.loaded_mb / store.mb, ""))
    done = run([SESSIOND, "sync"], store.env, SYNC_OK)
    c.wall(bench, "sync with nothing new", done.seconds)


# -- bytes that were read


def read_by(pid: int) -> int:
    """Bytes that a process and its children have read so far, from files and from the cache."""
    total = 0
    for one in children(pid):
        with suppress(OSError):
            for line in Path(f"/proc/{one}/io").read_text().splitlines():
                if line.startswith("rchar:"):
                    total += int(line.split()[1])
    return total


def weigh_sync(store: CursorStore) -> tuple[Finished, int]:
    """A sync and the bytes that it read, the modules of Python and its own index included."""
    command = [SESSIOND, "sync"]
    began = time.perf_counter()
    with subprocess.Popen(
        command, env=store.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # its figures are still there
        seconds = time.perf_counter() - began
        read = read_by(process.pid)
        assert process.stderr
        process.wait()
        check(command, process.returncode, process.stderr.read(), SYNC_OK)
    return Finished(seconds, 0.0, process.returncode, b""), read


def traced_sync(store: CursorStore, trace: Path) -> dict[str, int]:
    """Bytes that a sync reads from each file; only strace tells them apart."""
    calls = "trace=read,pread64,readv,preadv,preadv2"
    command = ["strace", "-f", "-qq", "-y", "-e", calls, "-o", str(trace), SESSIOND, "sync"]
    run(command, store.env, SYNC_OK)
    found: dict[str, int] = {}
    for line in trace.read_text(errors="replace").splitlines():
        path, result = line.partition("<")[2].partition(">")[0], line.rpartition("= ")[2]
        if result.isdigit():
            found[path] = found.get(path, 0) + int(result)
    trace.unlink()
    return found


def read_from(c: Context, store: CursorStore, write: Callable[..., None]) -> None:
    """What one changed bubble costs in reads of Cursor's files and of our own."""
    bench, share = "cursor-change", 100 / (store.file_mb * 1e6)
    if not shutil.which("strace"):
        say("strace is not on PATH: no bytes per file")
        return
    theirs, ours = [], []
    for key in store.some_bubbles(5):
        write(store.changed(key)[0])
        read = traced_sync(store, store.state / "trace")
        theirs.append(sum(n for path, n in read.items() if path.startswith(str(store.database))))
        ours.append(sum(n for path, n in read.items() if path.startswith(str(store.index))))
    c.add(
        Row(
            bench, "read by it from the database, median", statistics.median(theirs) * share, "%", 1
        )
    )
    c.add(Row(bench, "the same, the most", max(theirs) * share, "%", 1))
    c.add(Row(bench, "read by it from the index, median", statistics.median(ours) / 1e6, "MB"))


def change(c: Context) -> None:
    if not HAS_PROC:
        raise BenchError("needs /proc")
    store = store_of(c)
    times = 5 if c.quick else 15
    with store.writer() as write:
        write(("ItemTable", "bench", "open"))
        change_and_sync(c, store, write)
        read_from(c, store, write)
        change_and_wait(c, store, write, times)
        idle(c, store, write)


def change_and_sync(c: Context, store: CursorStore, write: Callable[..., None]) -> None:
    """Syncs with nothing new, and with one bubble each; what those read more."""
    bench, share = "cursor-change", 100 / (store.file_mb * 1e6)
    weigh_sync(store)  # what the writer did to the file by opening it
    nothing = [weigh_sync(store) for _ in range(3)]
    resting = statistics.median(read for _, read in nothing)
    c.wall(bench, "sync with nothing new", statistics.median(one.seconds for one, _ in nothing))
    syncs = []
    for key in store.some_bubbles(5):
        row, word = store.changed(key)
        write(row)
        syncs.append(weigh_sync(store))
        with closing(store.reader()) as connection:
            store.find(connection, word)
    seconds = statistics.median(one.seconds for one, _ in syncs)
    c.wall(bench, f"sync with one changed bubble, median of {len(syncs)}", seconds)
    reads = [read for _, read in syncs]
    middle, most = statistics.median(reads), max(reads)
    # Python's modules and the index are read as well; reads of the database are reported below.
    what = f"read by it from all files, as part of {store.file_mb:.0f} MB"
    c.add(Row(bench, what, middle * share, "%"))
    c.add(Row(bench, "the same, the most", most * share, "%"))
    c.add(Row(bench, "less a sync with nothing new, median", (middle - resting) / 1e6, "MB"))


def change_and_wait(c: Context, store: CursorStore, write: Callable[..., None], times: int) -> None:
    """From the commit of a bubble until a reader of the index finds it, with the daemon up."""
    bench = "cursor-change"
    with store.daemon() as pid:
        connection = store.reader()
        for both in (False, True):
            delays, reads, used = [], [], []
            for key in store.some_bubbles(times):
                row, word = store.changed(key)
                rows = [row, store.touched(key)] if both else [row]
                before, cpu = read_by(pid), cpu_seconds(pid)
                write(*rows)
                began = time.perf_counter()
                store.find(connection, word)
                delays.append(time.perf_counter() - began)
                time.sleep(random.uniform(0.8, 1.6))  # whatever follows the change belongs to it
                reads.append(read_by(pid) - before)
                used.append(cpu_seconds(pid) - cpu)
            what = "bubble and conversation" if both else "bubble"
            middle, most = statistics.median(delays), max(delays)
            c.wall(bench, f"{what} to searchable, median of {times}", middle, 1000)
            c.wall(bench, "the slowest of them", most, 1000)
            c.add(Row(bench, "read for it from all files", statistics.median(reads) / 1e6, "MB"))
            c.add(Row(bench, "the same, the most", max(reads) / 1e6, "MB"))
            c.add(Row(bench, "processor time for it", statistics.median(used) * 1000, "ms"))
        connection.close()


def idle(c: Context, store: CursorStore, write: Callable[..., None]) -> None:
    """The state of the window is written twice a second, and no conversation."""
    bench, seconds = "cursor-change", 6 if c.quick else 30
    with store.daemon() as pid:
        for noisy in (False, True):
            cpu, read, began = cpu_seconds(pid), read_by(pid), time.perf_counter()
            while (gone := time.perf_counter() - began) < seconds:
                if noisy:
                    write(("ItemTable", "workbench.view.state", f"{gone}"))
                time.sleep(0.5)
            used = (cpu_seconds(pid) - cpu) / gone
            rate = (read_by(pid) - read) / 1e6 / gone
            what = "beside a window's noise" if noisy else "at rest"
            c.add(Row(bench, f"processor {what}, {seconds} s", used * 100, "%"))
            c.add(Row(bench, f"read {what}", rate, "MB/s"))
        c.add(Row(bench, "resident memory", status_mb(pid, "VmRSS"), "MB"))


BENCHES: dict[str, Callable[[Context], None]] = {"cursor-load": load, "cursor-change": change}
