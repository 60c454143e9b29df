"""`sessiond agents`: each agent, where it is looked for, what was found, and what is not read.

`sess doctor` runs `python -m sessiond.service.agents`, which prints the same as JSON. With
`--probe WORD`, in a temporary home, it checks that what each agent would write is found.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import apsw

from sess_common import paths, program, times
from sess_common.errors import Exit
from sess_common.escape import safe
from sess_schema.connection import open_reader
from sessiond import config
from sessiond.reading.survey import unclaimed
from sessiond.reading.territory import Territory
from sessiond.sourcekit import disk
from sessiond.sourcekit.base import Source
from sessiond.sources import all_sources, source_classes

# What else leaves something on disk, by folder; sessiond does not read it (yet).
STRANGERS: dict[str, tuple[str, ...]] = {
    "Augment": ("~/.augment/sessions",),
    "CodeBuddy": ("~/.codebuddy/projects",),
    "Codebuff": ("~/.config/manicode/projects",),
    "Cody": ("~/.config/Code/User/globalStorage/sourcegraph.cody-ai",),
    "Grok CLI": ("~/.grok",),
    "Hermes": ("~/.hermes",),
    "JetBrains Junie": ("~/.junie",),
    "Plandex": ("~/.plandex-home-v2", "~/.plandex-home"),
    "Qoder": ("~/.qoder",),
    "Rovo Dev": ("~/.rovodev/sessions",),
    "Tabnine": ("~/.tabnine",),
    "Void": ("~/.config/Void/User/globalStorage",),
    "Zencoder": ("~/.zencoder",),
}

_ROOM = 12
_WIDTH = 100
_MOST_ABSENT = 3
_MOST_ENDINGS = 5


def show(*, as_json: bool, every: bool) -> int:
    home = paths.home()
    settings = config.load(home.config_file)
    known = list(_agents(settings, _indexed(home)))
    if as_json:
        sys.stdout.writelines(json.dumps(facts) + "\n" for facts in known)
        sys.stdout.writelines(json.dumps(facts) + "\n" for facts in _unknown())
        return Exit.OK
    here = [facts for facts in known if facts["found"] or facts["sessions"]]
    absent = [facts for facts in known if facts not in here]
    for facts in known if every else here:
        sys.stdout.writelines(_lines(facts))
    if absent and not every:
        names = ", ".join(facts["title"] for facts in absent)
        sys.stdout.writelines(_wrapped("not here", names))
    if strangers := [facts["title"] for facts in _unknown()]:
        sys.stdout.writelines(_wrapped("unknown", f"{', '.join(strangers)}: here, but not read"))
    return Exit.OK


def _agents(
    settings: config.Config, indexed: dict[str, tuple[int, int | None]]
) -> Iterator[dict[str, Any]]:
    passed_over = _passed_over(settings)
    for made in source_classes():
        source = made(settings.roots.get(made.agent, ()))
        sessions, last = indexed.get(made.agent, (0, None))
        places = [
            {"path": root, "exists": os.path.lexists(root)} | passed_over.get(disk.real(root), {})
            for root in source.roots()
        ]
        yield {
            "agent": made.agent,
            "title": made.title,
            "places": places,
            "found": any(place["exists"] for place in places),
            "excluded": made.agent in settings.exclude.agents,
            "sessions": sessions,
            "last_activity": times.iso(last),
            **told(made),
        }


def _passed_over(settings: config.Config) -> dict[str, dict[str, Any]]:
    """By place: files of no known kind, which may be a format that appeared since."""
    places = Territory(all_sources(settings)).places
    found = defaultdict[str, list[dict[str, Any]]](list)
    for one in unclaimed(places):
        told = {"ending": one.ending, "files": one.files, "newest": one.newest}
        found[one.place].append(told)
    return {place: {"unclaimed": files} for place, files in found.items()}


def told(made: type[Source]) -> dict[str, Any]:
    """What an agent's source says about itself."""
    return {
        "reads": made.reads,
        "not_read": [{"what": what, "why": why} for what, why in made.leaves],
        "known_from": made.known_from,
        "records_tokens": made.records_tokens,
        "subscription": made.subscription,
        "variables": list(made.variables),
    }


