"""Reads messages from other agents of a team."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import orjson

from sess_schema import labels
from sessiond.sourcekit.values import as_text

_MESSAGE = re.compile(
    r"<teammate-message(?P<facts>(?: [^<>]*)?)>(?P<text>.*?)(?:</teammate-message>|\Z)", re.DOTALL
)
_SENDER = re.compile(r'\bteammate_id="([^"]*)"')
_NOTICE = "teammate-notice"  # idle, shut down, and the like


def messages(text: str) -> Iterator[tuple[str, str]]:
    """(label, text) of each message, with its sender."""
    at = 0
    for found in _MESSAGE.finditer(text):
        sender = _SENDER.search(found["facts"])
        yield from _message(sender[1] if sender else None, found["text"])
        at = found.end()
    if rest := text[at:].strip():
        yield labels.TEAMMATE, rest


def mailbox(attachment: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The same of messages that an attachment lists."""
    listed = attachment.get("messages")
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, dict):
            yield from _message(as_text(one.get("from")), as_text(one.get("text")) or "")


def _message(sender: str | None, text: str) -> Iterator[tuple[str, str]]:
    text = text.strip()
    if text:
        label = _NOTICE if _is_notice(text) else labels.TEAMMATE
        yield label, f"{sender}: {text}" if sender else text


def _is_notice(text: str) -> bool:
    if not text.startswith("{"):
        return False
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return isinstance(value, dict) and "type" in value
