"""Amp: the threads that it kept on this machine, one JSON document each."""

from __future__ import annotations

import os
from collections.abc import Iterator

from sessiond.sourcekit.base import ONE_READER, Conversation, Source

__all__ = ["SOURCE", "AmpSource"]

_THREAD, _DOCUMENT = "T-", ".json"


class _Threads:
    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:
        from sessiond.sources.amp.threads import read_thread  # when something changed

        yield read_thread(path, data)


class AmpSource(Source):
    agent = "amp"
    title = "Amp"
    variables = ("AMP_DATA_DIR", "XDG_DATA_HOME")
    reads = "Threads that Amp wrote to this machine, until its versions of March 2026."
    leaves = (
        ("threads since 2026-03-31", "Amp keeps them on its server only"),
        ("~/.cache/amp/logs/", "logs without conversations"),
        ("secrets.json, history.jsonl", "credentials; prompts that the threads have"),
    )
    known_from = ONE_READER
    documents = _Threads()

    def places(self) -> list[str]:
        moved = [one.strip() for one in self.environ.get("AMP_DATA_DIR", "").split(",")]
        data = [self.folders.expand(one) for one in moved if one]
        data = data or [os.path.join(self.folders.data_home(), "amp")]
        return [
            *(os.path.join(one, "threads") for one in data),
            *self.folders.extension_storages("sourcegraph.amp"),
        ]

    def classify(self, path: str) -> str | None:
        name = os.path.basename(path)
        return "document" if name.startswith(_THREAD) and name.endswith(_DOCUMENT) else None

    def claims(self, path: str, head: bytes) -> bool:  # noqa: ARG002 - the content decides
        return b'"messageId"' in head and b'"T-' in head


SOURCE = AmpSource
