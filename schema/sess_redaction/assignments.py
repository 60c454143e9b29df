"""Values after a name that means a secret: `DB_PASSWORD=...`, `<token>...`, "the password is ..."."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sess_redaction import literals, names, tables, values
from sess_redaction.extents import Extents, Secrets, Span
from sess_redaction.names import reads_as_words

# RE2 finds places where a name may be followed by a value; `re` looks at them closely.
SCREEN = (
    rf"(?i:(?:{names.WORDS})(?:{names.TAIL})?)"
    r"(?:[\\\"'`\])*}]*(?:[ \t]*(?:[:=,|\(<>?+!\"'\\`\[\{]|(?:is|ist|est|es)\b|：|(?:(?:set|changed|reset|updated|rotated) )?(?:to|from) \S|has the value |(?:you|we|I) [a-z ]+: |[-–—] \S|(?i:for) \S+ ?[=:]|or [\"'\\]|->|→|│|┃)"
    r"|[ \t\r]*\n[^\n]*(?i:value|val)\b|[ \t\r]*\n[^\n]*(?:\n[^\n`]*)?`[^\n`]+`[ \t\r]*\n|(?:[ \t][ \t]+|\t)\S+(?:[ \t\r]*(?:\n|$)|[\"'`\\])|\.(?:equals|toBe|toEqual|unwrap_or|orElse|getOrElse|fill|type|send_?[kK]eys|setValue)[A-Za-z]*\(|[ \t][a-zA-Z:-]+ ?=|[ \t]\S*(?:\d|[a-z][A-Z])))"
)
_VALUE = r"(?i:value|val|content|data|plaintext|secret_?string)"
NAME = re.compile(rf"(?i:(?:{names.WORDS})(?:{names.TAIL})?)")
_CLOSERS = r"[\\\"'`\])*}]{0,6}"
_ASSIGNED = re.compile(
    rf"{_CLOSERS}[ \t]{{0,8}}(:=|=>(?=[\s\"'])|<<<|<-(?=[ \t])|\|\|=|\?\?=|[!=]={{1,2}}(?=[\s\"'])|\?=|\+=|=|::?|：|(?<=[^)\]][ \t])(?:->|→)(?=[ \t]))[ \t]{{0,8}}(?:\*{{1,2}}[ \t]{{1,4}}(?=[^\s*]))?(?:\r?\n[ \t]{{1,40}})?"
)
# `password: &str = `, `password string = `, `password[] = `, `Password { get; set; } = `
_ANNOTATED = re.compile(
    r"(?:[ \t]{0,8}:|[ \t])[ \t]{0,4}(?:&'(?:\\'')?\w{1,20} )?[A-Za-z&*][\w.|<>?&* ]{0,40}?(?:\[[\w., |]{0,40}\])?[ \t]{0,4}=[ \t]{0,4}(?=\\{0,3}[bruf]{0,2}[\"'`])"
    r"|\[\w{0,20}\][ \t]{0,8}=[ \t]{0,4}(?=\\{0,3}[\"'])"
    r"|[ \t]{1,4}\{[\w ;]{0,40}\}[ \t]{0,4}=[ \t]{0,4}(?=\\{0,3}[\"'])"
)
# The value is the next argument, or the argument of a call.
_PASSED = re.compile(
    r":?\\{0,3}[\"'],[ \t]{0,4}(?:with:[ \t])?(?=\\{0,3}(?:[bruf]{0,2}[\"']|r#\"|`))|\)[ \t]\{[ \t](?=\\{0,3}[\"'])|[ \t]{0,2}[({][ \t]{0,4}(?=\\{0,3}[\"'])"
    r"|[ \t]{1,2}(?=\\{0,3}['\"]\S)|[\\\"')\]]{0,8}\.(?:equals|toBe|toEqual|unwrap_or|orElse|getOrElse|fill|type|send_?[kK]eys|setValue)[A-Za-z]*\([ \t]{0,4}(?=\\{0,3}[\"'`])"
    r"|[\\\"')\]]{0,8}[ \t]{0,4}(?:\?\?|\|\||or)[ \t]{1,4}(?=\\{0,3}[\"'`])"
    r"|,[ \t]{1,4}(?=\\{0,3}[\"'])"
)
_TAG = re.compile(
    r"(?:\\{0,3}[\"'])?(?:[ \t][^<>\n]{0,120})?(?<!/)>(?:\s{0,60}<!\[CDATA\[|\s{0,60}(?=[^<\s]))"
)
_LONGEST_ELEMENT = 4_000
_GROUP = re.compile(r"\(\?P?\Z")  # of a regular expression
_PLIST = re.compile(
    r"</(?:key|name|td|th|dt|b|strong|label)>\s{0,40}(?:</\w{1,10}>\s{0,40}){0,2}<(?:string|value|td|dd)\b[^<>]{0,80}>\s{0,40}(?:<\w{1,10}>)?(?=[^<\s])"
)
_CERTAIN_TAGS = ("</key>", "</name>")
_SIBLING = re.compile(
    rf"(?:\\{{0,3}}[\"'],?\s{{0,40}}|,?[ \t]*\r?\n[ \t]{{0,40}})(?:\\{{0,3}}[\"'])?{_VALUE}(?:\\{{0,3}}[\"'])?[ \t]{{0,4}}[:=][ \t]{{0,4}}"
)
# The name is itself the value of a member: `- name: DB_PASSWORD`.
_IS_VALUE = re.compile(r"[:=][ \t]{0,4}(?:\\{0,3}[\"'])?\Z")
# `variable "db_password" { default = "..." }`, `"--password", default="..."`, `PASSWORD FOR bob = '...'`
_DECLARED = re.compile(
    r"\\{0,3}[\"']?[ \t]{0,4}:?[ \t]{0,4}\{[^{}]{0,300}?\b(?:default|value|example)\\{0,3}[\"']?[ \t]{0,20}[=:][ \t]{0,4}(?=\\{0,3}[\"'])"
    r"|\\{0,3}[\"'],[^\n]{0,200}?\bdefault[ \t]?=[ \t]?(?=\\{0,3}[bruf]{0,2}[\"'])"
    r"|[ \t](?i:for)[ \t]\S{1,80}[ \t]?=[ \t]?(?=\\{0,3}[\"'])"
    r"|:[ \t]*\r?\n(?:[ \t]+[\w-]{1,30}:[^\n]{0,100}\n){0,5}?[ \t]+(?:default|value|example):[ \t]{1,4}(?=\S)"
)
_CELL_END = re.compile(r"[ \t]*[|│┃\t]|,\S")
_TUPLE = re.compile(r"\{:?\Z")  # `{:password, "..."}`
_FIRST_ARGUMENT = re.compile(r"\(\s{0,3}[bruf]?\\{0,3}[\"'][#.]?\Z")
# After an option in a sentence: "the --password option".
_PROSE = re.compile(
    r"(?i:and|are|args?|arguments?|as|before|can|file|flags?|for|from|if|in|instead|into|is|may|must"
    r"|needs?|not|on|options?|or|param(?:eter)?s?|prompts?|should|so|stdin|string|that|the|then|to|values?"
    r"|was|when|which|will|with|without)[.,:;)]*\Z|[a-z]{1,5}\Z"
)
_ENVIRONMENT = re.compile(r"[A-Z][A-Z0-9_.]*\Z")
_LINE_BEFORE = re.compile(
    r"(?:^|\\n|[\"'])[ \t]*(?:\d{1,6}(?:→|\t|:|[ ]?\|))?[+ -]?[ \t]*(?:#{1,3} |// |[-*$%] )?(?:export |set |setenv |declare -x |ARG |ENV |env:|[-*] )?\*{0,2}(?:(?:enter|new|current|your|the|db|root|admin|user) )?\Z",
    re.IGNORECASE | re.MULTILINE,
)
_STRING_ENDS = re.compile(r"\\{0,3}[\"'`]")
_ALONE = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\r?\n|\\n|\Z)")


def find(text: str, word: re.Match[str], extents: Extents) -> Secrets:
    """The secrets of the name with this last word."""
    start = names.beginning(text, word.start())
    if text[start - 2 : start] == "\x1b[":
        start = min(word.start(), text.find("m", start) + 1)  # of a colour
    name = text[start : word.end()].lstrip("-.")
    if not names.is_no_word(name):
        return
    weak = names.is_weak(name)
    for begin, end in _values(text, start, word.end(), name, extents):
        if weak and not values.is_surely(name, text[begin:end]):
            continue
        yield begin, end, names.kind_of(name)
    if not weak and _CELL_END.match(text, word.end()) is not None:
        yield from tables.column(text, start, name)


def _values(text: str, start: int, end: int, name: str, extents: Extents) -> Iterator[Span]:
    direct = _ASSIGNED.match(text, end) if text[end : end + 1] == "=" else None
    if direct is not None:
        yield from _assigned(text, start, direct, name, extents)
        return
    annotated = _ANNOTATED.match(text, end)
    if annotated is not None:
        spans = [*literals.literal_at(text, annotated.end(), name, extents)]
        if spans:
            yield from spans
            return
    for pattern in (_SIBLING, _PLIST, _DECLARED, _PASSED):
        match = pattern.match(text, end)
        if match is not None and _applies(pattern, text, start, match):
            if pattern is _PLIST:
                end = text.find("<", match.end())
                judge = (
                    values.quoted
                    if text.startswith(_CERTAIN_TAGS, match.start())
                    else values.is_said
                )
                said = text[match.end() : end].rstrip()
                if judge(name, said):
                    yield match.end(), match.end() + len(said)
                return
            called = pattern is _PASSED and match[0].lstrip("\\\"')] \t")[:1] in ("(", "{", ".")
            later = pattern is _PASSED and _is_later(text, start, match)
            yield from literals.literal_at(
                text, match.end(), name, extents, phrase=not called, sure=later
            )
            return
    fenced = _value_in_block(text, end, name, extents)
    if fenced is not None:
        yield fenced
        return
    match = _ASSIGNED.match(text, end)
    if match is not None:
        yield from _assigned(text, start, match, name, extents)
        return
    match = _TAG.match(text, end)
    if match is not None and _is_in_tag(text, start):
        said = text[match.end() : _end_of_element(text, match, extents)]
        if values.loud(name, said.strip()):
            yield match.end(), match.end() + len(said.rstrip())
        return
    yield from _values_in_sentence(text, start, end, name, extents)


def _assigned(
    text: str, start: int, match: re.Match[str], name: str, extents: Extents
) -> Iterator[Span]:
    at = match.end()
    if text[start - 2 : start] == "${" and text[at : at + 1] == "?":
        return  # what a shell says if it is not set
    credentials = _value_after_user(text, match.start(1), start, name, extents)
    if credentials is not None:
        yield credentials
        return
    lines = extents.several_lines(at)
    if lines is not None:
        if text[slice(*lines)].strip() and not values.is_masked(text[slice(*lines)].strip()):
            yield lines
        return
    listed = literals.LIST.match(text, at)
    if listed is not None:
        yield from literals.listed_literals(text, listed.end(), name, extents)
    prefix = literals.PREFIX.match(text, at)
    at = prefix.end() if prefix else at
    sign = text[start - 1 : start]
    if sign == ";":
        name = name.lower()  # `;PWD=` is no working directory
    parameter = sign in ("?", "&")
    stops = ";" if sign == ";" or text[start - 2 : start] == "; " else ""
    if parameter:
        stops = "&#" if _is_in_query(text, start) else "&"
    glued = match.end() == match.end(1)
    direct = match[1] == "=" and glued
    environment = direct and _ENVIRONMENT.match(name) is not None
    value = extents.value(at, name=start, stops=stops, shell=environment, plain=parameter)
    if value.quoted and text[start - 5 : start].lower() == "$env:":
        value = extents.beyond_ticks(value)
    said = text[value.begin : value.end]
    leads = _LINE_BEFORE.search(text, max(start - 60, 0), start) is not None
    if value.quoted and (leads or extents.opens_quote(start)):
        whole = literals.beyond_quotes(text, value, at, start, extents)
        if whole is not None:
            yield at, whole
            return
    if value.quoted:
        first = text.find(text[value.begin - 1], value.begin, value.end)
        if values.quoted(name, said):
            yield value.begin, value.end
        elif first > 0 and " " in said and values.quoted(name, text[value.begin : first]):
            yield value.begin, first  # where a backslash before a quote means nothing
        yield from literals.changed_literal(text, value.end, name, extents)
        return
    yield from literals.further_literals(text, at, name, extents)
    in_string = direct and extents.opens_quote(start)
    if match[1] in ("=", ":", "=>", "==") and (
        leads or sign in ("|", "/") or extents.opens_quote(start)
    ):
        stop = extents.rest(value.begin, start)
        if sign == "/":  # `sed 's/password=.*/password=.../'`
            stop = max(text.rfind("/", value.begin, stop), value.begin)
        whole = literals.end_of_words(text, value.begin, stop, code=not direct)
        if whole is None and in_string and _is_unreadable(name, text[value.begin : stop]):
            whole = stop
        if whole is not None:
            yield value.begin, whole
            return
    if stops == ";":
        end = extents.rest(value.begin, start)
        stop = text.find(";", value.begin, end)
        end = stop if stop >= 0 else end
        if " " in text[value.begin : end] and values.quoted(name, text[value.begin : end]):
            yield value.begin, end
            return
    option = text[start : start + 2] == "--"
    header = match[1] == ":" and name[:2].lower() == "x-"
    if header and (leads or extents.opens_quote(start)):
        end = extents.rest(value.begin, start)
        if values.loud(name, text[value.begin : end]):
            yield value.begin, end
        return
    if (
        header
        or (sign == ";" and direct)
        or (direct and (option or parameter or environment or in_string))
    ):
        if values.loud(name, said):
            yield value.begin, value.end
        return
    if match[1][:2] in ("==", "!=") and not any(map(str.isdigit, said[: literals.LONGEST_LINE])):
        return  # two variables are compared
    last = (
        match[1] in ("=", ":", ":=", "?=", "=>", "→", "->")
        and _ALONE.match(text, value.end) is not None
    )
    literal = match[1] in ("=", ":", "→", "->", "=>") and (
        glued or (last and match[1] != "=") or _STRING_ENDS.match(text, value.end) is not None
    )
    if values.bare(name, said, alone=leads and last, literal=literal):
        yield value.begin, value.end


def _is_unreadable(name: str, said: str) -> bool:
    """All of a string after the name in it: `'DB_PASSWORD=T ,dP bcI'`."""
    return (
        " " in said
        and len(said) < literals.LONGEST_LINE
        and not reads_as_words(said)
        and values.loud(name, said)
    )


def _is_in_query(text: str, at: int) -> bool:
    """Of an address; in the body of a form `#` is a character like any other."""
    least = max(at - literals.LONGEST_LINE, 0)
    return text.rfind("?", least, at) > max(text.rfind(c, least, at) for c in " '\"\n")


def _applies(pattern: re.Pattern[str], text: str, start: int, match: re.Match[str]) -> bool:
    if pattern is _SIBLING:
        return _IS_VALUE.search(text, max(start - 20, 0), start) is not None
    return pattern is not _PASSED or _is_passed(text, start, match)


def _is_passed(text: str, start: int, match: re.Match[str]) -> bool:
    return match[0][0] != "," or _TUPLE.search(text, max(start - 3, 0), start) is not None


def _is_later(text: str, start: int, match: re.Match[str]) -> bool:
    """Not as in `define('DB_PASSWORD', '...')`, `["--password", "..."]`: in `('a', 'password', 'b')` it may be just a word."""
    if "," not in match[0] or text.startswith("--", start):
        return False
    return _FIRST_ARGUMENT.search(text, max(start - 8, 0), start) is None


def _end_of_element(text: str, match: re.Match[str], extents: Extents) -> int:
    """Where the tag is closed; if it is not, the end of the word."""
    begin = match.end()
    if match[0].endswith("["):
        end = text.find("]]>", begin, begin + _LONGEST_ELEMENT)
    else:
        end = text.find("<", begin, begin + _LONGEST_ELEMENT)
        if not text.startswith("/", end + 1):
            word = extents.value(begin, name=begin, plain=True, stops="<").end
            return word if values.is_random(text[begin:word]) else begin
    return end if end >= 0 else extents.line_end(begin)


def _is_in_tag(text: str, start: int) -> bool:
    before = text[max(start - 200, 0) : start]
    opened = before.rfind("<")
    if opened < 0 or _GROUP.search(before, 0, opened):
        return False
    return ">" not in before[opened:] and (
        opened + 1 == len(before) or before[opened + 1].isalpha()
    )


def option(text: str, match: re.Match[str], extents: Extents) -> Secrets:
    """`--token abc`; but `--password options` is prose."""
    name = match[1].lstrip("-")
    if not names.means_secret(name):
        return
    value = extents.value(match.start(2), name=match.start())
    said = text[value.begin : value.end]
    if not value.quoted and _PROSE.match(said):
        return
    if values.loud(name, said):
        yield value.begin, value.end, names.kind_of(name)


# -- what a sentence or a table gives to a name: "the password is ...", `| TOKEN | ... |`

_SAID = re.compile(
    r"[\"'`*]{0,3}(?: (?:is|ist|est|es):? | (?:from|to) (?=[\"'`])| \([a-z ]{0,20}[:=]? ?(?=[\"'`])| (?=`)|[ \t]{0,8}[|│┃][ \t]{1,8}|[ \t]{1,8}\|)(?=\S)"
)
# `password for bob: ...`, "the password was changed to ..."
_FOR = re.compile(
    r"(?i:(?: (?:is|was|has|been|generated|created|set)){0,4} for) [^\s:]{1,80}: (?=[^\s\"'`])"
    r"|(?: (?:is|was|has been))?(?: (?:set|changed|reset|updated|rotated))? (?:from|to) (?=[^\s\"'`$])"
    r"| has the value (?=[^\s\"'`$])| (?:you|we|I) [a-z]{2,12}(?: [a-z]{2,8})?: (?=[^\s\"'`$])| [-–—] (?=[^\s\"'`$]{6})(?!\d+[\])])"
)
_FIRST_CELL = re.compile(r"^[ \t]*[|│┃][ \t`*\"']{0,6}\Z", re.MULTILINE)
_BAR = re.compile(r"[|│┃]")
_IS_VERB = re.compile(r"(?i:pass)\Z")
_WORD = re.compile(r" ([^\s\"'`]+)")
_INDENT = re.compile(r"(?:^|(?<=\n)|(?<=\\n)|(?<=[\"']))[ \t]{0,8}\Z")
_COLUMN = re.compile(r",(?=[^\s,])")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_.]*(?:(?<=TF_VAR_)\w+)?\Z")
# `credentials: admin / ...`
_AS_USER = re.compile(r"(?:s?[:=]|s? are) {0,2}([\w.@+-]{1,60})(?: ?/ ?|:)(?=\S)")
# On a line of its own, in a block or not.
_FENCED = re.compile(
    r"[:*]{0,3}[ \t]{0,4}\r?\n(?:[ \t]*\r?\n)?[ \t]{0,12}"
    r"(?:```[\w-]{0,20}[ \t]*\r?\n[ \t]{0,8}(?=\S+[ \t]*\r?\n[ \t]*```)|(?=`[^`\n]+`[ \t]*(?:[\r\n]|\Z)))"
)
_ASIDE = re.compile(r"(?:[ \t]{2,40}|\t)(?=\S)")
_ENDS_LINE = re.compile(r"[ \t]*(?:[\r\n]|\Z|\\{0,3}[\"'`])")


def _value_in_block(text: str, end: int, name: str, extents: Extents) -> Span | None:
    """The only word of a block of code, or a line in ticks, below the name that ends at `end`."""
    match = _FENCED.match(text, end)
    if match is None:
        return None
    value = extents.value(match.end(), name=match.end(), plain="```" in match[0])
    said = text[value.begin : value.end]
    return (value.begin, value.end) if values.loud(name, said) else None


def _values_in_sentence(
    text: str, start: int, end: int, name: str, extents: Extents
) -> Iterator[Span]:
    """The name is at `start`, and ends at `end`."""
    match = _FOR.match(text, end)
    if match is not None:
        value = extents.value(match.end(), name=start)
        said = text[value.begin : value.end].rstrip(".,;:!?)")
        variable = said.isalpha() and said.isupper()
        if not variable and not _IS_VERB.match(name) and values.is_said(name, said):
            yield value.begin, value.end
        return
    match = _SAID.match(text, end)
    if match is not None:
        yield from _value_said(text, start, match, name, extents)
        return
    match = _COLUMN.match(text, end)
    if (
        match is not None
        and _VARIABLE.match(name)
        and _INDENT.search(text, max(start - 10, 0), start)
    ):
        value = extents.value(match.end(), name=start)
        end = value.end if value.quoted else extents.rest(value.begin, start)
        if values.loud(name, text[value.begin : end]):
            yield value.begin, end
        return
    match = _ASIDE.match(text, end)
    if match is not None and _INDENT.search(text, max(start - 10, 0), start):
        value = extents.value(match.end(), name=start)
        last = _ENDS_LINE.match(text, value.end) is not None
        if last and values.is_said(name, text[value.begin : value.end]):
            yield value.begin, value.end
        return
    match = _WORD.match(text, end)
    if match is not None and not _IS_VERB.match(name) and values.is_random(match[1]):
        value = extents.value(match.start(1), name=start)
        yield value.begin, value.end


def _value_said(
    text: str, start: int, match: re.Match[str], name: str, extents: Extents
) -> Iterator[Span]:
    in_table = _BAR.search(match[0]) is not None
    if _IS_VERB.match(name) and not in_table:
        return
    value = extents.value(match.end(), name=start)
    if value.quoted:
        whole = literals.beyond_quotes(text, value, match.end(), start, extents)
        if whole is not None:
            yield match.end(), whole
        elif values.is_said(name, text[value.begin : value.end]):
            yield value.begin, value.end
        yield from literals.changed_literal(text, value.end, name, extents)
        return
    end = extents.rest(value.begin, start)
    cell = _BAR.search(text, value.begin, end) if in_table else None
    whole = literals.end_of_words(text, value.begin, cell.start() if cell else end)
    if whole is not None:
        yield value.begin, whole
        return
    said = text[value.begin : value.end].rstrip(",;:")
    if values.bare(name, said, alone=False, literal=True) or (
        in_table and _FIRST_CELL.search(text, max(start - 12, 0), start) and values.loud(name, said)
    ):
        yield value.begin, value.end


def _value_after_user(text: str, at: int, start: int, name: str, extents: Extents) -> Span | None:
    """`credentials: admin / ...`."""
    user = _AS_USER.match(text, at) if names.kind_of(name) == "credential" else None
    if user is None:
        return None
    said = user[1]
    if " " not in user[0].rstrip()[-3:] and not reads_as_words(said):
        return None  # a slash in the value
    value = extents.value(user.end(), name=start)
    said = text[value.begin : value.end]
    return (value.begin, value.end) if values.bare(name, said, alone=False) else None
