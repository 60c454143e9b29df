"""Renders rows of the index as terminal text."""
