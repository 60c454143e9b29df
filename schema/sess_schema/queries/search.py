"""Full-text search: which events match, the best first, and the lines that show why.

Ranking touches only the index and `events`; texts are read for the hits that are shown, and for
candidates with a term that must occur as it was typed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import apsw

from sess_schema.queries import excerpt, language
from sess_schema.queries.language import Query, Term
from sess_schema.queries.scope import Scope

TOKENIZER = ("unicode61", ["remove_diacritics", "2"])  # as event_index was made
# text, input, output, marks: what was said weighs more than what a tool printed.
WEIGHTS = "10.0, 5.0, 1.0, 3.0"
EXCERPT_WIDTH = 160


@dataclass(frozen=True, slots=True)
class Hit:
    """One event that matches."""

    event: int
    score: float  # the lower the better, as bm25 gives it
    snippet: excerpt.Excerpt
    session: str  # the agent's own id
    session_key: int
    agent: str
    project: str | None
    title: str | None
    parent: str | None
    type: str
    label: str | None
    tool: str | None
    status: str | None
    ts: int | None
    summary: str | None
    retired: int


@dataclass(slots=True)
class Search:
    """A query, where to look, and how many hits to give."""

    text: str
    scope: Scope = field(default_factory=Scope)
    limit: int = 20  # 0 for all
    width: int = EXCERPT_WIDTH

    def check(self) -> None:
        """Complain about a request that no index can answer, before one is opened."""
        language.parse(self.text, str.split)
        self.scope.condition()

    def hits(self, db: apsw.Connection) -> Iterator[Hit]:
        """The hits, the best first, each as soon as it is known."""
        query = language.parse(self.text, tokenizer(db))
        needles = [excerpt.needle(term) for term in query.wanted]
        given = 0
        for event, score in _candidates(db, query, self.scope):
            texts: list[str] | None = None
            if query.verified:
                texts = _texts(db, event)
                if not _verify(query.verified, texts):
                    continue
            shown = (texts if texts is not None else _texts(db, event))[:3]
            snippet = excerpt.best(shown, needles, self.width)
            yield _hit(db, event, score, snippet)
            given += 1
            if given == self.limit:
                return


def tokenizer(db: apsw.Connection) -> language.Tokenize:
    name, arguments = TOKENIZER
    tokenize = db.fts5_tokenizer(name, arguments)
    return lambda text: [
        str(token[-1]) for token in tokenize(text.encode("utf-8"), apsw.FTS5_TOKENIZE_QUERY, None)
    ]


def _candidates(db: apsw.Connection, query: Query, scope: Scope) -> Iterator[tuple[int, float]]:
    """(event, score) of what the index finds; more matches give a lower score, as in bm25."""
    where, values = scope.condition()
    expression = query.expression()
    if expression is None:
        return _scan(db, query, where, values)
    return db.execute(
        f"SELECT e.id, bm25(event_index, {WEIGHTS}) AS score"
        " FROM event_index CROSS JOIN events e ON e.id = event_index.rowid"
        f" WHERE event_index MATCH ? AND {where}"
        " ORDER BY score, e.ts DESC, e.id DESC",
        (expression, *values),
    )


def _scan(
    db: apsw.Connection, query: Query, where: str, values: list[object]
) -> Iterator[tuple[int, float]]:
    """Read every text, the newest first: nothing of the query is in the index's alphabet."""
    longest = max(query.wanted, key=lambda term: len(term.text)).text.split()[0]
    escaped = longest.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    like = "x.{} LIKE ? ESCAPE '\\'"
    anywhere = " OR ".join(like.format(column) for column in ("text", "input", "output"))
    if unwanted := query.exclusion():
        where += " AND e.id NOT IN (SELECT rowid FROM event_index WHERE event_index MATCH ?)"
        values = [*values, unwanted]
    return db.execute(
        "SELECT e.id, 0.0 FROM events e CROSS JOIN event_texts x ON x.id = e.id"
        f" WHERE {where} AND ({anywhere}) ORDER BY e.ts DESC, e.id DESC",
        (*values, *[f"%{escaped}%"] * 3),
    )


def _texts(db: apsw.Connection, event: int) -> list[str]:
    for row in db.execute(
        "SELECT text, input, output, marks FROM event_texts WHERE id = ?", (event,)
    ):
        return [str(text) for text in row]
    return ["", "", "", ""]


def _verify(terms: list[Term], texts: list[str]) -> bool:
    return all(excerpt.occurs(term, texts) is not term.negated for term in terms)


def _hit(db: apsw.Connection, event: int, score: float, snippet: excerpt.Excerpt) -> Hit:
    row: tuple[Any, ...]
    (row,) = db.execute(
        "SELECT s.native_id, s.id, s.agent, s.project, s.title, p.native_id, e.type, e.label,"
        " e.tool, e.status, e.ts, e.summary, e.retired FROM events e"
        " JOIN sessions s ON s.id = e.session_id LEFT JOIN sessions p ON p.id = s.parent_id"
        " WHERE e.id = ?",
        (event,),
    )
    return Hit(event, score, snippet, *row)
