"""`sess statusline`: one line for shells and agents."""

from __future__ import annotations

import typer

from sess_cli.options import AsJson


def register(app: typer.Typer) -> None:
    app.command("statusline")(statusline)


def statusline(*, as_json: AsJson = False) -> None:
    """Today's cost and tokens in one line, for shells and agents.

    For the status bar of Claude Code, which tells the session on stdin, or a shell's prompt:
    `"statusLine": {"type": "command", "command": "sess statusline"}`.
    """
    from sess_cli.statusline import show  # noqa: PLC0415

    show(as_json=as_json)
