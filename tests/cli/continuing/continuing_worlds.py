"""Sessions to continue: one written with the recorder, and one of Claude Code."""

from __future__ import annotations

import json
import os
from contextlib import closing

from tests.conftest import opened

from sess_cli.continuing import history as messages
from sess_cli.recording import Recorder
from sess_schema.queries import sessions
from sess_schema.session import Reader
from sessiond.config import Config
from sessiond.ingest import Ingest
from sessiond.reading.territory import Territory
from sessiond.service.startup import note_agents
from sessiond.sources import all_sources
from sessiond.writing.transaction import Store

SESSION = "7ea0"


def recorder(world, session=SESSION):
    found = Recorder("/code/tea", model="m1", folder=str(world.root / ".jcode" / "sessions"))
    found.resume(session)
    return found


def call(record, name, call_id, output, *, error=None, **given):
    record.tool_call(name, given, call_id)
    record.tool_result(name, output, call_id, error=error)


def objects(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def history(world, *arguments, session=SESSION):
    ingest(world)
    given = ("history", session, "--json", "--no-sync", *arguments)
    return objects(world.run("sess", *given, check=0))


def state(world, session=SESSION):
    ingest(world)
    (found,) = objects(world.run("sess", "state", session, "--json", "--no-sync", check=0))
    return found


def ingest(world):
    """One sync in this process."""
    root = str(world.root / ".jcode" / "sessions")
    if not os.path.isdir(root):
        world.ingest()
        return
    world.state.mkdir(mode=0o700, exist_ok=True)
    places = Territory(all_sources(Config({"jcode": [root]}))).places
    with closing(opened(world.state / "index.db")) as db:
        note_agents(db, all_sources(Config()))
        Ingest(Store(db), settle=True).reconcile([one for one in places if one.path == root])


def read_messages(world):
    """As the command does, in this process."""
    ingest(world)
    with closing(opened(world.state / "index.db")) as db:
        return messages.messages_of(Reader(db, sessions.resolve(db, SESSION).key))
