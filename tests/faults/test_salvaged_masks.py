"""`redact.at_ingest` and `sessiond salvage`: no secret of an older index enters the new one."""

from __future__ import annotations

from tests.daemon.ingest.test_masking import (
    KEY,
    PASSWORD,
    chosen_word,
    everything,
    ingest,
    secretive,
)
from tests.faults.test_salvaged_history import move_aside
from tests.golden_home import GoldenWorld

from sessiond.sourcekit.masking import Masker


def salvage_masked(world, patterns="", code=0):
    aside = move_aside(world)
    (world.state / "config.toml").write_text(f"[redact]\nat_ingest = true\n{patterns}")
    world.run("sessiond", "salvage", aside, check=code)
    (world.state / "config.toml").unlink()


def test_a_log_of_an_unmasked_index_is_masked_with_its_earlier_content(world):
    """Archive and texts, of what it contained last and before; the rest is there."""
    t = secretive(world.transcript())
    world.ingest()
    t.path.write_bytes(b"")
    t.append(t.prompt(f"begun anew with {KEY}"))
    world.ingest()
    t.path.unlink()
    world.ingest()
    salvage_masked(world)
    kept = everything(world)
    assert KEY.encode() not in kept
    assert PASSWORD.encode() not in kept
    assert b"log in with ****" in kept
    assert b"begun anew with ****" in kept
    world.check()


def test_conversations_of_an_unmasked_index_are_masked(tmp_path):
    """Of documents whose files are gone, by the user's rule."""
    world = GoldenWorld(tmp_path, "cline")
    for part in world.parts:
        world.lay(part)
    world.ingest()
    word, records = chosen_word(world), world.sql("SELECT count(*) FROM records")
    for path in world.root.rglob("*.json"):
        path.unlink()
    world.ingest()
    salvage_masked(world, f"patterns = ['(?i){word}']\n", code=5)
    assert word.encode() not in everything(world).lower()
    assert world.sql("SELECT count(*) FROM records") == records


def test_what_was_masked_stays_masked_with_the_setting_off(world):
    """The new index knows that its pieces have masks: the file is not taken for a rewritten one."""
    secretive(world.transcript())
    ingest(world, Masker())
    aside = move_aside(world)
    world.run("sessiond", "salvage", aside, check=0)
    assert world.sql("SELECT generation, state FROM sources") == [(1, "live")]
    assert KEY.encode() not in everything(world)
