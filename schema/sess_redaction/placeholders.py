"""What stands for a value: a variable, a blank to fill in, a mask, the name of a type.

Where one sign on each side would make a blank of a random secret too easily, there must be words
between them.
"""

from __future__ import annotations

import re

from sess_redaction.words import reads_as_words

_LONGEST = 400  # characters to judge by
_MASKS = re.compile(r"(?:\[redacted: [A-Za-z ]{1,30}\]|[\s\"'`,;)\]}\\])*\Z")
_CERTAIN = r"\$\{[\w!#][^{}]*\}|\$\{\{.*\}\}|\{\{.*\}\}|\$\([\w<\"'./ -][^()]*\)|%\(\w+\)s|#\{[^{}]*\}|\$[A-Z][A-Z0-9_]*(?!\w)"
_SPELT = (
    r"\$[A-Za-z_]\w*|\$\d\Z|<[A-Za-z/][\w .:/|'-]*>|%[sdv]|%[A-Za-z_]\w*%|\{[\w.!:]*\}|@\w+@"
    r"|\[[A-Za-z][\w .-]*\]|`[\w $./-]*`"
)
_FILL_IN = re.compile(
    rf"(?:(?i:bearer|basic|token)\s+)?(?:{_CERTAIN}|{_SPELT}|[-_/:.\s])+\Z", re.ASCII
)
_CERTAINLY = re.compile(_CERTAIN, re.ASCII)
_BLANK = re.compile(
    r"(?:[*•●.…_x-]{3,}|X{3,}|(.)\1{2,}|\W{1,3}|(?:\\[nrt]|[-|:+=\s])+)\Z"
    r"|\A[\w-]{0,8}(?:\.{3}|…|\*{4,}|x{6,}|X{6,})[\w-]{0,6}\Z",
    re.ASCII,
)
_NOTHING = re.compile(
    r"(?i:none|null|nil|true|false|undefined|string|str|text|bool(?:ean)?|int(?:eger)?|number|any|object"
    r"|optional|required|password|passwd|pass|token|secret|todo|tbd|hidden|masked|empty|unset"
    r"|default|bytes|yes|no|n/a|unknown|varchar|char|secretstr|changeme|change[_-]me|change[_-]?this)\Z"
)
# `os.getenv("OPENAI_API_KEY")`, `varchar(255)`, the version of a package
_ELSEWHERE = re.compile(
    r"[\w.$:]{0,40}?(?:getenv|environ(?:\.get)?|(?i:env)(?:\.get|\.fetch)?|env::var)[(\[][\"'][A-Z][A-Z0-9_]{2,}[\"'][)\]},;]*\Z"
    r"|(?i:n?(?:var)?char|(?:var)?binary|decimal|numeric)\(\d{1,5}(?:,\d{1,3})?\)\Z|[\^~]\d+(?:\.\d+){1,2}\Z",
    re.ASCII,
)
_TO_FILL_IN = re.compile(
    r"(?i)(?:\b|_)(?:your?|my|example|placeholder|dummy|change|replace|insert|enter|sample|fake|test"
    r"|todo|redacted|some|here|foo|bar|baz|mock|demo)(?:\b|_|\d)"
)
_WORDS_ONLY = re.compile(r"[A-Za-z]+(?:[-_ ./:]+[A-Za-z]+)*[-_]?\d{0,3}[!.]?\Z")
_COMMAND = re.compile(
    r"\$\(([a-z_][\w./-]*)(?:[\s)]|\Z)|(\$\((?:<|\$|\"))|`([a-z][a-z./_-]*)`?\Z"
    r"|\$\{\{?([A-Za-z_ ]+)[}:\s]|<\(([a-z]+)(?:\s|\Z)"
)
_COMMANDS = frozenset(
    [
        "az",
        "aws",
        "bw",
        "cat",
        "gh",
        "gcloud",
        "head",
        "jq",
        "kubectl",
        "op",
        "openssl",
        "pass",
        "sed",
        "tr",
        "vault",
    ]
)


def is_masked(value: str) -> bool:
    """Nothing is left of it but masks."""
    return "[redacted: " in value and _MASKS.match(value) is not None


def is_placeholder(value: str) -> bool:
    value = value[:_LONGEST]
    if is_masked(value) or any(one.match(value) for one in (_NOTHING, _BLANK, _ELSEWHERE)):
        return True
    if _FILL_IN.match(value) is not None:
        rest = _CERTAINLY.sub("", value)
        return (
            not any(c.isalpha() for c in rest)
            or rest.strip("%sdv-_/:. ") == ""
            or (reads_as_words(rest))
        )
    return (
        _WORDS_ONLY.match(value) is not None
        and _TO_FILL_IN.search(value) is not None
        and reads_as_words(value)
    )


def is_command(value: str) -> bool:
    """The beginning of what a shell puts in its place: `$(pass show db)`."""
    found = _COMMAND.match(value)
    if found is None:
        return False
    said = found[found.lastindex or 0]
    return said in _COMMANDS or said[:2] == "$(" or said.isupper() or reads_as_words(said)
