"""Whether the value of a name that means a secret is one: all are, but for what is spared here.

A literal, and a value where no code stands, is spared if it stands for another (`is_placeholder`), is an
address or a path, or is itself made of words. Where code may stand, an expression made of words is, too.
"""

from __future__ import annotations

import re

from sess_redaction import names
from sess_redaction.names import names_a_secret, reads_as_words, without_terms

_LONGEST = 400  # characters to judge by; no name of a variable is longer
_PHRASE_BLANKS = 2
_PHRASE_DASHES = 3
_SHORT_PHRASE = 12
_SHORTEST, _SHORTEST_PASSWORD, _SHORTEST_LETTERS = 6, 4, 8
_LONG_NAME = 40
_LONG_SECRET = 14

_NAME = r"[A-Za-z_$][\w$]*+"
_CHAIN = rf"{_NAME}(?:(?:\.|::|->|\?\.|!\.){_NAME})*"
_CODE = re.compile(
    rf"[!~&*(\[{{-]{{0,3}}{_CHAIN}[!?.]{{0,2}}"
    r"(?:[)\]},;:.\"'`]*\{?\Z"
    r"|(?:\(|\[|\{|<|\|\||&&|==|!=|\?|\+|,|\)\.?|\]\.?|/|=>|=)"
    rf"(?:{_NAME}|\d++(?![A-Za-z])|[\"'][\w .:/-]*+[\"']?+|[.,:;=()\[\]{{}}<>&|!?+*/`-])*+\Z)",
    re.ASCII,
)
_NO_CODE = re.compile(
    r"=[.,:;)\]}]|;\w|\$\$|\d[!$]+\Z|[A-Za-z_][-+]\d{3,}[;,]?\Z"
)  # `a=.b;7` is no expression
_LITERAL = re.compile(r"[\"']([\w .:/-]{6,})", re.ASCII)
_TUPLE = re.compile(r"[(\[{]{1,2}[rbuf]?[\"']([\w.:@-]*)[\"']?[,)\]}:]*\Z", re.ASCII)
_PAIRS = {"(": ")", "[": "]", "{": "}"}
_DOTTED_CALL = re.compile(
    rf"{_NAME}(?:(?:\.|::|->){_NAME})+[\[(]|{_NAME}\(\)|(?:process\.env|os\.environ|env|secrets|var|config)\.",
    re.ASCII,
)
_NUMBER = re.compile(
    r"[-+~]?(?:\d{1,7}|\d{1,3}(?:[,_]\d{3})+|\d*\.\d+|\d+(?:\.\d+){2}|0[xX][0-9a-fA-F]{1,8}|\d{1,2}(?::\d\d){1,2}"
    r"|\d{1,4}/\d{1,4}|\d{4}-\d\d-\d\d)(?:[kKmMgGsB%]{0,2})[.,;)]*\Z"
)
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]{2,15}://[\w.-]|arn:[a-z-]+:", re.ASCII)
_ROOTS = re.compile(
    r"(?:/(?:app|code|data|dev|etc|home|media|mnt|opt|private|proc|root|run|srv|tmp|usr|Users|var|workspaces?)"
    r"|[A-Za-z]:\\{1,2}(?:Users|Windows|Program))[/\\]"
)
_PATH = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:)?[/\\][\w./\\~@-]*\Z", re.ASCII)
_FILE = re.compile(
    r"[\w./-]+\.(?:json|pem|key|txt|ya?ml|toml|env|crt|p12|py|[jt]sx?|go|rs)\Z", re.ASCII
)
_COLOUR_CODE = re.compile(r"#[0-9a-fA-F]{6}\Z")
_LETTERS = re.compile(r"[A-Za-z_./:-]+\Z")
_TRAILING = "\"'`,;)]}."
_AROUND = "\"'`,;:()[]{}.*<>"
_HUMP = re.compile(r"[a-z][A-Z]")
_EMPHASIS = "*`"
# As people choose passwords; the signs that join the words are no operators between variables.
_CHOSEN = re.compile(
    r"[A-Za-z][A-Za-z_./:+-]*+(?:\d{2,}[^\w\s\"'`,;()\[\]{}<>]{0,3}|\d[!$#@*%?]{1,3})\Z", re.ASCII
)
# `monkey+Tree7`, `Spring=2025`
_SUMMED = re.compile(r"[A-Za-z]{3,}(?:[+=][A-Za-z]+)*[+=][A-Za-z]*\d{1,4}\Z", re.ASCII)
_JOINED = re.compile(r"[A-Za-z][/:+-](?![/:+>-])")
# One of several: `username=bob,password=summer/castle_871,vers=3`.
_OF_PAIRS = re.compile(
    r"[A-Za-z][\w.]*[/:+-][^,;)]*[,;)]+(?:\w+=\S*)?\Z|[^,;)]+(?:,\w+=\S*|[?!#%$*@&+=],)\Z"
)
_NO_NAME = re.compile(r"\d{3,}\W{0,3}\Z|\d\d[!?$#@*%]+\Z")  # but `token_2`
_SHORTEST_NAME = 8
_OWNERS = re.compile(
    r"(?:self|this|cls|super|args?|argv|kwargs|opts?|options|params?|config|cfg|conf|settings|os|sys|process|env"
    r"|environ|ctx|context|req|request|res|resp|response|data|state|props|secrets|vars?|locals?|module|app|user"
    r"|obj|object|item|result|event|node|row|values?|credentials?|client|session|parser|fixtures?|constants?)\."
)
# Signs that the words of a message do not have, but for what is filled in.
_BEYOND_PROSE = re.compile(r"[\d$#@^&*_+=~|]|%\w")
_AFTER_STRING = re.compile(
    r"\s*[+,)%;\]}](?:[\s)\]};:,.]|\Z)"
)  # the quote before it closes another string
_FILLED_IN = re.compile(r"[$#%]?[{(<\[][^\s{}()<>\[\]]*[})>\]]|%[sdrv]|\$\w+")


