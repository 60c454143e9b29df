"""Patterns of secrets, each with one sample that must match and one that must not.

Each expression means the same to RE2 and to `re`, so it has no lookaround. Group 1 is the secret;
without a group, the whole match is. Where a pattern alone is not enough, `judge` decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from sess_cli.export import assignments

Span = tuple[int, int]


@dataclass(frozen=True)
class Pattern:
    name: str  # its name in the report and in the mask
    expression: str
    matches: str
    spares: str
    judge: Callable[[str, re.Match[str]], tuple[str, Span] | None] | None = None

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self.expression, re.ASCII)

    def look(self, text: str, at: int) -> Found | None:
        """Identify the candidate that begins here."""
        found = self.compiled.match(text, at)
        if found is None:
            return None
        if self.judge is None:
            return Found(self.name, found.span(found.re.groups and 1), found.end())
        verdict = self.judge(text, found)
        if verdict is not None:
            return Found(*verdict, found.end())
        # The value of a harmless name may itself contain a secret of another kind.
        value = found.start(1) if found.re.groups else at
        return Found(None, (at, at), value if value > at else found.end())


@dataclass(frozen=True, slots=True)
class Found:
    name: str | None  # None: it only looked like a secret
    span: Span
    rest: int  # where to continue in that case


# A word begins here, even right after the `m` of a colour or the `n` of an escaped newline.
_B = r"(?:\b|_|\x1b\[[0-9;]*m|\\[nrt])"
_PEM = r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
_PEM_END = re.compile(r"-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----")
# Allowed between the lines of a key: line breaks, also escaped ones, quotes, line numbers.
_PEM_CUT = re.compile(
    r"(?:(?:\\[nrt]|[\s\"'+,|>→:]|(?<=\s)\d{1,6}(?=[\s→|:]))*+[A-Za-z0-9+/=]{16,}+)*+"
    r"(?:\\[nr]|[\s\"'+])*+[A-Za-z0-9+/=]*+"
)
_BASE64_LINE = re.compile(r"[A-Za-z0-9+/=]{16}")
_COOKIE = re.compile(r"[^\s;\"'\\]{0,4000}")
_COOKIES = re.compile(r"[^\r\n\"'\\]{0,4000}")
_LONGEST_KEY = 20_000  # characters
# An entry in a manifest's list of variables: the value is a sibling of the name.
_NAMED = r"name[\"']?\s*:\s*[\"']?[A-Z0-9_]{0,60}(?:PASSWORD|SECRET|TOKEN|API_KEY)[A-Z0-9_]{0,30}"


def _pem(text: str, found: re.Match[str]) -> tuple[str, Span] | None:
    """The whole block, or what is left of a truncated one."""
    begin = found.end()
    limit = begin + _LONGEST_KEY
    marker = text.find("-----END ", begin, limit)
    end = _PEM_END.match(text, marker) if marker >= 0 else None
    if end is not None:
        whole = _BASE64_LINE.search(text, begin, end.start()) is not None
        return ("private key", (found.start(), end.end())) if whole else None
    cut = _PEM_CUT.match(text, begin, limit)
    if cut is None or _BASE64_LINE.search(text, begin, cut.end()) is None:
        return None
    return "private key", (found.start(), cut.end())


def _with_digit(name: str) -> Callable[[str, re.Match[str]], tuple[str, Span] | None]:
    """Random letters nearly always include a digit; words do not."""

    def judge(_text: str, found: re.Match[str]) -> tuple[str, Span] | None:
        secret = found[1]
        if not any(c.isdigit() for c in secret) or assignments.is_placeholder(secret):
            return None
        return name, found.span(1)

    return judge


def _url_password(_text: str, found: re.Match[str]) -> tuple[str, Span] | None:
    return None if assignments.is_placeholder(found[1]) else ("password", found.span(1))


def _cookies(text: str, found: re.Match[str]) -> tuple[str, Span] | None:
    """The value of `Set-Cookie` without its attributes; all pairs of `Cookie`."""
    begin, end = found.start(1), _COOKIE.match(text, found.end()).end()  # type: ignore[union-attr]
    if assignments.is_placeholder(text[begin:end]):
        return None
    if "set-cookie" not in found[0][:20].lower():
        rest = _COOKIES.match(text, end)
        if rest is not None and "[redacted" not in rest[0]:
            end = rest.end()
    return "cookie", (begin, end)


def _user_of_curl(text: str, found: re.Match[str]) -> tuple[str, Span] | None:
    line = text[max(found.start() - 400, 0) : found.start()].rpartition("\n")[2]
    return _url_password(text, found) if "curl" in line else None


API_KEYS = (
    Pattern(
        "API key", _B + r"(sk-ant-[A-Za-z0-9]{2,12}-[\w-]{20,})",
        "sk-ant-api03-" + "aB3_-9xQ" * 11, "sk-ant-api03-...",
    ),
    Pattern(
        "API key", _B + r"(sk-or-(?:v\d-)?[A-Za-z0-9]{20,})",
        "sk-or-v1-" + "0a1b2c3d" * 8, "sk-or-swim",
    ),
    Pattern(
        "API key", _B + r"(sk-(?:proj|svcacct|admin|None)-[\w-]{20,})",
        "sk-proj-" + "aB3_-9xQ" * 8, "sk-project-name",
    ),
    Pattern(
        "API key", _B + r"(sk-[A-Za-z0-9]{20,})",
        "sk-" + "aB39xQ" * 8, "risk-averse-and-otherwise-long", _with_digit("API key"),
    ),
    Pattern("API key", _B + r"(AIza[\w-]{35})", "AIza" + "aB3_9" * 7, "AIzawa"),
    Pattern(
        "API key", _B + r"((?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16})\b",
        "AKIA" + "QWER7TYU" * 2, "AKIARA",
    ),
    Pattern(
        "API key", _B + r"((?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,})",
        "sk_live_" + "aB39" * 6, "sk_live_mode",
    ),
    Pattern("API key", _B + r"(whsec_[A-Za-z0-9+/=]{24,})", "whsec_" + "aB39" * 8, "whsec_key"),
    Pattern(
        "API key", _B + r"(SG\.[\w-]{16,32}\.[\w-]{32,64})",
        "SG." + "aB3_9xQz" * 2 + "abcdef." + "aB39" * 10 + "abc", "SG.Singapore.Airlines",
    ),
    Pattern("API key", _B + r"(SK[0-9a-f]{32})\b", "SK" + "0a1b2c3d" * 4, "SKIPPED"),
    Pattern("API key", _B + r"(key-[0-9a-f]{32})\b", "key-" + "0a1b2c3d" * 4, "key-value"),
    Pattern("API key", _B + r"(gsk_[A-Za-z0-9]{32,})", "gsk_" + "aB39" * 12, "gsk_flags"),
    Pattern("API key", _B + r"(xai-[A-Za-z0-9]{40,})", "xai-" + "aB39" * 20, "xai-grok"),
    Pattern("API key", _B + r"(pplx-[A-Za-z0-9]{32,})", "pplx-" + "aB39" * 12, "pplx-online"),
    Pattern("API key", _B + r"(lin_api_[A-Za-z0-9]{32,})", "lin_api_" + "aB39" * 10, "lin_api_v"),
    Pattern("API key", _B + r"(AGE-SECRET-KEY-1[0-9A-Z]{50,})", "AGE-SECRET-KEY-1" + "QW3E" * 15,
            "AGE-SECRET-KEY-1..."),
)  # fmt: skip

TOKENS = (
    Pattern("token", _B + r"(gh[pousr]_[A-Za-z0-9]{30,})", "ghp_" + "aB39" * 9, "ghp_token"),
    Pattern(
        "token", _B + r"(github_pat_[A-Za-z0-9]{20,}_[A-Za-z0-9]{30,})",
        "github_pat_" + "aB39" * 5 + "ab_" + "aB39" * 14 + "abc", "github_pat_scopes",
    ),
    Pattern(
        "token", _B + r"(gl(?:pat|ptt|dt|rt|cbt|soat|ft|imt|agent)-[\w.-]{20,})",
        "glpat-" + "aB3_9" * 4, "glpat-short",
    ),
    Pattern(
        "token", _B + r"(xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,})",
        "xoxb-123456789012-" + "aB39" * 6, "xoxb-token",
        _with_digit("token"),
    ),
    Pattern("token", _B + r"(xapp-\d-[A-Z0-9]+-\d+-[0-9a-f]{32,})",
            "xapp-1-A0B1C2D3E4F-1234567890-" + "0a1b2c3d" * 8, "xapp-1-A0-1"),
    Pattern(
        "webhook", r"(hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/]{20,})",
        "https://hooks.slack.com/services/T0AB12CD3/B0AB12CD3/" + "aB39" * 6,
        "https://hooks.slack.com/services/T000",
    ),
    Pattern(
        "webhook", r"(discord(?:app)?\.com/api/webhooks/\d{10,}/[\w-]{30,})",
        "https://discord.com/api/webhooks/123456789012345678/" + "aB3_9xQz" * 8,
        "https://discord.com/api/webhooks/123",
    ),
    Pattern("token", _B + r"(npm_[A-Za-z0-9]{36})", "npm_" + "aB39" * 9, "npm_config_registry"),
    Pattern("token", _B + r"(pypi-AgE[\w-]{50,})", "pypi-AgEIcHlwaS5vcmc" + "aB3_9" * 12,
            "pypi-AgE"),
    Pattern("token", _B + r"(hf_[A-Za-z0-9]{30,})", "hf_" + "aBcD9" * 7, "hf_model_name"),
    Pattern("token", _B + r"(do[opr]_v1_[0-9a-f]{60,})", "dop_v1_" + "0a1b2c3d" * 8, "dop_v1_x"),
    Pattern("token", _B + r"(dapi[0-9a-f]{32}(?:-\d)?)\b", "dapi" + "0a1b2c3d" * 4, "dapi-docs"),
    Pattern("token", _B + r"(hv[sbr]\.[\w-]{24,})", "hvs." + "aB3_9x" * 5, "hvs.token",
            _with_digit("token")),
    Pattern(
        "token", _B + r"(\d{8,10}:AA[\w-]{33})", "123456789:AA" + "aB3" * 11, "12345678:AAB",
    ),
    Pattern(
        "token", _B + r"([MNO][A-Za-z0-9]{23,27}\.[\w-]{6}\.[\w-]{27,40})",
        "MTIzNDU2Nzg5MDEyMzQ1Njc4.GaB3_9." + "aB3_9xQz" * 4, "NotImplemented.foobar.baz",
    ),
    Pattern("token", _B + r"(shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32})", "shpat_" + "0a1b2c3d" * 4,
            "shpat_x"),
    Pattern("token", _B + r"(ya29\.[\w-]{30,})", "ya29." + "aB3_9" * 10, "ya29.x"),
    Pattern("token", _B + r"(sntry[su]_[A-Za-z0-9+/=_]{40,})", "sntrys_" + "aB39" * 12, "sntrys_x"),
    Pattern("token", _B + r"(ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43})\b", "ntn_" + "aB39" * 11,
            "secret_manager_client_configuration_for_project"),
    Pattern(
        "token", _B + r"(eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*)",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
        "eyJhbGciOiJIUzI1NiJ9.payload.signature",
    ),
    Pattern(
        "token", _B + r"(?i:bearer) {1,4}([A-Za-z0-9._~+/=-]{16,})",
        "Authorization: Bearer " + "aB3.9" * 6, "Bearer authentication-required",
        _with_digit("token"),
    ),
    Pattern(
        "password",
        _B + r"(?i:authorization)[\\\"']{0,3}[ \t]{0,4}[:=][ \t]{0,4}[\\\"']{0,3}"
        r"(?i:basic|token|digest|apikey) {1,4}([A-Za-z0-9._~+/=-]{6,})",
        "Authorization: Basic dXNlcjpodW50ZXIy", "Authorization: Basic $CREDENTIALS", _url_password,
    ),
    Pattern(
        "token", r"[?&](?i:sig|x-amz-signature|x-goog-signature)=([A-Za-z0-9%+/=_-]{24,})",
        "https://a.blob.core.windows.net/c/b?sv=2024&sig=" + "aB3%2" * 9, "?sig=short",
    ),
)  # fmt: skip

OTHERS = (
    Pattern(
        "private key", _PEM,
        "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA" * 4
        + "\n-----END RSA PRIVATE KEY-----",
        'if "-----BEGIN PRIVATE KEY-----" in text:', _pem,
    ),
    Pattern(
        "private key", _B + r"Private-Lines: \d+\r?\n((?:[A-Za-z0-9+/=]+\r?\n)*[A-Za-z0-9+/=]+)",
        "Private-Lines: 2\nAAAAgQCkL0aB39\nAAAAgQ==", "Private-Lines: 2",
    ),
    Pattern(
        "password", r"://[^\s:/@\"'`<>\[\]{}$]*:([^\s@/\"'`<>]+)@[A-Za-z0-9\[]",
        "postgres://demo:hunter2@db.example.org/demo", "postgres://demo:$PASSWORD@db.example.org",
        _url_password,
    ),
    Pattern(
        "token", r"://([A-Za-z0-9_-]{20,})@[A-Za-z0-9]",
        "https://" + "0a1b2c3d" * 5 + "@git.example.org/o/r", "https://name@git.example.org",
        _with_digit("token"),
    ),
    Pattern(
        "cookie",
        _B + r"(?i:set-cookie|cookie)[\\\"']{0,3}: ?[\\\"']{0,3}[\w.-]+=([^\s;\"'\\]{6})",
        "Set-Cookie: session=0a1b2c3d4e5f; Path=/", "Cookie: theme=dark", _cookies,
    ),
    Pattern(
        "password", r" (?:-u|--user)[ =][\"']?[\w.@+-]+:([^\s\"':@]{4,})",
        "curl -s -u demo:hunter2 https://example.org", "docker run -u 1000:hunter2", _user_of_curl,
    ),
    Pattern(
        "password", _B + r"sshpass -p ?[\"']?([^\s\"']{3,})",
        "sshpass -p hunter2 ssh host", "sshpass -p $PASS ssh host", _url_password,
    ),
    Pattern(
        "password", _B + r"(?:machine\s+\S+|default)\s+login\s+\S+\s+password\s+(\S{3,})",
        "machine example.org login demo password hunter2", "machine x login y password $PASS",
        _url_password,
    ),
    Pattern(
        "password",
        _B + r"mysql(?:dump|admin)?(?: [^\n|;&]{0,200})? -p[\"']?([^\s\"'$-][^\s\"']{3,})",
        "mysql -u demo -phunter2 shop", "mysqldump --port 3306 -p shop", _url_password,
    ),
    Pattern(
        "token", r"\"auth\"\s*:\s*\"([A-Za-z0-9+/]{12,}={0,2})\"",
        '{"auths": {"hub.example.org": {"auth": "ZGVtbzpodW50ZXIy"}}}', '"auth": "basic"',
    ),
    Pattern(
        "secret",
        _NAMED + r"[\"']?,?\s*[\"']?value[\"']?\s*:\s*[\"']?([^\s\"'{}$,][^\s\"',]{3,})",
        "- name: DB_PASSWORD\n  value: hunter2", "- name: DB_PASSWORD\n  valueFrom: vault",
        _url_password,
    ),
)  # fmt: skip

NAMED = (
    Pattern(
        "secret", assignments.EXPRESSION,
        "AWS_SECRET_ACCESS_KEY=" + "wJalrXUtnFEMI/K7" * 2 + "bPxRfiCY", "max_tokens=4096",
        assignments.judge,
    ),
    Pattern(
        "secret", assignments.OPTION, "deploy --api-token 0a1b2c3d4e", "deploy --token-file path",
        assignments.judge_option,
    ),
)  # fmt: skip

PATTERNS = (*NAMED, *API_KEYS, *TOKENS, *OTHERS)
