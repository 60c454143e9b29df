"""Checks what names a session to change: it must not even look like a path."""

from __future__ import annotations

from sess_common.errors import SessError


def checked(given: str) -> str:
    """The id of a session, or of a subagent as PARENT/CHILD."""
    from sess_cli.recording.recorder import InvalidId, check_id

    parts = given.split("/")
    try:
        for part in parts if len(parts) == 2 and all(parts) else [given]:
            check_id(part)
    except InvalidId as error:
        raise SessError(str(error), hint="`sess list --all` lists the IDs of sessions") from None
    return given
