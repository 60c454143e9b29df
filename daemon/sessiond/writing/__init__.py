"""Writes one transaction: records, copies, events, usage, titles, links, sums, chunks."""
