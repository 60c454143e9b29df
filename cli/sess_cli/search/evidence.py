"""The best excerpts that fit a token budget, each with its citation."""

from __future__ import annotations

import json
from collections.abc import Iterator

import apsw

from sess_cli.render import amounts, layout
from sess_common.classes import dataclass
from sess_schema.citations import Citations
from sess_schema.queries import sessions
from sess_schema.queries.search import Hit, Results

# Tokenizers differ; at three bytes per token, none makes more tokens of prose or code.
_BYTES_PER_TOKEN = 3
_PIECES = 8  # pieces that should fit, at least
_WIDEST, _NARROWEST = 3000, 40
_PER_SESSION = 3
_HEAD = 100  # bytes of a citation, roughly
_SMALLEST = 30  # tokens left that are worth filling


@dataclass(frozen=True, slots=True)
class Piece:
    """One excerpt and its citation."""

    cite: str  # as `sess show` takes it
    text: str

    @property
    def value(self) -> dict[str, str]:
        return {"cite": self.cite, "text": self.text}


def tokens_of(text: str) -> int:
    return -(-len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN)


def packed(
    db: apsw.Connection, results: Results, budget: int, *, utc: bool, as_json: bool = False
) -> Iterator[Piece]:
    """The best pieces, in order, that fit the budget as they will be written."""
    ids, cites = sessions.ShortIds(db), Citations(db)
    left = budget
    per_session: dict[int, int] = {}
    seen: set[str] = set()
    widest = max(_NARROWEST, min(_WIDEST, budget * _BYTES_PER_TOKEN // _PIECES - _HEAD))
    for ranked in results.ranked():
        if left < _SMALLEST:
            return
        for width, brief in ((widest, False), (widest // 2, False), (_NARROWEST, True)):
            hit = results.hit(ranked, width)
            session = sessions.by_key(db, hit.session_key)
            cite = f"{ids.of(session)}#{cites.short(hit.event, hit.session_key)}"
            about = _brief(hit, utc=utc) if brief else _about(db, hit, session, utc=utc)
            piece = Piece(cite, f"[{cite}] {about}\n{hit.snippet.text}")
            used = tokens_of(_written(piece, as_json=as_json))
            if used <= left:
                break
        else:
            return
        if hit.snippet.text in seen or per_session.get(hit.session_key, 0) >= _PER_SESSION:
            continue
        seen.add(hit.snippet.text)
        per_session[hit.session_key] = per_session.get(hit.session_key, 0) + 1
        left -= used
        yield piece


def _written(piece: Piece, *, as_json: bool) -> str:
    """Including the separator before the next one."""
    if not as_json:
        return f"{piece.text}\n\n"
    return json.dumps(piece.value, ensure_ascii=False) + "\n"


def _brief(hit: Hit, *, utc: bool) -> str:
    what = hit.tool if hit.type == "tool_use" and hit.tool else hit.type
    status = f" {hit.status}" if hit.status and hit.status != "ok" else ""
    return f"{what}{status} · {amounts.clock(hit.ts, utc=utc)}"


def _about(db: apsw.Connection, hit: Hit, session: sessions.SessionRow, *, utc: bool) -> str:
    title = layout.cut(sessions.title_of(db, session), 80)
    return f"{_brief(hit, utc=utc)} · {layout.home_short(hit.project)} · {title}"
