"""`sess scrub`: no secret is left in an agent's files, and every other byte is as it was."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.edit.conftest import rest
from tests.daemon.ingest.test_masking import KEY, PASSWORD, everything, secretive
from tests.golden_home import clean

from sess_cli.edit import cutting, scrubbing, undoing
from sess_schema.connection import open_reader
from sess_schema.ids import SessionId
from sess_schema.queries import sessions


@pytest.fixture
def talk(world):
    """A conversation with secrets, and a signature that only the agent reads."""
    t = secretive(world.transcript())
    thinking = {
        "type": "thinking",
        "thinking": "hm",
        "signature": f"{'Q' * 40}token=aB3dE5fG7hJ9kL1m",
    }
    t.append(t.assistant([thinking]), {"type": "odd", "number": 7, "copy": {"of": [f"x{KEY}"]}})
    rest(t.path)
    world.ingest()
    return t


def same_but_for_stars(before, after):
    """Only runs of stars differ."""
    assert len(before) == len(after)
    return all(new in (old, ord("*")) for old, new in zip(before, after, strict=True))


def test_no_secret_is_left_and_nothing_else_changes(world, talk):
    """Stars of the same length, JSON stays JSON, signatures stay; undo brings back every byte."""
    before = talk.path.read_bytes()
    done = world.run("sess", "scrub", talk.session, "--yes", check=0)
    after = talk.path.read_bytes()
    assert KEY not in done.stdout + done.stderr
    assert PASSWORD not in done.stdout + done.stderr
    assert KEY.encode() not in after
    assert PASSWORD.encode() not in after
    assert b"token=aB3dE5fG7hJ9kL1m" in after  # no text has it: a signature must stay valid
    assert same_but_for_stars(before, after)
    for old, new in zip(before.splitlines(), after.splitlines(), strict=True):
        if KEY.encode() not in old and PASSWORD.encode() not in old:
            assert new == old
        if old.startswith(b"{") and b'"broken"' not in old:
            json.loads(new)
    world.run("sess", "undo", check=0)
    assert talk.path.read_bytes() == before


def test_it_is_shown_and_asked_first(world, talk):
    """Kind, session and place, never the value; nothing happens without a yes."""
    before = talk.path.read_bytes()
    done = world.run("sess", "scrub", talk.session, "--dry-run", check=0)
    assert f"{talk.session}#" in done.stdout
    assert "password" in done.stdout
    assert KEY[:12] not in done.stdout
    ((line),) = world.run(
        "sess", "scrub", talk.session, "-n", "--json", check=0
    ).stdout.splitlines()
    told = json.loads(line)
    assert (told["done"], told["edit"]) == (False, None)
    assert told["files"] == [{"path": str(talk.path), "masks": told["files"][0]["masks"]}]
    assert all(set(place) == {"session", "event", "kind", "times"} for place in told["places"])
    assert world.run("sess", "scrub", talk.session, check=2).stderr.startswith(
        "sess: nobody to ask"
    )
    assert talk.path.read_bytes() == before


def test_search_and_the_archive_keep_them_until_everywhere(world, talk):
    """It says so; afterwards no file of the installation has them, and nothing can be undone."""
    done = world.run("sess", "scrub", talk.session, "--yes", check=0)
    assert "--everywhere masks them there" in done.stderr
    world.run("sessiond", "sync")
    assert KEY.encode() in everything(world)
    done = world.run("sess", "scrub", talk.session, "--everywhere", "--yes", check=0)
    assert "this cannot be undone" in done.stderr
    assert KEY.encode() not in everything(world)
    assert PASSWORD.encode() not in everything(world)
    assert "nothing to undo" in world.run("sess", "undo", check=1).stderr
    assert "the tide is out; café 🦀" in str(world.shown(talk.session))
    assert world.found("tide")
    world.check()
    done = world.run("sess", "scrub", talk.session, check=1)
    assert done.stderr.startswith(f'sess: no secrets found in "{talk.session}"')


def test_everywhere_at_once(world, talk):
    """Without a scrub before."""
    world.run("sess", "scrub", talk.session, "--everywhere", "--yes", check=0)
    assert KEY.encode() not in everything(world)
    assert KEY.encode() not in talk.path.read_bytes()
    assert len(world.shown(talk.session)) > 3


def test_what_only_the_archive_has_is_refused(world, talk):
    """It would be lost."""
    talk.path.unlink()
    done = world.run("sess", "scrub", talk.session, "--everywhere", "--yes")
    assert done.returncode == 2
    assert "only the archive has it" in done.stderr
    assert KEY.encode() in everything(world)


def test_doctor_says_where_they_are(world, talk):
    """Session, kind and event."""
    told = world.run("sess", "doctor", "--secrets", check=0).stderr
    assert f"sess scrub {talk.session}" in told
    ((line),) = world.run("sess", "doctor", "--secrets", "--json", check=0).stdout.splitlines()
    told = json.loads(line)
    for place in told["places"]:
        assert set(place) == {"kind", "event", "times"}
        world.run("sess", "show", f"{talk.session}#{place['event']}", check=0)
    assert sum(told["secrets"].values()) >= 2


@pytest.mark.parametrize("agent", ["codex", "gemini", "pi", "amp"])
def test_files_of_other_agents(tmp_path, monkeypatch, agent):
    """A word of each that is made a secret, in lines and documents."""
    world = clean(tmp_path, agent)
    for path in world.root.rglob("*"):
        if path.is_file():
            rest(path)
    monkeypatch.setenv("SESSIOND_HOME", str(world.state))
    done = 0
    with closing(open_reader(world.state / "index.db")) as db:
        keys = [
            key for (key,) in db.execute("SELECT id FROM sessions WHERE records > 2").fetchall()
        ]
        for key in keys:
            row = sessions.by_key(db, SessionId(int(str(key))))
            if row.kind == "subagent" or not db.execute(cutting._TRANSCRIPTS, (key,)).fetchall():
                continue
            word = _longest_word(db, key)
            (world.state / "config.toml").write_text(f"[redact]\npatterns = ['{word}']\n")
            findings = scrubbing.Findings(db, row)
            scrubs = scrubbing.planned(db, findings)
            files = [one.file.path for one in scrubs]
            before = [Path(path).read_bytes() for path in files]
            if not scrubs:
                continue
            edits = scrubbing.perform(findings, scrubs, force=True)
            for name, old in zip(files, before, strict=True):
                new = Path(name).read_bytes()
                assert word.encode() not in new
                assert same_but_for_stars(old, new)
            undoing.undo(edits[-1], force=True)
            assert [Path(path).read_bytes() for path in files] == before
            done += 1
    assert done


def _longest_word(db, key):
    """Plain letters, so that it is a pattern and JSON writes it as it is."""
    texts = db.execute(
        "SELECT t.text FROM events e JOIN event_texts t ON t.id = e.id"
        " WHERE e.session_id = ? AND e.type = 'assistant'",
        (key,),
    ).fetchall()
    words = [
        word
        for (text,) in texts
        for word in (text or "").split()
        if word.isascii() and word.isalpha()
    ]
    return max(words, key=len, default="unlikely")
