"""Recall: is the right session found, the right place in it, and is it said when nothing fits?

    python bench/recalling.py [--longmemeval FILE] [--locomo FILE] [--limit N]

Conversations of stories.toml and the sample of `sess demo` lie in a generated corpus. Each question
is asked once; a place is right if its session is, and its text or what is quoted of it matches.
LongMemEval-S and LoCoMo are read from files that you have: each question of the first has its own
history, each conversation of the second is one. deja-vu is asked the same if `deja` is installed.

Writes recall.json, RECALL.md, a calibration curve, and the table of the README.
"""

import argparse
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
from apsw import Connection
from harness import SESS, BenchError, Store, Workspace, run, run_watched, say
from plots import COLOURS, EDGE, HEIGHT, WIDTH, head, line
from recall_questions import Case, Stories, locomo, longmemeval, plant
from report import Context, Row

from sess_schema.connection import open_reader
from sess_schema.queries.recall import Options, recall
from sess_schema.queries.search import Search

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
BEGIN, END = "<!-- recall: made by bench/recalling.py -->", "<!-- end of recall -->"
PLANTED = 0xA5
TOLD = 2000  # characters of what a place quotes that count; its own event counts whole
TOP = 5
PER_SESSION = 3  # places of a session that count
DAY = timedelta(days=1)
LAST = datetime(2026, 2, 20, 9, tzinfo=UTC)
STEPS = 20  # of the calibration curve
CALIBRATION = "calibration"
ALONE = 1  # MB around the stories: hardly anything


@dataclass
class Hit:
    session: str
    text: str


@dataclass
class Answer:
    hits: list[Hit]
    found: bool
    confidence: float = 0.0
    seconds: float = 0.0


@dataclass
class Score:
    """Ranks of the right session and the right place, from 1; 0 where they are missing."""

    sessions: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    said_found: list[bool] = field(default_factory=list)
    confidences: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def take(self, case: Case, answer: Answer) -> None:
        hits, seen = [], dict[str, int]()
        for hit in answer.hits:
            seen[hit.session] = seen.get(hit.session, 0) + 1
            if seen[hit.session] <= PER_SESSION:
                hits.append(hit)
        order = [*dict.fromkeys(hit.session for hit in hits)]
        right = [rank for rank, name in enumerate(order, 1) if name in case.sessions]
        places = [
            rank
            for rank, hit in enumerate(hits, 1)
            if hit.session in case.sessions and case.right(hit.text)
        ]
        self.sessions.append(right[0] if right else 0)
        self.places.append(places[0] if places else 0)
        self.said_found.append(answer.found)
        self.confidences.append(answer.confidence)
        self.seconds.append(answer.seconds)

    def figures(self) -> dict[str, float]:
        """As shares of the questions; seconds as they are."""
        number = len(self.sessions) or 1

        def within(ranks: Sequence[int], top: int) -> float:
            return sum(1 for rank in ranks if 0 < rank <= top) / number

        return {
            "questions": len(self.sessions),
            "session@1": within(self.sessions, 1),
            "session@5": within(self.sessions, TOP),
            "place@5": within(self.places, TOP),
            "mrr": sum(1 / rank for rank in self.sessions if rank) / number,
            "unanswered": 1 - sum(self.said_found) / number,
            "median_ms": 1000 * statistics.median(self.seconds or [0]),
            "worst_ms": 1000 * max(self.seconds or [0]),
        }


Asker = Callable[[str], Answer]


# -- who is asked


def ours(db: Connection) -> Asker:
    """`sess recall`, inside this process."""

    def ask(question: str) -> Answer:
        began = time.perf_counter()
        recalled = recall(db, question, Options(limit=20))
        seconds = time.perf_counter() - began
        hits = [
            Hit(place.session, f"{text_of(db, place.event)}\n{(place.quote + place.answer)[:TOLD]}")
            for place in recalled.places
        ]
        return Answer(hits, recalled.found, recalled.confidence, seconds)

    return ask


def exact(db: Connection) -> Asker:
    """`sess search` with the question as typed: all words in one event."""

    def ask(question: str) -> Answer:
        began = time.perf_counter()
        found = [*Search(question, limit=20).hits(db)]
        seconds = time.perf_counter() - began
        hits = [Hit(hit.session, text_of(db, hit.event)) for hit in found]
        return Answer(hits, bool(hits), 0.0, seconds)

    return ask


def deja(store_env: dict[str, str]) -> Asker:
    """deja-vu as a command; its hits name sessions and their messages, best first."""

    def ask(question: str) -> Answer:
        command = ["deja", "search", "--json", "--limit", "20", question]
        done = run(command, store_env, ok=(0, 1))
        told = orjson.loads(done.out) if done.out.strip() else {}
        hits = []
        for hit in told.get("hits") or []:
            said = [message["text"] for message in hit["session"].get("messages") or []]
            said += hit.get("snippets") or []
            hits.append(Hit(hit["session"]["id"], "\n".join(said)))
        return Answer(hits, bool(hits), 0.0, done.seconds)

    return ask


