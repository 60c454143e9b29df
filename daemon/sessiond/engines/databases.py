"""Reads changes from databases that other programs write."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence

import apsw

from sessiond.engines.steps import ChangeConversation, Fail, Finish, KeepState, Step, Vanish
from sessiond.reading.survey import Candidate
from sessiond.reading.tracked import GONE, LIVE, Tracked
from sessiond.sourcekit.base import LOOK_AGAIN
from sessiond.sourcekit.foreign import Changed, Foreign, ForeignError
from sessiond.sourcekit.known_rows import GONE as NO_PLACE
from sessiond.sourcekit.known_rows import KnownRows

# File times have a coarse resolution: a write in the same tick as our read leaves no trace.
CLOCK_STEP_NS = 50_000_000


def read_database(file: Candidate, source: Tracked, index: apsw.Connection) -> Iterator[Step]:
    """Yield a step for each changed conversation, then the final steps."""
    assert file.agent.databases is not None
    last_write = max(file.stat.mtime_ns, file.sidecar_ns)
    unsettled = time.time_ns() - last_write < CLOCK_STEP_NS
    known = KnownRows(index, source)
    for live in (False, True):
        state = dict(source.parser_state(index)) if source.id else {}
        try:
            with Foreign(file.path, live=live) as foreign:
                for conversation in file.agent.databases.conversations(foreign, known, state):
                    yield ChangeConversation(file, source, conversation)
        except Changed:
            continue
        except ForeignError as error:
            if source.id is not None and not os.path.lexists(file.path):
                yield Vanish(file, source)
            else:
                yield Fail(file, source, str(error))
            return
        except apsw.Error:  # of the index
            raise
        except Exception as error:
            yield Fail(file, source, f"{type(error).__name__}: {error}", crashed=True)
            return
        partial = state.pop(LOOK_AGAIN, False)
        yield KeepState(file, source, state)
        yield Finish(file, source, file.stat, unsettled=unsettled, partial=partial, empty=True)
        return


def return_parts(index: apsw.Connection, source: Tracked, parts: Sequence[Tracked]) -> None:
    """Mark the conversations that a reappeared database still has as live."""
    if source.state != GONE:
        return
    present = {
        source_id
        for (source_id,) in index.execute(
            "SELECT DISTINCT t.source_id FROM database_rows r JOIN records t ON t.id = r.record_id"
            " WHERE r.source_id = ? AND r.place <> ?",
            (source.id, NO_PLACE),
        )
    }
    for part in parts:
        if part.state == GONE and part.id in present:
            part.save_state(index, LIVE)
