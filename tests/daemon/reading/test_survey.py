"""In which order a walk hands over what it saw."""

from __future__ import annotations

from sessiond.config import Config
from sessiond.reading import survey
from sessiond.reading.survey import Candidate
from sessiond.reading.tail import Stat
from sessiond.sources import all_sources


def test_the_newest_files_come_first_and_databases_last():
    """An attachment comes right before the log that mentions it, however old it is."""
    (agent, *_) = all_sources(Config())

    def candidate(path, kind, when):
        return Candidate(agent, path, kind, Stat(1, 1, 1, when, when))

    files = [
        candidate("/w/old.jsonl", "transcript", 10),
        candidate("/w/mid.json", "document", 20),
        candidate("/w/new.jsonl", "transcript", 30),
        candidate("/w/new/out/1.txt", "attachment", 5),
        candidate("/w/new/2.txt", "attachment", 6),
        candidate("/w/old/out/1.txt", "attachment", 4),
        candidate("/w/stray.txt", "attachment", 15),
        candidate("/w/state.db", "database", 40),
        candidate("/w/2026-01-02.jsonl", "transcript", 3),
        candidate("/w/2026-01-01.jsonl", "transcript", 3),
    ]
    survey._sort(files)
    assert [file.path for file in files] == [
        "/w/new/out/1.txt", "/w/new/2.txt", "/w/new.jsonl", "/w/mid.json", "/w/stray.txt",
        "/w/old/out/1.txt", "/w/old.jsonl", "/w/2026-01-02.jsonl", "/w/2026-01-01.jsonl",
        "/w/state.db",
    ]  # fmt: skip