def _unknown() -> Iterator[dict[str, Any]]:
    """Agents that sessiond does not read, judging by their folders."""
    for title, folders in STRANGERS.items():
        existing = [path for folder in folders if os.path.isdir(path := os.path.expanduser(folder))]
        if existing:
            places = [{"path": path, "exists": True} for path in existing]
            yield {"agent": None, "title": title, "places": places, "found": True}


def _indexed(home: paths.Home) -> dict[str, tuple[int, int | None]]:
    """(sessions, last activity) by agent."""
    if not home.index.exists():
        return {}
    with closing(open_reader(home.index)) as db:
        return _counts(db)


def _counts(db: apsw.Connection) -> dict[str, tuple[int, int | None]]:
    return {
        agent: (count, last)
        for agent, count, last in db.execute(
            "SELECT agent, count(*), max(ended_at) FROM sessions WHERE records > 0 GROUP BY agent"
        )
    }


# -- for people


def _lines(facts: dict[str, Any]) -> Iterator[str]:
    yield f"{facts['title']} ({facts['agent']})\n"
    if facts["excluded"]:
        yield from _wrapped("  excluded", "by config.toml")
    if facts["sessions"]:
        last = f", last {facts['last_activity']}" if facts["last_activity"] else ""
        yield from _wrapped("  sessions", f"{facts['sessions']:,}{last}")
    there = [place["path"] for place in facts["places"] if place["exists"]]
    for path in there:
        yield from _wrapped("  looked in", _short(path))
    for place in facts["places"]:
        for one in place.get("unclaimed", ())[:_MOST_ENDINGS]:
            what = program.counted(one["files"], f"{one['ending']} file".strip())
            yield from _wrapped("  unclaimed", f"{what}; newest: {_short(one['newest'])}")
    if absent := [place["path"] for place in facts["places"] if not place["exists"]]:
        shown = [_short(path) for path in absent[:_MOST_ABSENT]]
        more = [f"and {len(absent) - _MOST_ABSENT} more"] if len(absent) > _MOST_ABSENT else []
        yield from _wrapped("  not there", ", ".join([*shown, *more]))
    if not facts["places"]:
        hint = "nowhere; name its folders under [roots] in config.toml, or `sess import` its files"
        yield from _wrapped("  looked in", hint)
    yield from _wrapped("  read", facts["reads"])
    for one in facts["not_read"]:
        yield from _wrapped("  not read", f"{one['what']}: {one['why']}")
    yield from _wrapped("  known from", facts["known_from"])
    yield from _wrapped("  tokens", _tokens(facts))
    yield "\n"


def _tokens(facts: dict[str, Any]) -> str:
    if not facts["records_tokens"]:
        return "not recorded"
    return "recorded; paid by subscription" if facts["subscription"] else "recorded"


def _short(path: str) -> str:
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if path.startswith(home + os.sep) else path


def _wrapped(name: str, text: str) -> Iterator[str]:
    import textwrap  # only for people

    first = f"{name:<{_ROOM}} "
    lines = textwrap.wrap(safe(text), _WIDTH - len(first), break_on_hyphens=False) or [""]
    yield first + lines[0] + "\n"
    for line in lines[1:]:
        yield " " * len(first) + line + "\n"


# -- for `sess doctor`


def write_probes(word: str) -> list[str]:
    """Write a file with the word in each agent's place; return the agents that have one."""
    agents = []
    for source in all_sources(config.Config()):
        files = source.probe(word)
        for path, data in files.items():
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            with open(path, "xb") as file:
                file.write(data)
        agents += [source.agent] if files else []
    return agents


def main(arguments: Sequence[str]) -> int:
    try:
        if arguments[:1] != ["--probe"]:
            return show(as_json=True, every=True)
        sys.stdout.writelines(f"{agent}\n" for agent in write_probes(arguments[1]))
    except Exception as error:
        return program.explain("sessiond", error)
    return Exit.OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
