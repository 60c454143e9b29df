"""Questions in plain words: the places that may hold the answer.

`recall` finds them by relevance (`ranking.py`), the best sessions first, and tells each place with
what followed it (`places.py`).
"""

from __future__ import annotations

from sess_schema.queries.recall.answer import Options, Place, Recalled, recall

__all__ = ["Options", "Place", "Recalled", "recall"]
