"""Writes a corpus of realistic Claude Code transcripts, the same every time.

    python bench/corpus.py OUT_DIR --mb 200 [--seed 1] [--files N] [--terse] [--days-ago 0]

HOME=OUT_DIR then makes the programs find it.
"""

import argparse
import sys
import time
from dataclasses import asdict, dataclass
from hashlib import blake2b
from os import utime
from pathlib import Path
from random import Random

import orjson
from records import Transcript
from textpool import Project
from toolcalls import command, task

GENERATOR = ("corpus.py", "outputs.py", "records.py", "textpool.py", "toolcalls.py", "words.txt")
LAST_DAY_MS = 1_772_323_200_000  # 2026-03-01
DAY_MS = 86_400_000
SPREAD_MS = 90 * DAY_MS
DEFAULT_FILES_PER_MB = 2.0
BYTES_PER_PROJECT = 8_000_000
FILES_PER_PROJECT = 100
# Outputs of megabytes are rare, but each corpus of a size should have some.
BYTES_PER_GIANT = 40_000_000
BYTES_PER_TERSE_GIANT = 250_000_000


@dataclass
class CorpusStats:
    """`bytes` counts everything written; `events` leaves out copies in forks."""

    bytes: int = 0
    overflow_bytes: int = 0
    files: int = 0
    lines: int = 0
    sessions: int = 0
    subagents: int = 0
    forks: int = 0
    projects: int = 0
    events: int = 0


def plan(rng: Random, files: int) -> list[str]:
    """What each file is. A subagent belongs to the session before it."""
    kinds = ["session"]
    shares = (76, 13, 4, 4, 3)
    names = ("session", "subagent", "flat", "fork", "side")
    while len(kinds) < files:
        kind = rng.choices(names, shares)[0]
        orphan = kind in ("subagent", "flat") and kinds[-1] == "side"
        kinds.append("session" if orphan else kind)
    return kinds