def quoted(name: str, value: str) -> bool:
    """A value in quotes, or a member of an object."""
    value = value[:_LONGEST].strip()
    if len(value) < _SHORTEST_PASSWORD or is_placeholder(value) or _COLOUR_CODE.match(value):
        return False
    if len(value.split(None, 1)) > 1:
        return _is_phrase(name, value)
    if _is_elsewhere(name, value):
        return False
    password = names.is_password(name)
    if value.isdecimal():
        return password or len(value) >= _SHORTEST_LETTERS
    if _LETTERS.match(value):
        if len(value) < _LONG_NAME and reads_as_words(value):
            phrase = password or value.count("-") >= _PHRASE_DASHES
            return phrase and not names_a_secret(value) and "." not in value
        return password or len(value) >= _SHORTEST_LETTERS
    return password or len(value) >= _SHORTEST


def loud(name: str, value: str) -> bool:
    """A value in a place that holds no code: `DB_PASSWORD=...`, `--password ...`, `?token=...`."""
    if len(value) > _LONGEST:
        return not is_masked(value)
    if is_command(value) or (_DOTTED_CALL.match(value) and is_code(value)):
        return False
    return quoted(name, value)


def bare(name: str, value: str, *, alone: bool, literal: bool = False) -> bool:
    """A value without quotes, which in code is a variable or an expression.

    `alone`: nothing else is on its line, as in YAML and properties files. `literal`: nothing shows that it
    is code.
    """
    if len(value) > _LONGEST:
        return not is_masked(value)
    whole = len(value)
    if is_placeholder(value):
        return False
    value = value.strip(_EMPHASIS)
    if is_placeholder(value) or is_command(value):
        return False
    core = value.rstrip(_TRAILING)
    if is_placeholder(value.rstrip("\"'`,;.)")):
        return False
    password = names.is_password(name)
    least = _SHORTEST_PASSWORD if password else _SHORTEST
    if (len(core) < least and whole < _SHORTEST_LETTERS) or is_placeholder(core):
        return False
    if _NUMBER.match(value):
        return password and alone and core.isdecimal()
    if _is_elsewhere(name, core):
        return False
    if (alone or literal) and is_chosen(name, value):
        return True
    if alone and password and core.isalpha() and core.islower() and len(core) >= _SHORTEST:
        return not (names_a_secret(core) and reads_as_words(core))
    return not is_code(value)


def is_said(name: str, value: str) -> bool:
    """A value in a sentence, where quotes are as often around code."""
    return loud(name, value) and (not is_code(value) or is_chosen(name, value))


