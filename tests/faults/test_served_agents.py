"""What a repair gives back of every agent's conversations whose files are gone."""

from __future__ import annotations

import os
import random
import shutil
from contextlib import closing

import pytest
from tests import golden_home
from tests.at_length import AT_LENGTH, count, seeds
from tests.conftest import opened

from sess_schema.connection import open_reader
from sessiond.service import rescue

PAGE = 4096
AGENTS = sorted(path.name for path in golden_home.GOLDEN.iterdir() if path.is_dir())
FEW = ["cursor", "gemini", "opencode", "kiro"]  # databases, documents, and logs with files beside
VIEWS = ("v_sessions", "v_events", "v_calls", "v_usage", "v_files", "v_edits", "v_commits")


def seen(index):
    """Every view, without the numbers of events."""
    told = {}
    with closing(open_reader(index)) as db:
        for view in VIEWS:
            names = [
                name
                for (name,) in db.execute("SELECT name FROM pragma_table_info(?)", (view,))
                if name != "event_id"
            ]
            rows = db.execute(f"SELECT {', '.join(names)} FROM {view}")
            told[view] = sorted(map(repr, rows))
    return told


@pytest.fixture
def gone(request, tmp_path, monkeypatch):
    """The index of an agent's golden home, whose files are gone, and what it shows."""
    world = golden_home.clean(tmp_path, request.param)
    index = world.state / "index.db"
    shutil.rmtree(world.root)
    world.root.mkdir()
    with closing(opened(index)) as db:
        db.wal_checkpoint()
    for name in [name for name in os.environ if name.startswith("XDG_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(world.root))
    monkeypatch.setenv("SESSIOND_HOME", str(world.state))
    return index, seen(index)


@pytest.mark.parametrize("gone", AGENTS if AT_LENGTH else FEW, indirect=True)
def test_an_index_that_lost_its_head_shows_what_it_did(gone):
    """Titles, models, modes, calls and costs: the archive alone does not have them."""
    index, before = gone
    raw = bytearray(index.read_bytes())
    raw[:100] = bytes(100)
    index.write_bytes(raw)
    assert rescue.repair() == 0
    assert seen(index) == before


@pytest.mark.parametrize("gone", AGENTS if AT_LENGTH else FEW[:2], indirect=True)
@pytest.mark.parametrize("seed", seeds(1, 6))
def test_rows_on_a_damaged_page_are_right_or_named(gone, seed, capsys):
    index, before = gone
    raw = bytearray(index.read_bytes())
    page = random.Random(seed).randrange(1, len(raw) // PAGE)
    raw[page * PAGE + 30] ^= 1
    index.write_bytes(raw)
    code = rescue.repair()
    said = capsys.readouterr().err
    assert (code == 4) == ("lost: " in said), said
    assert code == 4 or seen(index) == before, said
    count("damages")
