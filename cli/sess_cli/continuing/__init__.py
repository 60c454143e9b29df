"""What it takes to continue a session: its messages, its state, and a brief for another agent."""
