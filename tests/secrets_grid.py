"""Invented secrets in every syntax that people write them in, for tests of redaction."""

from __future__ import annotations

import json
import random
import re
import string
from collections.abc import Callable, Iterator
from urllib.parse import quote

from tests import secrets_syntaxes as more

PRINTABLE = string.ascii_letters + string.digits + string.punctuation

NAMES = (
    "DB_PASSWORD", "password", "SMTP_PASS", "SECRET_KEY_BASE", "APP_KEY", "SUPABASE_SERVICE_ROLE_KEY",
    "client-key-data", "apiKey", "auth_token", "AWS_SECRET_ACCESS_KEY", "clientSecret", "passphrase",
    "db.password", "API_KEY", "GITHUB_PAT", "redis_pwd", "jwt_secret", "privateKey", "AccountKey",
    "STRIPE_WEBHOOK_SECRET", "encryption_key", "npm_token", "spring.datasource.password", "PGPASSWORD",
    "aws_secret_access_key", "ROOT_PASSWD", "refreshToken", "RAILS_MASTER_KEY", "mailgun.api.key", "slack_token",
)  # fmt: skip


ALPHABETS = (
    PRINTABLE, PRINTABLE, PRINTABLE, string.ascii_lowercase, string.ascii_uppercase, string.ascii_letters,
    string.digits, string.ascii_letters + string.digits, "0123456789abcdef", string.ascii_letters + "-_",
    string.ascii_letters + "äöüßéñçøžłабвгдежз秘密鍵한글",
)  # fmt: skip
WORDS = ("hunter", "dragon", "coffee", "winter", "purple", "monkey", "sunset", "castle")
LENGTHS = (8, 10, 12, 16, 20, 20, 24, 32, 48, 64)


def secret(dice: random.Random, length: int = 20, alphabet: str = PRINTABLE) -> str:
    return "".join(dice.choice(alphabet) for _ in range(length))


def _of_words(dice: random.Random) -> str:
    """As people choose them: `hunter2secret`."""
    return f"{dice.choice(WORDS)}{dice.randint(10, 9999)}{dice.choice(WORDS)}"


def _joined(dice: random.Random) -> str:
    """Words and a number with signs between them, which could as well be an expression."""
    joined = dice.choice(WORDS)
    for _ in range(dice.randint(1, 3)):
        joined += dice.choice("./_-:+") + dice.choice((str.lower, str.title, str.upper))(
            dice.choice(WORDS)
        )
    return f"{joined}{dice.choice('_-./')}{dice.randint(10, 9999)}{dice.choice(('', '', '!', '?', '+', '='))}"


def _phrase(dice: random.Random) -> str:
    """Words and a number, or signs with blanks among them."""
    if dice.random() < 0.5:
        return (
            " ".join(dice.choice(WORDS) for _ in range(dice.randint(2, 4)))
            + f" {dice.randint(10, 9999)}"
        )
    return f"x{secret(dice, dice.choice(LENGTHS), PRINTABLE + '     ')}7"


def _json(value: str) -> str:
    return json.dumps(value)[1:-1]


def _no(characters: str) -> Callable[[str], str]:
    """The same secret without what this syntax cannot hold."""

    def written(value: str) -> str:
        # Where a value may be quoted, one without quotes does not begin as a literal does.
        quoted = value[0] in "\"'`" or (value[0] in "bruf@$" and value[1:2] in "\"'")
        first = "x" if quoted else value[0]
        return "".join("x" if c in characters else c for c in first + value[1:])

    return written


def _xml(value: str) -> str:
    return value.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


def _shell(value: str) -> str:
    return value.replace("'", "'\"'\"'")


