"""What a tool call does, in one set of words. Each source maps its own tool names to these."""

from __future__ import annotations

from typing import Final

SHELL: Final = "shell"
READ: Final = "read"
WRITE: Final = "write"
EDIT: Final = "edit"
SEARCH: Final = "search"
FETCH: Final = "fetch"
AGENT: Final = "agent"
PLAN: Final = "plan"
QUESTION: Final = "question"
MCP: Final = "mcp"
OTHER: Final = "other"
