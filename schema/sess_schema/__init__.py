"""The index format, shared by the daemon that writes it and the client that reads it."""

__version__ = "0.1.0"
