"""What sources are made of: the words they answer in, and helpers for reading foreign values."""
