"""Brings the index up to date with the files of all sources, in passes."""

from sessiond.ingest.passes import Ingest

__all__ = ["Ingest"]
