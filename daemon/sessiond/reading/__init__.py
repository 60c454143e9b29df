"""Which files changed, since when, and their new bytes."""
