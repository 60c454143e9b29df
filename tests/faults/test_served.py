"""What people are told after damage: what it was, or that something is lost; never less in silence.

Every kind of damage is compared with the undamaged index by what `show`, `search`, an export and a
restore say.
"""

from __future__ import annotations

import json
import random
import shutil
from contextlib import closing

import apsw
import pytest
from tests.at_length import SEED, count, seeds
from tests.conftest import World, opened
from tests.faults import damage

from sess_schema.connection import open_reader
from sessiond.ingest import Ingest
from sessiond.writing.transaction import Store

PAGE = 4096
SESSIONS = [f"{number:08}-1111-4111-8111-111111111111" for number in range(1, 6)]
WORDS = ("prompt", "answer", "saucer")
VIEWS = ("v_sessions", "v_events", "v_calls", "v_usage", "v_files", "v_edits")


QUESTIONS = [
    *(["show", session, "--full"] for session in SESSIONS),
    *(["search", word, "-n", "0", "--json"] for word in WORDS),
    *(["export", "json", session, "-o", "-"] for session in SESSIONS),
    *(["restore", session, "-o", "-"] for session in SESSIONS),
    ["stats", "--json"],
]


def answers(world, home, questions):
    """By question: exit code, output, and what was said beside it."""
    told = {}
    for question in questions:
        done = run(world, home, "sess", *question, "--no-sync")
        lines = sorted(_plain(line) for line in done.stdout.splitlines())
        told[" ".join(question)] = done.returncode, lines, done.stderr
    with closing(open_reader(home / "index.db")) as db:
        for view in VIEWS:
            # Numbers of events differ in an index that was made again.
            names = [
                name
                for (name,) in db.execute("SELECT name FROM pragma_table_info(?)", (view,))
                if name != "event_id"
            ]
            rows = db.execute(f"SELECT {', '.join(names)} FROM {view}")
            told[view] = 0, sorted(map(repr, rows)), ""
    return told


