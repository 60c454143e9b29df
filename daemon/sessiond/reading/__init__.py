"""Finds changed files and reads their new bytes."""