class Writer:
    def __init__(
        self, out: Path, megabytes: float, seed: int, files: int | None, *, terse: bool, last: int
    ) -> None:
        self.rng = Random(f"plan {seed} {megabytes} {files}")
        self.seed, self.terse, self.last = seed, terse, last
        self.projects_dir = out / ".claude" / "projects"
        self.budget = int(megabytes * 1_000_000)
        self.kinds = plan(self.rng, files or max(4, round(megabytes * DEFAULT_FILES_PER_MB)))
        # Few sessions are long, and they hold most of the bytes.
        self.weights = [self.rng.lognormvariate(0, 1.3) for _ in self.kinds]
        self.giant_every = BYTES_PER_TERSE_GIANT if terse else BYTES_PER_GIANT
        self.next_giant = self.giant_every // 2
        self.stats = CorpusStats()
        self.project = Project(Random(0), 0)
        self.folder = out
        self.main: Transcript | None = None

    def run(self) -> CorpusStats:
        weight = sum(self.weights)
        n = next_bytes = next_files = 0
        while n < len(self.kinds):
            full = self.stats.bytes >= next_bytes or self.stats.files >= next_files
            if full and self.kinds[n] != "fork":
                self.open_project()
                next_bytes = self.stats.bytes + BYTES_PER_PROJECT
                next_files = self.stats.files + FILES_PER_PROJECT
            group = 1
            while n + group < len(self.kinds) and self.kinds[n + group] in ("subagent", "flat"):
                group += 1
            # The rest is redistributed before each file, so that an oversized output evens out.
            left = max(0, self.budget - self.stats.bytes)
            shares = [int(left * w / weight) for w in self.weights[n : n + group]]
            self.write_group(self.kinds[n : n + group], shares)
            weight -= sum(self.weights[n : n + group])
            n += group
        return self.stats

    def open_project(self) -> None:
        number = self.stats.projects
        rng = Random(f"project {self.seed} {number}")
        self.project = Project(rng, number, terse=self.terse)
        self.folder = self.projects_dir / self.project.cwd.replace("/", "-")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.stats.projects += 1
        self.main = None

    def write_group(self, kinds: list[str], shares: list[int]) -> None:
        start = self.last - int(self.project.rng.random() * SPREAD_MS)
        self.project.rewrite()
        if kinds[0] == "side":
            self.write_side(start)
        elif kinds[0] == "fork" and self.main:
            self.write_main(self.fork(self.main, shares[0]), kinds[1:], shares[1:])
        else:
            self.write_main(Transcript(self.project, start, shares[0]), kinds[1:], shares[1:])

    def write_main(self, t: Transcript, children: list[str], shares: list[int]) -> None:
        self.stats.sessions += 1
        if not t.lines and t.rng.random() < 0.15:
            t.put({"type": "summary", "summary": t.p.phrase(), "leafUuid": t.uuid()})
        t.side("permission-mode", {"permissionMode": "default"})
        t.prompt()
        for kind, share in zip(children, shares, strict=True):
            self.delegate(t, share, flat=kind == "flat")
        if self.stats.bytes >= self.next_giant:
            self.next_giant += self.giant_every
            t.use([t.text()], [command(t.p, t.rng.randint(1_000_000, 5_000_000))])
        self.fill(t)
        if t.rng.random() < 0.1:
            t.side("custom-title", {"customTitle": t.p.phrase()})
        self.save(t, self.folder / f"{t.session}.jsonl")
        self.main = t

    def write_side(self, start: int) -> None:
        """Sessions that were opened and left hold no conversation."""
        t = Transcript(self.project, start, 0)
        t.put({"type": "summary", "summary": t.p.phrase(), "leafUuid": t.uuid()})
        t.side("mode", {"mode": "normal"})
        self.save(t, self.folder / f"{t.session}.jsonl")

    def fill(self, t: Transcript) -> None:
        """Turns until the file has its size; the first one is open already."""
        while True:
            while t.budget - t.size > 2_000:
                t.step()
                if t.rng.random() < 0.12:
                    break
            t.finish_turn()
            if t.budget - t.size < 4_000:
                return
            if not t.agent and t.size > 300_000 and t.rng.random() < 0.08:
                t.compact()
            t.prompt()

    def delegate(self, t: Transcript, budget: int, *, flat: bool) -> None:
        """The parent calls a subagent, which writes its own file meanwhile."""
        agent = f"a{t.rng.getrandbits(64):016x}"
        if flat:
            agent = agent[1:9]
        short = min(1200, budget // 10) + 1
        made = task(t.p, agent, t.p.prose(short // 3), t.p.prose(short))
        version = "2.0.42" if flat else t.version
        child = Transcript(t.p, t.clock, budget, session=t.session, agent=agent, version=version)
        child.prompt(made.input["prompt"])
        self.fill(child)
        t.use([t.text()], [made])
        t.clock = max(t.clock, child.clock)
        self.stats.subagents += 1
        if flat:
            self.save(child, self.folder / f"agent-{agent}.jsonl")
            return
        path = self.folder / t.session / "subagents" / f"agent-{agent}.jsonl"
        self.save(child, path)
        tool_use = orjson.loads(t.lines[-1])["message"]["content"][0]["tool_use_id"]
        meta = {"agentType": "Explore", "description": made.input["description"]}
        meta_bytes = orjson.dumps({**meta, "toolUseId": tool_use})
        path.with_suffix(".meta.json").write_bytes(meta_bytes)
        self.stats.bytes += len(meta_bytes)

    def fork(self, origin: Transcript, budget: int) -> Transcript:
        """A copy of the chain so far under a new session id, as `--fork-session` makes it."""
        t = Transcript(self.project, origin.clock + 60_000, budget, version=origin.version)
        old, new = origin.session.encode(), t.session.encode()
        for line in origin.lines:
            if b'"uuid":' not in line:
                continue
            if t.size + len(line) > budget // 2:
                break
            t.lines.append(line.replace(old, new))
            t.size += len(line)
        if t.lines:
            t.parent = orjson.loads(t.lines[-1])["uuid"]
        self.stats.forks += 1
        return t

    def save(self, t: Transcript, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(t.lines))
        utime(path, (t.clock / 1000, t.clock / 1000))
        self.stats.files += 1
        self.stats.lines += len(t.lines)
        self.stats.bytes += t.size
        self.stats.events += t.events
        for name, text in t.overflow.items():
            target = self.folder / t.session / "tool-results" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            content = text.encode()
            target.write_bytes(content)
            self.stats.bytes += len(content)
            self.stats.overflow_bytes += len(content)


def fingerprint() -> str:
    """Changes with the generator, so that a cached corpus is not taken for the current one."""
    here = Path(__file__).parent
    return blake2b(b"".join((here / name).read_bytes() for name in GENERATOR)).hexdigest()[:16]


def write_corpus(
    out: Path,
    megabytes: float,
    seed: int = 1,
    files: int | None = None,
    *,
    terse: bool = False,
    days_ago: int = 0,
) -> CorpusStats:
    """`files` counts transcripts, subagents' and forks' too. Writes what it did to corpus.json."""
    last = LAST_DAY_MS - days_ago * DAY_MS
    stats = Writer(out, megabytes, seed, files, terse=terse, last=last).run()
    about = {"generator": fingerprint(), "seed": seed, "mb": megabytes, "wanted": files}
    about["terse"] = terse
    (out / "corpus.json").write_bytes(orjson.dumps(about | asdict(stats)))
    return stats


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a corpus of Claude Code transcripts.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--mb", type=float, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int, help="number of transcripts (default: two per MB)")
    parser.add_argument("--terse", action="store_true", help="short texts: four times the events")
    parser.add_argument("--days-ago", type=int, default=0, help="end so long before 2026-03-01")
    args = parser.parse_args()
    if (args.out / ".claude").exists():
        sys.exit(f"{args.out} already holds a .claude directory")
    began = time.perf_counter()
    stats = write_corpus(
        args.out, args.mb, args.seed, args.files, terse=args.terse, days_ago=args.days_ago
    )
    took = time.perf_counter() - began
    for name, value in asdict(stats).items():
        print(f"{name:15} {value:>13,}")
    print(f"{'MB/s':15} {stats.bytes / 1e6 / took:>13.1f}")


if __name__ == "__main__":
    main()
