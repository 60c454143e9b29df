"""`sess mcp`: the index for agents, by the Model Context Protocol on standard input and output.

A plain loop: the official SDK takes over a second and 60 MB in each of a person's open agents.
"""
