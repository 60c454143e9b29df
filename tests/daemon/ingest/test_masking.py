"""`redact.at_ingest`: secrets are masked before anything is written, and nothing else changes."""

from __future__ import annotations

import json
import os
import random
import re
from contextlib import closing

import pytest
from tests.at_length import AT_LENGTH
from tests.conftest import empty_index, opened
from tests.golden_home import GoldenWorld, agents
from tests.secrets_grid import cases, leaks

from sess_schema import archive, edits
from sessiond.ingest import Ingest
from sessiond.sourcekit.masking import Masker
from sessiond.sources import source_classes
from sessiond.writing.reread import reread
from sessiond.writing.transaction import Store

KEY = "ghp_" + "Zq8xW2vN5tR7yU1iO4pA6sD9fG3hJ0kL2mB5"
PASSWORD = "Tr0ub4dor-horse-staple-91"


def ingest(world, mask=None, *, settle=True):
    world.state.mkdir(mode=0o700, exist_ok=True)
    with closing(opened(world.state / "index.db")) as db:
        return Ingest(Store(db), settle=settle, mask=mask).reconcile(world.places())


def everything(world):
    """All that the index contains, unpacked."""
    files = [path.read_bytes() for path in world.state.iterdir() if path.is_file()]
    packed = world.sql("SELECT data FROM chunks")
    changed = world.sql("SELECT data FROM edits WHERE data IS NOT NULL")
    told = [str(edits.unpack("", data)).encode() for (data,) in changed]
    return b"\n".join([*files, *told, *(archive.unpack(data) for (data,) in packed)])


def secretive(t):
    """A conversation with secrets in every place that is written somewhere else."""
    return t.append(
        t.prompt(f"log in with {KEY} please"),
        t.call("toolu_1", command=f"curl -H 'Authorization: Bearer {KEY}' https://x.test"),
        t.result("toolu_1", f"export GITHUB_TOKEN={KEY}\nok", is_error=True),
        t.call("toolu_2", tool="Edit", file_path="/code/demo/.env", old_string="A=1",
               new_string=f'PASSWORD="{PASSWORD}"\nB=2'),
        t.result("toolu_2", "done", toolUseResult={"structuredPatch": [
            {"oldStart": 1, "newStart": 1, "lines": ["-A=1", f'+PASSWORD="{PASSWORD}"']}]}),
        {"type": "summary", "summary": f"Log in with {KEY}", "leafUuid": "x"},
        {"type": "odd", "password": PASSWORD, "nested": f'{{"password": "{PASSWORD}"}}'},
        f"not JSON: {KEY}\n".encode(),
        f'{{"type":"user","broken":"{KEY}\n'.encode(),
        t.answer("the tide is out; café 🦀"),
    )  # fmt: skip


def test_no_secret_reaches_the_index(world):
    """Texts, titles, edits, warnings, archive and unfinished line; the rest is there."""
    t = secretive(world.transcript())
    with t.path.open("ab") as file:
        file.write(f'{{"type":"user","message":"unfinished {KEY[:30]}'.encode())
    ingest(world, Masker())
    kept = everything(world)
    assert KEY.encode() not in kept
    assert KEY[:30].encode() not in kept
    assert PASSWORD.encode() not in kept
    assert b"log in with ****" in kept
    assert "the tide is out; café 🦀" in str(world.shown(t.session))
    assert world.sql("SELECT count(*) FROM edits") == [(1,)]
    assert len(world.restored(t.path)) == t.path.stat().st_size
    world.check()


def test_what_was_found_is_masked_in_the_rest_of_the_log(world):
    """Wherever a read ended, whoever reads on: agents read `.env` and then use the value."""
    t = world.transcript()
    t.append(
        t.prompt(f"Set DB_PASSWORD={PASSWORD} in .env"),
        t.call("toolu_1", command=f"./try.sh {PASSWORD}"),
    )
    ingest(world, Masker())
    t.append(t.result("toolu_1", f"connected with {PASSWORD}"), t.answer(f"I tried `{PASSWORD}`."))
    ingest(world, Masker())
    kept = everything(world)
    assert PASSWORD.encode() not in kept
    assert b"connected with ****" in kept
    assert len(world.restored(t.path)) == t.path.stat().st_size
    masker = Masker()
    for words in ("once", "twice"):
        t.append(t.answer(f"{words} with {PASSWORD}"))
        ingest(world, masker)
    assert PASSWORD.encode() not in everything(world)
    world.check()


