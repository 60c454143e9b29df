"""Edits transcripts on request: every change has a snapshot first, and can be undone."""
