"""Cuts in the files of many agents: lines, elements of documents, and databases."""

from __future__ import annotations

import json
import os
from contextlib import closing

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.cli.edit.conftest import rest
from tests.golden_home import clean
from tests.must import must

from sess_cli.edit import cutting, log, splices, undoing
from sess_common.errors import SessError
from sess_schema.connection import open_reader
from sess_schema.queries import sessions, transcripts

LOGS = ("claude", "codex", "copilot", "droid", "gemini", "jcode", "kimi", "kiro", "pi", "qwen")
DOCUMENTS = ("amp", "claude-web", "continue", "gemini")


@pytest.fixture
def home(tmp_path, monkeypatch, request):
    world = clean(tmp_path, request.param)
    for path in world.root.rglob("*"):
        if path.is_file():
            rest(path)
    world.ingest()
    monkeypatch.setenv("SESSIOND_HOME", str(world.state))
    return world


def targets(db, kind):
    for (key,) in db.execute("SELECT id FROM sessions WHERE records > 0 ORDER BY id").fetchall():
        if not db.execute(cutting._TRANSCRIPTS, (key,)).fetchall():
            continue  # known from an index or a settings file only
        chosen = cutting.find_target(db, sessions.by_key(db, key).session, "1")
        if chosen.kind == kind and chosen.session.key == key:
            yield chosen


def refusal(chosen, found):
    """Why nothing of a log can be cut; None if it can be."""
    if not os.path.exists(chosen.path):
        return "is compressed"
    if found.chain.beside and found.chain.beside in os.listdir(os.path.dirname(chosen.path)):
        return "does not continue from" if not chosen.path.endswith(found.chain.beside) else None
    return "would cut every record" if len(found.records) == 1 else None


@pytest.mark.parametrize("home", LOGS, indirect=True)
def test_a_record_of_any_log(home):
    """Each record that is said is cut alone and undone: the other lines and the file are exact."""
    done = 0
    with closing(open_reader(home.state / "index.db")) as db:
        for chosen in targets(db, cutting.LOG):
            found = transcripts.read(db, chosen.source)
            heads = {record.number for record in found.records if record.kind in found.chain.heads}
            said = [
                record.number
                for record in found.records
                if record.events and record.number not in heads
            ]
            why = refusal(chosen, found)
            if why is not None:
                with pytest.raises(SessError, match=why):
                    cutting.planned_cut(db, chosen, found, said[:1], relink=True)
                continue
            for number in said[:3]:
                cut = cutting.planned_cut(db, chosen, found, [number], relink=True)
                with open(chosen.path, "rb") as file:
                    before = file.read()
                edit, _ = cutting.perform(db, cut, force=False)
                with open(chosen.path, "rb") as file:
                    after = file.read()
                changed = {link.number for link in cut.plan.links}
                kept = [
                    before[record.offset : record.offset + record.length]
                    for record in found.records
                    if record.number not in cut.plan.gone | changed
                ]
                assert all(line in after for line in kept)
                assert len(after.splitlines()) == len(before.splitlines()) - len(cut.plan.gone)
                undoing.undo(edit)
                with open(chosen.path, "rb") as file:
                    assert file.read() == before
                done += 1
    assert done


@pytest.mark.parametrize("home", DOCUMENTS, indirect=True)
def test_a_record_of_a_document(home):
    """The element leaves its list; everything else has the same value, and undo is exact."""
    done = 0
    with closing(open_reader(home.state / "index.db")) as db:
        for chosen in targets(db, cutting.DOCUMENT):
            found = transcripts.read(db, chosen.source)
            if len(found.records) < 3:
                continue
            with open(chosen.path, "rb") as file:
                before = file.read()
            cut = cutting.planned_cut(db, chosen, found, [found.records[1].number], relink=False)
            edit, _ = cutting.perform(db, cut, force=False)
            with open(chosen.path, "rb") as file:
                after = json.loads(file.read())
            home.ingest()
            live = "SELECT count(*) FROM records WHERE source_id = ? AND retired = 0"
            assert home.sql(live, chosen.source) == [(len(found.records) - len(cut.plan.gone),)]
            assert after != json.loads(before)
            undoing.undo(edit)
            with open(chosen.path, "rb") as file:
                assert file.read() == before
            home.ingest()  # the next conversation may be in the same file
            done += 1
    assert done


