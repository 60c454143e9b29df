"""`sess init`: a key of the shell that brings back a command which an agent once ran."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

# The line is only edited: nothing runs before somebody presses enter.
_BASH = r"""__sess_insert() {
    local chosen
    chosen=$(command sess --print-command) || return 0
    READLINE_LINE=${READLINE_LINE:0:READLINE_POINT}$chosen${READLINE_LINE:READLINE_POINT}
    READLINE_POINT=$((READLINE_POINT + ${#chosen}))
}
[[ $- != *i* ]] || bind -x "\"${SESS_KEY:-\C-x\C-a}\": __sess_insert"
"""
_ZSH = r"""__sess_insert() {
    local chosen
    chosen=$(command sess --print-command) && LBUFFER+=$chosen
    zle reset-prompt
}
if [[ -o interactive ]]; then
    zle -N __sess_insert
    bindkey "${SESS_KEY:-^X^A}" __sess_insert
fi
"""
_FISH = r"""function __sess_insert
    set -l chosen (command sess --print-command | string collect)
    and commandline --insert -- $chosen
    commandline --function repaint
end
if status is-interactive
    if set -q SESS_KEY
        bind $SESS_KEY __sess_insert
    else
        bind \cx\ca __sess_insert
    end
end
"""


class Shell(StrEnum):
    """Those that there is a script for."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


SCRIPTS = {Shell.bash: _BASH, Shell.zsh: _ZSH, Shell.fish: _FISH}


def init(
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> None:
    """Print a key binding for a shell that finds agents' commands.

    Ctrl-X Ctrl-A opens the finder with the commands of agents in this directory; the one you choose
    is put on the command line, and nothing is run. For bash, add `eval "$(sess init bash)"` to
    ~/.bashrc; for zsh the same with zsh to ~/.zshrc; for fish, `sess init fish | source` to
    ~/.config/fish/config.fish. SESS_KEY names another key, as the shell writes it.
    """
    sys.stdout.write(SCRIPTS[shell])
