"""Completion in bash, zsh and fish, for both programs.

The shell's script runs the program with `_SESS_COMPLETE` or `_SESSIOND_COMPLETE` set
and the words so far as arguments, the unfinished one last. The answer is one `value<TAB>text` per
line, or `:files`. Values may come from transcripts: no script evaluates them.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sess_common.errors import Exit, SessError
from sess_common.escape import safe

if TYPE_CHECKING:
    import typer


FILES = ":files"
_MOST = 200
_LONGEST_TEXT = 70
_OF_FILES = ("FILE", "DIR", "PATH", "PATHS", "GLOB")
_BREAKS = re.compile(r"[=:]+")  # where bash ends a word
_UNQUOTED = re.compile(r"([^\w@%+=:,./~-])")


class Candidate(NamedTuple):
    value: str
    text: str = ""


# (option or metavar of the argument, what was typed of it) → candidates; None: not known
Values = Callable[[str, str], Iterable[Candidate | str] | None]


def wanted(name: str) -> bool:
    return variable(name) in os.environ


def variable(name: str) -> str:
    return f"_{name.upper()}_COMPLETE"


def answer(app: typer.Typer, name: str, arguments: list[str], values: Values) -> None:
    """Print the candidates for the last of the words."""
    from typer.main import get_command  # the caller has paid for it

    shell = os.environ.pop(variable(name))
    words = _glued(arguments) if shell == "bash" else arguments
    *before, typed = words or [""]
    candidates = _Completer(get_command(app), before, values).candidates(typed)
    lines = [FILES] if candidates is None else _lines(candidates, typed, shell)
    sys.stdout.write("".join(f"{line}\n" for line in lines))


class _Completer:
    """What may follow the words so far."""

    def __init__(self, command: Any, before: list[str], values: Values) -> None:
        self._values = values
        self._path: list[str] = []
        at = 0
        while at < len(before) and hasattr(command, "commands"):
            if not before[at].startswith("-"):
                if before[at] not in command.commands:
                    break
                self._path.append(before[at])
                command = command.commands[before[at]]
            at += 1
        self._command = command
        self._options = {
            name: option
            for option in command.params
            if option.param_type_name == "option" and not option.hidden
            for name in (*option.opts, *option.secondary_opts)
        }
        self._awaited: Any = None  # the option whose value comes next
        self._given = 0  # arguments
        self._only_words = False
        for word in before[at:]:
            self._pass(word)

    def _pass(self, word: str) -> None:
        if self._awaited is not None:
            self._awaited = None
        elif word == "--" and not self._only_words:
            self._only_words = True
        elif word.startswith("-") and not self._only_words:
            option = self._options.get(word)
            self._awaited = option if option is not None and not option.is_flag else None
        else:
            self._given += 1

    def candidates(self, typed: str) -> list[Candidate] | None:
        """None for files."""
        if self._awaited is not None:
            return self._of(self._awaited, typed)
        name, equals, value = typed.partition("=")
        if equals and name in self._options and not self._only_words:
            candidates = self._of(self._options[name], value)
            return candidates and [one._replace(value=f"{name}={one.value}") for one in candidates]
        if typed.startswith("-") and not self._only_words:
            return [
                Candidate(name, (one.help or "").partition(".")[0])
                for name, one in self._options.items()
                if name.startswith(typed)
                and (name.startswith("--") or len(one.opts) == 1 or len(typed) > 1)
            ]
        if hasattr(self._command, "commands"):
            return [
                Candidate(name, one.get_short_help_str(_LONGEST_TEXT))
                for name, one in self._command.commands.items()
                if name.startswith(typed) and not one.hidden
            ]
        arguments = [one for one in self._command.params if one.param_type_name == "argument"]
        for one in arguments:
            if one.nargs == -1 or self._given == 0:
                return self._of(one, typed)
            self._given -= one.nargs
        return []

    def _of(self, parameter: Any, typed: str) -> list[Candidate] | None:
        if choices := getattr(parameter.type, "choices", None):
            return _starting(map(str, choices), typed)
        is_option = parameter.param_type_name == "option"
        for name in parameter.opts if is_option else [parameter.metavar or ""]:
            for key in (" ".join([*self._path, name]), name):
                candidates = self._values(key, typed)
                if candidates is not None:
                    return _starting(candidates, typed)
        metavar = re.findall("[A-Z]+", (parameter.metavar or parameter.name or "").upper())
        return None if any(word in _OF_FILES for word in metavar) else []


def _starting(candidates: Iterable[Candidate | str], typed: str) -> list[Candidate]:
    """Those that begin with what was typed, whatever its case."""
    whole = (Candidate(one) if isinstance(one, str) else one for one in candidates)
    return [one for one in whole if one.value.lower().startswith(typed.lower())]


def _lines(candidates: list[Candidate], typed: str, shell: str) -> Iterable[str]:
    cut = 0
    if shell == "bash":  # it replaces only what is after the last break
        cut = max((end.end() for end in _BREAKS.finditer(typed)), default=0)
    for value, text in candidates[:_MOST]:
        if not value.isprintable():
            continue
        if shell == "bash":
            yield _UNQUOTED.sub(r"\\\1", value)[cut:]
        else:
            about = " ".join(safe(text).split())
            yield f"{value}\t{about[:_LONGEST_TEXT]}" if about else value


def _glued(words: list[str]) -> list[str]:
    """bash passes `--tool=Ba` as three words."""
    made: list[str] = []
    open_ended = False
    for word in words:
        broken = bool(_BREAKS.fullmatch(word))
        if made and (broken or open_ended) and made[-1]:
            made[-1] += word
        else:
            made.append(word)
        open_ended = broken
    return made


# -- the scripts that make shells ask for completions, and where they are installed

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
PROGRAMS = ("sess", "sessiond")


def show_or_install(name: str, arguments: list[str]) -> bool:
    """Show or install the script if that is asked for."""
    if not arguments or arguments[0] not in OPTIONS:
        return False
    if len(arguments) > 2:
        raise SessError(f"{arguments[0]} takes one shell", hint=f"one of {', '.join(SCRIPTS)}")
    shell = arguments[1] if len(arguments) == 2 else _shell()
    if shell not in SCRIPTS:
        raise SessError(f'no completion for "{shell}"', hint=f"one of {', '.join(SCRIPTS)}")
    if arguments[0] == OPTIONS[0]:
        print(script_for(name, shell), end="")
    else:
        for path in dict.fromkeys(path for one in PROGRAMS for path in install(one, shell)):
            print(f"wrote {path}")
        print("it works in shells that you start from now on")
    return True


def script_for(name: str, shell: str) -> str:
    text = SCRIPTS[shell].replace("VARIABLE", variable(name)).replace("NAME", name)
    return text.replace("FILES", FILES)


def install(name: str, shell: str) -> list[Path]:
    """Write the script where the shell finds it; return the files that changed."""
    home = Path.home()
    if shell == "fish":
        config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
        return _write_script(
            config / "fish" / "completions" / f"{name}.fish", script_for(name, shell)
        )
    if shell == "bash":
        target = home / ".bash_completions" / f"{name}.sh"
        written = _write_script(target, script_for(name, shell))
        return written + _add_line(home / ".bashrc", f'source "{target}"')
    folder = home / ".zfunc"
    written = _write_script(folder / f"_{name}", script_for(name, shell))
    rc = Path(os.environ.get("ZDOTDIR") or home) / ".zshrc"
    return written + _add_line(rc, f'fpath+=("{folder}"); autoload -Uz compinit; compinit')


def _write_script(path: Path, text: str) -> list[Path]:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return [path]


def _add_line(rc: Path, line: str) -> list[Path]:
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
        parent = Path(f"/proc/{os.getppid()}/comm").read_text("utf-8").strip()
    except OSError:
        parent = ""
    if parent in SCRIPTS:
        return parent
    login = Path(os.environ.get("SHELL", "")).name
    if login in SCRIPTS:
        return login
    raise SessError(
        "cannot tell which shell this is",
        hint=f"name it: one of {', '.join(SCRIPTS)}",
        code=Exit.USAGE,
    )
