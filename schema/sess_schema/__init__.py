"""The agreement between the daemon that writes the index and the client that reads it."""

__version__ = "0.1.0"
