"""Only sources and the formats they share name an agent's tools: other code uses kinds."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOOLS = frozenset({
    "Agent", "AskUserQuestion", "Bash", "BashOutput", "Edit", "ExitPlanMode", "Glob", "Grep",
    "MultiEdit", "NotebookEdit", "NotebookRead", "Read", "Shell", "Task", "TodoWrite", "ToolSearch",
    "WebFetch", "WebSearch", "Write", "apply_patch", "codebase_search", "edit_file", "exec_command",
    "grep_search", "list_dir", "local_shell", "read_file", "run_shell_command",
    "run_terminal_cmd", "run_terminal_command_v2", "search_replace", "str_replace",
    "str_replace_based_edit_tool", "todo_write", "update_plan", "write_file", "write_todos",
})  # fmt: skip
# Our own words that are also names of tools.
OURS = {"cli/sess_cli/export/film": {"Agent"}, "cli/sess_cli/export/html/page.py": {"Agent"}}
SHARED = [
    path
    for folder in ("schema", "cli", "daemon")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if not {"sources", "families", "sample"} & set(path.parts)
]


def named(path: Path) -> set[str]:
    """Strings of a module that are the name of a tool, alone or quoted in SQL."""
    texts = (
        node.value
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    return {tool for text in texts for tool in TOOLS if text == tool or f"'{tool}'" in text}


def test_shared_code_names_no_tool_of_an_agent():
    """A new agent adds its tools to its own source and to nothing else."""
    found = {}
    for path in SHARED:
        place = str(path.relative_to(ROOT))
        ours = {word for start, words in OURS.items() if place.startswith(start) for word in words}
        if tools := named(path) - ours:
            found[place] = tools
    assert len(SHARED) > 200
    assert found == {}