def text_of(db: Connection, event: int) -> str:
    sql = "SELECT concat_ws(char(10), text, input, output) FROM event_texts WHERE id = ?"
    return str(db.execute(sql, (event,)).get)


def score(ask: Asker, cases: Iterable[Case]) -> Score:
    scored = Score()
    for one in cases:
        scored.take(one, ask(one.question))
    return scored


def stories(store: Store, told: Stories) -> dict[str, Any]:
    """The figures of everybody who can be asked."""
    results: dict[str, Any] = {}
    with closing(open_reader(store.index)) as db:
        askers = {"sess recall": ours(db), "sess search, as typed": exact(db)}
        if shutil.which("deja"):
            run(["deja", "index"], store.env)
            askers["deja-vu"] = deja(store.env)
        for name, ask in askers.items():
            questions = score(ask, told.questions)
            errors = score(ask, told.errors)
            foreign = [ask(question) for question in told.foreign]
            results[name] = {
                "questions": questions.figures(),
                "errors": errors.figures(),
                "false surface": sum(answer.found for answer in foreign) / len(foreign),
            }
            if name == "sess recall":
                results[CALIBRATION] = curve(
                    questions.confidences, [answer.confidence for answer in foreign]
                )
    return results


def curve(true: Sequence[float], foreign: Sequence[float]) -> list[tuple[float, float, float]]:
    """(confidence, share of our questions that reach it, share of foreign ones that do)."""

    def reaching(values: Sequence[float], least: float) -> float:
        return sum(value >= least for value in values) / (len(values) or 1)

    steps = [step / STEPS for step in range(STEPS + 1)]
    return [(least, reaching(true, least), reaching(foreign, least)) for least in steps]


# -- the bench and its report


def recalling(c: Context) -> None:
    bench, store = "recall", c.main()
    told = plant(store)
    results = stories(store, told)
    mine = results["sess recall"]
    questions, errors = mine["questions"], mine["errors"]
    sets = f"{questions['questions']} questions in {store.mb:.0f} MB"
    c.add(Row(bench, f"session in the first five, {sets}", questions["session@5"], ""))
    c.add(Row(bench, "the right place in the first five", questions["place@5"], ""))
    c.add(Row(bench, "mean reciprocal rank of the session", questions["mrr"], ""))
    what = f"the fix of an error in the first five, {errors['questions']} pasted"
    c.add(Row(bench, what, errors["place@5"], "", 0.85, True))
    what = f"foreign questions answered as if they fitted, of {len(told.foreign)}"
    c.add(Row(bench, what, mine["false surface"], "", 0.3))
    c.add(Row(bench, "true questions said to be unanswered", questions["unanswered"], "", 0.15))
    c.add(Row(bench, "in process, median", questions["median_ms"], "ms", 50))
    c.add(Row(bench, "in process, the worst", questions["worst_ms"], "ms", 120))
    c.add(Row(bench, "a pasted error, median", errors["median_ms"], "ms", 50))
    for name in ("sess search, as typed", "deja-vu"):
        if name in results:
            other = results[name]["questions"]
            c.add(Row(bench, f"{name}: session in the first five", other["session@5"], ""))
    command = [SESS, "recall", "--no-sync", "--json", told.questions[0].question]
    seen = run_watched(command, store.env, (0,), every=0.002)
    c.add(Row(bench, "as a command: memory", seen.peak_mb, "MB", 100))
    took = statistics.median(run(command, store.env).seconds for _ in range(c.repeat)) - c.bare
    c.wall(bench, "as a command, beyond python", took, 0.13)


BENCHES: dict[str, Callable[[Context], None]] = {"recall": recalling}


