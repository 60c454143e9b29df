"""Where secrets are in the index: counts by kind and session, never the secrets themselves."""

from __future__ import annotations

from collections import Counter

from sess_cli import fresh
from sess_cli.export import masking
from sess_cli.output import json_line
from sess_cli.terminal import Terminal
from sess_common.errors import Exit
from sess_redaction import HOME
from sess_schema.queries.sessions import Listing
from sess_schema.session.reader import Reader

_MOST_SESSIONS = 20


def show(terminal: Terminal, *, as_json: bool) -> int:
    """Print them; `nothing found` if there are none."""
    total: Counter[str] = Counter()
    places: list[tuple[str, str, str, Counter[str]]] = []  # id, agent, masked title
    with fresh.open_with_sessions() as db:
        for row in Listing(every=True, limit=0).rows(db):
            redactor = masking.usual(home=None)
            for entry in Reader(db, row.key).entries():
                for text in (entry.text, entry.input, entry.output):
                    redactor(text or "")
            found = Counter({kind: n for kind, n in redactor.masked.items() if kind != HOME})
            if found:
                places.append((row.session, row.agent, redactor(row.title or ""), found))
                total += found
    if as_json:
        for session, agent, _, found in places:
            json_line({"session": session, "agent": agent, "secrets": dict(found)})
        return Exit.OK if places else Exit.NOTHING_FOUND
    for kind, count in total.most_common():
        terminal.write(f"{count:>7,}  {kind}")
    if places:
        terminal.write("")
    places.sort(key=lambda place: -place[3].total())
    for session, _, title, found in places[:_MOST_SESSIONS]:
        terminal.write(terminal.line(f"{found.total():>7,}  {session}  {title}"))
    if len(places) > _MOST_SESSIONS:
        terminal.write(f"and {len(places) - _MOST_SESSIONS:,} more sessions; --json lists all")
    if not places:
        terminal.write("no secrets found")
    return Exit.OK if places else Exit.NOTHING_FOUND
