"""The table of protections that `make mutations` takes out."""

from __future__ import annotations

import pytest
from tests.faults.mutations import ROOT, protections


@pytest.mark.parametrize("one", protections(), ids=lambda one: one["what"])
def test_every_protection_is_where_the_table_says(one):
    """Code that changed must be found again, or nobody would notice that it is gone."""
    assert (ROOT / one["file"]).read_text("utf-8").count(one["old"]) == 1