def test_rows_are_those_of_an_unmasked_index(world, tmp_path):
    """Apart from the texts: offsets, lines, kinds, times and tokens are the same."""
    t = secretive(world.transcript())
    ingest(world, Masker())
    rows = "SELECT line, offset, length, kind, role, ts, native_id FROM records ORDER BY id"
    events = "SELECT record_id, type, tool, status, kind, block FROM events ORDER BY id"
    sums = "SELECT native_id, records, prompts, tool_calls, started_at FROM sessions"
    masked = [world.sql(query) for query in (rows, events, sums)]
    world.state = tmp_path / "plain"
    ingest(world)
    assert masked == [world.sql(query) for query in (rows, events, sums)]
    assert world.restored(t.path) == t.path.read_bytes()


def test_a_masked_log_grows_and_is_not_taken_for_a_rewritten_one(world):
    """Appends, touches and looks at older parts find it equal to its file."""
    t = secretive(world.transcript())
    ingest(world, Masker())
    t.append(t.prompt(f"again: {KEY}"))
    ingest(world, Masker())
    os.utime(t.path, ns=(1, 1))
    ingest(world, Masker())
    ingest(world)  # the setting is off again: what is masked stays masked
    assert world.sql("SELECT generation FROM sources") == [(1,)]
    assert world.sql("SELECT count(*) FROM chunks WHERE retired > 0") == [(0,)]
    assert KEY.encode() not in everything(world)
    assert world.run("sess", "check").returncode == 0


def test_a_rewritten_log_is_noticed_outside_the_masks(world):
    """An edit of equal length, after a secret."""
    t = secretive(world.transcript())
    ingest(world, Masker())
    t.path.write_bytes(t.path.read_bytes().replace(b"the tide is out", b"the tide is in!"))
    ingest(world, Masker())
    assert world.sql("SELECT generation FROM sources") == [(2,)]
    assert "the tide is in!" in str(world.shown(t.session))
    assert KEY.encode() not in everything(world)
    world.check()


def test_a_reread_keeps_masks_and_marks(world):
    """After a newer edition read the archive, the file goes on as before."""
    t = secretive(world.transcript())
    ingest(world, Masker())
    with closing(opened(world.state / "index.db")) as db:
        db.execute("UPDATE sources SET edition = 0")
        agents_ = {made.agent: made() for made in source_classes()}
        assert reread(Store(db), agents_, mask=Masker()) == 1
    t.append(t.prompt("more"))
    ingest(world, Masker())
    assert world.sql("SELECT generation, state FROM sources") == [(1, "live")]
    assert KEY.encode() not in everything(world)


def test_marks_of_the_archive_are_replaced_by_those_of_the_file(world):
    """As `salvage` leaves them: the file is compared, taken for the same, and read on."""
    t = secretive(world.transcript())
    ingest(world, Masker())
    with closing(opened(world.state / "index.db")) as db:
        db.execute("UPDATE sources SET head_hash = x'00', tail_hash = x'00'")
    t.append(t.prompt("more"))
    assert ingest(world, Masker()).skipped == []
    assert world.sql("SELECT generation FROM sources") == [(1,)]
    assert "more" in str(world.shown(t.session))


def test_a_line_that_is_too_long_to_search_is_hidden(world, monkeypatch):
    """Nothing of it is archived, and the lines around it are read."""
    monkeypatch.setattr("sessiond.sourcekit.masking.LONGEST", 2000)
    t = world.transcript()
    t.append(t.prompt("before"), t.prompt(f"{KEY} " + "word " * 1000), t.prompt("after"))
    ingest(world, Masker())
    assert KEY.encode() not in everything(world)
    assert b"word word" not in everything(world)
    assert {"before", "after"} <= {text for _, text, _ in world.shown(t.session)}
    world.check()


def test_an_overflowed_output_is_masked(world):
    """It is a file of its own."""
    t = world.transcript()
    folder = t.path.with_suffix("") / "tool-results"
    folder.mkdir(parents=True)
    (folder / "big.txt").write_text(f"a long output\nGITHUB_TOKEN={KEY}\nits end\n")
    t.append(
        t.call("toolu_1", command="make"),
        t.result(
            "toolu_1",
            f"<persisted-output>\nOutput too large (1MB). Full output saved to:"
            f" {folder / 'big.txt'}\n\nPreview (first 2KB):\na long\n</persisted-output>",
        ),
    )
    ingest(world, Masker())
    ingest(world, Masker())
    assert KEY.encode() not in everything(world)
    assert world.sql("SELECT count(*) FROM sources WHERE kind = 'attachment'") == [(1,)]
    assert "its end" in str(world.shown(t.session))
    assert world.sql("SELECT max(generation) FROM sources") == [(1,)]


