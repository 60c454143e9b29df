"""One file per verb of `sessiond`."""
