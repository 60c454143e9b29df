"""Old outputs make way for hints that say how to get them again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sess_cli.continuing.messages import DENIED, NO_RESULT, Message
from sess_schema import kinds

PROTECTED = 2  # of the last prompts, with all that followed them
_HINTS = {
    kinds.READ: "read the file again",
    kinds.SEARCH: "search again",
    kinds.SHELL: "run the command again",
    kinds.FETCH: "fetch it again",
    kinds.WRITE: "read the file",
    kinds.EDIT: "read the file",
}


def pruned(messages: Sequence[Message], protected: int) -> list[Message]:
    """Outputs before the last `protected` prompts replaced; none if there are fewer prompts."""
    protected = protected if protected > 0 else PROTECTED
    prompts = [place for place, one in enumerate(messages) if one.typed]
    if len(prompts) < protected:
        return [*messages]
    end = prompts[-protected]
    return [
        replace(one, text=hint(one)) if place < end and _is_output(one) else one
        for place, one in enumerate(messages)
    ]


def _is_output(one: Message) -> bool:
    return one.role == "tool" and one.text not in (NO_RESULT, DENIED)


def hint(one: Message) -> str:
    tool = one.call.tool if one.call is not None else "the tool"
    how = _HINTS.get(one.kind or "", f"call {tool} again")
    about = f": {one.about}" if one.about else ""
    failed = " The call failed." if one.failed else ""
    return f"[old output removed.{failed} If you need it, {how}{about}]"