def test_a_second_process_masks_too(world, monkeypatch):
    """Where megabytes of logs wait."""
    monkeypatch.setattr("sessiond.ingest.passes.BULK", 1)
    monkeypatch.setattr("sessiond.engines.ahead.is_possible", lambda: True)
    secretive(world.transcript())
    ingest(world, Masker(["tide is out"]))
    assert KEY.encode() not in everything(world)
    assert b"tide is out" not in everything(world)


@pytest.mark.parametrize("agent", agents() if AT_LENGTH else ["cursor", "cline", "goose", "zed"])
def test_every_agent_is_masked(tmp_path, agent):
    """A word of its prompts, masked by the user's rule: no trace of it, the same sessions."""
    counted = (
        "SELECT native_id, records, prompts, tool_calls, started_at, ended_at FROM sessions"
        " ORDER BY native_id"
    )
    world = GoldenWorld(tmp_path, agent)
    for part in world.parts:
        world.lay(part)
    world.ingest()
    word, plain = chosen_word(world), world.sql(counted)
    world.state = tmp_path / "masked"
    for _ in range(2):
        ingest(world, Masker([rf"(?i){word}"]))
        assert word.encode() not in everything(world).lower()
        assert world.sql(counted) == plain
    world.check()


def chosen_word(world):
    """A long word of the prompts that is no part of a path, an id, a name or a constant."""
    words = world.sql(
        "SELECT lower(x.text) FROM events e JOIN event_texts x ON x.id = e.id WHERE e.type = 'user'"
    )
    elsewhere = str(world.sql("SELECT path FROM sources")).lower()
    elsewhere += str(
        world.sql("SELECT native_id, project, git_branch, agent FROM sessions")
    ).lower()
    elsewhere += str(world.sql("SELECT path FROM files")).lower()
    elsewhere += str(empty_index()).lower()
    elsewhere += str(re.findall(rb'"[\w/-]+"', everything(world))).lower()
    found = sorted(set(re.findall(r"[a-z]{4,}", str(words))), key=lambda one: (-len(one), one))
    return next(one for one in found if one not in elsewhere)


@pytest.mark.parametrize(
    ("raw", "masked"),
    [
        (f'{{"a":"{KEY}"}}', f'{{"a":"{"*" * len(KEY)}"}}'),
        (f'{{"password":"{PASSWORD}","b":1}}', f'{{"password":"{"*" * len(PASSWORD)}","b":1}}'),
        (f'{{"a":"x\\n{KEY}\\n"}}', f'{{"a":"x\\n{"*" * len(KEY)}\\n"}}'),
        (f"{KEY} is broken {{", f"{'*' * len(KEY)} is broken {{"),
        ('{"a":"nothing here","b":[1,2.5,null]}', '{"a":"nothing here","b":[1,2.5,null]}'),
    ],
)
def test_a_mask_keeps_the_length_and_the_json(raw, masked):
    """Only the inside of a string changes."""
    assert Masker().raw(raw.encode()).decode() == masked


def test_a_masked_archive_is_compared_outside_its_masks():
    """A mask may be cut by the border of a piece; fewer stars than a mask has are just text."""
    assert archive.is_same(b"ab secret cd", b"ab ****** cd", masked=True)
    assert archive.is_same(b"ret cd", b"*** cd", masked=True)
    assert not archive.is_same(b"ab secret cd", b"ab ****** ce", masked=True)
    assert not archive.is_same(b"a * b", b"a + b", masked=True)
    assert not archive.is_same(b"a+b c", b"a*b c", masked=True)
    assert not archive.is_same(b"ab secret cd", b"ab ****** cd", masked=False)
    assert not archive.is_same(b"ab secret", b"ab ****** ", masked=True)


@pytest.mark.parametrize("ascii_only", [True, False])
def test_no_piece_of_a_secret_is_left_in_a_string_with_escapes(ascii_only):
    """A tab before a line of `.pgpass`, as where a file is shown with numbers, is written `\\t`."""
    numbered = f"     1\tdb.example.org:5432:shop:demo:{PASSWORD} é 🦀"
    for text, made in ((numbered, PASSWORD), *(case[1:] for case in cases(random.Random(1), 1))):
        line = json.dumps({"text": text}, ensure_ascii=ascii_only).encode()
        masked = Masker().raw(line)
        assert len(masked) == len(line)
        assert not leaks(json.loads(masked)["text"], made), text


def test_masks_that_overlap_leave_nothing_between_them():
    """Not even the last characters of one that reaches a little further."""
    assert Masker(["abcdef", "cdefgh"]).text("x abcdefgh y") == "x ******** y"