def is_chosen(name: str, value: str) -> bool:
    """Words and a number, as people choose passwords: `WinterCastle19`, `summer/castle_871`, but no `token19`."""
    value = value.rstrip("\"'`\\,;}")
    if _OF_PAIRS.match(value) is not None:
        value = value.partition(",")[0].rstrip(");")
    summed = len(value) >= _SHORTEST_NAME and _SUMMED.match(value) is not None
    if not summed and _CHOSEN.match(without_terms(value)) is None:
        return False
    if names_a_secret(value) and not _NO_NAME.search(value):
        return False
    if _JOINED.search(value) is not None:
        return True
    if "." in value:
        return _OWNERS.match(value) is None
    return names.is_password(name) or len(value) >= _SHORTEST_NAME


def _is_phrase(name: str, value: str) -> bool:
    """Usually the words of a message: `password: "Enter your password"`."""
    if not reads_as_words(value) or (len(value) <= _SHORT_PHRASE and _HUMP.search(value)):
        return True
    if "\n" not in value and _BEYOND_PROSE.search(_FILLED_IN.sub("", value)):
        return _AFTER_STRING.match(value) is None
    return (
        names.is_phrase(name)
        and len(value.split()) > _PHRASE_BLANKS
        and not value.endswith((".", "?", ":"))
    )


def is_random(word: str, least: int = 6) -> bool:
    """No one would write it in a sentence or in a command, whatever its name."""
    core = word.strip(_AROUND)
    if len(core) < least or core[0] == "-" or is_placeholder(core) or _is_elsewhere("", core):
        return False
    odd = any(map(str.isdigit, core)) or _HUMP.search(core) is not None
    return odd and not reads_as_words(core) and not _NUMBER.match(core) and not is_code(core)


def is_surely(name: str, value: str) -> bool:
    """Of a name that as often means something else."""
    least = names.least_of(name)
    if not any(map(str.isalpha, value)):
        return False  # a number of an object, or a version
    return is_random(value, least) or (least < _LONG_SECRET and is_chosen("password", value))


def _is_elsewhere(name: str, value: str) -> bool:
    """The secret is at this address or in this file."""
    if _ADDRESS.match(value) or _ROOTS.match(value):
        return True
    if name in ("PWD", "OLDPWD") and _PATH.match(value):
        return True  # the working directory
    return (_FILE.match(value) or _PATH.match(value)) is not None and reads_as_words(value)


def is_code(value: str) -> bool:
    tuple_ = _TUPLE.match(value)
    if tuple_ is not None:
        return len(tuple_[1]) < _SHORTEST or reads_as_words(tuple_[1])
    if _CODE.match(value) is None or _NO_CODE.search(value) is not None:
        return False
    return (
        _is_nested(value)
        and reads_as_words(value)
        and all(reads_as_words(literal) for literal in _LITERAL.findall(value))
    )


def _is_nested(value: str) -> bool:
    """Brackets are closed in order; what is open may go on after the white space."""
    opened: list[str] = []
    for c in value.rstrip(_TRAILING + ":{"):
        if c in _PAIRS:
            opened.append(_PAIRS[c])
        elif c in ")]}" and (not opened or opened.pop() != c):
            return False
    return True


# -- what stands for a value: a variable, a blank to fill in, a mask, the name of a type

# Where one sign on each side would make a blank of a random secret too easily, there must be words between them.
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
_COMMANDS = frozenset({
    "az", "aws", "bw", "cat", "gh", "gcloud", "head", "jq", "kubectl", "op", "openssl", "pass", "sed",
    "tr", "vault",
})  # fmt: skip


def is_masked(value: str) -> bool:
    """Nothing is left of it but masks."""
    return "[redacted: " in value and _MASKS.match(value) is not None


def is_placeholder(value: str) -> bool:
    value = value[:_LONGEST]
    if is_masked(value) or any(blank.match(value) for blank in (_NOTHING, _BLANK, _ELSEWHERE)):
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
    command = _COMMAND.match(value)
    if command is None:
        return False
    said = command[command.lastindex or 0]
    return said in _COMMANDS or said[:2] == "$(" or said.isupper() or reads_as_words(said)
