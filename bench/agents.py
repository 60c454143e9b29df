"""How fast each agent's files are first loaded, as a share of Claude Code's speed in the same run.

    python bench/agents.py [--mb 4] [AGENT...]

A corpus is an agent's golden home many times over: every id that the index found in it gets another
one in each copy, in file names too, so that nothing is a copy of anything. Golden records are
smaller than real ones, and not equally so: the prose in them is continued until an agent's record
has as many bytes as a real one (`--record`, 3,700) on average. `--record 0` leaves them as they are
and shows what sessions cost that say next to nothing.
"""

import argparse
import hashlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests import golden_home
from tests.golden_home import GoldenWorld, Part, database

IDS = (
    "SELECT native_id FROM sessions UNION SELECT native_id FROM records"
    " UNION SELECT call_id FROM events UNION SELECT message_id FROM usage"
    " UNION SELECT request_id FROM usage"
)
WORDS = re.findall(r"\b[a-z]+\b", (Path(__file__).parent / "words.txt").read_text())
PROSE = re.compile(r"(?<=[\"'])[A-Za-z]{2,}(?: [a-z]{2,}){2,}|(?<=\n)[A-Z][a-z]+(?: [a-z]{2,}){2,}")
UUID = re.compile(r"[0-9a-f]{8}(-|$)")
LOAD = "import sys; from sessiond.service.one_pass import main; sys.exit(main(['--quiet']))"
RECORD = 3700  # bytes of a real one, on average


def ids_of(agent: str, folder: Path) -> list[str]:
    """Every id in the golden home, the longest first."""
    folder.mkdir()
    world = GoldenWorld(folder, agent)
    world.lay_all()
    world.ingest()
    found = {str(name) for (name,) in world.sql(IDS) if name and len(str(name)) >= 4}
    found |= {name[:8] for name in found if UUID.match(name)}  # some file names have only these
    return sorted(found, key=len, reverse=True)


def renamed(text: str, ids: list[str], number: int) -> str:
    """The same text with other ids of the same length, which are as different as before."""
    end = f"{number:04x}"
    for name in ids:
        if len(name) <= 8:
            text = text.replace(name, name[:1] + end[-3:] + name[4:])
        elif name in text:
            rest = hashlib.blake2b(f"{name} {number}".encode(), digest_size=16).hexdigest()
            kept = 16 if len(name) >= 24 else 8  # long ids start with the time that they are of
            text = text.replace(name, name[:kept] + rest[: len(name) - kept])
    return text


def continued(text: str, words: int) -> str:
    """The same text with more prose: words and spaces mean the same in JSON, SQL and Markdown."""

    def more(found: re.Match[str]) -> str:
        start = int.from_bytes(hashlib.blake2b(found[0].encode(), digest_size=4).digest(), "big")
        chosen = (WORDS[(start + n * n) % len(WORDS)] for n in range(words))
        return " ".join([found[0], *chosen])

    return PROSE.sub(more, text)


def copy(part: Part, ids: list[str], number: int, words: int) -> Part:
    path = renamed(part.path, ids, number)

    def anew(text: str) -> str:
        return continued(renamed(text, ids, number), words)

    if part.is_database:
        again = tuple(map(anew, part.statements))
        return Part(path, statements=again if number == 1 else tuple(filter(is_row, again)))
    try:
        return Part(path, anew(part.data.decode()).encode())
    except UnicodeDecodeError:
        return Part(path, part.data)


def is_row(sql: str) -> bool:
    return bool(re.match(r"\s*(insert|replace)", sql, re.IGNORECASE))


def write(agent: str, folder: Path, size: int, words: int) -> tuple[GoldenWorld, int]:
    """Copies until the files have `size` bytes; return how many bytes there are."""
    ids = ids_of(agent, folder / "ids")
    (folder / "corpus").mkdir()
    world = GoldenWorld(folder / "corpus", agent)
    open_databases = {}
    total = number = 0
    while total < size and number < 60_000:
        number += 1
        before = total
        for part in world.parts:
            made = copy(part, ids, number, words)
            path = world.root / made.path
            path.parent.mkdir(parents=True, exist_ok=True)
            if made.is_database:
                if path not in open_databases:
                    open_databases[path] = database(path)
                for sql in made.statements:
                    try:
                        open_databases[path].execute(sql)
                        total += len(sql)
                    except Exception:  # a row with a fixed key is there already
                        continue
            elif not path.exists():
                path.write_bytes(made.data)
                total += len(made.data)
        if total == before:
            break  # nothing in it has an id: more copies add nothing
    for db in open_databases.values():
        db.close()
    return world, total


def bytes_a_record(agent: str, words: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        world, total = write(agent, Path(folder), 100_000 + 500 * words, words)
        world.ingest()
        return total / max(1, records(world))


def words_wanted(agent: str, record: int) -> int:
    """How many words each piece of prose needs for records of `record` bytes on average."""
    bare, long = bytes_a_record(agent, 0), bytes_a_record(agent, 1000)
    return max(0, round(1000 * (record - bare) / (long - bare))) if long > bare else 0


def records(world: GoldenWorld) -> int:
    (count,) = world.sql("SELECT count(*) FROM records")[0]
    return count


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def speed(agent: str, mb: float, record: int) -> tuple[float, float, int, float]:
    """(MB per second of processor time, MB, sessions, bytes of a record)."""
    with tempfile.TemporaryDirectory() as folder:
        world, total = write(agent, Path(folder), int(mb * 1e6), words_wanted(agent, record))
        config = ""
        roots = [str(world.root / root) for root in golden_home.expected(agent).get("roots", ())]
        if roots:
            config = f"[roots]\n{agent} = {roots!r}\n"
        times = []
        for _ in range(3):
            shutil.rmtree(world.state)
            world.state.mkdir(mode=0o700)
            (world.state / "config.toml").write_text(config)
            started = cpu()
            subprocess.run([sys.executable, "-c", LOAD], env=world.env, check=False)
            times.append(cpu() - started)
        (count,) = world.sql("SELECT count(*) FROM sessions")[0]
        return total / 1e6 / min(times), total / 1e6, count, total / max(1, records(world))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("agents", nargs="*", default=golden_home.agents())
    parser.add_argument("--mb", type=float, default=4)
    parser.add_argument("--record", type=int, default=RECORD)
    given = parser.parse_args()
    yardstick, *_ = speed("claude", given.mb, given.record)
    print("| agent | MB | sessions | bytes a record | MB/s of processor time | of Claude Code |")
    print("|---|---|---|---|---|---|")
    for agent in given.agents:
        fast, size, count, record = speed(agent, given.mb, given.record)
        shown = (agent, f"{size:.1f}", f"{count:,}", f"{record:,.0f}", f"{fast:.1f}")
        share = f"{fast / yardstick:.2f}" if size > given.mb / 2 else "too little to tell"
        print("|", " | ".join((*shown, share)), "|", flush=True)


if __name__ == "__main__":
    main()
