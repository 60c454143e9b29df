"""One transaction: turns, copies and owners, events, usage, titles, links, sums, chunks."""
