"""The scripts that make shells ask our programs for completions, and where they are installed."""

from __future__ import annotations

import os
from pathlib import Path

from sess_common.completion import FILES, variable
from sess_common.errors import Exit, SessError

BASH = """\
_NAME_complete() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done < <(VARIABLE=bash NAME "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    if [[ ${COMPREPLY[0]} == FILES ]]; then
        COMPREPLY=()
        compopt -o default 2>/dev/null
    elif [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[:,=] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o nosort -F _NAME_complete NAME 2>/dev/null || complete -o default -F _NAME_complete NAME
"""

ZSH = """\
#compdef NAME
_NAME() {
    local -a lines values shown open
    local line
    lines=("${(@f)$(VARIABLE=zsh NAME "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    if [[ $lines[1] == FILES ]]; then
        _files
        return
    fi
    for line in $lines; do
        values+=("${line%%$'\\t'*}")
        line="${line/$'\\t'/  -- }"
        shown+=("${line[1,COLUMNS-1]}")
    done
    (( $#values )) || return 1
    [[ $#values == 1 && $values[1] == *[:,=] ]] && open=(-S '')
    if [[ $lines == *$'\\t'* ]]; then
        compadd -V NAME -M 'm:{a-zA-Z}={A-Za-z}' $open -l -d shown -a values
    else
        compadd -V NAME -M 'm:{a-zA-Z}={A-Za-z}' $open -a values
    fi
}
if [[ $funcstack[1] == _NAME ]]; then _NAME "$@"; else compdef _NAME NAME; fi
"""

FISH = """\
function __NAME_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l lines (VARIABLE=fish NAME $words[2..-1] 2>/dev/null)
    if test "$lines[1]" = FILES
        __fish_complete_path (commandline -ct)
    else
        printf '%s\\n' $lines
    end
end
complete -c NAME -f -k -a '(__NAME_complete)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}
OPTIONS = ("--show-completion", "--install-completion")


def asked(name: str, given: list[str]) -> bool:
    """Show or install the script if that is asked for."""
    if not given or given[0] not in OPTIONS:
        return False
    if len(given) > 2:
        raise SessError(f"{given[0]} takes one shell", hint=f"one of {', '.join(SCRIPTS)}")
    shell = given[1] if len(given) == 2 else _shell()
    if shell not in SCRIPTS:
        raise SessError(f'no completion for "{shell}"', hint=f"one of {', '.join(SCRIPTS)}")
    if given[0] == OPTIONS[0]:
        print(script(name, shell), end="")
    else:
        for path in install(name, shell):
            print(f"wrote {path}")
        print("it works in shells that you start from now on")
    return True


def script(name: str, shell: str) -> str:
    text = SCRIPTS[shell].replace("VARIABLE", variable(name)).replace("NAME", name)
    return text.replace("FILES", FILES)


def install(name: str, shell: str) -> list[Path]:
    """Write the script where the shell finds it; return the files that changed."""
    home = Path.home()
    if shell == "fish":
        config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
        return _write(config / "fish" / "completions" / f"{name}.fish", script(name, shell))
    if shell == "bash":
        target = home / ".bash_completions" / f"{name}.sh"
        written = _write(target, script(name, shell))
        return written + _add(home / ".bashrc", f'source "{target}"')
    folder = home / ".zfunc"
    written = _write(folder / f"_{name}", script(name, shell))
    rc = Path(os.environ.get("ZDOTDIR") or home) / ".zshrc"
    return written + _add(rc, f'fpath+=("{folder}"); autoload -Uz compinit; compinit')


def _write(path: Path, text: str) -> list[Path]:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return [path]


def _add(rc: Path, line: str) -> list[Path]:
    """Add a line to a shell's start-up file once."""
    known = rc.read_text("utf-8", "surrogateescape") if rc.exists() else ""
    if line in known.splitlines():
        return []
    with rc.open("a", encoding="utf-8") as file:
        file.write(("" if not known or known.endswith("\n") else "\n") + line + "\n")
    return [rc]


def _shell() -> str:
    """The shell that started us, else the login shell."""
    try:
        found = Path(f"/proc/{os.getppid()}/comm").read_text("utf-8").strip()
    except OSError:
        found = ""
    if found in SCRIPTS:
        return found
    login = Path(os.environ.get("SHELL", "")).name
    if login in SCRIPTS:
        return login
    raise SessError(
        "cannot tell which shell this is",
        hint=f"name it: one of {', '.join(SCRIPTS)}",
        code=Exit.USAGE,
    )
