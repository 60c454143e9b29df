"""What an error message says, without what differs each time: folders, numbers, hashes, quotes.

Two texts are compared by the words of their lines and by neighbouring pairs of them, weighted by
how rare a word is. Lines that name an error count double. `key` names the error of a failed call:
calls with the same key failed for the same reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from sess_common.classes import dataclass, later

_COLOURS = later(r"\x1b\[[0-9;?]*[A-Za-z]")
# What stands around the output of a program.
_TAGS = later(
    r"</?[a-z_]*error[a-z_]*>"
    r"|^(?:Error: |Process |Command failed with )?[Ee]xit(?:ed with)? (?:code|status):? \d+\s*$"
    r"|^(?:Chunk ID|Wall time|Original token count|Output): ?.{0,40}$",
    re.MULTILINE,
)
_VARIABLE = later(
    r"https?://\S+"
    r"|(?:\b[A-Za-z]:)?(?:[\w.@~+$-]*[/\\])+(?=[\w.@~+-])"  # the folders before a last name
    r"|\b0x[0-9a-fA-F]+\b"
    r"|\b(?=[0-9a-f-]*\d)[0-9a-f]{7,64}(?:-[0-9a-f]{4,12})*\b"
    r"|(?<![A-Za-z])[#v]?\d[\d.,:_T+-]*(?:[mnuµ]?s|[KMGk]?i?B)?\b"
)
_QUOTED = later(r"'[^'\n]{1,200}'|\"[^\"\n]{1,200}\"|`[^`\n]{1,200}`|“[^”\n]{1,200}”")
_WORD = later(r"[^\W_]+")
_ERROR = later(
    r"error|exception|fatal|panic|fail|cannot|can't|could ?n[o']t|unable|not found|no such|denied"
    r"|undefined|unexpected|invalid|unknown|illegal|unrecogni[sz]ed|refused|timed? ?out|missing"
    r"|mismatch|rejected|blocked|forbidden|must not|abort|conflict"
    r"|does not|doesn't|not allowed|must be|already exists"
    r"|overwritten|unresolved|is not|exceeds|expected|unused|errno|warning:",
    re.IGNORECASE,
)
# Nothing but an error begins like this.
_STRONG = later(
    r"^[ \t]*(?:E[ \t]+)?(?:[\w.]*\.)?[A-Z]\w*(?:Error|Exception|Warning|Interrupt)\b(?::|[ \t]*$)"
    r"|^[ \t]*(?:[\w.-]+: )*(?:fatal|panic|error|ERROR|Error|FATAL)(?:\[\w+\])?[:!]"
    r"|^npm (?:ERR!|error )|\berror (?:TS\d+|\[\w+\])|: (?:fatal )?error:"
    r"|^[ \t]*--- FAIL|^FAILED\b|^not ok\b"
    r"|[\w.-]+:\d+:\d+: |[\w.-]+\.\w+:\d+: |\bcommand not found|: not found$|illegal option"
    r"|^(?:<tool_use_error>|Traceback|Exit code \d|Process exited with code [1-9])"
    r"|unknown flag|unrecognized argument|^ ! \[(?:remote )?rejected\]|\bpanicked at\b"
    r"|^(?:\(eval\)|\w*sh): ?(?:line )?\d*:|\bE[A-Z]{4,12}\b: |\b[45]\d\d\)?\s*$",
    re.MULTILINE,
)
_SAID = later(r"[\w./():@-]+: ")  # a program, and what it says
_ASKED = later(
    r"\W*(?:how|why|what|where|which|when|who|did|does?|is|are|can|should)\b", re.IGNORECASE
)
_SYNTAX = later(r"https?://|\w\(\)|:\d+|\[\w+\]|[{}<>]|::|\w=|'[^']+'|\"[^\"]+\"|`[^`]+`")
_MUCH_SYNTAX = 2
_TRACEBACK = "Traceback (most recent call last)"
_NO_ERROR = later(r"\b0 (?:errors?|failures?|failed)\b|^\s*(?:ok\b|PASS|--- PASS|=== |\* \w+: \d)")
# A sum, a command that is echoed, what went well: nothing that says why.
_BESIDE = later(
    r"task failed|^(?:\[[\w:-]+\] )?\$ |^\s*(?:ok\b|PASS|--- PASS|=== )|^\s*Error Trace:"
    r"|^\s*(?:FAIL|FAILED|ERROR)\s*$|^\d+ (?:issues|errors|problems)"
)
_HEAD = 20_000  # characters looked at
MOST_LINES = 60  # of a pasted error
_LONGEST_LINE = 400
_KEY_WORDS = 24
_LEAST = 2  # words, for a line to say anything
_MOST_TELLING = 3

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an error message."""

    words: tuple[str, ...]
    weight: float


