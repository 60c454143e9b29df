"""The parsed query as an indented outline."""

from __future__ import annotations

from collections.abc import Iterator

from sess_common.classes import TYPE_CHECKING
from sess_schema.queries.search import Results, Search
from sess_schema.queries.search.language import And, Filter, Not, Or

if TYPE_CHECKING:
    from sess_schema.queries.search.language import Node


def explained(search: Search, results: Results) -> Iterator[str]:
    yield from _outline(results.query.tree, 0)
    for note in results.query.notes:
        yield f"note: {note}"
    order = "best first" if results.ranks else f"{_time(search)} first"
    yield f"order: {order}"
    if results.plan.match:
        yield f"index: {results.plan.match}"
    elif results.plan.where.texts or results.plan.residual is not None:
        yield "index: none; every text is read"
    if results.plan.residual is not None:
        yield "compared: candidates are compared with the text"


def _time(search: Search) -> str:
    return "oldest" if search.sort == "oldest" else "newest"


def _outline(node: Node, depth: int) -> Iterator[str]:
    lead = "  " * depth
    if isinstance(node, And | Or):
        yield f"{lead}{'all of' if isinstance(node, And) else 'any of'}"
        for child in node.nodes:
            yield from _outline(child, depth + 1)
    elif isinstance(node, Not):
        yield f"{lead}not"
        yield from _outline(node.node, depth + 1)
    elif isinstance(node, Filter):
        yield f"{lead}filter: {node.field} is {node.value}"
    else:
        yield f"{lead}{node.explained()}"
