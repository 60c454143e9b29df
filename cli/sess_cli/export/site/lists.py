"""The pages that list sessions: the index, and one for each project."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence

from sess_cli.export.html import markup, shell
from sess_cli.export.html.chunks import packed
from sess_cli.export.site import plan
from sess_cli.export.site.plan import ListedSession
from sess_cli.render import amounts, tallies

_ASSETS = os.path.join(os.path.dirname(__file__), "assets")
_SHARED = ("page/zstd.js", "theme.js", "themed.js")
_RECENT = 30


def documents(
    entries: Sequence[ListedSession], bundles: Sequence[str], *, utc: bool
) -> Iterator[tuple[str, str]]:
    """(name, text) of every file that is not a session's page; entries are newest first."""
    yield "assets/page.css", shell.style()
    yield "assets/page.js", shell.script()
    yield "assets/site.css", shell.asset("site.css", _ASSETS)
    yield "assets/site.js", _script()
    projects: dict[str, list[ListedSession]] = {}
    for entry in entries:
        projects.setdefault(entry.project, []).append(entry)
    names = plan.project_names(projects)
    yield "index.html", _document("Sessions", "", _index(entries, projects, names, bundles, utc))
    for project, own in projects.items():
        body = _project(project, names[project], own, utc)
        yield plan.project_file(project), _document(names[project], "../", body)


def _index(
    entries: Sequence[ListedSession],
    projects: dict[str, list[ListedSession]],
    names: dict[str, str],
    bundles: Sequence[str],
    utc: bool,
) -> Iterator[str]:
    recent, others = _split(entries)
    shown = {id(entry) for entry in (*recent[:_RECENT], *others[:_RECENT])}
    unseen = json.dumps([[entry.file, entry.title] for entry in entries if id(entry) not in shown])
    titles = f'<script type="application/octet-stream" data-what="titles">{packed(unseen)}</script>'
    yield '<header class="masthead">\n<h1>Sessions</h1>\n'
    yield _totals(entries, len(projects))
    yield "</header>\n"
    loaded = markup.attr(" ".join(bundles))
    yield (
        f'<search class="finder js-only" data-bundles="{loaded}">'
        '<label class="unseen" for="query">Search all sessions</label>'
        '<input id="query" type="search" placeholder="Search all sessions" autocomplete="off"'
        ' spellcheck="false"><p id="status" role="status"></p>'
        '<ol id="hits"></ol></search>\n<main id="lists">\n'
    )
    if not entries:
        yield '<p class="empty">No sessions.</p>\n'
    else:
        title = "Sessions" if len(recent) <= _RECENT else "Newest sessions"
        yield f"<section><h2>{title}</h2>\n"
        yield from _sessions(recent[:_RECENT], "", utc, names)
        yield from _others(others, "", utc, names, most=_RECENT)
        yield "</section>\n"
        yield '<section><h2>Projects</h2>\n<ul class="projects">\n'
        for project, own in projects.items():
            yield _project_card(project, names[project], own, utc)
        yield "</ul></section>\n"
    yield f"</main>\n{titles}\n"


def _project(project: str, name: str, entries: Sequence[ListedSession], utc: bool) -> Iterator[str]:
    yield '<header class="masthead">\n'
    yield '<p class="trail"><a href="../index.html">All sessions</a></p>\n'
    yield f'<h1 dir="auto">{markup.text(name)}</h1>\n'
    if name != project:
        yield f'<p class="path">{markup.text(project)}</p>\n'
    yield _totals(entries, 0)
    yield '</header>\n<main id="lists">\n'
    listed, others = _split(entries)
    yield from _sessions(listed, "../", utc, None)
    yield from _others(others, "../", utc, None)
    yield "</main>\n"


def _totals(entries: Sequence[ListedSession], projects: int) -> str:
    facts = [("Projects", f"{projects:,}")] if projects else []
    facts += [
        ("Sessions", f"{sum(entry.listed for entry in entries):,}"),
        ("Prompts", f"{sum(entry.own_prompts for entry in entries):,}"),
        ("Tool calls", f"{sum(entry.own_calls for entry in entries):,}"),
        ("Failed", f"{sum(entry.own_failed for entry in entries):,}"),
        ("Denied", f"{sum(entry.own_denied for entry in entries):,}"),
        ("Tokens", tallies.short(sum(entry.tokens for entry in entries))),
        ("Cost", tallies.money(sum(entry.cost_nano for entry in entries))),
    ]
    inside = "".join(
        f'<div class="number"><dt>{name}</dt><dd>{value}</dd></div>' for name, value in facts
    )
    return f'<dl class="facts">{inside}</dl>\n'


