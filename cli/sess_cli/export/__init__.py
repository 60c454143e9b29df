"""Sessions as files to read, share and keep."""
