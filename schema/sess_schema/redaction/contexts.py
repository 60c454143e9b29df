"""Secrets that are known by where they stand: headers, addresses, options of programs, key files.

Each context has a sign, which RE2 and `re` read alike and which begins where the context does unless
it says how far back to look; one sample; and one text that it spares. Group 1 is the beginning of the
secret. A sign has no counted repetitions: many of them together are slow in RE2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from sess_schema.redaction import assignments, names, tables, values
from sess_schema.redaction.extents import Extents

Found = Iterator[tuple[int, int, str]]
Judge = Callable[[str, re.Match[str], Extents], Found]


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


_AHEAD = 4_000
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
_HEADER_LINE = re.compile(r"(?:^|\n)[ \t]*(?:[<>*] )?\Z|[\"']\Z")
# What follows the `@` before a host, if there is another one in the path: `...@h.example/@a/b`.
_HOST_AND_PATH = re.compile(
    r"(?:(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}|localhost|\d+\.\d+\.\d+\.\d+)(?::\d+)?/[\w./@%+~=&?,:-]*\Z"
)
_HOST = re.compile(r"@(?=[A-Za-z0-9\[%$({]|\Z)")
_QUOTED_SCHEME = re.compile(r"[\"'][\w+.-]{2,20}\Z")
_SCHEMES = re.compile(r"[\w+.-]{2,20}://")
_AUTHORITY_END = re.compile(r"[/?#]")
_PROGRAMS = (
    # programs, option, what is between the option and its value, a command up to the value
    ("sshpass", "p", " ?", "sshpass -p "),
    ("mysql|mysqldump|mysqladmin|mariadb|mysqlsh", "p", "", "mysql -u demo -p"),
    ("7z|7za|7zr|unrar", "p", "", "7z x -p"),
    ("unzip", "P", " ", "unzip -P "),
    ("redis-cli", "a", " ", "redis-cli -h h -a "),
    ("ldap(?:search|add|modify|whoami)", "w", " ", "ldapsearch -D cn=demo -w "),
    ("(?:docker|podman|az|oc|cf|helm registry) login", "p", " ", "docker login -u demo -p "),
    ("(?:mongo|mongosh|mongodump|mongorestore|sqlcmd|mosquitto_pub)", "[pP]", " ?", "mongosh -u demo -p "),
    ("keytool|jarsigner", "(?:store|key|srcstore|deststore)pass", " ", "keytool -list -storepass "),
    ("gpg", "-passphrase", "[ =]", "gpg --batch --passphrase "),
    ("gh secret set", "(?:b|-body)", "[ =]?", "gh secret set NAME -b "),
    ("openssl (?:enc|aes|des|pkcs|rsa|genrsa|ec)", "[kK]", " ", "openssl enc -aes-256-cbc -k "),
)  # fmt: skip


def _pem(text: str, found: re.Match[str], _extents: Extents) -> Found:
    """The whole block, or what is left of a truncated one."""
    begin = found.end()
    limit = begin + _LONGEST_KEY
    marker = text.find("-----END ", begin, limit)
    end = _PEM_END.match(text, marker) if marker >= 0 else None
    if end is not None:
        if _BASE64_LINE.search(text, begin, end.start()) is not None:
            yield found.start(), end.end(), "private key"
        return
    cut = _PEM_CUT.match(text, begin, limit)
    if cut is not None and _BASE64_LINE.search(text, begin, cut.end()) is not None:
        yield found.start(), cut.end(), "private key"


def _matched(kind: str) -> Judge:
    def judge(_text: str, found: re.Match[str], _extents: Extents) -> Found:
        yield (*found.span(1), kind)

    return judge


def _value(name: str, *, digit: bool = False) -> Judge:
    """A value that is no placeholder, to its end."""

    def judge(text: str, found: re.Match[str], extents: Extents) -> Found:
        value = extents.value(found.start(1), name=found.start())
        said = text[value.begin : value.end]
        if values.is_placeholder(said) or (digit and not any(c.isdigit() for c in said)):
            return
        if values.loud(name, said) or (digit and len(said) >= _LONG):
            yield value.begin, value.end, names.kind_of(name)

    return judge


def _rest_of_instruction(text: str, found: re.Match[str], extents: Extents) -> Found:
    """`ENV NAME value with blanks`; of other commands, the next word."""
    begin, end = found.start(1), extents.line_end(found.start(1))
    said = text[begin:end].strip()
    if found[0].startswith("ENV") and _ONE_WORD.match(said) is None:
        if values.loud(names.PASSWORD, said):
            yield begin, begin + len(said), names.PASSWORD
        return
    yield from _value(names.PASSWORD)(text, found, extents)


def _is_bare_header(said: str) -> bool:
    return _CODE_BEGINS.match(said) is None and values.bare("token", said.rstrip("\\"), alone=True)


def _sent(text: str, found: re.Match[str], extents: Extents) -> Found:
    for begin, end, kind in _value(names.PASSWORD)(text, found, extents):
        if not values.is_placeholder(text[begin:end].removesuffix("\\r").removesuffix("\\n")):
            yield begin, end, kind


def _word(text: str, found: re.Match[str], extents: Extents) -> Found:
    """After a name in a sentence: whatever is no word."""
    value = extents.value(found.start(1), name=found.start())
    said = text[value.begin : value.end].rstrip(".,;:!?)")
    if len(said) >= _SHORT and values.loud("token", said) and not values.is_code(said):
        yield value.begin, value.end, names.kind_of(found[0])


def _header(text: str, found: re.Match[str], extents: Extents) -> Found:
    kind = "token" if "basic" not in found[0].lower() else "password"
    begin, schemed = found.start(2), found.start(2) > found.end(1)
    if found[1]:
        end = extents.value(found.start(1), name=found.start()).end
    elif _HEADER_LINE.search(text, max(found.start() - 40, 0), found.start()):
        end = extents.rest(begin, found.start())
    else:
        end = extents.value(begin, name=found.start()).end
    said = text[begin:end].strip()
    if values.is_placeholder(said) or values.is_placeholder(said.rstrip("\"'`,;)}")):
        return
    if schemed:
        masked = len(said) >= _SHORT and (
            not values.reads_as_words(said) or values.quoted("token", said)
        )
    else:
        masked = values.quoted("token", said) if found[1] else _is_bare_header(said)
    if masked:
        yield begin, begin + len(text[begin:end].rstrip()), kind


def _bearer(text: str, found: re.Match[str], extents: Extents) -> Found:
    value = extents.value(found.start(1), name=found.start())
    said = text[value.begin : value.end]
    if values.is_placeholder(said) or not any(c.isdigit() for c in said):
        return
    if values.bare("token", said, alone=False):
        yield value.begin, value.end, "token"


def _address(text: str, found: re.Match[str], extents: Extents) -> Found:
    """Up to the last `@`: a password may contain that sign, slashes and colons, too."""
    begin = found.end()
    stop = begin + _LONGEST_PASSWORD
    if text.find("@", begin, stop) < 0:
        return
    if _QUOTED_SCHEME.search(text, max(found.start() - 24, 0), found.start()):
        stop = min(stop, extents.rest(begin, found.start()))
    else:
        stop = min(stop, extents.value(begin, name=found.start(), plain=True).end)
    following = _SCHEMES.search(text, begin, stop)
    stop = following.start() if following else stop
    hosts = [sign.start() for sign in _HOST.finditer(text, begin, stop)]
    if not hosts:
        return
    # `https://h:80/a@b` has no password; in `postgres://u:p/w@h` it is not a port that follows.
    first = _AUTHORITY_END.search(text, begin, stop)
    if first is not None and first.start() < hosts[0]:
        port, host = text[begin : first.start()], found[0][3:-1]
        web = (
            text[max(found.start() - 5, 0) : found.start()]
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


def _cookies(text: str, found: re.Match[str], extents: Extents) -> Found:
    """The value of `Set-Cookie` without its attributes; all pairs of `Cookie`."""
    begin = found.start(1)
    one = "set-cookie" in text[max(found.start() - 4, 0) : begin].lower()
    if one and ";" in found[0]:
        return  # an attribute
    end = extents.value(begin, name=begin, stops=";", plain=True).end
    said = _CLOSERS.sub("", text[begin:end])
    if len(said) >= _SHORT and not values.is_placeholder(said):
        rest = begin + len(said) if one else extents.rest(begin, begin)
        yield begin, begin + len(_CLOSERS.sub("", text[begin:rest])), "cookie"


def _user_of_curl(text: str, found: re.Match[str], extents: Extents) -> Found:
    line = text[max(found.start() - 400, 0) : found.start()].rpartition("\n")[2]
    if "curl" in line or "http" in line or "wget" in line:
        quote = _QUOTED_USER.search(found[0])
        if quote is not None:
            begin = found.start(1)
            end = extents.value(found.start() + quote.start(), name=found.start()).end
            if end > begin and not values.is_placeholder(text[begin:end]):
                yield begin, end, "password"
            return
        value = extents.value(found.start(1), name=found.start(1), plain=True)
        said = text[value.begin : value.end]
        if not values.is_placeholder(said):
            yield value.begin, value.end, "password"


def _piped(text: str, found: re.Match[str], _extents: Extents) -> Found:
    """`echo hunter2 | docker login --password-stdin`."""
    said = found[1].strip("\"'\\")
    if not values.is_placeholder(said) and not (said[:1] == "$" and "'" not in found[1][:4]):
        yield (*found.span(1), "password")


def _token_of_address(_text: str, found: re.Match[str], _extents: Extents) -> Found:
    if any(c.isdigit() for c in found[1]):
        yield (*found.span(1), "token")


def _program(programs: str, letters: str, between: str, sample: str) -> Context:
    return Context(
        rf"(?:{programs})(?: [^\n|;&]{{0,200}})? -{letters}{between}([\"']\S|[^\s\"'$-]|-\S{{0,80}}\d)",
        _value(names.PASSWORD), f"{sample}hunter2x", f"{sample}$PASS", rf"(?:{programs}) [^\n]",
    )  # fmt: skip


CONTEXTS = (
    Context(
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----", _pem,
        "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA" * 4 + "\n-----END RSA PRIVATE KEY-----",
        'if "-----BEGIN PRIVATE KEY-----" in text:', r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY",
    ),
    Context(
        r"Private-Lines: \d+\r?\n((?:[A-Za-z0-9+/=]+\r?\n)*[A-Za-z0-9+/=]+)",
        _matched("private key"), "Private-Lines: 2\nAAAAgQCkL0aB39\nAAAAgQ==", "Private-Lines: 2",
        "Private-Lines: ",
    ),
    Context(
        r"://[^\s:/@\"'`<>\[\]{}$]*:", _address,
        "postgres://demo:hunter2@db.example.org/demo", "postgres://demo:$PASSWORD@db.example.org",
        r"://[^\s:/@\"'`<>\[\]{}$]*:",
    ),
    Context(
        r"://([A-Za-z0-9_-]{20,})@[A-Za-z0-9]", _token_of_address,
        "https://" + "0a1b2c3d" * 5 + "@git.example.org/o/r", "https://name@git.example.org",
        "://[A-Za-z0-9_-]+@",
    ),
    Context(
        r"(?i:bearer) {1,4}([\"']?[A-Za-z0-9._~+/=-]{16})", _bearer,
        "Authorization: Bearer " + "aB3.9" * 6, "Bearer authentication-required",
        "(?i:bearer) ",
    ),
    Context(
        r"(?i:authorization)[\\\"'\]]{0,6}(?:[ \t]{0,4}[:=,][ \t]{0,4}|[ \t]{1,4}(?=[\\\"']))((?:\\{0,4}[\"'])?)"
        r"(?:(?i:basic|token|digest|apikey|bearer|aws4-hmac-sha256|negotiate|key) {1,4})?(\S)",
        _header, "Authorization: Basic dXNlcjpodW50ZXIy", "Authorization: Basic $CREDENTIALS",
        r"(?i:authorization)[\\\"'\]]*[ \t]*[:=,\"'\\]",
    ),
    Context(
        r"[?&](?i:sig|signature|x-amz-signature|x-goog-signature|x-amz-credential|code|key)"
        r"=([A-Za-z0-9%+/=_-]{24,})", _matched("token"),
        "https://a.blob.core.windows.net/c/b?sv=2024&sig=" + "aB3%2" * 9, "?sig=short",
        "[?&](?i:sig|signature|x-amz-signature|x-goog-signature|x-amz-credential|code|key)=",
    ),
    Context(
        r"(?i:set-cookie|cookie)(?:[\\\"']{0,5}[ \t]{0,4}[:=]|[\\\"']{1,5},) ?[\\\"']{0,5}[\w.-]+="
        r"(?:[^\s;\"'\\]{0,5}; ?[\w.-]+=){0,20}([^\s;\"\\]{4})", _cookies,
        "Set-Cookie: session=0a1b2c3d4e5f; Path=/", "Cookie: theme=dark",
        r"(?i:cookie)[\\\"']*[ \t]*[:=,]",
    ),
    Context(
        r" (?:-u|--user)[ =]?[\\\"']{0,6}[\w.@+-]+:(\S)", _user_of_curl,
        "curl -s -u demo:hunter2 https://example.org", "docker run -u 1000:hunter2",
        r" (?:-u|--user)[ =]?[\\\"']*[\w.@+-]+:",
    ),
    Context(
        r"(?:machine\s+\S+|default)\s+login\s+\S+\s+password\s+(\S)", _value(names.PASSWORD),
        "machine example.org login demo password hunter2", "machine x login y password $PASS",
        r"machine\s+\S+\s(?:[\s\d|:+>#/-]|→)*(?:[\w./-]+:\d+:(?:\d+Z? [A-Z]+)?\s*)?login|default\s+login",
    ),
    Context(
        r"\"auth\\*\"\s*:\s*\\*\"([A-Za-z0-9+/]{12,}={0,2})\\*\"", _matched("token"),
        '{"auths": {"hub.example.org": {"auth": "ZGVtbzpodW50ZXIy"}}}', '"auth": "basic"',
        r"\"auth\\*\"\s*:",
    ),
    Context(
        r"(?i:identified(?: with [\w\"']{1,40})? (?:by|as)(?: password)?) {1,4}(\\*[\"'])",
        _value(names.PASSWORD), "CREATE USER x IDENTIFIED BY 'hunter2'", "IDENTIFIED BY '?'",
        "(?i:identified) (?i:with|by|as)",
    ),
    Context(
        r"(\$(?:2[aby]\$\d\d\$[./A-Za-z0-9]{53}|(?:apr1|1|5|6|y)\$[^\s:$]{1,40}\$[./A-Za-z0-9]{20,}"
        r"|argon2id?\$[^\s:]{30,}))",
        _matched("password hash"), "demo:$6$salt$" + "aB39xQ7k" * 10, "cost is $6 and $5",
        r"\$(?:2[aby]|apr1|1|5|6|y|argon2id?)\$",
    ),
    Context(
        r"(?:requirepass|masterauth|aws_secret_access_key|:_authToken|:_password) {1,4}([^\s=:])",
        _value(names.PASSWORD), "requirepass hunter2", "requirepass $PASS",
        r"(?:requirepass|masterauth|aws_secret_access_key|:_authToken|:_password) ",
    ),
    Context(
        rf"(?:\bENV|\bsetenv|config(?:ure)?(?: set| add| --[a-z]{{2,10}})*|\bset -[a-zU]{{1,4}}) [\w./:-]{{0,60}}(?i:{names.WORDS}) {{1,4}}([^\s=:])",
        _rest_of_instruction, "ENV DB_PASSWORD hunter2", "ENV DB_PASSWORD $PASS",
        r"ENV [A-Z]|setenv |config(?:ure)? |\bset -[a-zU]",
    ),
    Context(
        r"(?i:with|using|use|as|and)(?: (?:the|my|this|a|user|admin|root|db|database)){0,2} (?:the )?(?i:password|passphrase|passcode|api key|token|secret) ([^\s\"'`(]|\([^\s)]{6,100}(?:\s|\Z))",
        _word, "log in with password hunter2x", "log in with password authentication",
        r"(?:(?i:with|using|use|as|and) [a-z ]*)(?i:password|passphrase|passcode|api key|token|secret) [^\s\"'`]",
    ),
    Context(
        r"htpasswd -[A-Za-z]*b[A-Za-z]* {1,2}(?:\S{1,200} {1,2})?[^\s-]\S{0,100} {1,2}([^\s-]|-\S{0,80}\d)", _value(names.PASSWORD),
        "htpasswd -b .htpasswd demo hunter2", "htpasswd -b .htpasswd demo $PASS", "htpasswd -[A-Za-z]*b",
    ),
    Context(
        r"(?i:convertto-securestring)(?i: {1,2}-string)? {1,2}(\\*[\"'])", _value(names.PASSWORD),
        "ConvertTo-SecureString 'hunter2x' -AsPlainText", "ConvertTo-SecureString '$pass' -AsPlainText",
        "(?i:convertto-securestring) ",
    ),
    Context(
        r"(?:put-parameter|put-secret-value|create-secret|update-secret)[^\n|;]{0,300}? --(?:value|secret-string)[ =]([^\s$-])",
        _value(names.PASSWORD), "aws ssm put-parameter --name /app/key --value hunter2x", "aws ssm put-parameter --value $PASS",
        "(?:put-parameter|put-secret-value|create-secret|update-secret) ",
    ),
    Context(
        r"(?i:expect)[^\n]{0,60}(?i:password|passphrase|passcode)[^\n]{0,40}\n\s{0,20}send(?: --)? {1,2}([\"'])",
        _sent, 'expect "Password:"\nsend "hunter2\\r"', 'expect "Password:"\nsend "$pass\\r"',
        r"(?i:expect)[ \\\"'\(]+[^\n]*(?i:passw|passp|passc)",
    ),
    Context(
        r"\bkind: ?\"?Secret\b", tables.manifest,
        "kind: Secret\nstringData:\n  value: hunter2", "kind: Secret\nmetadata:\n  name: demo", r"\bkind: ?\"?Secret\b",
    ),
    Context(
        r"(?i:insert) +(?i:(?:or \w+ )?into) +[\w.`\"\\\[\]]{1,80}", tables.inserted,
        "INSERT INTO users (name, password) VALUES ('a', 'hunter2')", "INSERT INTO users (name, password) VALUES ('a', ?)",
        r"(?i:insert) +(?i:(?:or \w+ )?into) ",
    ),
    Context(
        rf"[|,][ \t]*([\w.-]{{0,60}}(?i:{names.WORDS}))[ \t]*(?=[\r\n])", tables.last_column,
        "id | password\n---+------\n1 | hunter2", "id | password\n---+------\n1 | string",
        rf"[|,][ \t]*[\w.-]*(?i:{names.WORDS})[ \t]*[\r\n]",
    ),
    Context(
        r"-(?:pass|passin|passout) pass:([^\s$])", _value(names.PASSWORD),
        "openssl rsa -passin pass:hunter2 -in k", "openssl rsa -passin pass:$PASS -in k",
        "-(?:pass|passin|passout) pass:",
    ),
    Context(
        r"\b(?:echo|printf)(?: -n| -e|(?: \\*[\"'])?%s(?:\\n)?\\*[\"']?)? (\\*'[^\n]{2,300}?'|\\*\"[^\n]{2,300}?\"|[^\s|;&$\"'][^|;&\n$]{2,200}?) ?(?:\||>\() ?[^|\n]{0,200}?"
        r"(?:--password-stdin|sudo -S|chpasswd|passwd|gh secret set|docker login|gh auth login --with-token|cryptsetup|vault login)",
        _piped, "echo hunter2 | docker login -u demo --password-stdin", "echo $PASS | sudo -S true",
        r"--password-stdin|sudo -S|chpasswd|\| *(?:sudo )?passwd|\| *(?:gh secret set|gh auth login|docker login|vault login)|cryptsetup", back=400,
    ),
    Context(
        r"(?:^|(?<=[\s\"'`]))[\w.*-]{1,80}:(?:\d{4,5}|\*):[\w.*-]{1,60}:[\w.*-]{1,60}:(\S)", _value(names.PASSWORD),
        "db.example.org:5432:shop:demo:hunter2", "db.example.org:5432:shop:demo:$PASS",
        r":(?:\d\d\d\d\d?|\*):[A-Za-z*][\w.*-]*:", back=80,
    ),
    Context(
        rf"(?<![\w-])--?([a-z-]{{0,40}}(?i:{names.WORDS})) {{1,2}}([^\s-]|-[^\s-]{{0,80}}\d)", assignments.option,
        "deploy --api-token 0a1b2c3d4e", "deploy --token-file path",
        rf"-[a-z-]*(?i:{names.WORDS}) ",
    ),
    *(_program(*row) for row in _PROGRAMS),
)  # fmt: skip
_LONG = 16
_SHORT = 6
