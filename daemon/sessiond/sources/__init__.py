"""What each agent writes, and how to read it."""
