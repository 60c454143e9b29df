"""Sessions of the first releases: one JSON document each, rewritten after every turn."""

from __future__ import annotations

import os
from collections.abc import Iterator

import orjson

from sessiond.sourcekit.base import Conversation, Item, NotReady, SessionSpec
from sessiond.sourcekit.values import as_dict, as_text, as_time


class Sessions:
    """Reads `{session, items}`."""

    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:
        from sessiond.families.rollouts.records import RolloutParser  # when something changed

        try:
            whole = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise NotReady("is not complete JSON") from error
        if not isinstance(whole, dict) or not isinstance(whole.get("items"), list):
            raise NotReady("is not a session")
        facts = as_dict(whole.get("session"))
        name = os.path.splitext(os.path.basename(path))[0]
        spec = SessionSpec(as_text(facts.get("id")) or name)
        parser = RolloutParser(spec, {})
        items = [
            Item(str(number), value=value, record=parser.parse(value))
            for number, value in enumerate(whole["items"])
            if isinstance(value, dict)
        ]
        yield Conversation(spec, items=items, created_at=as_time(facts.get("timestamp")))


def is_session(head: bytes) -> bool:
    """Checks the first bytes only: the document may be longer."""
    start = b"".join(head[:4096].split())
    return start.startswith(b'{"session":{') and b'"items":[' in b"".join(head.split())