def table(results: dict[str, Any]) -> str:
    """For the README."""
    lines = [
        "| | session first | in the first five | right place | MRR | said to fit | foreign ones |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]

    def row(name: str, figures: dict[str, float], foreign: float | None) -> None:
        cells = [f"{figures[key]:.0%}" for key in ("session@1", "session@5", "place@5")]
        cells += [f"{figures['mrr']:.2f}", f"{1 - figures['unanswered']:.0%}"]
        cells.append("" if foreign is None else f"{foreign:.0%}")
        lines.append(f"| {name} | {' | '.join(cells)} |")

    for size, everybody in results["stories"].items():
        for name, found in everybody.items():
            if name != CALIBRATION:
                told = f"{found['questions']['questions']} questions in {size}"
                row(f"{name}, {told}", found["questions"], found["false surface"])
        for name, found in everybody.items():
            if name != CALIBRATION:
                told = f"{found['errors']['questions']} pasted errors in {size}"
                row(f"{name}, {told}", found["errors"], None)
    for name in ("LongMemEval-S", "LoCoMo"):
        if name in results:
            number = results[name]["questions"]
            row(f"sess recall, {name}, {number:,} questions", results[name], None)
    return "\n".join(lines)


def page(results: dict[str, Any]) -> str:
    *_, largest = results["stories"].values()
    mine = largest["sess recall"]["questions"]
    rows = "\n".join(
        f"| {least:.2f} | {true:.0%} | {foreign:.0%} |"
        for least, true, foreign in largest[CALIBRATION]
    )
    about = "\n".join(f"- {name}: {value}" for name, value in results["about"].items())
    return f"""# Recall, measured

Written by `python bench/recalling.py`; the figures are also in recall.json. Conversations of
stories.toml and the sample of `sess demo` lie in a generated corpus; the questions were written
with them, in other words. LongMemEval-S has a history for each question, LoCoMo one for each
conversation. The place of a session is right if its text, or what is quoted of it, has the answer.
"Said to fit" is the share of questions for which a program does not say that nothing fits, and the
same of foreign ones; deja-vu calls its hits nearest for most of both. The generated text draws from
all words of a dictionary, so that no word of a question is rare in it: a hard case.

{about}

{table(results)}

In process, in the larger one: median {mine["median_ms"]:.0f} ms, worst {mine["worst_ms"]:.0f} ms.

## What confidence means

The share of our questions, and of foreign ones, whose answer has at least this confidence.

![calibration](plots/recall.svg)

| confidence | ours | foreign |
|---:|---:|---:|
{rows}
"""


def drawn(points: Sequence[tuple[float, float, float]]) -> str:
    """The calibration curve."""
    across, up = WIDTH - EDGE - 180, HEIGHT - 70

    def at(x: float, y: float) -> tuple[float, float]:
        return EDGE + x * across, HEIGHT - 40 - y * up

    parts = [head("share of questions with at least this confidence", HEIGHT)]
    for tenth in range(0, 11, 2):
        x, y = at(tenth / 10, tenth / 10)
        bottom = HEIGHT - 20
        parts += [
            line([at(0, tenth / 10), at(1, tenth / 10)], "#8884"),
            f'<text x="{EDGE - 6}" y="{y + 4:.1f}" text-anchor="end">{tenth * 10} %</text>',
            f'<text x="{x:.1f}" y="{bottom}" text-anchor="middle">{tenth / 10:g}</text>',
        ]
    for number, name in enumerate(("our questions", "foreign questions"), 1):
        colour = COLOURS[number - 1]
        parts.append(line([at(point[0], point[number]) for point in points], colour))
        y = 30 + 18 * number
        parts.append(f'<text x="{EDGE + across + 12}" y="{y}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def into_readme(text: str, results: dict[str, Any]) -> str:
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table(results)}\n\n{END}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure recall.")
    parser.add_argument("--longmemeval", type=Path, metavar="FILE", help="longmemeval_s.json")
    parser.add_argument("--locomo", type=Path, metavar="FILE", help="locomo10.json")
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="about N questions each")
    parser.add_argument("--mb", type=float, default=60, help="of the corpus around the stories")
    parser.add_argument("--keep", action="store_true", help="print only; write no file")
    args = parser.parse_args()
    work = Workspace()
    results: dict[str, Any] = {"stories": {}}
    try:
        for mb in (ALONE, args.mb):
            store = work.store(mb)
            told = plant(store)
            results["stories"][f"{mb:g} MB"] = stories(store, told)
    finally:
        work.close()
    if args.longmemeval:
        scored = Score()
        for db, asked in longmemeval(args.longmemeval, args.limit):
            scored.take(asked, ours(db)(asked.question))
        results["LongMemEval-S"] = scored.figures()
    if args.locomo:
        answered, adversarial = Score(), Score()
        for db, asked, has_answer in locomo(args.locomo, args.limit):
            (answered if has_answer else adversarial).take(asked, ours(db)(asked.question))
        results["LoCoMo"] = answered.figures()
        results["LoCoMo, adversarial"] = adversarial.figures()
    results["about"] = {
        "when": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "corpus": f"bench/corpus.py with {len(told.questions)} questions,"
        f" {len(told.errors)} pasted errors and {len(told.foreign)} foreign questions",
    }
    print(table(results))
    if not args.keep:
        text = orjson.dumps(results, option=orjson.OPT_INDENT_2) + b"\n"
        (HERE / "recall.json").write_bytes(text)
        (HERE / "RECALL.md").write_text(page(results), "utf-8")
        (HERE / "plots" / "recall.svg").write_text(
            drawn(results["stories"][f"{args.mb:g} MB"][CALIBRATION]), "utf-8"
        )
        README.write_text(into_readme(README.read_text("utf-8"), results), "utf-8")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (BenchError, subprocess.SubprocessError) as error:
        say(f"failed: {error}")
        sys.exit(1)
