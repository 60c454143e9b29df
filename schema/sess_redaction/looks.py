"""Which runs of characters in a text could each be a value, and which look like a secret by themselves.

Random characters do, and words that were made into a password (`Summer2024!`, `tr0ub4dor&3`). What people and
programs write for other reasons does not: words and names made of them, numbers, times, versions, hosts, paths,
files, hashes, ids, expressions and what they are made of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from sess_redaction import values
from sess_redaction.names import is_word, reads_as_words, without_terms


class Run(NamedTuple):
    begin: int
    end: int
    quoted: bool


# Besides blanks: escaped breaks and quotes, colours, entities, masks.
_SEPARATOR = re.compile(
    r"(?:\s|\\+(?:[nrt\"'`]|x1b\[[0-9;]*m|u001b\[[0-9;]*m|u00[0-9a-f]{2})|\x1b(?:\[[0-9;]*[A-Za-z])?"
    r"|&(?:quot|lt|gt|apos|#\w{2,4});|\[redacted: [A-Za-z ]{1,30}\])+"
)
_LEAST = 8  # characters that are looked at
_QUOTED = re.compile(r"(?<![A-Za-z0-9])([\"'`])((?:(?!\1).)+)\1(?![A-Za-z0-9])")
_LABEL = re.compile(r"[-/]{0,2}([A-Za-z_@$][\w.@$-]{0,40})(?:=>|:=|[:=])(?=[^\s=>:])")
_SHORT_LABEL = 3
_MOST_LABELS = 3
_PAIR = re.compile(r"(?:^|(?<=[^\w]))[A-Za-z_][\w.-]*=")
_COMMA = re.compile(r"[,;&]")
_CALL = re.compile(r"[\w.$@!&*]*[(\[{]")
_DIVIDES = re.compile(r"[(),;\[\]{}|<>]+")
_STRINGS = re.compile(r"[\"'`][,:;)\]}+]{1,3}[\"'`]")  # between two strings
_MARGIN = re.compile(r"\d{1,6}[→|]")
_OPENERS = "\"'`([{<*_~“‘«"
_ENDERS = "\"'`*_~.,;:?”’»…"
_CLOSES = {")": "(", "]": "[", "}": "{", ">": "<"}


def runs_within(text: str, begin: int, end: int) -> Iterator[Run]:
    for first, last in _words(text, begin, end):
        literals = [*_QUOTED.finditer(text, first, last)]
        for literal in literals:
            yield Run(*literal.span(2), quoted=True)
        if not literals:
            pairs = len(_PAIR.findall(text, first, last)) > 1
            for member in _members(text, first, last, _COMMA if pairs else _STRINGS):
                yield from _bare(text, *member, paired=pairs)


def _words(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    for separator in _SEPARATOR.finditer(text, begin, end):
        if separator.start() - begin >= _LEAST:
            yield begin, separator.start()
        begin = separator.end()
    if end - begin >= _LEAST:
        yield begin, end


def _members(
    text: str, begin: int, end: int, dividers: re.Pattern[str]
) -> Iterator[tuple[int, int]]:
    """Of `a=1,b=2` each pair, of `"a","b"` each string, otherwise all."""
    for divider in dividers.finditer(text, begin, end):
        yield begin, divider.start()
        begin = divider.end()
    yield begin, end


def _bare(text: str, begin: int, end: int, *, paired: bool) -> Iterator[Run]:
    margin = _MARGIN.match(text, begin, end)
    begin, end = _trimmed(text, margin.end() if margin else begin, end)
    for _ in range(_MOST_LABELS):
        label = _LABEL.match(text, begin, end)
        if label is None or not (paired or _is_label(label[1])):
            break
        begin, end = _trimmed(text, label.end(), end)
    quoted = text[begin - 1 : begin] in ("'", '"', "`") and text[end : end + 1] == text[begin - 1]
    call = _CALL.match(text, begin, end)
    if call is None or (call.end() > begin + 1 and not reads_as_words(call[0])):
        yield Run(begin, end, quoted)
        return
    for divider in _DIVIDES.finditer(text, begin, end):
        yield Run(*_trimmed(text, begin, divider.start()), quoted=False)
        begin = divider.end()
    yield Run(*_trimmed(text, begin, end), quoted=False)


def _is_label(said: str) -> bool:
    return said.isupper() or (len(said) <= _SHORT_LABEL and said.islower()) or reads_as_words(said)


def _trimmed(text: str, begin: int, end: int) -> tuple[int, int]:
    """Without the quotes and brackets around it, and the signs that end a sentence."""
    while begin < end and text[begin] in _OPENERS:
        begin += 1
    while end > begin:
        last = text[end - 1]
        opener = _CLOSES.get(last)
        opened = opener is None or text.count(last, begin, end) <= text.count(opener, begin, end)
        if opened and last not in _ENDERS:
            break
        end -= 1
    return begin, end


# -- how much a run looks like a secret by itself, whatever stands before it

_SHORTEST = 8
_SHORTEST_PASSWORD = 6
_LONGEST = 400  # a longer one is data
_SHORTEST_HEX, _LONG_HEX = 16, 32
_HASHES = (40, 64)  # characters of a commit, of SHA-256
_HEX = re.compile(r"(?:0x)?(?:[0-9a-f]+|[0-9A-F]+)\Z")
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_COUNTED = re.compile(
    r"[-+~<>=$€£#vV@^]{0,2}\d[\d.,:_/+xX-]*+(?:T[\d:.+-]*+Z?)?"
    r"(?:[a-zA-Z%°]{0,3}\d{0,2}|[kKMGT]i?[bB]?(?:/s)?|(?:rc|a|b|dev|post|alpha|beta)[.-]?\d*|px|rem|min|sec|bits?|bytes?|chars?)[+]?\Z"
)
_HOST = r"(?:[\w.+-]++@)?(?:[A-Za-z0-9_-]+\.)+(?:[a-z]{2,12})(?::\d{1,5})?(?:/[\w./%~+@-]*)?\Z"
_ADDRESS = re.compile(
    r"[a-z][\w+.-]{1,20}://|www\.|arn:|mailto:|(?:\d{1,3}\.){3}\d{1,3}|\[?[0-9a-f]*:[0-9a-f:]+\]?\Z"
)
_FILE = r"[\w.@+*~/\\-]*\.[A-Za-z][A-Za-z0-9]{0,4}(?:[:#(][\dL:,-]+(?:in)?\)?)?\Z"
_PATH = r"(?:\.{0,2}|~|[A-Za-z]:)[/\\][\w./\\~@:-]*\Z|[\w.@-]+(?:/[\w.@-]+)+/?\Z"
_PLACE = re.compile(f"{_FILE}|{_HOST}|{_PATH}")
_WORDS_AND_NUMBER = re.compile(r"[A-Za-z]{3,}(?:[-_.:/+=][A-Za-z]{3,})*[-_.:/+=]?\d{2,6}\Z")
_PASSPHRASE = re.compile(r"[a-z]{3,10}(?:-[a-z]{3,10}){3,}\Z")
_CUT = re.compile(r"\.{3}|…")
_REFERENCE = re.compile(
    r"(?:[\w./-]*#|[A-Za-z]{2,8}-|@)\d+(?:[-,]#?\d+)*\Z"
    r"|[a-z][\w.-]*:\d{2,5}\Z|[\w.-]+@\^?~?\d+(?:\.\d+)+\S*\Z|#[0-9a-fA-F]{3,8}\Z"
)
# What is filled in, a regular expression, an operation.
_EXPRESSION = re.compile(
    r"\\[wdsWDSbBAZ(\[{.|%<>=]|\[\^|\[[^\]]{0,8}[a-zA-Z0-9]-[a-zA-Z0-9]|\(\?|\.[*+]|[\])][*+?]|\{\d*,\d*\}"
    r"|%[-\d.]*[sdrfxi](?![A-Za-z0-9])|%\(\w+\)|\$?\{[\w.!:$ -]*\}|\$\(|\$[A-Za-z_]\w+\b|<[A-Za-z/][\w-]*>"
    r"|\A\^|\$\Z|::|->|=>|&&|\|\||[=!]=|\+=|\(\)|\[\]|\{\}|\.\.\.|\*\*|(?<![A-Za-z_])[A-Za-z_]{2,}+[(\[]"
)
_GROUPS = re.compile(
    r"(?P<capitals>[A-Z]+(?![a-z]))|(?P<word>[A-Z]?[a-z]+)|(?P<digits>\d+)"
    r"|(?P<sign>[!@#$%^&*~+=?])|(?P<joiner>[-_./:,|])|(?P<other>\S)"
)
_NAME = re.compile(r"[A-Za-z_$][\w$]*(?:[.:-]{1,2}[A-Za-z_$][\w$]*)*\Z", re.ASCII)
_MOSTLY = 0.5  # of the letters
_PARTED = re.compile(
    r"(?:[A-Za-z]{2,}|\d{1,8})(?:[-_.](?:[A-Za-z]+|\d{1,8}))+\Z"
)  # `node-18-alpine`
_NAMED = re.compile(r"[\w.$-]+[=:]\Z")
_BYTES = re.compile(r"(?:\\x[0-9a-fA-F]{2}.?|\\[uU][0-9a-fA-F]{4}.?){2}|\\[uU][0-9a-fA-F]{4,8}")
_CHUNKS = re.compile(r"[A-Za-z0-9+/]{8,}")
_DENSE = 10
_LEAST_SIGNS = 6
_LONG_WORD = 12
_FEW = 6  # letters
_VOWELS = re.compile(r"[aeiouyAEIOUY]")
_CLUSTER = re.compile(r"[^aeiouyAEIOUY]{5}")
# Words that have digits in them.
_TERMS = re.compile(
    r"(?i:x86[_-]64|amd64|arm64|aarch64|i[36]86|u?int\d+|float\d+|win(?:32|64)|utf-?(?:8(?:mb[34])?|16)|latin1|b64"
    r"|base(?:32|58|64|85)|i18n|l10n|a11y|k8s|s3|ec2|n8n|e2e|p2p|2fa|mp[34]|h26[45]|http[23]|ipv[46]|oauth2?|auth0|x509"
    r"|(?:hmac-?)?sha-?\d{1,3}|md[45]|crc32|blake[23][bs]?|argon2(?:id|[id])?|pbkdf2|bcrypt2?|pkcs\d*|wpa[23]|sm[234]|rc4"
    r"|des3|3des|aes-?\d{3}|rsa-?\d{4}|[reh]s\d{3}|secp\d+[kr]1|nistp\d+|p-?(?:256|384|521)|(?:curve|x|ed)25519|poly1305"
    r"|chacha20|tls1[._]?\d|sslv?\d|v\d+(?:alpha|beta|rc)?\d*|py\d+|t\d\.\w+|[a-z]{2}-[a-z]+-\d[a-z]?)"
)
# The evidence of each thing that no one would write without a reason.
_OF_SIGN, _OF_OTHER_SIGN, _MOST_OF_SIGNS = 3, 1, 9
_OF_DIGITS_INSIDE, _MOST_OF_DIGITS = 3, 3
_OF_SHORT_LETTERS, _OF_LETTERS, _SHORT_LETTERS = 1, 2, 2
_OF_HEX, _OF_LONG_HEX = 8, 16


@lru_cache(maxsize=8192)
def evidence(run: str) -> int:
    """How much speaks against words, names and numbers; 0 for what is written for other reasons."""
    if not _SHORTEST <= len(run) <= _LONGEST or values.is_placeholder(run):
        return 0
    if _HEX.match(run):
        return _of_hex(run)
    if _is_something_else(run):
        return 0
    words, signs, known = _measured(run)
    if _NAME.match(run) and known > _MOSTLY:
        return 0
    if words < _DENSE and (_NAMED.match(run) or _PLACE.match(run) or _PARTED.match(run)):
        return 0
    if _BYTES.search(run) or _is_expression(run, known):
        return 0
    if not any(map(str.isdigit, run)) and signs < _LEAST_SIGNS:
        return words if run.isalpha() and len(run) >= _LONG_WORD and 2 * words >= len(run) else 0
    return words + signs if words else 0


def _of_hex(run: str) -> int:
    if len(run) < _SHORTEST_HEX or run.isdecimal() or not any(map(str.isdigit, run)):
        return 0
    return _OF_HEX if len(run) < _LONG_HEX or len(run) in _HASHES else _OF_LONG_HEX


def _is_something_else(run: str) -> bool:
    """A number, a time, an id, an address or the like."""
    if "://" in run or '","' in run or _CUT.search(run) or _UUID.search(run):
        return True
    return (_COUNTED.match(run) or _ADDRESS.match(run) or _REFERENCE.match(run)) is not None


def _is_expression(run: str, known: float) -> bool:
    """Made of operators and of what has a meaning in regular expressions and templates, not of random characters."""
    hits = len(_EXPRESSION.findall(run.rstrip("=")))
    letters = sum(map(str.isalpha, run))
    if not hits or (hits == 1 and known < _MOSTLY and letters > _FEW):
        return False
    return all(sum(_measured(chunk)[:2]) < _DENSE for chunk in _CHUNKS.findall(run))


def is_chosen(run: str) -> bool:
    """Words and a number, which could as well be a name of something: `correct-horse-42`."""
    if not _SHORTEST <= len(run) <= _LONGEST or _is_something_else(run) or _PLACE.match(run):
        return False
    return _WORDS_AND_NUMBER.match(run) is not None and values.is_chosen("", run)


def is_password(said: str) -> bool:
    """What a sentence may call a password: no word, number, file, address or expression, and no name of something."""
    if not _SHORTEST_PASSWORD <= len(said) <= _LONGEST or values.is_placeholder(said):
        return False
    if _is_something_else(said) or _PLACE.match(said) or (values.is_code(said) and "-" not in said):
        return is_chosen(said)
    if _PASSPHRASE.match(said):
        return True
    odd = any(map(str.isdigit, said)) or any(c in "!@#$%^&*+=?~" for c in said[1:-1])
    return odd and any(map(str.isalpha, said)) and not _NAMED.match(said)


def is_hash(run: str) -> bool:
    return _HEX.match(run) is not None


def _measured(run: str) -> tuple[int, int, float]:
    """The evidence of its letters and digits, that of its signs, and the share of letters in words."""
    words = signs = known = letters = 0
    run = _TERMS.sub(" ", without_terms(run))
    before = beyond = ""
    for group in _GROUPS.finditer(run):
        kind, said = group.lastgroup or "", group[0]
        if kind in ("capitals", "word"):
            letters += len(said)
            if is_word(said):
                known += len(said)
            else:
                words += _strangeness(said)
            if (
                before == "digits"
                and beyond in ("capitals", "word")
                and run[group.start() - 1].isdigit()
            ):
                words += _OF_DIGITS_INSIDE
        elif kind == "digits":
            words += min(len(said), _MOST_OF_DIGITS)
        elif kind == "sign":
            signs += _OF_SIGN
        elif kind == "other":
            signs += _OF_OTHER_SIGN
        beyond, before = before, kind
    return words, min(signs, _MOST_OF_SIGNS), known / letters if letters else 0.0


def _strangeness(letters: str) -> int:
    """Of letters that are no word."""
    if len(letters) <= _SHORT_LETTERS:
        return _OF_SHORT_LETTERS
    if _VOWELS.search(letters) is None or _CLUSTER.search(letters) is not None:
        return len(letters) // 2 + 1
    return _OF_LETTERS
