"""A site of all sessions: a page for each, pages that list them, and a search over all."""
