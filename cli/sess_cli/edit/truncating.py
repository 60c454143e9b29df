"""Takes out the end of a session, from one of its prompts on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sess_cli.edit import cutting
from sess_cli.edit.cutting import Cut
from sess_cli.edit.target import Target
from sess_common.errors import SessError
from sess_schema import labels
from sess_schema.queries.transcripts import Transcript

if TYPE_CHECKING:
    import apsw

    from sess_schema.ids import SessionId


def planned(
    db: apsw.Connection, target: Target, transcript: Transcript, prompts: int
) -> Cut | None:
    """A cut that leaves the first `prompts` prompts; None if there are no more than these."""
    if target.session.kind == "subagent":
        raise SessError(
            "a subagent's session cannot be truncated",
            hint="truncate the session that started it, or `sess cut` single records",
        )
    broken = next((record for record in transcript.records if record.kind == labels.BROKEN), None)
    if broken is not None:
        raise SessError(
            f'line {broken.line} of "{target.path}" cannot be read; nothing was changed',
            hint="`sess cut` works on such a file, too",
        )
    gone = _from_prompt(transcript, target.session.key, prompts)
    if not gone:
        return None
    return replace(cutting.planned(db, target, transcript, gone, relink=True), command="truncate")


def _from_prompt(transcript: Transcript, session: SessionId, prompts: int) -> set[int]:
    """The records to take out, by number."""
    asked = [t for t in transcript.of(session) if "user" in t.types and not t.superseded]
    if prompts >= len(asked):
        return set()
    first = asked[prompts].number
    gone = {
        record.number
        for record in transcript.records
        if record.number >= first and record.kind not in labels.LASTING
    }
    if prompts == 0:  # nothing is left that it could be the prompt of
        gone |= {
            record.number for record in transcript.records if record.kind == labels.SYSTEM_PROMPT
        }
    # The result of a call that stays may have come after the prompt.
    while answers := {
        number
        for number in gone
        if (record := transcript.at(number)).results
        and not record.types
        and any(caller not in gone for caller in transcript.callers[number])
    }:
        gone -= answers
    return gone
