"""Writes one transaction: turns, copies, events, usage, titles, links, sums, chunks."""
