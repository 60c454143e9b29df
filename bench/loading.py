"""First load against the limit of the machine, by processor time, so that a busy one can measure.

    python bench/loading.py [small] [real] [huge] [--mb 60] [--repeat 3]

The yardstick is orjson over the same bytes, then a bare FTS5 insert of the same texts, in one
process. A load that uses several processes takes as long as the busiest of them.

"rows alone" is what the schema allows: the finished rows of the same index, inserted into an empty
one by one process that reads and decides nothing.
"""

import argparse
import json
import marshal
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random

import apsw
import orjson
from corpus import LAST_DAY_MS
from harness import DATA, FOREIGN, corpus, say
from records import Transcript
from textpool import Project
from toolcalls import command

HUGE_RECORD = 700_000
ROW = (
    "| {shape} | {mb:.0f} | {yardstick:.2f} ({orjson:.2f}) | {writer:.2f} | {reader:.2f}"
    " | {rows:.2f} | {share:.2f} | {wall_share:.2f} | {peak_mb:.0f} | {index:.2f} |"
)
SHAPES = ("small", "real", "huge")
USED = """
def used(who):
    spent = resource.getrusage(who)
    return spent.ru_utime + spent.ru_stime
"""
LOAD = f"""
import json, resource, sys, time
{USED}
from sessiond.service.one_pass import main
began = time.perf_counter()
code = main(["--quiet"])
own, peak = used(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(json.dumps({{"wall": time.perf_counter() - began, "writer": own,
    "reader": used(resource.RUSAGE_CHILDREN), "peak_mb": (peak + child) / 1024, "code": code}}))
"""
YARDSTICK = f"""
import glob, json, marshal, resource, sys, time
import apsw, orjson
{USED}
with open(sys.argv[2], "rb") as file:
    texts = marshal.load(file)
began, before = time.perf_counter(), used(resource.RUSAGE_SELF)
for name in glob.glob(sys.argv[1] + "/**/*.jsonl", recursive=True):
    with open(name, "rb") as file:
        for line in file:
            orjson.loads(line)
decoded = used(resource.RUSAGE_SELF) - before
db = apsw.Connection(sys.argv[3])
db.execute("CREATE VIRTUAL TABLE t USING fts5 (text, input, output)")
with db:
    db.executemany("INSERT INTO t VALUES (?, ?, ?)", texts)
print(json.dumps({{"cpu": used(resource.RUSAGE_SELF) - before, "orjson": decoded,
    "wall": time.perf_counter() - began}}))
"""
ROWS_ALONE = f"""
import json, pathlib, resource, sys
import apsw
from sess_schema.connection import open_reader, open_writer
{USED}
TABLES = ("sources", "sessions", "chunks", "records", "events", "event_texts", "usage", "files",
          "edits", "commits", "digests")
FULL_TEXT = ("INSERT INTO event_index (rowid, text, input, output, marks)"
             " SELECT id, text, input, output, marks FROM event_texts WHERE id BETWEEN ? AND ?")
done, empty = open_reader(sys.argv[1]), open_writer(pathlib.Path(sys.argv[2]))
empty.pragma("foreign_keys", 0)  # parents may come later
rows = {{one: done.execute(f"SELECT * FROM {{one}}").fetchall() for one in TABLES}}
spent = used(resource.RUSAGE_SELF)
for one, found in rows.items():
    values = ", ".join("?" * len(found[0])) if found else ""
    step = len(found) // 12 + 1  # as many transactions as a load has
    for at in range(0, len(found), step):
        with empty:
            empty.executemany(f"INSERT INTO {{one}} VALUES ({{values}})", found[at : at + step])
            if one == "event_texts":
                empty.execute(FULL_TEXT, (found[at][0], found[at : at + step][-1][0]))
print(json.dumps({{"cpu": used(resource.RUSAGE_SELF) - spent}}))
"""


