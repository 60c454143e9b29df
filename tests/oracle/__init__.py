"""A second reading of transcripts, written from descriptions of formats, not from readers.

It imports nothing of ours. What it and the index say about the same files is compared in tests, and
by hand over any folder: `python -m tests.oracle AGENT PATH` prints one JSON object per session.
"""
