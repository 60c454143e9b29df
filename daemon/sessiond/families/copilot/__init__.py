"""The event log of GitHub Copilot's agent: of its CLI, and of its chat in editors."""