def _project_card(project: str, name: str, entries: Sequence[ListedSession], utc: bool) -> str:
    cost = sum(entry.cost_nano for entry in entries)
    last = amounts.clock(entries[0].ended, utc=utc)
    path = f'<span class="path">{markup.text(project)}</span>' if name != project else ""
    return (
        f'<li><a href="{markup.attr(plan.project_file(project))}"><strong dir="auto">'
        f"{markup.text(name)}</strong></a>{path}"
        f"<span>{_counted(entries)} · {last}"
        f"{f' · {tallies.money(cost)}' if cost else ''}</span></li>\n"
    )


def _split(
    entries: Sequence[ListedSession],
) -> tuple[list[ListedSession], list[ListedSession]]:
    """What `sess list` lists, and all others."""
    return [e for e in entries if e.listed], [e for e in entries if not e.listed]


def _counted(entries: Sequence[ListedSession]) -> str:
    listed, others = _split(entries)
    counts = [amounts.plural(len(listed), "session")] if listed or not others else []
    return " · ".join([*counts, *([f"{len(others):,} unlisted"] if others else [])])


def _others(
    entries: Sequence[ListedSession],
    above: str,
    utc: bool,
    names: dict[str, str] | None,
    *,
    most: int | None = None,
) -> Iterator[str]:
    """What is not listed, folded; the totals include it."""
    if not entries:
        return
    shown = entries[:most]
    newest = f"; the newest {most}, and all in their projects" if len(shown) < len(entries) else ""
    yield (
        f'<details class="others"><summary>{len(entries):,} unlisted: subagents without their'
        f" session, logs and warm-ups{newest}</summary>\n"
    )
    yield from _sessions(shown, above, utc, names)
    yield "</details>\n"


def _sessions(
    entries: Sequence[ListedSession], above: str, utc: bool, names: dict[str, str] | None
) -> Iterator[str]:
    if not entries:
        return
    yield '<ul class="sessions">\n'
    for entry in entries:
        facts = [
            amounts.clock(entry.ended, utc=utc),
            entry.agent,
            *([names[entry.project]] if names else []),
            *([entry.branch] if entry.branch else []),
            amounts.plural(entry.prompts, "prompt"),
            amounts.plural(entry.calls, "tool call"),
        ]
        if entry.started is not None and entry.ended is not None and entry.ended > entry.started:
            facts.insert(1, amounts.duration(entry.ended - entry.started))
        if entry.tokens:
            facts.append(tallies.tokens(entry.tokens))
        if entry.cost_nano:
            facts.append(tallies.money(entry.cost_nano))
        outcomes = amounts.outcomes(entry.failed, entry.denied)
        failed = f'<span class="bad">{outcomes}</span>' if outcomes else ""
        shown = "".join(f"<span>{markup.text(fact)}</span>" for fact in facts)
        yield (
            f'<li data-file="{markup.attr(entry.file)}"><a href="{above}{markup.attr(entry.file)}"'
            f' dir="auto">{markup.title(entry.title)}</a><p>{shown}{failed}</p></li>\n'
        )
    yield "</ul>\n"


def _document(title: str, above: str, body: Iterator[str]) -> str:
    links = [f"{above}assets/{name}" for name in ("page.css", "site.css")]
    top = f'{shell.head(title, links=links)}<body class="site">\n{shell.THEME_BUTTON}\n'
    return f'{top}{"".join(body)}<script src="{above}assets/site.js"></script>\n</body>\n</html>\n'


def _script() -> str:
    """Includes the unpacker and the themes of the session pages."""
    shared = "\n".join(map(shell.asset, _SHARED))
    return f'(() => {{\n"use strict";\n{shared}\n{shell.asset("site.js", _ASSETS)}\n}})();\n'
