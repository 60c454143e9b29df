"""One session as everybody reads it: `shown` says what belongs to it, `reader` reads that."""
