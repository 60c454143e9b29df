"""Queries over the index. Every function takes a reader's connection and only reads."""
