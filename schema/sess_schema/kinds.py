"""What a tool call does, in one set of words. Each source maps its own tool names to these."""

from __future__ import annotations

from typing import Final

SHELL: Final = "shell"  # runs a command
READ: Final = "read"  # a file
WRITE: Final = "write"  # a whole file
EDIT: Final = "edit"  # a part of a file, or several files by a patch
SEARCH: Final = "search"  # in files and folders, lists of folders included
FETCH: Final = "fetch"  # pages and searches on the web
AGENT: Final = "agent"  # starts a subagent
PLAN: Final = "plan"  # lists of things to do, and plans
QUESTION: Final = "question"  # to the person
MCP: Final = "mcp"  # a tool of an MCP server
OTHER: Final = "other"

ALL: Final = (SHELL, READ, WRITE, EDIT, SEARCH, FETCH, AGENT, PLAN, QUESTION, MCP, OTHER)
