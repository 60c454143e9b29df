"""How far a secret reaches that is known by where it stands, and whether it is one.

Each judge is given the text and what its context match; group 1 is the beginning of the secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from sess_redaction import looks, names, values
from sess_redaction.extents import Extents, Secrets
from sess_redaction.names import reads_as_words

Judge = Callable[[str, re.Match[str], Extents], Secrets]
_AHEAD = 4_000  # characters


@dataclass(frozen=True)
class Context:
    expression: str
    judge: Judge
    sample: str
    spares: str
    sign: str
    back: int = 0  # characters before the sign in which the context may begin

    def look(self, text: str, at: int) -> re.Match[str] | None:
        """The context around a place where its sign was found."""
        if not self.back:
            return self.compiled.match(text, at)
        if self._signed.match(text, at) is None:
            return None
        begin = max(text.rfind("\n", 0, at) + 1, at - self.back)
        return self.compiled.search(text, begin, at + _AHEAD)

    @cached_property
    def _signed(self) -> re.Pattern[str]:
        return re.compile(self.sign, re.ASCII)

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self.expression, re.ASCII)


_LONG = 16
_LONG_PARAMETER = 24
_SHORT = 6
_MUCH = 8  # evidence
_LONG_USER = 20
_NUMBERED = 8
_LONGEST_PASSWORD = 500  # characters, in an address
_PEM_END = re.compile(r"-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----")
# Allowed between the lines of a key: line breaks, also escaped ones, quotes, line numbers.
_PEM_CUT = re.compile(
    r"(?:(?:\\[nrt]|[\s\"'+,|>→:\\-]|(?<=\s)\d{1,6}(?=[\s→|:]))*+[A-Za-z0-9+/=]{16,}+)*+"
    r"(?:\\[nr]|[\s\"'+-])*+[A-Za-z0-9+/=]*+"
)
_BASE64_LINE = re.compile(r"[A-Za-z0-9+/=]{16}")
_LONGEST_KEY = 20_000  # characters
_CLOSERS = re.compile(r"[\"'`\\]+[)\]},;]*\Z")
_CODE_BEGINS = re.compile(r"[(\[{](?:\s|\Z|[bruf]?[\"']|[\w.]+(?:[(,\s]|[)\]}](?:[\s.,;]|\Z)))")
_ONE_WORD = re.compile(r"[^\s\"']+\Z|[\"'].*[\"']\Z")
_QUOTED_USER = re.compile(r"\\*[\"']")
_TAKING_USERS = ("curl", "http", "wget", "lftp", "ab -", "smbclient", "rpcclient")
_HEADER_LINE = re.compile(r"(?:^|\n)[ \t]*(?:[<>*] )?\Z|[\"']\Z")
# What follows the `@` before a host, if there is another one in the path: `...@h.example/@a/b`.
_HOST_AND_PATH = re.compile(
    r"(?:(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}|localhost|\d+\.\d+\.\d+\.\d+)(?::\d+)?/[\w./@%+~=&?,:-]*\Z"
)
_HOST = re.compile(r"@(?=[A-Za-z0-9\[%$({]|\Z)")
_QUOTED_SCHEME = re.compile(r"[\"'][\w+.-]{2,20}\Z")
_SCHEMES = re.compile(r"[\w+.-]{2,20}://")
_AUTHORITY_END = re.compile(r"[/?#]")


def pem(text: str, match: re.Match[str], _extents: Extents) -> Secrets:
    """The whole block, or what is left of a truncated one."""
    begin = match.end()
    limit = begin + _LONGEST_KEY
    marker = text.find("-----END ", begin, limit)
    end = _PEM_END.match(text, marker) if marker >= 0 else None
    if end is not None:
        if _BASE64_LINE.search(text, begin, end.start()) is not None:
            yield match.start(), end.end(), "private key"
        return
    cut = _PEM_CUT.match(text, begin, limit)
    if cut is not None and _BASE64_LINE.search(text, begin, cut.end()) is not None:
        yield match.start(), cut.end(), "private key"


def matched(kind: str) -> Judge:
    def judge(_text: str, match: re.Match[str], _extents: Extents) -> Secrets:
        yield (*match.span(1), kind)

    return judge


def parameter(_text: str, match: re.Match[str], _extents: Extents) -> Secrets:
    """Of an address, with a name that may mean something else: `?key=...`."""
    if len(match[1]) >= _LONG_PARAMETER or values.is_random(match[1], _LONG):
        yield (*match.span(1), "token")


def value(name: str) -> Judge:
    """A value that is no placeholder, to its end."""

    def judge(text: str, match: re.Match[str], extents: Extents) -> Secrets:
        value = extents.value(match.start(1), name=match.start())
        said = text[value.begin : value.end]
        if not values.is_placeholder(said) and values.loud(name, said):
            yield value.begin, value.end, names.kind_of(name)

    return judge


def line(text: str, match: re.Match[str], extents: Extents) -> Secrets:
    """All of it, whatever its characters."""
    begin = match.start(1)
    said = text[begin : extents.line_end(begin)].rstrip()
    if values.loud(names.PASSWORD, said):
        yield begin, begin + len(said), names.PASSWORD


def rest_of_instruction(text: str, match: re.Match[str], extents: Extents) -> Secrets:
    """`ENV NAME value with blanks`; of other commands, the next word."""
    begin, end = match.start(1), extents.line_end(match.start(1))
    said = text[begin:end].strip()
    if match[0].startswith("ENV") and _ONE_WORD.match(said) is None:
        if values.loud(names.PASSWORD, said):
            yield begin, begin + len(said), names.PASSWORD
        return
    yield from value(names.PASSWORD)(text, match, extents)


def _is_bare_header(said: str) -> bool:
    return _CODE_BEGINS.match(said) is None and values.bare("token", said.rstrip("\\"), alone=True)


def sent(text: str, match: re.Match[str], extents: Extents) -> Secrets:
    for begin, end, kind in value(names.PASSWORD)(text, match, extents):
        if not values.is_placeholder(text[begin:end].removesuffix("\\r").removesuffix("\\n")):
            yield begin, end, kind


def word(text: str, match: re.Match[str], extents: Extents) -> Secrets:
    """After a name in a sentence: whatever is no word."""
    value = extents.value(match.start(1), name=match.start())
    said = text[value.begin : value.end].rstrip(".,;:!?)")
    if len(said) >= _SHORT and values.is_said("token", said.strip("*_")):
        yield value.begin, value.end, names.kind_of(match[0])


def argument(text: str, match: re.Match[str], extents: Extents) -> Secrets:
    """Of a call or a command that takes a secret: whatever is no word."""
    value = extents.value(match.start(1), name=match.start())
    said = text[value.begin : value.end]
    numbered = value.quoted and len(said) >= _NUMBERED and said[-1].isdigit()
    if (values.loud if numbered else values.is_said)(names.PASSWORD, said):
        yield value.begin, value.end, names.PASSWORD


def operand(text: str, match: re.Match[str], extents: Extents) -> Secrets:
    """Of a command that takes a secret: any literal, and whatever is no word."""
    value = extents.value(match.start(1), name=match.start())
    said = text[value.begin : value.end]
    if (values.loud if value.quoted else values.is_said)(names.PASSWORD, said):
        yield value.begin, value.end, names.PASSWORD


def called_so(text: str, match: re.Match[str], _extents: Extents) -> Secrets:
    """What the end of the sentence names: "use `...` as the password"."""
    span = match.span(match.lastindex or 0)
    if values.is_said(names.PASSWORD, text[slice(*span)]):
        yield *span, names.PASSWORD


def before_host(text: str, match: re.Match[str], extents: Extents) -> Secrets:
    """`demo/...@//host`: up to the last `@`."""
    begin = match.start(1)
    end = text.rfind("@", begin, extents.value(begin, name=begin, plain=True).end)
    if end > begin and values.loud(names.PASSWORD, text[begin:end]):
        yield begin, end, names.PASSWORD


def header(text: str, match: re.Match[str], extents: Extents) -> Secrets:
    kind = "token" if "basic" not in match[0].lower() else "password"
    begin, schemed = match.start(2), match.start(2) > match.end(1)
    if match[1]:
        end = extents.value(match.start(1), name=match.start()).end
    elif "digest" in match[0].lower() or _HEADER_LINE.search(
        text, max(match.start() - 40, 0), match.start()
    ):
        end = extents.rest(begin, match.start())
    else:
        end = extents.value(begin, name=match.start()).end
    said = text[begin:end].strip()
    if values.is_placeholder(said) or values.is_placeholder(said.rstrip("\"'`,;)}")):
        return
    if schemed:
        masked = len(said) >= _SHORT and (not reads_as_words(said) or values.quoted("token", said))
    else:
        masked = values.quoted("token", said) if match[1] else _is_bare_header(said)
    if masked:
        yield begin, begin + len(text[begin:end].rstrip()), kind


def bearer(text: str, match: re.Match[str], extents: Extents) -> Secrets:
    value = extents.value(match.start(1), name=match.start())
    said = text[value.begin : value.end]
    if values.is_placeholder(said) or not any(c.isdigit() for c in said):
        return
    if values.bare("token", said, alone=False):
        yield value.begin, value.end, "token"


def address(text: str, match: re.Match[str], extents: Extents) -> Secrets:
    """Up to the last `@`: a password may contain that sign, slashes and colons, too."""
    begin = match.end()
    stop = begin + _LONGEST_PASSWORD
    if text.find("@", begin, stop) < 0:
        return
    if _QUOTED_SCHEME.search(text, max(match.start() - 24, 0), match.start()):
        stop = min(stop, extents.rest(begin, match.start()))
    else:
        stop = min(stop, extents.value(begin, name=match.start(), plain=True).end)
    following = _SCHEMES.search(text, begin, stop)
    stop = following.start() if following else stop
    hosts = [sign.start() for sign in _HOST.finditer(text, begin, stop)]
    if not hosts:
        return
    # `https://h:80/a@b` has no password; in `postgres://u:p/w@h` it is not a port that follows.
    first = _AUTHORITY_END.search(text, begin, stop)
    if first is not None and first.start() < hosts[0]:
        port, host = text[begin : first.start()], match[0][3:-1]
        web = (
            text[max(match.start() - 5, 0) : match.start()]
            .lower()
            .endswith(("http", "https", "ws"))
        )
        if port.isdecimal() and (web or "." in host or host == "localhost"):
            return
    end = hosts[-1]
    for at in hosts[:-1]:
        if _HOST_AND_PATH.match(text[at + 1 : stop]):
            end = at
            break
    said = text[begin:end]
    if said and not values.is_placeholder(said):
        yield begin, end, "password"


def cookies(text: str, match: re.Match[str], extents: Extents) -> Secrets:
    """The value of `Set-Cookie` without its attributes; all pairs of `Cookie`."""
    begin = match.start(1)
    single = "set-cookie" in text[max(match.start() - 4, 0) : begin].lower()
    if single and ";" in match[0]:
        return  # an attribute
    end = extents.value(begin, name=begin, stops=";", plain=True).end
    said = _CLOSERS.sub("", text[begin:end])
    if len(said) >= _SHORT and not values.is_placeholder(said):
        rest = begin + len(said) if single else extents.rest(begin, begin)
        yield begin, begin + len(_CLOSERS.sub("", text[begin:rest])), "cookie"


def user_of_curl(text: str, match: re.Match[str], extents: Extents) -> Secrets:
    line = text[max(match.start() - 400, 0) : match.start() + 2].rpartition("\n")[2]
    if any(program in line for program in _TAKING_USERS):
        quote = _QUOTED_USER.search(match[0])
        if quote is not None:
            begin = match.start(1)
            end = extents.value(match.start() + quote.start(), name=match.start()).end
            if end > begin and not values.is_placeholder(text[begin:end]):
                yield begin, end, "password"
            return
        value = extents.value(match.start(1), name=match.start(1), plain=True)
        said = text[value.begin : value.end]
        if not values.is_placeholder(said):
            yield value.begin, value.end, "password"


def piped(text: str, match: re.Match[str], _extents: Extents) -> Secrets:
    """`echo hunter2 | docker login --password-stdin`."""
    said = match[1].strip("\"'\\")
    literal = "'" in match[1][:4] or "\\$" in match[1][:8]
    if not values.is_placeholder(said) and (said[:1] != "$" or literal):
        yield (*match.span(1), "password")


def token_of_address(_text: str, match: re.Match[str], _extents: Extents) -> Secrets:
    """A long user that is no name."""
    long = len(match[1]) >= _LONG_USER and any(c.isdigit() for c in match[1])
    if long or (values.is_random(match[1]) and not values.is_chosen("token", match[1])):
        yield (*match.span(1), "token")


def cookie_option(text: str, match: re.Match[str], extents: Extents) -> Secrets:
    """`curl -b "sid=..."`: to the end of the quotes, or of the word."""
    begin = match.start(2)
    end = extents.value(match.start(1) if match[1] else begin, name=match.start()).end
    if end - begin >= _SHORT and not values.is_placeholder(text[begin:end]):
        yield begin, end, "cookie"


def spoken(text: str, match: re.Match[str], extents: Extents) -> Secrets:
    """What a sentence says is one, and nobody would say for another reason; the first of these groups that took part."""
    begin = match.start(match.lastindex or 1)
    value = extents.value(begin, name=match.start())
    said = text[value.begin : value.end].rstrip(".,;:!?)\"'`*")
    if value.quoted:
        said = text[value.begin : value.end]
    if looks.is_password(said) and values.loud(names.PASSWORD, said):
        yield value.begin, value.begin + len(said), names.PASSWORD


def random_operand(text: str, match: re.Match[str], extents: Extents) -> Secrets:
    """Of an option that many programs have for other reasons, too."""
    value = extents.value(match.start(1), name=match.start())
    said = text[value.begin : value.end]
    if looks.evidence(said) >= _MUCH and values.loud(names.PASSWORD, said):
        yield value.begin, value.end, names.PASSWORD


def phrase(_text: str, match: re.Match[str], _extents: Extents) -> Secrets:
    """The words of a wallet: 12, 15, 18, 21 or 24."""
    if len(re.findall("[a-z]{3,}", match[1])) % 3 == 0:
        yield (*match.span(1), "recovery phrase")


def codes(_text: str, match: re.Match[str], _extents: Extents) -> Secrets:
    """To be used if a telephone is lost."""
    if sum(map(str.isdigit, match[1])) > 1:
        yield (*match.span(1), "recovery code")