def words(line: str) -> list[str]:
    """The words of a line that its next occurrence has, too, as the full-text index has them."""
    kept = _VARIABLE.sub(" ", line[:_LONGEST_LINE])
    return [word for word in _WORD.findall(kept.lower()) if not word.isdigit()]


def all_words(line: str) -> list[str]:
    """The words of a line in small letters, with what differs each time."""
    return _WORD.findall(line[:_LONGEST_LINE])


def lines(text: str) -> list[Line]:
    """The lines of a message that say something, each different one once."""
    found: dict[tuple[str, ...], Line] = {}
    for raw in _plain(text[:_HEAD]).split("\n"):
        if len(found) == MOST_LINES:
            break
        said = tuple(words(raw))
        if said and said not in found:
            found[said] = Line(said, 2.0 if names_error(raw) else 1.0)
    return [*found.values()]


def pairs(said: tuple[str, ...] | list[str]) -> Iterator[Pair]:
    """Each word alone, and with the one after it."""
    for word in said:
        yield word, ""
    yield from pairwise(said)


def names_error(line: str) -> bool:
    return _ERROR.search(line) is not None and _NO_ERROR.search(line) is None


def is_pasted(text: str) -> bool:
    """Whether a text looks like the output of a program that failed, and not like a question."""
    head = text.strip()[:_HEAD]
    if head.endswith("?"):  # what is asked about it
        head = head.rpartition("\n")[0]
    lines = head.split("\n")
    if any(map(_begins_as_error, lines)):
        return True
    several = len(lines) > 1 or _printed(lines[0][:_LONGEST_LINE])
    return several and any(map(names_error, lines))


def _printed(line: str) -> bool:
    """Whether a program rather than a person wrote a line: it names itself, or there is syntax."""
    if _SAID.match(line) is not None:
        return True
    return _ASKED.match(line) is None and len({*_SYNTAX.findall(line)}) >= _MUCH_SYNTAX


def _begins_as_error(line: str) -> bool:
    return _STRONG.search(line[:_LONGEST_LINE]) is not None


def key(output: str) -> tuple[str, str]:
    """The signature of a failed call, and the line that it was made from."""
    raw = _plain(output)
    lines = raw.split("\n")
    chosen = _most_telling(reversed(lines) if _TRACEBACK in raw else lines)
    said = words(_QUOTED.sub(" … ", chosen))
    if len(said) < _LEAST:
        said = words(chosen)
    return " ".join(said[:_KEY_WORDS]), " ".join(chosen.split())[:_LONGEST_LINE]


def _most_telling(lines: Iterable[str]) -> str:
    """The first line that begins as errors do and names one, else that does one of these."""
    best, chosen = -1, ""
    for line in lines:
        if not line.strip() or _BESIDE.search(line[:_LONGEST_LINE]):
            continue
        telling = 2 * _begins_as_error(line) + names_error(line)
        if telling > best and len(words(line)) >= _LEAST:
            best, chosen = telling, line
            if best == _MOST_TELLING:
                break
    return chosen


def _plain(text: str) -> str:
    return _TAGS.sub("", _COLOURS.sub("", text))
