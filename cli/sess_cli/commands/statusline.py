"""`sess statusline`: one line for shells and agents."""

from __future__ import annotations

from sess_cli.options import AsJson


def statusline(*, as_json: AsJson = False) -> None:
    """Print today's cost and tokens in one line.

    For a shell prompt, or for Claude Code's status bar, which names the session on stdin:
    `"statusLine": {"type": "command", "command": "sess statusline"}`.
    """
    from sess_cli.statusline import show

    show(as_json=as_json)
