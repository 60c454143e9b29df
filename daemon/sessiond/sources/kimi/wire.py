"""Parses the records of a session, in the form of either program."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from sessiond.sourcekit.base import Record, SessionSpec
from sessiond.sourcekit.values import as_line, as_text
from sessiond.sources.kimi.cli import CliRecords
from sessiond.sources.kimi.code import CodeRecords


class WireParser:
    """Tells the programs apart record by record: a log may have been carried over."""

    def __init__(self, spec: SessionSpec, state: dict[str, Any]) -> None:
        self._cli = CliRecords(spec, state)
        self._code = CodeRecords(spec, state)

    def state(self) -> dict[str, Any]:
        return self._cli.state() | self._code.state()

    def parse(self, value: dict[str, Any]) -> Record:
        # A fork has the same lines, and records have no ids. Their time makes them unique.
        dated = value.get("timestamp") or value.get("time")
        native_id = blake2b(as_line(value), digest_size=16).hexdigest() if dated else None
        if "message" in value and as_text(value.get("type")) is None:
            return self._cli.event(value, native_id)
        if "role" in value:
            return self._cli.message(value)
        return self._code.read(value, native_id)
