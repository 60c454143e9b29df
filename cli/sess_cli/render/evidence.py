"""The best evidence within a number of tokens, each piece with where it is from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import apsw

from sess_cli.render import amounts, layout
from sess_schema.queries import sessions
from sess_schema.queries.search import Hit, Results

# Tokenizers differ. Three bytes a token is more than any of them makes of prose or code.
_BYTES_PER_TOKEN = 3
_PIECES = 8  # at least so many should fit
_WIDEST, _NARROWEST = 3000, 40
_PER_SESSION = 3
_SMALLEST = 30  # tokens worth filling


@dataclass(frozen=True, slots=True)
class Piece:
    """One excerpt and its citation."""

    hit: Hit
    cite: str  # what `sess show` takes
    text: str
    tokens: int


def tokens_of(text: str) -> int:
    return -(-len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN)


def packed(db: apsw.Connection, results: Results, budget: int, *, utc: bool) -> Iterator[Piece]:
    """The best pieces, in order, that fit into the budget together."""
    ids = sessions.ShortIds(db)
    left = budget
    per_session: dict[int, int] = {}
    seen: set[str] = set()
    widest = max(_NARROWEST, min(_WIDEST, budget * _BYTES_PER_TOKEN // _PIECES))
    for ranked in results.ranked():
        if left < _SMALLEST:
            return
        for width, brief in ((widest, False), (widest // 2, False), (_NARROWEST, True)):
            hit = results.hit(ranked, width)
            session = sessions.by_key(db, hit.session_key)
            cite = f"{ids.of(session)}#{hit.event}"
            about = _brief(hit, utc=utc) if brief else _about(db, hit, session, utc=utc)
            text = f"[{cite}] {about}\n{hit.snippet.text}\n"
            if tokens_of(text) <= left:
                break
        else:
            return
        if hit.snippet.text in seen or per_session.get(hit.session_key, 0) >= _PER_SESSION:
            continue
        seen.add(hit.snippet.text)
        per_session[hit.session_key] = per_session.get(hit.session_key, 0) + 1
        left -= tokens_of(text) + 1  # and the empty line between two
        yield Piece(hit, cite, text, tokens_of(text))


def _brief(hit: Hit, *, utc: bool) -> str:
    what = hit.tool if hit.type == "tool_use" and hit.tool else hit.type
    status = f" {hit.status}" if hit.status and hit.status != "ok" else ""
    return f"{what}{status} · {amounts.clock(hit.ts, utc=utc)}"


def _about(db: apsw.Connection, hit: Hit, session: sessions.SessionRow, *, utc: bool) -> str:
    title = layout.cut(sessions.title_of(db, session), 80)
    return f"{_brief(hit, utc=utc)} · {layout.home_short(hit.project)} · {title}"
