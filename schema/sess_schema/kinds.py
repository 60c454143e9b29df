"""Kinds of tool calls, common to all agents. Each source maps its tool names to these."""

from __future__ import annotations

from typing import Final

SHELL: Final = "shell"  # runs a command
READ: Final = "read"  # a file
WRITE: Final = "write"  # a whole file
EDIT: Final = "edit"  # a section of a file, or several files by a patch
SEARCH: Final = "search"  # in files and folders, including listing folders
FETCH: Final = "fetch"  # web pages and web searches
AGENT: Final = "agent"  # starts a subagent
PLAN: Final = "plan"  # to-do lists and plans
QUESTION: Final = "question"  # to the user
MCP: Final = "mcp"  # a tool of an MCP server
OTHER: Final = "other"

ALL: Final = (SHELL, READ, WRITE, EDIT, SEARCH, FETCH, AGENT, PLAN, QUESTION, MCP, OTHER)
