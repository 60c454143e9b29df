"""The daemon: the only writer of the index."""
