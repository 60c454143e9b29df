"""A long conversation of a document is handed to the writer in pieces."""

from __future__ import annotations

import pytest
from tests.golden_home import GoldenWorld

from sessiond.engines import documents

RECORDS = "SELECT native_id, line, offset, length, kind, ts FROM records ORDER BY source_id, offset"
EVENTS = "SELECT type, tool, status, ts FROM events ORDER BY record_id, block"


@pytest.mark.parametrize("agent", ["amp", "cline", "gemini"])
def test_pieces_make_the_same_rows(tmp_path, monkeypatch, agent):
    """One record at a time, or all at once: the same records and events."""
    found = []
    for number, most in enumerate((1, 2048)):
        monkeypatch.setattr(documents, "MOST_RECORDS", most)
        folder = tmp_path / str(number)
        folder.mkdir()
        world = GoldenWorld(folder, agent)
        world.lay_all()
        world.ingest()
        found.append((world.sql(RECORDS), world.sql(EVENTS)))
    assert len(found[0][0]) > 5
    assert found[0] == found[1]