def _plain(line):
    """Without what tells one index from another with the same content."""
    try:
        value = json.loads(line)
    except ValueError:
        return line
    if isinstance(value, dict):
        for name in ("event_id", "score", "exported"):
            value.pop(name, None)
    return json.dumps(value, sort_keys=True)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Five transcripts that are gone, in an index of small and large pieces, and its answers."""
    world = World(tmp_path_factory.mktemp("sound"))
    chance = random.Random(11)
    for session in SESSIONS:
        t = world.transcript(session)
        for turn in range(6):
            noise = "".join(chance.choices("abcdefghij klmnop", k=chance.choice((80, 14_000))))
            t.append(t.prompt(f"prompt {turn} {noise}"), t.answer(f"answer {turn}"))
            t.append(t.call(f"c{turn}", "Edit", file_path=f"/code/demo/{turn}.py",
                            old_string="cup", new_string="saucer"))  # fmt: skip
            t.append(t.result(f"c{turn}", f"done {noise[:20]}"))
            if turn % 2:
                world.ingest()
    world.ingest()
    shutil.rmtree(world.projects)
    world.projects.mkdir()
    world.ingest()
    return world, answers(world, world.state, QUESTIONS)


def home_with(tmp_path, raw):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "index.db").write_bytes(raw)
    (home / "index.db").chmod(0o600)
    return home


def run(world, home, *command):
    before, world.env = world.env, {**world.env, "SESSIOND_HOME": str(home)}
    try:
        return world.run(*command)
    finally:
        world.env = before


def assert_right_or_named(world, home, expected, questions=QUESTIONS):
    """After a repair: each answer is the old one, or somebody says that it is not."""
    lost = run(world, home, "sess", "check").returncode == 4
    for question, (code, output, said) in answers(world, home, questions).items():
        right = expected[question]
        if output != right[1] or code != right[0]:
            assert lost, (question, "differs, and `check` finds nothing")
            named = code in (4, 5) or "lost by damage" in said or question in VIEWS
            assert named, (question, code, said)
        assert code != 70, said


def flip_one(raw, chance):
    at = chance.randrange(len(raw))
    raw[at] ^= 1 << chance.randrange(8)


def damage_page(raw, chance):
    start = chance.randrange(len(raw) // PAGE) * PAGE
    kind = chance.randrange(3)
    length = PAGE if kind == 0 else 512 * chance.randint(1, 7)
    raw[start : start + length] = bytes(length) if kind < 2 else chance.randbytes(length)


@pytest.mark.parametrize("harm", [flip_one, damage_page])
@pytest.mark.parametrize("seed", seeds(4, 500))
def test_what_is_served_after_a_repair_is_right_or_named(sound, tmp_path, harm, seed):
    """Any bit, any page, of any table: `check` notices, `repair` mends or names."""
    if harm is damage_page and seed - SEED >= 200:
        pytest.skip("200 pages are enough")
    world, expected = sound
    raw = bytearray((world.state / "index.db").read_bytes())
    before = bytes(raw)
    harm(raw, random.Random(f"{harm.__name__} {seed}"))
    home = home_with(tmp_path, raw)
    checked = run(world, home, "sess", "check")
    if raw != before:
        assert checked.returncode == 4, checked.stdout
    repaired = run(world, home, "sessiond", "repair")
    assert repaired.returncode in (0, 4), repaired.stderr
    assert (repaired.returncode == 4) == ("lost: " in repaired.stderr)
    again = run(world, home, "sessiond", "repair")
    assert again.returncode == repaired.returncode, "a loss was forgotten"
    chosen = random.Random(seed).sample(QUESTIONS, 6)
    assert_right_or_named(world, home, expected, chosen)
    count("damages")


def test_a_loss_is_said_until_it_is_accepted(sound, tmp_path):
    """Through every repair and salvage, by `show`, `search`, `export` and `restore`."""
    world, _ = sound
    raw = bytearray((world.state / "index.db").read_bytes())
    where = damage.whereabouts(world.state / "index.db", PAGE)
    _, pages = max(where.values(), key=lambda one: len(one[1]))
    page = sorted(pages)[len(pages) // 2]
    raw[page * PAGE + 100] ^= 1
    home = home_with(tmp_path, raw)
    for _ in range(2):
        done = run(world, home, "sessiond", "repair")
        assert done.returncode == 4, done.stderr
        assert "lost: " in done.stderr
        assert run(world, home, "sess", "check").returncode == 4
    other = tmp_path / "other"
    run(world, other, "sessiond", "salvage", home / "index.db")
    for place in (home, other):
        told = run(world, place, "sess", "search", "answer", "--no-sync")
        assert "lost by damage" in told.stderr
        codes = {
            verb: [run(world, place, "sess", *verb, one, *rest).returncode for one in SESSIONS]
            for verb, rest in (
                (("show",), ["--no-sync"]),
                (("export", "json"), ["-o", "-", "--no-sync"]),
                (("restore",), ["-o", "-", "--no-sync"]),
            )
        }
        assert [max(one) for one in codes.values()] == [5, 5, 4]
        assert all(sorted(one)[:-1] == [0] * 4 for one in codes.values()), codes
    done = run(world, home, "sessiond", "repair", "--accept-losses")
    assert (done.returncode, "accepted" in done.stderr) == (0, True), done.stderr
    assert run(world, home, "sess", "check").returncode == 0
    assert run(world, home, "sess", "search", "answer", "--no-sync").stderr == ""


def test_an_altered_text_comes_back_out_of_the_archive(sound, tmp_path):
    """A bit that changed on the disk must not become what was said."""
    world, expected = sound
    raw = bytearray((world.state / "index.db").read_bytes())
    at = raw.rfind(b"answer 3")
    raw[at] ^= 1
    home = home_with(tmp_path, raw)
    assert "not what was written" in run(world, home, "sess", "check").stdout
    assert run(world, home, "sessiond", "repair").returncode == 0
    assert_right_or_named(world, home, expected)


@pytest.mark.parametrize("bit", [0x80, 0xC0])
def test_a_text_that_cannot_be_decoded_is_one_line(sound, tmp_path, bit):
    world, _ = sound
    raw = bytearray((world.state / "index.db").read_bytes())
    for at in range(len(raw)):
        if raw.startswith(b"answer 3", at):
            raw[at] ^= bit
    home = home_with(tmp_path, raw)
    for question in (["show", SESSIONS[0], "--full"], ["search", "answer"], ["search", "done"]):
        done = run(world, home, "sess", *question, "--no-sync")
        assert done.returncode in (0, 4), done.stderr
        assert "Traceback" not in done.stderr
        assert "Unicode" not in done.stderr


def test_the_writer_puts_no_damage_under_a_new_checksum(sound, tmp_path):
    """It stops at a damaged page: written again, it would look sound for ever."""
    world, _ = sound
    raw = bytearray((world.state / "index.db").read_bytes())
    at = raw.index(SESSIONS[2].encode(), PAGE)  # in a row that every pass reads
    raw[at] ^= 1
    home = home_with(tmp_path, raw)
    fresh = world.transcript("99999999-1111-4111-8111-111111111111")
    fresh.append(fresh.prompt("more"))
    try:
        run(world, home, "sessiond", "sync")
    finally:
        fresh.path.unlink()
    assert run(world, home, "sess", "check").returncode == 4


def emptied(home):
    (home / "index.db").write_bytes(b"")


def cut_short(home):
    with (home / "index.db").open("r+b") as file:
        file.truncate(3 * PAGE)


def without_its_log(home):
    (home / "index.db-wal").unlink()


def header_of_its_log(home):
    raw = bytearray((home / "index.db-wal").read_bytes())
    raw[17] ^= 4  # in the salt: SQLite takes every frame for an old one
    (home / "index.db-wal").write_bytes(raw)


def early_in_its_log(home):
    raw = bytearray((home / "index.db-wal").read_bytes())
    raw[32 + 24 + 700] ^= 1  # SQLite drops this frame and all behind it
    (home / "index.db-wal").write_bytes(raw)


@pytest.fixture(scope="module")
def half_logged(tmp_path_factory):
    """An index of six gone transcripts, most of which is only in its WAL, as after a kill."""
    world = World(tmp_path_factory.mktemp("half"))
    kept = world.root / "kept"
    for number in range(6):
        t = world.transcript(f"{number:08}-2222-4222-8222-222222222222")
        t.append(*(t.prompt(f"prompt {number} {turn} {'words ' * 900}") for turn in range(5)))
    world.state.mkdir(mode=0o700)
    with closing(opened(world.state / "index.db")) as db:
        db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        db.wal_autocheckpoint(0)
        ingest = Ingest(Store(db))
        ingest.reconcile(world.places())
        shutil.rmtree(world.projects)
        ingest.reconcile(world.places())
        shutil.copytree(world.state, kept, ignore=shutil.ignore_patterns("*-shm"))
    return world, kept


@pytest.mark.parametrize(
    "harm", [emptied, cut_short, without_its_log, header_of_its_log, early_in_its_log]
)
def test_a_repair_that_brings_back_less_says_so(half_logged, tmp_path, harm):
    """Truncated, emptied, without its WAL: "sound" is said of an index that has what it had."""
    world, kept = half_logged
    home = tmp_path / "home"
    shutil.copytree(kept, home)
    if harm in (emptied, cut_short):
        run(world, home, "sessiond", "sync")  # moves the WAL into the file
    whole = run(world, home, "sess", "sql", "SELECT count(*) FROM v_events", "--csv").stdout
    shutil.rmtree(home)
    shutil.copytree(kept, home)
    if harm in (emptied, cut_short):
        run(world, home, "sessiond", "sync")
    harm(home)
    assert run(world, home, "sess", "check").returncode == 4
    if harm is emptied:
        assert "is empty" in run(world, home, "sess", "list").stderr
    done = run(world, home, "sessiond", "repair")
    has = run(world, home, "sess", "sql", "SELECT count(*) FROM v_events", "--csv").stdout
    if has == whole:
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode == 4, done.stderr
        assert "lost: " in done.stderr
        assert run(world, home, "sessiond", "repair").returncode == 4
        assert "lost by damage" in run(world, home, "sess", "list", "--no-sync").stderr
        run(world, home, "sessiond", "repair", "--accept-losses")
    assert run(world, home, "sess", "check").returncode == 0


@pytest.mark.parametrize("seed", seeds(3, 100))
def test_a_flipped_bit_in_the_log_is_noticed_and_what_follows_is_right_or_named(
    half_logged, tmp_path, seed
):
    """SQLite ends the log there in silence."""
    world, kept = half_logged
    whole, home = tmp_path / "whole", tmp_path / "home"
    shutil.copytree(kept, whole)
    expected = answers(world, whole, [])
    shutil.copytree(kept, home)
    raw = bytearray((home / "index.db-wal").read_bytes())
    flip_one(raw, random.Random(f"log {seed}"))
    (home / "index.db-wal").write_bytes(raw)
    assert run(world, home, "sess", "check").returncode == 4
    done = run(world, home, "sessiond", "repair")
    assert done.returncode == (4 if "lost: " in done.stderr else 0), done.stderr
    assert done.returncode == 4 or answers(world, home, []) == expected, done.stderr
    count("damages")


def test_no_search_drops_what_a_damaged_log_holds(half_logged, tmp_path):
    """SQLite would, at the first opening for writing; then nothing could bring it back."""
    world, kept = half_logged
    home = tmp_path / "home"
    shutil.copytree(kept, home)
    early_in_its_log(home)
    log = (home / "index.db-wal").read_bytes()
    for _ in range(2):
        done = run(world, home, "sess", "search", "prompt")
        assert (done.returncode, "write-ahead log" in done.stderr) == (4, True), done.stderr
    assert (home / "index.db-wal").read_bytes() == log
    run(world, home, "sessiond", "repair")
    assert run(world, home, "sess", "search", "prompt").returncode in (0, 5)


def test_what_was_forgotten_is_not_read_again_after_a_repair(tmp_path):
    """The file is still there; its owner said that the index must not have it."""
    world = World(tmp_path)
    for session in SESSIONS[:2]:
        t = world.transcript(session)
        t.append(t.prompt(f"words of {session}"))
    world.ingest()
    world.run("sess", "forget", SESSIONS[0], "--yes", check=0)
    raw = bytearray((world.state / "index.db").read_bytes())
    raw[:100] = bytes(100)
    (world.state / "index.db").write_bytes(raw)
    world.run("sessiond", "repair")
    assert [one for (one,) in world.sql("SELECT native_id FROM sessions")] == [SESSIONS[1]]
    other = tmp_path / "other"
    run(world, other, "sessiond", "salvage", world.state / "index.db")
    world.state = other
    assert [one for (one,) in world.sql("SELECT native_id FROM sessions")] == [SESSIONS[1]]
