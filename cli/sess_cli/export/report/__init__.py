"""`sess stats` as a page with charts, and its calendar as a picture."""
