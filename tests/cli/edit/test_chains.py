"""After any cut an agent reaches everything that stays: its own way through the file, walked here.

The readers below do what each agent's source does when it loads a session; they share no code with
the client, which knows no agent.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections import Counter
from contextlib import closing

import pytest
from tests.at_length import SEED, amount
from tests.cli.edit.conftest import rest
from tests.golden_home import clean

from sess_cli.edit import cutting, undoing
from sess_cli.edit.plan import COPIED, COUNTED, REVIVED, STRAYED, UNANSWERED
from sess_common.errors import SessError
from sess_schema.connection import open_reader
from sess_schema.queries import sessions, transcripts


def entries(raw):
    """The objects in the lines of a file; lines that are none are skipped, as agents do."""
    found = []
    for line in raw.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def paths(values, name, parent):
    """From every record with an id: the ids on its way to the root; the first of each counts."""
    above: dict[str, str | None] = {}
    for value in values:
        if isinstance(value.get(name), str):
            above.setdefault(value[name], value.get(parent))
    found = {}
    for one in above:
        way: list[str] = []
        at: str | None = one
        while at is not None and at in above and at not in way:
            way.append(at)
            at = above[at]
        found[one] = way
    return found


def loaded_by_gemini(values):
    """Messages in their order: the last version counts, `$rewindTo` takes back."""
    messages: dict[str, dict[str, object]] = {}
    for value in values:
        if "$rewindTo" in value:
            ids = [*messages]
            target = value["$rewindTo"]
            for one in ids[ids.index(target) :] if target in messages else ids:
                del messages[one]
        elif "id" in value:
            messages[value["id"]] = value
    return messages


def loaded_by_pi(values):
    """Ids of the entries that a model is shown: what a compaction keeps, and what follows it."""
    if not values or values[0].get("type") != "session":
        return None
    kept = [value for value in values if isinstance(value.get("id"), str)]
    by_id = {value["id"]: value for value in kept[1:]}
    way = [by_id[one] for one in reversed(paths(kept, "id", "parentId")[kept[-1]["id"]])]
    packed = [place for place, value in enumerate(way) if value["type"] == "compaction"]
    if packed:
        first = way[packed[-1]].get("firstKeptEntryId")
        ids = [value["id"] for value in way]
        start = ids.index(first) if first in ids[: packed[-1]] else packed[-1]
        way = way[start:]
    return [value["id"] for value in way if value["type"] in ("message", "custom_message")]


CHAINED = {
    "claude": ("uuid", "parentUuid"),
    "pi": ("id", "parentId"),
    "omp": ("id", "parentId"),
    "qwen": ("uuid", "parentUuid"),
    "droid": ("id", "parentId"),
    "copilot": ("id", "parentId"),
}
ORDERED = ("codex", "gemini", "jcode", "kimi", "kiro", "traex")
HEADS = {
    *("session", "title", "session_start", "session.start", "session_meta", "metadata"),
}


@pytest.fixture
def home(tmp_path, monkeypatch, request):
    world = clean(tmp_path, request.param)
    if request.param == "droid":  # its golden files are of versions that set no parents
        for path in world.root.rglob("*.jsonl"):
            path.write_bytes(b"".join(in_a_row(path.read_bytes().splitlines(keepends=True))))
    for path in world.root.rglob("*"):
        if path.is_file():
            rest(path)
    world.ingest()
    monkeypatch.setenv("SESSIOND_HOME", str(world.state))
    return world


def in_a_row(lines):
    """Each message follows the one before it."""
    last = b"null"
    for line in lines:
        found = re.search(rb'"id":("[^"]+")', line)
        if b'"type":"message"' in line[:30] and found:
            yield line.replace(b'"parentId":null', b'"parentId":' + last, 1)
            last = found[1]
        else:
            yield line


def logs(db):
    """The transcripts that are lines of a file which is there."""
    keys = "SELECT id FROM sessions WHERE records > 0 ORDER BY id"
    for (key,) in db.execute(keys).fetchall():
        row = sessions.by_key(db, key)
        if not db.execute(cutting._TRANSCRIPTS, (key,)).fetchall():
            continue
        chosen = cutting.find_target(db, row.session, "1")
        if chosen.kind == cutting.LOG and chosen.session.key == key and os.path.exists(chosen.path):
            yield chosen


def random_cuts(db, times):
    """(file before, file after, plan) of random cuts of all logs, each undone; and refusals."""
    chance = random.Random(SEED)
    targets = [one for one in logs(db) if len(transcripts.read(db, one.source).records) > 2]
    refused: Counter[str] = Counter()
    for number in range(times):
        chosen = targets[number % len(targets)]
        transcript = transcripts.read(db, chosen.source)
        in_line = Counter(record.line for record in transcript.records)
        alone = [one.number for one in transcript.records if in_line[one.line] == 1]
        picked = chance.sample(alone, min(chance.choice((1, 1, 2, 4)), len(alone) - 1))
        try:
            cut = cutting.planned_cut(db, chosen, transcript, picked, relink=True)
        except SessError as error:
            refused[error.message] += 1
            continue
        kinds = {warning.kind for warning in cut.plan.warnings if warning.text in cut.warnings}
        assert kinds <= {UNANSWERED, COUNTED, REVIVED, STRAYED, COPIED}
        if kinds - {UNANSWERED}:
            refused["warned"] += 1
            continue
        with open(chosen.path, "rb") as file:
            before = file.read()
        edit, _ = cutting.perform(db, cut, force=False)
        with open(chosen.path, "rb") as file:
            after = file.read()
        yield before, after, cut, refused
        undoing.undo(edit)
        with open(chosen.path, "rb") as file:
            assert file.read() == before
    expected = ("warned", "this would cut every record", "record ")
    assert [why for why in refused if not why.startswith(expected)] == []


def without(before, cut):
    """The lines that must be in the file then; records that were relinked are None."""
    lines = before.splitlines()
    gone = {cut.plan.transcript.at(number).line for number in cut.plan.gone}
    changed = {cut.plan.transcript.at(link.number).line for link in cut.plan.links}
    return [
        None if number in changed else line
        for number, line in enumerate(lines, 1)
        if number not in gone
    ]


@pytest.mark.parametrize("home", [*CHAINED], indirect=True)
def test_every_record_that_stays_is_reached(home):
    """From each one upwards: what was above it before, but for what was cut."""
    name, parent = CHAINED[home.source.agent]
    done = relinked = 0
    with closing(open_reader(home.state / "index.db")) as db:
        for before, after, cut, _ in random_cuts(db, amount(16, 50)):
            was, now = (paths(entries(raw), name, parent) for raw in (before, after))
            assert now.keys() <= was.keys()
            for one, way in now.items():
                assert way == [other for other in was[one] if other in now], (one, cut.plan.gone)
            expected = without(before, cut)
            kept = after.splitlines()
            assert len(kept) == len(expected)
            assert all(line in (None, own) for line, own in zip(expected, kept, strict=True))
            done += 1
            relinked += bool(cut.plan.links)
    assert done >= amount(8, 25)
    assert relinked


@pytest.mark.parametrize("home", [*ORDERED], indirect=True)
def test_records_in_order_stay_in_order(home):
    """Where nothing names another record: every other line is the same, heads included."""
    done = 0
    with closing(open_reader(home.state / "index.db")) as db:
        for before, after, cut, _ in random_cuts(db, amount(16, 50)):
            kept = after.splitlines()
            expected = without(before, cut)
            assert all(line in (None, own) for line, own in zip(expected, kept, strict=True))
            if home.source.agent == "gemini":
                was, now = (loaded_by_gemini(entries(raw)) for raw in (before, after))
                cut_out = [cut.plan.transcript.at(number) for number in cut.plan.gone]
                gone = {record.own_id for record in cut_out if not record.superseded}
                assert [*now] == [one for one in was if one not in gone]
                assert all(now[one] == was[one] for one in now)
            done += 1
    assert done >= amount(6, 20)


@pytest.mark.parametrize("home", [*CHAINED, *ORDERED], indirect=True)
def test_what_a_session_begins_with_cannot_be_cut(home):
    """The agent would not load the rest; the refusal names the record."""
    refused = set[str]()
    with closing(open_reader(home.state / "index.db")) as db:
        for chosen in logs(db):
            found = transcripts.read(db, chosen.source)
            first = found.records[0]
            if len(found.records) < 2 or first.kind not in HEADS:
                continue
            with pytest.raises(SessError, match=r"^record 1 \(.*\) cannot be cut$"):
                cutting.planned_cut(db, chosen, found, [1], relink=True)
            refused.add(first.kind)
    assert refused or home.source.agent in ("claude", "qwen", "kiro")


@pytest.mark.parametrize("home", ["pi"], indirect=True)
def test_pi_goes_on_with_what_a_compaction_kept(home):
    """Each entry alone: the model is shown the same entries without those that were cut."""
    done = packed = 0
    with closing(open_reader(home.state / "index.db")) as db:
        for chosen in logs(db):
            found = transcripts.read(db, chosen.source)
            if found.records[-1].own_id is None:
                continue  # the first version, without ids
            for record in found.records[1:]:
                if record.kind == "compaction":
                    continue  # without it, what it had packed is shown again
                cut = cutting.planned_cut(db, chosen, found, [record.number], relink=True)
                if any(warning.kind == STRAYED for warning in cut.plan.warnings):
                    continue
                with open(chosen.path, "rb") as file:
                    before = file.read()
                edit, _ = cutting.perform(db, cut, force=True)
                with open(chosen.path, "rb") as file:
                    after = file.read()
                undoing.undo(edit)
                gone = {found.at(number).own_id for number in cut.plan.gone}
                shown = loaded_by_pi(entries(after))
                assert shown == [one for one in loaded_by_pi(entries(before)) if one not in gone]
                done += 1
                packed += any(link.member == "firstKeptEntryId" for link in cut.plan.links)
    assert done > 10
    assert packed


PACKED = {
    "pi": ("compaction", None),  # a summary in its own words
    "qwen": ("chat_compression", None),
    "codex": ("compacted", COPIED),
    "gemini": ("set", COPIED),
}


@pytest.mark.parametrize("home", [*PACKED], indirect=True)
def test_what_the_agent_goes_on_from_instead(home):
    """Without it, all before it counts again; what goes may stay in it. Both are said."""
    kind, copied = PACKED[home.source.agent]
    if home.source.agent == "gemini":
        with_checkpoint(home)
    revives = copies = 0
    with closing(open_reader(home.state / "index.db")) as db:
        for chosen in logs(db):
            found = transcripts.read(db, chosen.source)
            packs = [one.number for one in found.records if one.kind == kind]
            said = [one.number for one in found.records if one.events]
            if not packs or not said[0] < packs[-1] < said[-1]:
                continue
            for number in said:
                if found.at(number).kind in found.chain.heads:
                    continue
                cut = cutting.planned_cut(db, chosen, found, [number], relink=True)
                about = {(warning.kind, warning.number) for warning in cut.plan.warnings}
                copies += (COPIED, packs[-1]) in about
            cut = cutting.planned_cut(db, chosen, found, [packs[-1]], relink=True)
            about = {(warning.kind, warning.about) for warning in cut.plan.warnings}
            revives += (REVIVED, packs[-1]) in about
            everything = [*range(packs[-1], len(found.records) + 1)]
            cut = cutting.planned_cut(db, chosen, found, everything, relink=True)
            assert REVIVED not in {warning.kind for warning in cut.plan.warnings}
    assert revives
    assert bool(copies) == bool(copied)


def with_checkpoint(home):
    """Gemini CLI writes all messages again that count, and goes on with these."""
    path = next(home.root.rglob("session-*.jsonl"))
    lines = path.read_bytes().splitlines(keepends=True)
    messages = [*loaded_by_gemini(entries(b"".join(lines))).values()]
    checkpoint = json.dumps({"$set": {"messages": messages}}).encode() + b"\n"
    more = {"id": "after", "timestamp": "2026-03-01T12:00:00Z", "type": "user", "content": "more"}
    path.write_bytes(b"".join([*lines, checkpoint, json.dumps(more).encode() + b"\n"]))
    rest(path)
    home.ingest()
