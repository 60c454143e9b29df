"""What a line costs the disk: bytes that a running daemon writes for each appended line.

    python bench/wear.py [--lines 60] [--stored 0] [--pause 1.0]

One line of about 1 kB a second, as an agent writes them; the kernel counts (/proc/PID/io, Linux).
`--stored` loads that many lines first: the cost must not grow with what is stored.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from harness import HAS_PROC, BenchError
from report import Context, Row

WORDS = (Path(__file__).parent / "words.txt").read_text().split()
BIN = Path(sys.executable).parent


def line(random: Random, session: str, number: int) -> bytes:
    """About a kilobyte: a call, its result or an answer, as Claude Code writes them."""
    text = " ".join(random.choices(WORDS, k=80))
    content: list[dict[str, object]] = [{"type": "text", "text": text}]
    kind = "assistant"
    if number % 3 == 1:
        content = [
            {"type": "tool_use", "id": f"c{number}", "name": "Bash", "input": {"command": text}}
        ]
    elif number % 3 == 2:
        kind = "user"
        content = [{"type": "tool_result", "tool_use_id": f"c{number - 1}", "content": text}]
    message: dict[str, object] = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"id": f"m{number}", "model": "claude-opus-4-5",
                    "usage": {"input_tokens": 3, "output_tokens": 80}}  # fmt: skip
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(1.77e9 + number))
    record = {"type": kind, "uuid": f"{session[:8]}-{number}", "sessionId": session,
              "timestamp": stamp, "cwd": "/code/demo", "version": "2.1.0",
              "message": message}  # fmt: skip
    return json.dumps(record).encode() + b"\n"


def written(pid: int) -> int:
    facts = Path(f"/proc/{pid}/io").read_text().split()
    return int(facts[facts.index("write_bytes:") + 1])


def measure(stored: int, lines: int, pause: float) -> tuple[float, float, float]:
    """Bytes of the index, of a line, and written for a line."""
    random = Random(7)
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root, ".claude", "projects", "-code-demo")
        folder.mkdir(parents=True)
        for part in range(0, stored, 2000):
            session = f"{part:08d}-0000-4000-8000-000000000000"
            with (folder / f"{session}.jsonl").open("wb") as file:
                file.writelines(line(random, session, n) for n in range(min(2000, stored - part)))
        session = "ffffffff-0000-4000-8000-000000000000"
        live = folder / f"{session}.jsonl"
        live.write_bytes(line(random, session, 0))
        env = {**os.environ, "HOME": root, "SESSIOND_HOME": f"{root}/state"}
        subprocess.run([BIN / "sessiond", "sync"], env=env, check=True, stdout=subprocess.DEVNULL)
        daemon = subprocess.Popen([BIN / "sessiond", "start"], env=env, stderr=subprocess.DEVNULL)
        try:
            status = Path(root, "state", "status.json")
            while not status.exists():
                time.sleep(0.1)
            time.sleep(2)
            before, size = written(daemon.pid), live.stat().st_size
            for number in range(1, lines + 1):
                with live.open("ab") as file:
                    file.write(line(random, session, number))
                time.sleep(pause)
            time.sleep(1)
            grown = (live.stat().st_size - size) / lines
            cost = (written(daemon.pid) - before) / lines
            index = Path(root, "state", "index.db").stat().st_size
            return index, grown, cost
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait()


def wear(c: Context) -> None:
    if not HAS_PROC:
        raise BenchError("needs /proc")
    for stored in (0, 2_000) if c.quick else (0, 20_000):
        index, grown, cost = measure(stored, 5 if c.quick else 20, 1.0)
        row = Row("wear", f"a line a second, index of {index / 1e6:.0f} MB", cost / 1e3, "kB", 150)
        row.ratio, row.to = cost / grown, "the line"
        c.add(row)


BENCHES: dict[str, Callable[[Context], None]] = {"wear": wear}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--lines", type=int, default=60)
    options.add_argument("--stored", type=int, nargs="*", default=[0, 20_000])
    options.add_argument("--pause", type=float, default=1.0)
    asked = options.parse_args()
    for stored in asked.stored:
        index, grown, cost = measure(stored, asked.lines, asked.pause)
        line_of = f"a line of {grown / 1e3:.1f} kB"
        print(f"index {index / 1e6:6.1f} MB: {cost / 1e3:6.1f} kB written for {line_of}")


if __name__ == "__main__":
    main()
