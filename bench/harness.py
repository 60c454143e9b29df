"""Corpora, stores and children for the benches."""

import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import orjson
from corpus import fingerprint

BIN = Path(sys.executable).parent
SESS, SESSIOND = str(BIN / "sess"), str(BIN / "sessiond")
DATA = Path(__file__).parent / "data"
HAS_PROC = Path("/proc/self/stat").exists()
# These variables would make the programs read transcripts outside the corpus.
FOREIGN = ("CLAUDE_", "CODEX_", "XDG_", "SESSIOND_", "GEMINI_", "COPILOT_", "OPENCODE_")
SYNC_OK = (0, 5)
# With this set, a program in a clone is recompiled at each start; an installed one never is.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


class BenchError(Exception):
    """A program failed; the bench is reported as failed."""


@dataclass
class Finished:
    seconds: float
    peak_mb: float
    code: int
    out: bytes
    cpu: float = 0.0


def say(text: str) -> None:
    print(f"# {text}", file=sys.stderr, flush=True)


def corpus(mb: float, files: int | None = None, *, terse: bool = False, years_ago: int = 0) -> Path:
    """The directory of a generated corpus, made once. Years differ in everything they hold."""
    name = f"corpus-{mb:g}mb-{files or 'default'}{'-terse' if terse else ''}"
    home = DATA / (f"{name}-{years_ago}" if years_ago else name)
    about = home / "corpus.json"
    with suppress(OSError, ValueError):
        if orjson.loads(about.read_bytes())["generator"] == fingerprint():
            return home
    shutil.rmtree(home, ignore_errors=True)
    say(f"writing a corpus of {mb:g} MB")
    command = [sys.executable, str(Path(__file__).with_name("corpus.py")), str(home)]
    command += ["--mb", str(mb)] + (["--files", str(files)] if files else [])
    command += ["--terse"] if terse else []
    command += ["--seed", str(1 + years_ago), "--days-ago", str(365 * years_ago)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return home


def children(pid: int) -> list[int]:
    found = [pid]
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += children(int(child))
    return found


def status_mb(pid: int, field: str) -> float:
    """A size from /proc. getrusage would count this process too, up to the child's exec."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1024
    return 0.0


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children_cpu() -> float:
    """Processor seconds of everything that was started here and has ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(
    command: list[str], env: dict[str, str] | None = None, ok: tuple[int, ...] = (0,)
) -> Finished:
    began, before = time.perf_counter(), children_cpu()
    try:
        done = subprocess.run(command, env=env, capture_output=True, timeout=600, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BenchError(str(error)) from error
    seconds = time.perf_counter() - began
    check(command, done.returncode, done.stderr, ok)
    return Finished(seconds, 0.0, done.returncode, done.stdout, children_cpu() - before)


def run_watched(
    command: list[str], env: dict[str, str], ok: tuple[int, ...], every: float = 0.05
) -> Finished:
    """Like run, with the peak memory of the process and its children, seen `every` seconds."""
    peaks: dict[int, float] = {}
    began, before = time.perf_counter(), children_cpu()
    with subprocess.Popen(
        command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        while process.poll() is None:
            for pid in children(process.pid) if HAS_PROC else ():
                peaks[pid] = max(peaks.get(pid, 0.0), status_mb(pid, "VmHWM"))
            time.sleep(every)
        seconds = time.perf_counter() - began
        assert process.stderr
        check(command, process.returncode, process.stderr.read(), ok)
    peak, cpu = sum(peaks.values()), children_cpu() - before
    return Finished(seconds, peak, process.returncode, b"", cpu)


def check(command: list[str], code: int, stderr: bytes, ok: tuple[int, ...]) -> None:
    # Python exits with 1 when it crashes, which `sess` uses to say that nothing was found.
    if code not in ok or b"Traceback (most recent call last)" in stderr:
        lines = stderr.decode(errors="replace").strip().splitlines() or [""]
        name = " ".join([Path(command[0]).name, *command[1:2]])
        raise BenchError(f"{name}: exit {code}: {lines[-1][:120]}")


def median(repeat: int, once: Callable[[], Finished]) -> float:
    return statistics.median(once().seconds for _ in range(repeat))


class Store:
    """A corpus seen through its own HOME, and its index. Files are links: only new ones change."""

    def __init__(self, place: Path, source: Path) -> None:
        self.home, self.state = place / "home", place / "state"
        shutil.copytree(source / ".claude", self.home / ".claude", copy_function=os.link)
        self.state.mkdir(mode=0o700)
        self.out = place / "out"  # exports refuse to write beside the index
        self.out.mkdir()
        self.about = orjson.loads((source / "corpus.json").read_bytes())
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}
        self.env |= {"HOME": str(self.home), "SESSIOND_HOME": str(self.state)}
        self.session = UUID(int=0xBE << 64, version=4)
        self.count = 0
        say(f"first load of {self.mb:.0f} MB")
        self.loaded = run_watched([SESSIOND, "sync"], self.env, SYNC_OK)
        self.loaded_mb = self.index_mb()

    def add(self, source: Path) -> Finished:
        """Put another corpus beside what is there, and load it."""
        shutil.copytree(
            source / ".claude", self.home / ".claude", copy_function=os.link, dirs_exist_ok=True
        )
        self.about["bytes"] += orjson.loads((source / "corpus.json").read_bytes())["bytes"]
        say(f"load up to {self.mb:.0f} MB")
        return run_watched([SESSIOND, "sync"], self.env, SYNC_OK)

    @property
    def mb(self) -> float:
        return self.about["bytes"] / 1e6

    @property
    def index(self) -> Path:
        return self.state / "index.db"

    @property
    def live(self) -> Path:
        """The session that benches append to."""
        return self.home / ".claude" / "projects" / "-home-dev-live" / f"{self.session}.jsonl"

    def index_mb(self) -> float:
        parts = (self.index, self.index.with_name("index.db-wal"))
        return sum(p.stat().st_size for p in parts if p.exists()) / 1e6

    def append(self, text: str) -> None:
        self.count += 1
        record = {
            "parentUuid": str(UUID(int=self.count - 1, version=4)) if self.count > 1 else None,
            "isSidechain": False,
            "userType": "external",
            "cwd": "/home/dev/live",
            "sessionId": str(self.session),
            "version": "2.1.114",
            "gitBranch": "main",
            "type": "user",
            "message": {"role": "user", "content": text},
            "uuid": str(UUID(int=self.count, version=4)),
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()),
        }
        self.live.parent.mkdir(parents=True, exist_ok=True)
        with self.live.open("ab") as file:
            file.write(orjson.dumps(record) + b"\n")

    def sync(self, *paths: Path) -> Finished:
        return run([SESSIOND, "sync", *map(str, paths)], self.env, SYNC_OK)

    @contextmanager
    def daemon(self) -> Iterator[int]:
        """The daemon in the foreground, at rest after its first pass; yields its process id."""
        log = self.state / "bench-daemon.log"
        with (
            log.open("wb") as out,
            subprocess.Popen(
                [SESSIOND, "start"], env=self.env, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            ) as process,
        ):
            try:
                self.settle(process)
                yield process.pid
            finally:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(15)
                except subprocess.TimeoutExpired:
                    process.kill()

    def settle(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until a start-up burst is over: two seconds at under 5 % of a core."""
        quiet, before = 0, 0.0
        for _ in range(60):
            time.sleep(1)
            if process.poll() is not None:
                log = (self.state / "bench-daemon.log").read_text(errors="replace")
                last = (log.strip().splitlines() or [""])[-1]
                raise BenchError(f"sessiond start: exit {process.returncode}: {last[:100]}")
            used = cpu_seconds(process.pid) if HAS_PROC else 0.0
            quiet = quiet + 1 if used - before < 0.05 else 0
            before = used
            if quiet == 2:
                return
        raise BenchError("sessiond start: not at rest after a minute")


class Workspace:
    """Stores made once per run and removed at its end."""

    def __init__(self) -> None:
        self.root = DATA / f"work-{os.getpid()}"
        self.stores: dict[Path, Store] = {}

    def store(self, mb: float, files: int | None = None, *, terse: bool = False) -> Store:
        key = source = corpus(mb, files, terse=terse)
        if key not in self.stores:
            place = self.root / source.name
            # A store that failed to load is rebuilt by the next bench.
            shutil.rmtree(place, ignore_errors=True)
            self.stores[key] = Store(place, source)
        return self.stores[key]

    def close(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
