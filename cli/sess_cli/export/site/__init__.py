"""The archive: every session as a page, with pages that lead to them and a search over all."""