@pytest.mark.parametrize("home", ["cursor"], indirect=True)
def test_what_is_left_of_a_cursor_conversation_goes_beside_its_database(home):
    """The database keeps its bytes; later cuts add up; other conversations in the file stay."""
    with closing(open_reader(home.state / "index.db")) as db:
        found = [one for one in targets(db, cutting.DATABASE) if one.path.endswith(".vscdb")]
        large = [one for one in found if len(transcripts.read(db, one.source).records) > 3]
        paths = [one.path for one in large]
        first, second = [one for one in large if paths.count(one.path) > 1][:2]
        with open(first.path, "rb") as file:
            database = file.read()

        def cut(chosen, number):
            records = transcripts.read(db, chosen.source)
            plan = cutting.planned_cut(db, chosen, records, [number], relink=False)
            edit, _ = cutting.perform(db, plan, force=True)
            return edit, plan.plan.gone

        def left():
            with open(cutting.sidecar_path(first.path), encoding="utf-8") as file:
                return [json.loads(line)["composerId"] for line in file]

        made, gone = cut(first, 1)
        count = len(transcripts.read(db, first.source).records)
        assert made.before is None
        assert left() == [first.session.session] * (count - len(gone))
        _, other = cut(second, 1)
        assert left().count(second.session.session) == len(
            transcripts.read(db, second.source).records
        ) - len(other)
        again, more = cut(first, count)
        assert left().count(first.session.session) == count - len(gone | more)
        undoing.undo(again)
        assert left().count(first.session.session) == count - len(gone)
        with open(first.path, "rb") as file:
            assert file.read() == database


@pytest.mark.parametrize("home", ["opencode", "goose"], indirect=True)
def test_other_databases_are_refused(home):
    """In one line that names the file; nothing appears beside it."""
    with closing(open_reader(home.state / "index.db")) as db:
        chosen = next(targets(db, cutting.DATABASE))
        beside = sorted(os.listdir(os.path.dirname(chosen.path)))
        with pytest.raises(SessError, match=r"is a database of .*, which is never written to"):
            cutting.planned_cut(db, chosen, transcripts.read(db, chosen.source), [1], relink=False)
    assert sorted(os.listdir(os.path.dirname(chosen.path))) == beside
    assert log.entries() == []


_VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=5) | st.just('a, ]}"[{'),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
_RECORDS = st.lists(st.dictionaries(st.just("m"), _VALUES, min_size=1), min_size=1, max_size=6)


@given(
    records=_RECORDS,
    gone=st.sets(st.integers(0, 5), min_size=1),
    indent=st.sampled_from([None, 0, 2]),
    ascii_only=st.booleans(),
    depth=st.integers(0, 2),
)
def test_elements_of_any_document(records, gone, indent, ascii_only, depth):
    """Without some elements of its list, a document is the same in all other places."""
    gone = {place for place in gone if place < len(records)}
    assume(gone)

    def document(listed):
        value = listed
        for level in range(depth):
            value = {"before": [1, "[{"], f"level{level}": value, "after": {"n": None}}
        return value

    text = json.dumps(document(records), indent=indent, ensure_ascii=ascii_only)
    raw = text.encode("utf-8", "surrogatepass")
    assume(raw.decode("utf-8", "replace") == text)
    swaps = must(splices.without_elements(text, records, gone))
    kept = [record for place, record in enumerate(records) if place not in gone]
    out = b"".join(
        piece if isinstance(piece, bytes) else raw[slice(*piece)]
        for piece in splices.around(swaps, len(raw))
    )
    assert json.loads(out) == document(kept)
