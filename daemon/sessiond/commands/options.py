"""Options shared by several verbs."""

from __future__ import annotations

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]

# `shells.asked` reads them, with or without a shell; here they are for --help.
InstallCompletion = Annotated[
    bool,
    typer.Option(
        "--install-completion", help="Install completion for bash, zsh or fish: name it after."
    ),
]
ShowCompletion = Annotated[
    bool, typer.Option("--show-completion", help="Print the completion script of a shell.")
]
