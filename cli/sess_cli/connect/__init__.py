"""`sess connect`: writes what an agent needs to ask the index into the agent's own settings."""
