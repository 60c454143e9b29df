"""Rows of the index as text for a terminal."""