CODE = frozenset({
    "xml", "xml attribute", "python", "javascript", "typescript", "template literal", "go", "terraform",
    "terraform value", "powershell", "perl hash", "braces", "default of getenv", "default of a field", "wrapped", "tuple",
    "equals", "ticks of powershell", "go object", "makefile", "text of an object", "element on a line", "cdata", "raw rust", "rust", "typed go", "c array", "property", "fallback", "in brackets", "plist",
})  # fmt: skip
# In these a value may have blanks: something else than a blank shows its end.
WITH_BLANKS = frozenset({
    "export", "double-quoted shell", "yaml double", "yaml single", "yaml block", "json", "json pretty", "json in json",
    "toml", "python", "javascript", "xml", "xml attribute", "php", "manifest", "option", "with password", "docker -e",
    "go", "rust", "element on a line", "cdata", "arguments", "argument", "parameter store", "secure string", "raw rust",
    "quoted whole", *(syntax for syntax, _, _ in more.WITH_BLANKS),
})  # fmt: skip
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
    ("coloured", _no("\"'`"), "\x1b[34m{name}\x1b[0m=\x1b[32m{secret}\x1b[0m\n"),
    ("heredoc", _no(""), "cat > .env <<EOF\n{name}={secret}\nEOF\n"),
    ("triple", _no('"\\'), 'x\n{name} = """{secret}"""\ny'),
    ("list", _json, '"{name}": ["{secret}"]'),
    ("ini", _no(";#"), "[db]\n{name} = {secret}\nport = 1"),
    ("compose", _no("#'\"{}[]&*!|>%@`,"), "    environment:\n      - {name}={secret}\n      - A=1"),
    ("docker -e", _shell, "docker run -e {name}='{secret}' image"),
    ("typescript", lambda v: v.replace("\\", "\\\\").replace("'", "\\'"), "const {name}: string = '{secret}';"),
    ("template literal", lambda v: v.replace("\\", "\\\\").replace("`", "\\`"), "const {name} = `{secret}`;"),
    ("go", _json, '{name} := "{secret}"\n'),
    ("terraform", _json, 'variable "{name}" {{\n  default = "{secret}"\n}}\n'),
    ("terraform value", _json, '  {name} = "{secret}"\n'),
    ("kubectl", _shell, "kubectl create secret generic x --from-literal={name}='{secret}'"),
    ("setx", _no('"'), 'setx {name} "{secret}"'),
    ("powershell", lambda v: v.replace("'", "''"), "$env:{name} = '{secret}'"),
    ("properties :", _no("\"'`"), "{name}: {secret}\n"),
    ("table", _no("|\"'`\\"), "| {name} | {secret} |\n"),
    ("option = quoted", _shell, "deploy --client-secret='{secret}' now"),
    ("option bare", _no("\"'`-"), "deploy --token {secret} now"),
    ("header line", _no("\"'`"), "GET / HTTP/1.1\nX-Auth-Token: {secret}\nAccept: */*"),
    ("markdown", _no("`"), "Use `{name}={secret}` here."),
    ("fence", _no(""), "```sh\nexport {name}={secret}\n```"),
    ("rust", _json, 'const {name}: &str = "{secret}";'),
    ("typed go", _json, 'const {name} string = "{secret}"'),
    ("c array", _json, 'static const char {name}[] = "{secret}";'),
    ("property", _json, 'public string {name} {{ get; set; }} = "{secret}";'),
    ("fallback", _json, 'const {name} = process.env.OTHER || "{secret}";'),
    ("in brackets", _json, '{name} = (\n    "{secret}"\n)'),
    ("any authorization", _no("\"'`\\([{{"), "GET / HTTP/1.1\nAuthorization: {secret}\nAccept: */*"),
    ("header of a program", _json, 'headers["Authorization"] = "token {secret}"'),
    ("later cookie", _no("\"'`\\;,"), "Cookie: theme=dark; sessionid={secret}; a=1"),
    ("insert", lambda v: v.replace("\\", "x").replace("'", "''"), "INSERT INTO users (name, password, age) VALUES ('bob', '{secret}', 4);"),
    ("column", _no("|`"), "| user | password |\n|---|---|\n| bob | {secret} |"),
    ("csv", _no("\"'`,"), "user,password,age\nbob,{secret},4"),
    ("secret manifest", _no("\"'`#|>{{}}[]&*!%@,-"), "kind: Secret\nstringData:\n  value: {secret}\n"),
    ("netrc", _no("\"'`"), "machine h.example\n  login bob\n  password {secret}\n"),
    ("pgpass", _no("\"'`:\\"), "db.example.org:5432:shop:demo:{secret}"),
    ("bullet", _no("`"), "- **Password:** `{secret}`\n- **User:** bob"),
    ("sentence", _no("\"'`"), "log in as bob with password {secret}"),
    ("sentence with ticks", _no("`\\"), "Use the password `{secret}` to log in."),
    ("sentence with is", _no("\"'`\\$!"), "the admin password is {secret}"),
    ("piped", _no("'"), "echo '{secret}' | gh secret set {name}"),
    ("image", _no("\"'`\\$"), "FROM x\nENV DB_PASSWORD {secret}\nRUN y"),
    ("plist", _xml, "<key>{name}</key>\n<string>{secret}</string>"),
    ("element on a line", _xml, "<{name}>\n  {secret}\n</{name}>"),
    ("cdata", _no("]"), "<{name}><![CDATA[{secret}]]></{name}>"),
    ("arguments", _json, '"args": ["--password", "{secret}", "--host"]'),
    ("argument", _json, '"args": ["--client-secret={secret}", "--host"]'),
    ("option glued", lambda v: v.replace("\\", "\\\\").replace('"', '\\"'), 'gh secret set {name} -b"{secret}"'),
    ("parameter store", _shell, "aws ssm put-parameter --name /app/key --value '{secret}' --overwrite"),
    ("secure string", lambda v: v.replace("'", "''"), "ConvertTo-SecureString -String '{secret}' -AsPlainText"),
    ("raw rust", _no('"'), 'let {name} = r#"{secret}"#;'),
    ("quoted whole", _shell, "docker run -e '{name}={secret}' image"),
    ("address in quotes", _json, 'url = "amqp://svc:{secret}@mq.example.org:5672/"'),
    ("root in an address", _no("\"'`<>"), "mongodb://root:{secret}@mongo:27017/?authSource=admin"),
    *more.WITH_BLANKS,
    *more.WITHOUT_BLANKS,
)  # fmt: skip


