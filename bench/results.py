"""Writes what was measured: RESULTS.md with a table and plots, and results.json."""

import os
import platform
import time
from dataclasses import asdict
from pathlib import Path

import orjson
from plots import bars, number
from report import Row

HERE = Path(__file__).parent
TITLES = {
    "startup": "Start-up",
    "load": "First load",
    "no-change": "Nothing new",
    "append": "One line more",
    "fresh": "With the daemon",
    "search-ranked": "Search, inside one process",
    "search-client": "Search, as typed",
    "search-modes": "Search, each way",
    "search-scan": "Substrings and regular expressions",
    "recall": "Recall",
    "views": "Statistics, lists, one session",
    "page": "A long session as a page",
    "export": "The same session in other forms",
    "paint": "The first paint of a page in a browser",
    "site": "A site of all sessions",
    "filming": "Films",
    "idle": "Idle",
    "wear": "Written to disk",
    "cut": "Edits",
    "agents": "First load of each agent's files",
    "search-loading": "Search during a load",
    "finding": "The finder",
    "cursor-load": "Cursor's database, first load",
    "cursor-change": "Cursor's database, changes",
    "peers": "Other programs on the same files",
    "peers-paint": "The first paint of their pages in a browser",
}
PLOTTED = {
    "start-up": ("startup", "ms beyond python -c pass", "beyond python"),
    "search": ("search-modes", "times as long as ripgrep on the transcripts", ""),
    "views": ("views", "ms beyond python -c pass", "beyond python"),
}
INTRODUCTION = """\
Written by `make bench`; the figures are also in results.json. Times depend on the machine, so each
stands beside a yardstick of the same run: `python -c pass` unless another is named. For the first
load it is orjson over the same bytes, followed by a bare FTS5 insert of the same texts."""


def write(rows: list[Row], about: dict[str, str], failed: list[str]) -> None:
    facts = {
        "when": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "load average at the end": f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "",
        **about,
    }
    found = [asdict(row) | {"verdict": row.verdict} for row in rows]
    text = orjson.dumps({"about": facts, "rows": found, "failed": failed}, option=2)
    (HERE / "results.json").write_bytes(text + b"\n")
    plots = HERE / "plots"
    plots.mkdir(exist_ok=True)
    drawn = []
    for name, (bench, unit, ending) in PLOTTED.items():
        values = [
            (row.what.removesuffix(f", {ending}"), row.ratio if not ending else row.value)
            for row in rows
            if row.bench == bench and row.what.endswith(ending) and row.ratio is not None
            and (ending or row.to.startswith("rg"))
        ]  # fmt: skip
        if values:
            (plots / f"{name}.svg").write_text(bars(f"{name}: {unit}", values), "utf-8")
            drawn.append(f"![{name}: {unit}](plots/{name}.svg)")
    (HERE / "RESULTS.md").write_text(page(rows, facts, failed, drawn), "utf-8")


def page(rows: list[Row], facts: dict[str, str], failed: list[str], drawn: list[str]) -> str:
    lines = [
        "# Results of the last run",
        "",
        INTRODUCTION,
        "",
        *(f"- {name}: {value}" for name, value in facts.items()),
        "",
        *(f"{one}\n" for one in drawn),
    ]
    for bench in dict.fromkeys(row.bench for row in rows):
        lines += [
            f"## {TITLES.get(bench, bench)}",
            "",
            "| | value | target | | beside |",
            "|---|---:|---:|---|---|",
        ]
        for row in rows:
            if row.bench != bench:
                continue
            sign = "≥" if row.at_least else "≤"
            target = f"{sign} {number(row.limit)} {row.unit}" if row.limit is not None else ""
            beside = ""
            if row.ratio is not None:
                beside = f"{row.ratio:.2f} × {row.to or 'python -c pass'}"
            what = row.what.replace("|", "\\|")
            verdict = {"ok": "holds", "MISS": "**does not hold**"}.get(row.verdict, "")
            value = f"{number(row.value)} {row.unit}".strip()
            lines.append(f"| {what} | {value} | {target} | {verdict} | {beside} |")
        lines.append("")
    lines += [f"- failed: {one}" for one in failed]
    return "\n".join(lines).rstrip() + "\n"
