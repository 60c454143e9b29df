"""`make mutations`: takes each protection out, in a copy, and shows that its test fails.

python -m tests.faults.mutations [WORDS]    only those whose name has the words
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("schema", "daemon", "cli")


def protections() -> list[dict[str, str]]:
    found: list[dict[str, str]] = tomllib.loads(
        (ROOT / "tests/faults/mutations.toml").read_text("utf-8")
    )["protection"]
    return found


def main(words: str) -> int:
    chosen = [one for one in protections() if words in one["what"]]
    with tempfile.TemporaryDirectory(prefix="sess-mutations-") as folder:
        copy = Path(folder)
        for name in (*PACKAGES, "tests"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        survived = [one["what"] for one in chosen if not _is_missed(one, copy)]
    print(
        f"{len(chosen) - len(survived)} of {len(chosen)} protections are missed when they are gone"
    )
    return int(bool(survived))


def _is_missed(one: dict[str, str], copy: Path) -> bool:
    """Whether a test fails without the protection, and not because nothing ran."""
    file = copy / one["file"]
    sound = file.read_text("utf-8")
    assert sound.count(one["old"]) == 1, f"{one['what']}: {one['file']} has changed"
    file.write_text(sound.replace(one["old"], one["new"]), "utf-8")
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", *shlex.split(one["test"])],
            cwd=copy,
            env=os.environ
            | {
                "PYTHONPATH": os.pathsep.join(str(copy / name) for name in PACKAGES),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        file.write_text(sound, "utf-8")
    failed = [line for line in ran.stdout.splitlines() if line.startswith("FAILED ")]
    missed = ran.returncode == 1 and bool(failed)
    told = failed[0].split(" - ")[0].removeprefix("FAILED ") if missed else "NOBODY NOTICED"
    print(f"{one['what']:<62} {told}", flush=True)
    if not missed:
        print(ran.stdout[-1500:] + ran.stderr[-1500:])
    return missed


if __name__ == "__main__":
    sys.exit(main(" ".join(sys.argv[1:])))