def _diff(text: str) -> str:
    return "\n".join("+" + line for line in text.split("\n"))


# Where the text stands: as it is, and in what tools make of it.
PLACES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("prompt", lambda text: f"Please look:\n{text}\nThanks"),
    ("output", str),
    ("diff", _diff),
    ("numbered", lambda text: "\n".join(f"{n:6}\t{line}" for n, line in enumerate(text.split("\n"), 1))),
    ("tool input", lambda text: json.dumps({"command": text, "timeout": 5})),
    ("json in json", lambda text: json.dumps({"body": json.dumps({"content": text})})),
    ("markdown", lambda text: f"- see\n\n```\n{text}\n```\n"),
    ("coloured", lambda text: "\n".join(f"\x1b[32m{line}\x1b[0m" for line in text.split("\n"))),
    ("found", lambda text: "\n".join(f"etc/app.conf:{n}:{line}" for n, line in enumerate(text.split("\n"), 3))),
    ("quoted", lambda text: "\n".join(f"> {line}" for line in text.split("\n"))),
    ("commented", lambda text: "\n".join(f"# {line}" for line in text.split("\n"))),
    ("from Windows", lambda text: text.replace("\n", "\r\n")),
    ("log", lambda text: "\n".join(f"2026-01-02T03:04:05Z INFO {line}" for line in text.split("\n"))),
    ("repr", lambda text: f"stdout={text!r}"),
    ("in a shell", lambda text: "bash -c '" + text.replace("'", "'\\''") + "'"),
    *more.PLACES,
)  # fmt: skip


def cases(dice: random.Random, rounds: int) -> Iterator[tuple[str, str, str]]:
    """The syntax and the place, the text, and the secret as it is written in the syntax."""
    for _ in range(rounds):
        for syntax, written, form in SYNTAXES:
            name = dice.choice(NAMES)
            if syntax in CODE:
                name = name.replace(".", "_").replace("-", "_")
            random_one = secret(dice, dice.choice(LENGTHS), dice.choice(ALPHABETS))
            if syntax in WITH_BLANKS and dice.random() < _BLANK:
                random_one = _phrase(dice)
            if dice.random() < _WORDY:
                random_one = dice.choice((_of_words, _joined))(dice)
            made = written(random_one)
            place, put = dice.choice(PLACES)
            yield f"{syntax}, {place}", put(form.format(name=name, secret=made)), made


def leaks(text: str, made: str, least: int = 5) -> bool:
    """Whether so many characters of the secret in a row are in the text, also escaped as in JSON."""
    once = _json(made)
    text = _MASKS.sub("\0", text)
    return any(
        form[at : at + least] in text
        for form in dict.fromkeys((made, once, _json(once)))
        for at in range(max(len(form) - least + 1, 1))
        if len(_ESCAPE.sub("", form[at : at + least])) >= _TELLING
    )


_WORDY = 0.2  # of the secrets
_BLANK = 0.2  # of those that may have blanks
_TELLING = 3  # characters that are no part of an escape: any text may have `\\u00` or `&lt;`
_MASKS = re.compile(r"\[redacted: [A-Za-z ]+\]")
_ESCAPE = re.compile(r"\\+(?:u[0-9a-f]{0,4})?|&?(?:lt|gt|amp|quot)?;|&(?:lt|gt|amp|quot)?")
