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

__all__ = ["ENOUGH", "EXCERPT_WIDTH", "SORTS", "TOKENIZER", "Filter", "Hit", "Results", "Search"]
