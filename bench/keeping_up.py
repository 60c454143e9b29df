"""Keeping up: nothing new in many files, one line more, bursts, and what is written for it."""

import statistics
import threading
import time
from collections.abc import Callable

import apsw
from harness import HAS_PROC, SESS, SESSIOND, BenchError, Store, cpu_seconds, median, run
from report import Context, Row
from starting import beyond

LINES_A_SECOND = 500
_FIRST, _OTHER = b"4000-8000-000000000001", b"4000-8001-"  # ids of records


def no_change(c: Context) -> None:
    files = 500 if c.quick else 5000
    store = c.work.store(files / 200, files)
    time.sleep(4)  # directories that have just changed are not trusted
    store.sync()
    start, _ = beyond(store, [SESSIOND, "--version"], c.repeat)
    took = median(c.repeat, store.sync)
    what = f"sync of {files:,} unchanged files, beyond sessiond --version"
    c.add(Row("no-change", what, (took - start) * 1000, "ms", 150, ratio=took / c.bare))
    found, alone = beyond(store, [SESS, "search", "--no-sync", "parser"], c.repeat)
    caught, _ = beyond(store, [SESS, "search", "parser"], c.repeat)
    c.add(Row("no-change", "sess search without a daemon, beyond python", alone * 1000, "ms"))
    c.add(Row("no-change", "of that, catching up", (caught - found) * 1000, "ms", 60))


def append(c: Context) -> None:
    """One line more must cost the same in a small and in a large store."""
    took = {}
    for mb in (2 if c.quick else 10, c.search_mb):
        store = c.work.store(mb, terse=mb == c.search_mb)
        for _ in range(50):
            store.append("a line from before")
        store.sync()

        def once(store: Store = store) -> object:
            store.append("one more line about the parser")
            return store.sync()

        took[mb] = median(c.repeat, once)
        c.wall("append", f"one line, sync at {mb:g} MB", took[mb])
    small, large = took.values()
    c.add(Row("append", "large / small store", large / small, "x", 1.2))


def waits(store: Store, times: int, pause: float) -> list[float]:
    """Append lines with a new word each; how long until a reader of the index finds it."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    db = apsw.Connection(f"file:{store.index}?mode=ro", flags=flags)
    sql = "SELECT rowid FROM event_index WHERE event_index MATCH ?"
    delays = []
    for _ in range(times):
        store.append(f"a line with freshword{store.count} in it")
        word, began = f"freshword{store.count - 1}", time.perf_counter()
        while not list(db.execute(sql, (word,))):
            if time.perf_counter() - began > 15:
                raise BenchError(f"{word} not searchable after 15 s")
            time.sleep(0.002)
        delays.append(time.perf_counter() - began)
        time.sleep(pause * (0.5 + len(delays) % 7 / 7))  # not in step with any timer
    db.close()
    return sorted(delays)


def fresh(c: Context) -> None:
    """From the newline to the hit, with the daemon: alone, and while another session writes."""
    store = c.main()
    times = 10 if c.quick else 40
    with store.daemon() as pid:
        before, written = cpu_seconds(pid), bytes_written(pid)
        alone = waits(store, times, 0.25)
        used = (cpu_seconds(pid) - before) / times
        share = (bytes_written(pid) - written) / times
        c.wall("fresh", f"newline to hit, median of {times}", statistics.median(alone))
        c.wall("fresh", "the same, 95th percentile", alone[int(times * 0.95)], 150)
        c.add(Row("fresh", "processor time of the daemon for a line", used * 1000, "ms"))
        c.add(Row("fresh", "written to disk for a line", share / 1e3, "kB"))
        other = Noise(store)
        other.start()
        busy = waits(store, times, 0.1)
        other.stop.set()
        other.join()
        what = f"95th percentile at {other.rate():.0f} lines a second"
        c.wall("fresh", what, busy[int(times * 0.95)], 500)


class Noise(threading.Thread):
    """Another session that writes many lines."""

    def __init__(self, store: Store) -> None:
        super().__init__(daemon=True)
        self.stop = threading.Event()
        lines = store.live.read_bytes().splitlines(keepends=True)
        self._line = lines[0].replace(b"40be-8000", b"40be-8001")
        self._path = store.live.with_name("00000000-0000-40be-8001-000000000000.jsonl")
        self._written, self._began = 0, 0.0

    def run(self) -> None:
        self._began = time.monotonic()
        with self._path.open("ab", buffering=0) as file:
            while not self.stop.wait(0.02):
                due = int((time.monotonic() - self._began) * LINES_A_SECOND) - self._written
                for _ in range(due):
                    self._written += 1
                    number = f"{self._written:012d}".encode()
                    file.write(self._line.replace(_FIRST, _OTHER + number))

    def rate(self) -> float:
        return self._written / (time.monotonic() - self._began)


def bytes_written(pid: int) -> int:
    if not HAS_PROC:
        return 0
    with open(f"/proc/{pid}/io", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("write_bytes"))


def idle(c: Context) -> None:
    if not HAS_PROC:
        raise BenchError("needs /proc")
    store = c.work.store(5, 1000)
    seconds = 5 if c.quick else 20
    with store.daemon() as pid:
        before, written = cpu_seconds(pid), bytes_written(pid)
        time.sleep(seconds)
        used = (cpu_seconds(pid) - before) / seconds
        c.add(Row("idle", f"processor over {seconds} s, 1,000 files", used * 100, "%", 1))
        c.add(Row("idle", "written to disk meanwhile", (bytes_written(pid) - written) / 1e3, "kB"))
        resident = run(["ps", "-o", "rss=", "-p", str(pid)]).out
    c.add(Row("idle", "resident memory", int(resident) / 1024, "MB", 80))


BENCHES: dict[str, Callable[[Context], None]] = {
    "no-change": no_change,
    "append": append,
    "fresh": fresh,
    "idle": idle,
}
