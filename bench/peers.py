"""Other programs for transcripts, on the same files: `make bench COMPARE=1`.

Each is installed below bench/data if that works here, and left out otherwise.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from harness import DATA, SESS, BenchError, Store, median, run, say
from report import Context, Row

PLACE = DATA / "peers"
VENV = PLACE / "venv" / "bin"
NODE = PLACE / "node_modules" / ".bin"
PYTHON_PEERS = ("claude-code-log", "claude-code-transcripts", "agentsview")
NODE_PEERS = ("ccusage",)
PATIENCE = 300


def install() -> None:
    PLACE.mkdir(parents=True, exist_ok=True)
    if not VENV.exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV.parent)], check=True)
    for name in PYTHON_PEERS:
        if not (VENV / name).exists():
            _quietly(name, [str(VENV / "pip"), "install", "--quiet", name])
    for name in NODE_PEERS:
        if not (NODE / name).exists() and shutil.which("npm"):
            _quietly(name, ["npm", "install", "--silent", "--prefix", str(PLACE), name])


def _quietly(name: str, command: list[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    except (OSError, subprocess.SubprocessError) as error:
        say(f"{name} could not be installed: {str(error)[-120:]}")


def commands(store: Store, out: Path) -> dict[str, tuple[list[str], list[str] | None]]:
    """What each is asked, and what answers the same question here."""
    projects = str(store.home / ".claude" / "projects")
    longest = max(Path(projects).rglob("*.jsonl"), key=lambda path: path.stat().st_size)
    ours = [SESS, "export", "html", longest.stem, "--no-sync", "-o", str(out / "ours.html")]
    week = [SESS, "stats", "--by", "day", "--no-sync"]
    return {
        "ccusage daily": ([str(NODE / "ccusage"), "daily", "--offline", "--json"], week),
        "claude-code-log, one session": (
            [str(VENV / "claude-code-log"), str(longest), "-o", str(out / "log.html")],
            ours,
        ),
        "claude-code-transcripts, one session": (
            [str(VENV / "claude-code-transcripts"), "json", str(longest), "-o", str(out / "pages")],
            ours,
        ),
        "agentsview, first load": ([str(VENV / "agentsview"), "sync"], None),
        "agentsview, nothing new": ([str(VENV / "agentsview"), "sync"], None),
    }


def peers(c: Context) -> None:
    install()
    store = c.main()
    out = store.state / "peers"
    out.mkdir(exist_ok=True)
    env = store.env | {"XDG_CACHE_HOME": str(out), "PATH": os.environ["PATH"]}
    measured = 0
    for what, (command, ours) in commands(store, out).items():
        if not Path(command[0]).exists():
            say(f"{what}: not installed")
            continue
        began = time.perf_counter()
        try:
            done = subprocess.run(
                command, env=env, capture_output=True, timeout=PATIENCE, check=False
            )
        except subprocess.TimeoutExpired:
            c.add(Row("peers", f"{what}: stopped after", PATIENCE, "s"))
            continue
        seconds = time.perf_counter() - began
        if done.returncode:
            say(f"{what}: exit {done.returncode}: {done.stderr[-120:].decode(errors='replace')}")
            continue
        measured += 1
        row = Row("peers", f"{what}, {store.mb:.0f} MB", seconds, "s")
        if ours:
            mine = median(3, lambda ours=ours: run(ours, store.env))
            row.ratio, row.to = seconds / mine, f"sess {' '.join(ours[1:3])}"
        elif "first load" in what:
            row.ratio, row.to = seconds / store.loaded.seconds, "sessiond sync, first load"
        c.add(row)
    if not measured:
        raise BenchError("none of them could be installed and run here")


BENCHES: dict[str, Callable[[Context], None]] = {"peers": peers}
