"""Invented secrets in every syntax that people write them in, for tests of redaction."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable, Iterator
from urllib.parse import quote

PRINTABLE = string.ascii_letters + string.digits + string.punctuation

NAMES = (
    "DB_PASSWORD", "password", "SMTP_PASS", "SECRET_KEY_BASE", "APP_KEY", "SUPABASE_SERVICE_ROLE_KEY",
    "client-key-data", "apiKey", "auth_token", "AWS_SECRET_ACCESS_KEY", "clientSecret", "passphrase",
    "db.password", "API_KEY", "GITHUB_PAT", "redis_pwd", "jwt_secret", "privateKey", "AccountKey",
    "STRIPE_WEBHOOK_SECRET", "encryption_key", "npm_token", "spring.datasource.password",
)  # fmt: skip


def secret(dice: random.Random, length: int = 20) -> str:
    """Any printable symbols; at least one letter and one digit, as generators make them."""
    made = [dice.choice(PRINTABLE) for _ in range(length - 2)]
    made += [dice.choice(string.ascii_letters), dice.choice(string.digits)]
    dice.shuffle(made)
    return "".join(made)


def _json(value: str) -> str:
    return json.dumps(value)[1:-1]


def _no(characters: str) -> Callable[[str], str]:
    """The same secret without what this syntax cannot hold."""

    def written(value: str) -> str:
        # Where a value may be quoted, one without quotes does not begin with such a sign.
        first = "x" if value[0] in "\"'`" else value[0]
        return "".join("x" if c in characters else c for c in first + value[1:])

    return written


def _xml(value: str) -> str:
    return value.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


def _shell(value: str) -> str:
    return value.replace("'", "'\"'\"'")


# A name for the syntax, how the secret is written in it, and the text around.
SYNTAXES: tuple[tuple[str, Callable[[str], str], str], ...] = (
    ("env", _no(""), "A=1\n{name}={secret}\nB=2"),
    ("export", _shell, "export {name}='{secret}' && make"),
    ("double-quoted shell", lambda v: v.replace("\\", "\\\\").replace('"', '\\"'), '{name}="{secret}" ./run'),
    ("yaml", _no("#'\"{}[]&*!|>%@`,"), "spec:\n  {name}: {secret}\n  b: 2"),
    ("yaml double", _json, 'spec:\n  {name}: "{secret}"\n'),
    ("yaml single", lambda v: v.replace("'", "''"), "spec:\n  {name}: '{secret}'\n"),
    ("yaml block", _no(""), "spec:\n  {name}: |\n    {secret}\n    more\n  b: 2"),
    ("json", _json, '{{"user": "demo", "{name}": "{secret}", "b": 2}}'),
    ("json pretty", _json, '{{\n  "{name}": "{secret}",\n  "b": 2\n}}'),
    ("json in json", lambda v: _json(_json(v)), '{{"body": "{{\\"{name}\\": \\"{secret}\\", \\"b\\": 2}}"}}'),
    ("env in json", _json, '{{"file": "A=1\\n{name}={secret}\\nB=2"}}'),
    ("toml", _json, '[db]\n{name} = "{secret}"\nport = 1'),
    ("python", lambda v: repr(v)[1:-1].replace('"', '\\"').replace("\\'", "'"), 'connect({name}="{secret}", port=1)'),
    ("javascript", lambda v: v.replace("\\", "\\\\").replace("'", "\\'"), "const c = {{ {name}: '{secret}', b: 2 }};"),
    ("xml", _xml, "<db><{name}>{secret}</{name}></db>"),
    ("xml attribute", _xml, '<db {name}="{secret}" port="1"/>'),
    ("xml entry", _xml, '<entry key="{name}" value="{secret}"/>'),
    ("php", lambda v: v.replace("\\", "\\\\").replace("'", "\\'"), "define('{name}', '{secret}');"),
    ("manifest", _json, 'env:\n- name: {name}\n  value: "{secret}"\n'),
    ("option", _shell, "deploy --verbose --password '{secret}' now"),
    ("option =", _no("'\""), "deploy --password={secret} now"),
    ("identified by", lambda v: v.replace("'", "''"), "CREATE USER demo IDENTIFIED BY '{secret}';"),
    ("with password", lambda v: v.replace("'", "''"), "ALTER USER demo WITH PASSWORD '{secret}';"),
    ("url", lambda v: quote(v, safe=""), "postgres://demo:{secret}@db.example.org/shop"),
    ("url raw", _no("\"'`<>"), "postgres://demo:{secret}@db.example.org/shop"),
    ("connection string", _no("; '\"`"), "Server=h;User Id=demo;Password={secret};Encrypt=true"),
    ("query", lambda v: quote(v, safe=""), "https://h.example/?a=1&access_token={secret}&b=2"),
    ("header", _no("\"'"), "curl -H 'X-Api-Key: {secret}' https://h.example"),
    ("basic", lambda v: v.encode().hex(), "Authorization: Basic {secret}\nAccept: */*"),
    ("curl -u", _shell, "curl -u 'demo:{secret}' https://h.example"),
    ("mysql -p", _shell, "mysql -u demo -p'{secret}' shop"),
    ("sshpass", _shell, "sshpass -p '{secret}' ssh h"),
    ("properties", _no(""), "a=1\n{name}={secret}\n"),
    ("diff", _no(""), "@@ -1 +1 @@\n-{name}={secret}\n+b"),
    ("cat -n", _no(""), "     1\ta=1\n     2\t{name}={secret}\n     3\tb=2"),
    ("numbered yaml", _json, '     1→db:\n     2→  {name}: "{secret}"\n     3→  b: 2'),
    ("coloured", _no(""), "\x1b[34m{name}\x1b[0m=\x1b[32m{secret}\x1b[0m\n"),
    ("heredoc", _no(""), "cat > .env <<EOF\n{name}={secret}\nEOF\n"),
    ("triple", _no('"\\'), 'x\n{name} = """{secret}"""\ny'),
    ("list", _json, '"{name}": ["{secret}"]'),
)  # fmt: skip
WITHOUT_NAME = frozenset(name for name, _, form in SYNTAXES if "{name}" not in form)


def cases(dice: random.Random, rounds: int) -> Iterator[tuple[str, str, str]]:
    """The syntax, the text, and the secret as it is written there."""
    for _ in range(rounds):
        for syntax, written, form in SYNTAXES:
            name = dice.choice(NAMES)
            if syntax in ("xml", "xml attribute", "python", "javascript"):
                name = name.replace(".", "_").replace("-", "_")
            made = written(secret(dice, dice.choice((12, 16, 20, 20, 32))))
            yield syntax, form.format(name=name, secret=made), made


def leaks(text: str, made: str, least: int = 6) -> bool:
    """Whether so many characters of the secret in a row are in the text."""
    return any(made[at : at + least] in text for at in range(max(len(made) - least + 1, 1)))
