"""How many modules everyday things run through.

    python bench/walks.py [NAME ...]

A module counts if one of its functions ran, not if it was only imported. Each walk is a process of
its own over a small home of its own.
"""

import inspect
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import FrameType

HERE = Path(__file__).resolve().parent
OURS = ("sess_schema", "sess_common", "sess_redaction", "sessiond", "sess_cli")
CURSOR = "c0ffee00-0000-4000-8000-00000000000a"
WALKS = {
    "line": "sessiond sync",
    "line, the pass alone": "sessiond sync",  # what a daemon does
    "bubble": "sessiond sync",
    "bubble, the pass alone": "sessiond sync",
    "search": "sess search parser --no-sync",
    "show": "sess show {} --no-sync",
    "page": "sess export html {} --no-sync --output -",
    "cut": "sess cut {} 2 --relink --yes --force",
}


class Walked:
    """The modules, functions and calls of ours that ran."""

    def __init__(self) -> None:
        self.functions: set[tuple[str, str]] = set()
        self.calls = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        module = frame.f_globals.get("__name__", "")
        code = frame.f_code
        if event != "call" or module.partition(".")[0] not in OURS:
            return
        if not code.co_flags & inspect.CO_OPTIMIZED or _is_importing(frame):
            return
        self.functions.add((module, code.co_qualname))
        self.calls += 1

    def only_passes(self) -> None:
        from sessiond.ingest import Ingest

        reconcile = Ingest.reconcile

        def watched(*given, **named):
            sys.setprofile(self)
            try:
                return reconcile(*given, **named)
            finally:
                sys.setprofile(None)

        Ingest.reconcile = watched


def _is_importing(frame: FrameType) -> bool:
    above = frame.f_back
    while above is not None and above.f_code.co_name != "<module>":
        above = above.f_back
    return above is not None and above.f_globals.get("__name__") != "__main__"


def write_home(home: Path) -> Path:
    """Some sessions of Claude Code, and one of Cursor; returns a transcript to append to."""
    from corpus import write_corpus

    write_corpus(home, 0.3, files=4)
    with_bubbles(home, 2)
    sessions = (home / ".claude" / "projects").glob("*/*.jsonl")
    return max(sessions, key=lambda path: path.stat().st_size)


def with_bubbles(home: Path, count: int) -> None:
    sys.path.append(str(HERE.parent))
    from tests import cursor_databases as cursor

    path = cursor.global_database(home)
    path.unlink(missing_ok=True)
    db = cursor.make_global(path, journal="delete")
    bubbles = [cursor.prompt(f"b{n}", f"question {n}") for n in range(count)]
    cursor.put_composer(db, cursor.composer(CURSOR, bubbles))
    for bubble in bubbles:
        cursor.put_bubble(db, CURSOR, bubble)
    db.close()


def append(transcript: Path) -> None:
    lines = [json.loads(line) for line in transcript.read_bytes().splitlines()]
    last = next(line for line in reversed(lines) if line.get("type") == "assistant")
    name = "0" * 8 + last["uuid"][8:]
    message = {"role": "user", "content": "one more question"}
    added = {**last, "type": "user", "uuid": name, "message": message}
    added.pop("requestId", None)
    with transcript.open("a", encoding="utf-8") as file:
        file.write(json.dumps(added) + "\n")


def walk(name: str, session: str) -> None:
    """Run a command in this process, whose environment has the home."""
    program, *_ = sys.argv = WALKS[name].format(session).split()
    if program == "sessiond":
        from sessiond.main import run
    else:
        from sess_cli.start import run
    walked = Walked()
    if name.endswith("the pass alone"):
        walked.only_passes()
    else:
        sys.setprofile(walked)
    try:
        run()
    except SystemExit as ended:
        if ended.code:
            raise
    finally:
        sys.setprofile(None)
    modules = {module for module, _ in walked.functions}
    if os.environ.get("WALKS_LIST"):
        print(*sorted(modules), sep="\n", file=sys.stderr)
    print(f"{name:24}{len(modules):8}{len(walked.functions):11}{walked.calls:7}", file=sys.stderr)


def start(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        env = {key: os.environ[key] for key in ("PATH", "LANG", "WALKS_LIST") if key in os.environ}
        env |= {"HOME": folder, "TERM": "dumb"}
        transcript = write_home(home)
        prepare = "import sys; sys.argv[1:] = ['sync']; from sessiond.main import run; run()"
        subprocess.run([sys.executable, "-c", prepare], env=env, check=True, capture_output=True)
        if name.startswith("line"):
            append(transcript)
        elif name.startswith("bubble"):
            with_bubbles(home, 3)
        subprocess.run(
            [sys.executable, __file__, "--walk", name, transcript.stem],
            env=env,
            check=True,
            stdout=subprocess.DEVNULL,
        )


def main() -> None:
    if sys.argv[1:2] == ["--walk"]:
        walk(*sys.argv[2:])
        return
    print(f"{'walk':24} modules  functions  calls", file=sys.stderr)
    for name in sys.argv[1:] or WALKS:
        start(name)


if __name__ == "__main__":
    main()
