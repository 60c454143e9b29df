"""The types that sources return, and helpers for reading foreign values."""
