"""Takes what is intact out of a damaged index, page by page, without SQLite's help."""
