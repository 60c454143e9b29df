"""Cross-session search: language → plan → ranking → excerpts."""

from sess_schema.queries.search.engine import (
    ENOUGH,
    EXCERPT_WIDTH,
    SORTS,
    TOKENIZER,
    Hit,
    Results,
    Search,
)
from sess_schema.queries.search.language import Filter
from sess_schema.queries.search.ranking import COMMON

__all__ = [
    "COMMON",
    "ENOUGH",
    "EXCERPT_WIDTH",
    "SORTS",
    "TOKENIZER",
    "Filter",
    "Hit",
    "Results",
    "Search",
]
