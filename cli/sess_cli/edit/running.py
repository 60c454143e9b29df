"""Shows a planned cut, asks, cuts and tells what was done; waits until the index has read it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

from sess_cli import fresh
from sess_cli.edit import cutting, listing, live
from sess_cli.edit.cutting import DATABASE, Cut
from sess_cli.edit.log import Edit
from sess_cli.edit.plan import PARENTLESS
from sess_cli.options import CutOptions, confirmed
from sess_cli.render import amounts, layout
from sess_cli.terminal import Terminal, json_line
from sess_common import lock, paths
from sess_common.errors import SessError
from sess_common.program import say
from sess_schema import objects
from sess_schema.connection import open_reader

if TYPE_CHECKING:
    import apsw

_PATIENCE = 30.0
_POLL, _LONGEST_POLL, _SLOWER = 0.02, 0.25, 1.2
_SEEN = "SELECT inode, size, mtime_ns, state FROM sources WHERE path = ?"


def run(plan: Callable[[apsw.Connection], Cut], options: CutOptions) -> bool:
    """Whether it was cut. `plan` is asked again if the file has changed before it could be."""
    shown: frozenset[int] | None = None

    def attempt() -> tuple[Cut, Edit, int] | None:
        nonlocal shown
        with closing(open_reader(paths.home().index)) as db:
            cut = plan(db)
            if cut.plan.gone != shown:
                shown = cut.plan.gone
                if not _agreed(cut, options):
                    return None
            return cut, *cutting.perform(db, cut, force=options.force)

    done = None
    for tries_left in (2, 1, 0):
        try:
            done = attempt()
            break
        except live.Changed:
            if not tries_left:
                hint = "try again when the agent has finished"
                raise SessError("the file keeps changing", hint=hint) from None
            index_now(_path(plan))
    if done is not None:
        _tell(*done, options)
    return done is not None


def _path(plan: Callable[[apsw.Connection], Cut]) -> str:
    with closing(open_reader(paths.home().index)) as db:
        return plan(db).target.path


def _agreed(cut: Cut, options: CutOptions) -> bool:
    """Show what goes; whether to go on."""
    blocked = cut.warnings and not options.force
    if options.as_json and (options.dry_run or blocked):
        _write_json(cut)
    elif not options.as_json:
        terminal = Terminal()
        for line in listing.cut_lines(terminal, cut):
            terminal.write(line)
    if options.dry_run:
        return False
    if blocked:
        parents = any(w.kind == PARENTLESS for w in cut.plan.warnings) and not cut.relink
        relink = "without `--no-relink`, records follow the ones that stay; " if parents else ""
        raise SessError(
            f"not cut because of {amounts.plural(len(cut.warnings), 'warning')}",
            hint=f"{relink}`--force` cuts anyway",
        )
    question = f"Cut {amounts.plural(len(cut.plan.gone), 'record')}?"
    if options.yes or confirmed(question, "cuts"):
        return True
    say("nothing was changed")
    return False


def _tell(cut: Cut, edit: Edit, appended: int, options: CutOptions) -> None:
    wait_until_read(edit.name)
    if options.as_json:
        _write_json(cut, edit)
    saved = listing.tokens(cut.plan.saved)
    say(f"cut {amounts.plural(len(cut.plan.gone), 'record')}, about {saved} tokens")
    if appended:
        say(f"kept {amounts.size(appended)} that the agent has added meanwhile")
    if cut.also_in:
        names = ", ".join(cut.also_in[:3]) + (" and others" if len(cut.also_in) > 3 else "")
        say(f"note: {names} has some of these records, too; search still finds them there")
    if cut.target.kind == DATABASE:
        path = layout.home_short(cutting.sidecar_path(cut.target.path))
        say(f'the database is as it was; what is left is in "{path}"')
        if edit.before is None:
            say("there was no such file before, so there is no snapshot of it")
    say(f"undo: sess undo {edit.id}")


def _write_json(cut: Cut, edit: Edit | None = None) -> None:
    plan = cut.plan
    json_line(
        {
            "session": cut.target.session.session,
            "source": cut.target.path,
            "edit": edit.id if edit else None,
            "done": edit is not None,
            "chosen": sorted(plan.chosen),
            "pulled": sorted(plan.pulled),
            "tokens_before": plan.before,
            "tokens_after": plan.before - plan.saved,
            "warnings": [
                {
                    "kind": warning.kind,
                    "number": warning.number,
                    "cut": warning.about,
                    "text": warning.text,
                }
                for warning in plan.warnings
                if warning.text in cut.warnings
            ],
            "records": [objects.record(record, plan.transcript) for record in plan.removed()],
        }
    )


def index_now(path: str) -> None:
    """Index a file now: the daemon does if it runs, else a process made for it."""
    with fresh.open_index(whole=True):
        pass
    wait_until_read(path)


def wait_until_read(path: str) -> None:
    """Let a running daemon read a changed file; without one, the next command does."""
    home = paths.home()
    if lock.holder(home.lock) is None:
        return
    names = {path, os.path.realpath(path)}
    deadline, pause = time.monotonic() + _PATIENCE, _POLL
    with closing(open_reader(home.index)) as db:
        while lock.holder(home.lock) is not None:
            seen = {name: db.execute(_SEEN, (name,)).fetchone() for name in names}
            indexed = {name: row for name, row in seen.items() if row is not None}
            if not indexed or any(_is_read(name, row) for name, row in indexed.items()):
                return
            if time.monotonic() > deadline:
                say("note: the daemon has not read the change yet; `sessiond status` shows why")
                return
            time.sleep(pause)
            pause = min(pause * _SLOWER, _LONGEST_POLL)  # a large file takes seconds


def _is_read(path: str, seen: tuple[object, ...]) -> bool:
    try:
        now = os.stat(path)
    except FileNotFoundError:
        return seen[3] == "gone"
    return seen[:3] == (now.st_ino, now.st_size, now.st_mtime_ns)