def huge(mb: float) -> Path:
    """A corpus of few records, each of most of a megabyte, made once."""
    home = DATA / f"corpus-{mb:g}mb-huge"
    if (home / "corpus.json").exists():
        return home
    shutil.rmtree(home, ignore_errors=True)
    say(f"writing a corpus of {mb:g} MB of huge records")
    project = Project(Random(f"huge {mb}"), 0)
    folder = home / ".claude" / "projects" / project.cwd.replace("/", "-")
    folder.mkdir(parents=True)
    total = 0
    while total < mb * 1e6:
        one = Transcript(project, LAST_DAY_MS, 10_000_000)
        one.prompt()
        while one.size < min(10e6, mb * 1e6):
            one.use([one.text()], [command(project, HUGE_RECORD)])
        (folder / f"{one.session}.jsonl").write_bytes(b"".join(one.lines))
        total += one.size
    (home / "corpus.json").write_bytes(orjson.dumps({"bytes": total}))
    return home


def folder_of(shape: str, mb: float) -> Path:
    return huge(mb) if shape == "huge" else corpus(mb, terse=shape == "small")


def run(code: str, *arguments: str, env: dict[str, str] | None = None) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=env, check=True, stdout=subprocess.PIPE
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def dump_texts(index: Path, target: Path) -> None:
    db = apsw.Connection(f"file:{index}?mode=ro", flags=apsw.SQLITE_OPEN_READONLY | 0x40)
    texts = list(db.execute("SELECT text, input, output FROM event_texts"))
    db.close()
    target.write_bytes(marshal.dumps(texts))


def sizes(index: Path) -> int:
    return sum(part.stat().st_size for part in index.parent.glob("index.db*"))


def measure(shape: str, mb: float, repeat: int) -> dict[str, object]:
    home = folder_of(shape, mb)
    loads, sticks, rows = [], [], []
    with tempfile.TemporaryDirectory(dir=DATA) as work:
        place = Path(work)
        state, texts = place / "state", place / "texts"
        env = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}
        env |= {"HOME": str(home), "SESSIOND_HOME": str(state)}
        for _ in range(repeat):  # interleaved: both see the same neighbours
            shutil.rmtree(state, ignore_errors=True)
            state.mkdir(mode=0o700)
            loads.append(run(LOAD, env=env))
            if not texts.exists():
                dump_texts(state / "index.db", texts)
            (place / "bare.db").unlink(missing_ok=True)
            sticks.append(run(YARDSTICK, str(home / ".claude"), str(texts), str(place / "bare.db")))
            (place / "rows.db").unlink(missing_ok=True)
            rows.append(run(ROWS_ALONE, str(state / "index.db"), str(place / "rows.db"))["cpu"])
        index_bytes = sizes(state / "index.db")
    size = orjson.loads((home / "corpus.json").read_bytes())["bytes"]
    stick = min(one["cpu"] for one in sticks)
    busiest = min(max(one["writer"], one["reader"]) for one in loads)
    return {
        "shape": shape,
        "mb": size / 1e6,
        "yardstick": stick,
        "orjson": min(one["orjson"] for one in sticks),
        "writer": min(one["writer"] for one in loads),
        "reader": min(one["reader"] for one in loads),
        "rows": min(rows),
        "rows_share": stick / min(rows),
        "share": stick / busiest,
        "wall_share": min(one["wall"] for one in sticks) / min(one["wall"] for one in loads),
        "peak_mb": max(one["peak_mb"] for one in loads),
        "index": index_bytes / size,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shapes", nargs="*", default=SHAPES)
    parser.add_argument("--mb", type=float, nargs="*", default=[60])
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    DATA.mkdir(exist_ok=True)
    print(
        "| records | MB | yardstick, s | writer, s | reader, s | rows alone, s"
        " | share | by wall | MB RSS | index |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for mb in given.mb:
        for shape in given.shapes:
            row = measure(shape, mb, given.repeat)
            print(ROW.format(**row), flush=True)


if __name__ == "__main__":
    main()
