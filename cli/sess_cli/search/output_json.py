"""Hits for programs: JSON objects (docs/json.md), and the best excerpts for a token budget."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import apsw

from sess_cli.render import amounts, layout
from sess_common.classes import dataclass
from sess_common.errors import SessError
from sess_schema import objects
from sess_schema.citations import Citations
from sess_schema.ids import EventId
from sess_schema.queries import sessions
from sess_schema.queries.search import Hit, Results
from sess_schema.queries.search.surroundings import Neighbours, location

VERSION = 2
FIELDS = (
    "version", "session", "agent", "project", "title", "parent", "event", "ts", "ts_from", "type",
    "label", "tool", "status", "snippet", "matches", "field", "offsets", "path", "line", "score",
    "superseded", "tier", "before", "after",
)  # fmt: skip
# Tokenizers differ; at three bytes per token, none makes more tokens of prose or code.
_BYTES_PER_TOKEN = 3
_PIECES = 8  # of evidence that should fit, at least
_WIDEST, _NARROWEST = 3000, 40  # characters of a piece
_PER_SESSION = 3
_HEAD = 100  # bytes of a citation, roughly
_SMALLEST = 30  # tokens left that are worth filling


def chosen_fields(listed: str) -> tuple[str, ...]:
    """A list such as `session,event,snippet`."""
    names = tuple(name.strip() for name in listed.split(",") if name.strip())
    unknown = [name for name in names if name not in FIELDS]
    if unknown or not names:
        raise SessError(
            f'no such field: "{unknown[0]}"' if unknown else "no fields given",
            hint=", ".join(FIELDS),
        )
    return names


class Objects:
    """Turns hits into objects."""

    def __init__(
        self,
        db: apsw.Connection,
        results: Results,
        fields: tuple[str, ...] = FIELDS,
        before: int = 0,
        after: int = 0,
    ) -> None:
        self.db, self.results, self.fields = db, results, fields
        self.before, self.after = before, after
        self.neighbours = Neighbours(db)
        self.cites = Citations(db)

    def of(self, hit: Hit) -> dict[str, Any]:
        def key(event: EventId) -> str:
            return self.cites.key(event, hit.session_key)

        path, line = (None, None)
        if "path" in self.fields or "line" in self.fields:
            path, line = location(self.db, hit, self.results.texts(hit.event))
        whole = {"version": VERSION, **objects.hit(hit, key(hit.event), path, line)}
        if self.before or self.after:
            around = self.neighbours.around(hit.session_key, hit.event, self.before, self.after)
            whole["before"], whole["after"] = (
                [objects.neighbour(one, key(one.id), Neighbours.words(one)) for one in beside]
                for beside in around
            )
        return {name: whole[name] for name in self.fields if name in whole}


@dataclass(frozen=True, slots=True)
class Evidence:
    """An excerpt and its citation."""

    cite: str  # as `sess show` takes it
    text: str

    @property
    def value(self) -> dict[str, str]:
        return {"cite": self.cite, "text": self.text}


def _tokens_of(text: str) -> int:
    return -(-len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN)


def packed_evidence(
    db: apsw.Connection, results: Results, budget: int, *, utc: bool, as_json: bool = False
) -> Iterator[Evidence]:
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
            piece = Evidence(cite, f"[{cite}] {about}\n{hit.snippet.text}")
            used = _tokens_of(_written(piece, as_json=as_json))
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


def _written(piece: Evidence, *, as_json: bool) -> str:
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
