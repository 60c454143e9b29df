"""`make fuzz`: looks for fatal inputs, guided by coverage where atheris is installed.

    python -m tests.fuzz [SECONDS]        each target for so long, 60 unless given
    python -m tests.fuzz TARGET FILE      one input again

Without atheris (it has wheels for Linux and Python 3.11 to 3.13 only) Hypothesis changes the same
inputs, blindly. Whatever is found belongs into a test beside the code that it breaks.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

FOUND = Path("fuzz-found")  # inputs that are fatal
MOST_BYTES = 4096


def main(arguments: list[str]) -> int:
    if len(arguments) == 2 and not arguments[0].isdigit():
        _again(arguments[0], Path(arguments[1]))
        return 0
    if arguments[:1] == ["--guided"]:
        _guided(arguments[1], arguments[2:])
        return 0
    seconds = int(arguments[0]) if arguments else 60
    if find_spec("atheris") is None:
        print("NO ATHERIS: FUZZING WITHOUT COVERAGE; install it with: pip install -e '.[fuzz]'")
        return _blindly()
    return _every_target(seconds)


def _again(name: str, file: Path) -> None:
    from tests.fuzz.targets import targets

    targets()[name].check(file.read_bytes())


def _blindly() -> int:
    """Every property test at length: the targets, and all others that Hypothesis drives."""
    seed = str(int(time.time()))
    print(f"seed {seed}: SESSIOND_FAULTS={seed} .venv/bin/pytest 'NAME' does a failure again")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", "", "tests/fuzz"]
    return subprocess.run(
        command, env=os.environ | {"SESSIOND_FAULTS": seed}, check=False
    ).returncode


def _every_target(seconds: int) -> int:
    from tests.fuzz.targets import targets

    fatal = []
    FOUND.mkdir(exist_ok=True)
    for name, target in targets().items():
        with tempfile.TemporaryDirectory(prefix="sess-fuzz-") as corpus:
            for number, data in enumerate(target.begin):
                (Path(corpus) / str(number)).write_bytes(data[:MOST_BYTES])
            options = [
                f"-max_total_time={seconds}", f"-max_len={MOST_BYTES}", "-print_final_stats=1",
                "-timeout=20", "-rss_limit_mb=1000", f"-artifact_prefix={FOUND}/{name}-",
            ]  # fmt: skip
            ran = subprocess.run(
                [sys.executable, "-m", "tests.fuzz", "--guided", name, *options, corpus],
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
        runs = re.findall(r"^stat::number_of_executed_units: (\d+)", ran.stderr, re.MULTILINE)
        print(f"{name:<24} {int((runs or [0])[-1]):>9,} inputs", flush=True)
        if ran.returncode:
            fatal.append(name)
            print(ran.stdout[-3000:] + ran.stderr[-3000:])
            print(f"again: .venv/bin/python -m tests.fuzz {name} {FOUND}/{name}-...", flush=True)
    if not fatal:
        FOUND.rmdir()
    return int(bool(fatal))


def _guided(name: str, options: list[str]) -> None:
    """In a process of its own: the fuzzer ends it."""
    import atheris

    with atheris.instrument_imports(include=["sess_schema", "sess_cli", "sessiond"]):
        from tests.fuzz.targets import targets

        check = targets()[name].check
    atheris.Setup([sys.argv[0], *options], check)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
