"""Secrets are masked; what only looks like one stays."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from base64 import b64encode
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.at_length import amount
from tests.secrets_grid import cases, leaks

from sess_common.errors import SessError
from sess_redaction.contexts import CONTEXTS
from sess_redaction.extents import Extents
from sess_redaction.redactor import Redactor, rules
from sess_redaction.shapes import SHAPES

MASK = re.compile(r"\[redacted: [A-Za-z ]+\]")
HEX = "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"
LINE = "MIIEpAIBAAKCAQEA75aB39xQ"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{LINE}\n{LINE}==\n-----END RSA PRIVATE KEY-----"


def clean(text: str) -> str:
    return Redactor("/home/demo")(text)


AROUND = ("{}", "see {} there", '{{"a": "{}"}}', "\x1b[32m{}\x1b[0m", "line\\n{}\\nline")


@pytest.mark.parametrize("shape", SHAPES, ids=lambda one: one.sample[:12])
def test_each_shape_is_masked_anywhere_and_whole(shape):
    for around in AROUND:
        redactor = Redactor(None)
        masked = redactor(around.format(shape.sample))
        assert masked == around.format(f"[redacted: {shape.kind}]")
        assert redactor.masked.total() == 1


@pytest.mark.parametrize("shape", SHAPES, ids=lambda one: one.sample[:12])
def test_a_shape_cut_short_is_just_a_word(shape):
    assert MASK.search(clean(shape.sample[:8])) is None


@pytest.mark.parametrize("shape", SHAPES, ids=lambda one: one.sample[:12])
def test_a_shape_that_a_terminal_broke_is_masked_whole(shape):
    line = f"{'The value that was printed is':<70} {shape.sample}"
    random_part = re.search("aB39|0a1b|QWER", shape.sample)
    if (
        shape.sign
        or random_part is None
        or shape.sample.startswith(("A3-", "pat-", "re_", "FlyV1 ", "K10"))
    ):
        return
    for at in range(72 + random_part.start(), 67 + min(len(shape.sample), 100), 9):
        cleaned = clean(f"{line[:at]}\n{line[at:]}\nnext line")
        assert not leaks(cleaned, shape.sample[4:], 12), at


@pytest.mark.parametrize("context", CONTEXTS, ids=lambda one: one.sample[:20])
def test_each_context_masks_its_sample_and_spares_its_counter_example(context):
    for around in ("{}", "$ {}\n", "\x1b[32m{}\x1b[0m"):
        if context.back and around != "{}":
            continue
        assert len(MASK.findall(clean(around.format(context.sample)))) == 1
    assert clean(context.spares) == context.spares


@pytest.mark.parametrize(
    ("given", "masked"),
    [
        ("password=hunter2secret", "password=[redacted: password]"),
        ("DB_PASSWORD=Ab$cdef12XyZ", "DB_PASSWORD=[redacted: password]"),
        ("db.pass=hunter2x", "db.pass=[redacted: password]"),
        ("java -Dapp.secret.key.base=abcD1234efgh -jar", "java -Dapp.secret.key.base=[redacted: secret] -jar"),
        ("password=monkey+Tree7", "password=[redacted: password]"),
        ("jwt_secret=monkey+Tree7", "jwt_secret=[redacted: secret]"),
        ('setenv("API_TOKEN", `vO5#X7<wZ>`)', 'setenv("API_TOKEN", `[redacted: token]`)'),
        ('set_var("API_TOKEN", r#"lamp_Yellow_4400"#)', 'set_var("API_TOKEN", r#"[redacted: token]"#)'),
        ("password=Spring=2025", "password=[redacted: password]"),
        ('"password": "7[xK2mPq9wLz"', '"password": "[redacted: password]"'),
        ("postgres://app:pa@ssWord99@db", "postgres://app:[redacted: password]@db"),
        ("postgres://app:pa/ssWord99@db", "postgres://app:[redacted: password]@db"),
        ("https://u:hunter2@h.example/@scope/x", "https://u:[redacted: password]@h.example/@scope/x"),
        ("password:AKIA" + "QWER7TYU" * 2 + "=@bearer ", "password:[redacted: password] "),
        ("client-key-data: LS0tLS1CRUdJ" + "aB39" * 9, "client-key-data: [redacted: API key]"),
        ("a:\n  password: |\n    one\n    two\n  b: 1", "a:\n  password: |\n[redacted: password]\n  b: 1"),
        ("APP_KEY: AbemZdYcr=.MMUQHQo;7", "APP_KEY: [redacted: API key]"),
        ("gh\x1b[1mp_" + "aB39" * 9, "[redacted: token]"),
        ("password=hunter2", "password=[redacted: password]"),
        ("DB_PASSWORD=swordfish", "DB_PASSWORD=[redacted: password]"),
        (r"a\nDB_PASSWORD=swordfish", r"a\nDB_PASSWORD=[redacted: password]"),
        (
            '\x1b[34;1m"password"\x1b[0m\x1b[1m:\x1b[0m \x1b[32m"hunter2"\x1b[0m',
            '\x1b[34;1m"password"\x1b[0m\x1b[1m:\x1b[0m \x1b[32m"[redacted: password]"\x1b[0m',
        ),
        ("export API_TOKEN=abc123def456", "export API_TOKEN=[redacted: token]"),
        ('"password": "hunter2!",', '"password": "[redacted: password]",'),
        (r"{\"apiKey\": \"a1b2c3d4\"}", r"{\"apiKey\": \"[redacted: API key]\"}"),
        ('token: str = "a1b2c3d4"', 'token: str = "[redacted: token]"'),
        ("clientSecret: 'a1b2c3d4'", "clientSecret: '[redacted: secret]'"),
        ("x-api-key: a1b2c3d4e5", "x-api-key: [redacted: API key]"),
        ("https://h.example/?token=a1b2c3&x=1", "https://h.example/?token=[redacted: token]&x=1"),
        ("run --password hunter2 now", "run --password [redacted: password] now"),
        ("run --password=hunter2 now", "run --password=[redacted: password] now"),
        ("PASSPHRASE='one two three four'", "PASSPHRASE='[redacted: password]'"),
        ('os.environ["API_KEY"] = "a1b2c3d4"', 'os.environ["API_KEY"] = "[redacted: API key]"'),
        (r"TOKEN=a1b2c3d4\nNEXT=1", r"TOKEN=[redacted: token]\nNEXT=1"),
        ("git://u:hunter2@h.example/r", "git://u:[redacted: password]@h.example/r"),
        ("Authorization: Basic dTpodW50ZXIy", "Authorization: Basic [redacted: password]"),
        ("authorization: bearer " + HEX, "authorization: bearer [redacted: token]"),
        (
            "Set-Cookie: sid=a1b2c3d4; Path=/; HttpOnly",
            "Set-Cookie: sid=[redacted: cookie]; Path=/; HttpOnly",
        ),
        ("-H 'Cookie: sid=a1b2c3d4; b=2'", "-H 'Cookie: sid=[redacted: cookie]'"),
        (
            "AccountName=demo;AccountKey=" + "aB3/" * 20 + "==;Suffix=x",
            "AccountName=demo;AccountKey=[redacted: API key];Suffix=x",
        ),
        ("aws_secret_access_key = " + "aB3/" * 10, "aws_secret_access_key = [redacted: secret]"),
        ("//r.example/:_authToken=a1b2c3d4e", "//r.example/:_authToken=[redacted: token]"),
        ("mongodb://root:hunter2@h.example", "mongodb://root:[redacted: password]@h.example"),
        ("Cookie: theme=dark; sid=a1b2c3d4; b=2", "Cookie: theme=dark; sid=[redacted: cookie]"),
        ("Set-Cookie: a=b; Max-Age=31536000", "Set-Cookie: a=b; Max-Age=31536000"),
        ("DB_PASSWORD=ab12 cd34ef\nA=1", "DB_PASSWORD=[redacted: password]\nA=1"),
        ("DB_PASSWORD=a1b2c3d4 psql -U demo", "DB_PASSWORD=[redacted: password] psql -U demo"),
        ("> kind: Secret\n> data:\n>   a: aHVudGVyMg==\n> b: 1", "> kind: Secret\n> data:\n>   a: [redacted: secret]\n> b: 1"),
        ('password = "my secret passphrase 99"', 'password = "[redacted: password]"'),
        ("DB_PASSWORD=correct horse battery 99\nA=1", "DB_PASSWORD=[redacted: password]\nA=1"),
        ("db:\n  password: dNB Q Rm ^,+D8 # changed", "db:\n  password: [redacted: password] # changed"),
        ("run -e 'API_KEY=T ,dP b;cI G' x", "run -e 'API_KEY=[redacted: API key]' x"),
        ("Set `GH_TOKEN=k0hqj~W .b?AP` and go.", "Set `GH_TOKEN=[redacted: token]` and go."),
        (r"login --token Br\ 5\~Rh\(9z --host x", "login --token [redacted: token] --host x"),
        ("<password>\n  hunter2\n</password>", "<password>\n  [redacted: password]\n</password>"),
        ("| dbPassword | WinterCastle19 |", "| dbPassword | [redacted: password] |"),
        ("api_key = summer.castle_871", "api_key = [redacted: API key]"),
        ("--set auth.token=open/night/cat_158 --wait", "--set auth.token=[redacted: token] --wait"),
        ("the token is open/night/cat_158, keep it", "the token is [redacted: token] keep it"),
        ("&lt;token&gt;a1b2c3d4&lt;/token&gt;", "&lt;token&gt;[redacted: token]&lt;/token&gt;"),
        ("The token:\n```\na1b2c3d4\n```", "The token:\n```\n[redacted: token]\n```"),
        ("id,password\n1,hunter2\n2,hunter3", "id,password\n1,[redacted: password]\n2,[redacted: password]"),
    ],
)  # fmt: skip
def test_values_are_masked_and_their_names_kept(given, masked):
    assert clean(given) == masked


@pytest.mark.parametrize(
    "harmless",
    [
        "commit 0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
        'api_key = os.getenv("OPENAI_API_KEY")', 'openai.api_key = os.environ["OPENAI_API_KEY"]',
        "| password | varchar(255) | NO |", '"jsonwebtoken": "^9.0.2",',
        "POSTGRES_PASSWORD: ${POSTGRES_PASSWORD:?required}", "password=size+1",
        "id: 123e4567-e89b-12d3-a456-426614174000",
        "sha256:" + HEX + HEX[:24],
        "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUgAA" * 50,
        "max_tokens=4096", "token_count: 12", '"input_tokens": 123456', "tokens = 8192",
        "password_field = PasswordInput()", "token = get_token(user1)", "token = tokens[0]",
        "TOKEN=$TOKEN", "TOKEN=${X:-a1}", "TOKEN=$(gh auth token)", "API_KEY=<your key>",
        "API_KEY=xxxxxxxx", "API_KEY=your-api-key-1", "key: os.environ['API_KEY']",
        "api_key=os.environ['API_KEY1']", "api_key=process.env.API_KEY_2", "token: None",
        "secret: true", 'password: ""', "password: string", "password: Optional[str] = None",
        'password: "Enter your password"', "token=self.token2", "password=password1",
        'label = {"token": "access_token"}', "secret: ${{ secrets.DEPLOY_1 }}", "PWD=/code/demo1",
        "SECRET_FILE=/run/secrets/db1", "token = '***'", "passwords are 12 characters",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKaB39 demo@host", "git@github.com:o/r.git",
        "https://example.org:8080/a@b", "http://localhost:3000/home/page",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0B\n-----END PUBLIC KEY-----",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_secret_stays(harmless):
    assert clean(harmless) == harmless


@pytest.mark.parametrize(
    ("given", "masked"),
    [
        (f"a\n{PEM}\nb", "a\n[redacted: private key]\nb"),
        (PEM.replace("\n", "\\n"), "[redacted: private key]"),
        (PEM[:70], "[redacted: private key]"),
        (f"     1→{PEM}".replace("\n", "\n     2→"), "     1→[redacted: private key]"),
        (PEM.replace("RSA", "OPENSSH"), "[redacted: private key]"),
        (PEM.replace("RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK"), "[redacted: private key]"),
        (f"{PEM[:80]}\n\nThen it was cut off.", "[redacted: private key]\n\nThen it was cut off."),
    ],
)
def test_private_keys_are_masked_whole_even_escaped_numbered_or_truncated(given, masked):
    result = clean(given)
    assert LINE[:12] not in result
    assert result.startswith(masked.split("]")[0])
    assert result.count("[redacted") == 1
    if "cut off." not in given:
        assert result == masked


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("/home/demo/code", "~/code"), ("/home/demo", "~"), ("/home/demo.", "~."),
        ("cd /home/demo && ls", "cd ~ && ls"), ("/home/demonstration/x", "~/x"),
        ("file:///home/demo/a.py:3", "file://~/a.py:3"), ("/srv/home/demo/x", "/srv/home/demo/x"),
        ("\x1b[34m/home/demo/a\x1b[0m", "\x1b[34m~/a\x1b[0m"), (r"a\n/home/demo/b", r"a\n~/b"),
        (".claude/projects/-home-demo-code", ".claude/projects/~-code"),
        ("projects/-Users-alice-code/x", "projects/~-code/x"),
        ("/Users/alice/code", "~/code"), (r"C:\Users\Alice Doe\code", r"~\code"),
        (r"C:\\Users\\alice\\code", r"~\\code"), ("/mnt/c/Users/alice/x", "~/x"),
        ("/home/node/app", "/home/node/app"), ("https://example.org/home/alice", "https://example.org/home/alice"),
        ("./home/alice", "./home/alice"),
        ("vscode-remote://wsl+debian/home/demo/x", "vscode-remote://wsl+debian~/x"),
        ("file%3A%2F%2F%2Fhome%2Fdemo%2Fx", "file%3A%2F%2F~%2Fx"),
    ],
)  # fmt: skip
def test_home_directories_become_a_tilde_only_where_a_path_begins(given, shown):
    assert clean(given) == shown


def test_a_home_that_is_a_link_is_known_by_both_names(tmp_path):
    real, link = tmp_path / "disk" / "demo", tmp_path / "demo"
    real.mkdir(parents=True)
    link.symlink_to(real)
    assert Redactor(str(link))(f"{real}/a {link}/b") == "~/a ~/b"


def test_a_home_that_is_the_root_or_unknown_changes_nothing():
    for home in ("/", "", None):
        assert Redactor(home)("ls / /etc") == "ls / /etc"


def test_the_report_counts_different_secrets_and_orders_by_number_then_name():
    """However often each was met, under whatever name, broken or quoted in whatever way."""
    redactor = Redactor("/home/demo")
    assert redactor.report() == ""
    redactor("password=hunter2 /home/demo/a /home/demo/b -home-demo-code /home/ada /Users/ada/x")
    redactor("token=a1b2c3d4 token=a1b2c3d5")
    redactor("password: 'a1b2c3d4'")
    redactor.named("API_KEY", "a1b2c3d4")
    assert redactor.report() == "2 home paths, 2 tokens, 1 password"


def test_a_key_on_one_line_or_several_is_one_secret():
    """As in a file, and in the JSON that holds it."""
    redactor = Redactor(None)
    key = f"-----BEGIN PRIVATE KEY-----\n{LINE}\n{LINE}\n-----END PRIVATE KEY-----"
    redactor(key)
    redactor(key.replace("\n", "\\n"))
    assert redactor.report() == "1 private key"


def test_equal_short_texts_are_masked_each_time():
    """Only those without secrets are remembered."""
    redactor = Redactor("/home/demo")
    assert [redactor(text) for text in ["clean", "/home/demo", "clean", "/home/demo"]] == [
        "clean", "~", "clean", "~",
    ]  # fmt: skip
    assert redactor.masked == {"home path": 1}


def test_the_name_of_a_value_in_an_object_marks_it_as_secret():
    redactor = Redactor(None)
    assert redactor.named("dbPassword", "hunter2") == "[redacted: password]"
    assert redactor.named("api_key", "a1b2c3d4") == "[redacted: API key]"
    assert redactor.named("file_path", "d4c3b2a1") == "d4c3b2a1"
    assert redactor.named("password", "$PASSWORD") == "$PASSWORD"
    assert redactor.named("token", "a\nb1c2d3e4") == "a\nb1c2d3e4"
    assert redactor.named("x", "ghp_" + "aB39" * 9) == "[redacted: token]"


def test_an_excerpt_lacks_the_secrets_of_the_texts_that_it_is_from():
    """On one line, nothing shows any more that the cell is below the word."""
    redactor = Redactor(None)
    table = "| user | password |\n|---|---|\n| bob | aB39xQ7 |"
    redactor(table)
    line = "| user | password | |---|---| | bob | aB39xQ7 |"
    assert redactor.excerpt(line) == line.replace("aB39xQ7", "[redacted: password]")
    redactor.begin_event()
    assert redactor.excerpt("bob aB39xQ7") == "bob aB39xQ7"


def test_secrets_after_other_scripts_and_lone_surrogates_are_masked_in_their_place():
    text = "日本語 \ud800 é password=hunter2 → token=a1b2c3d4 ü"
    assert (
        clean(text) == "日本語 \ud800 é password=[redacted: password] → token=[redacted: token] ü"
    )


def test_an_address_without_a_host_is_read_no_further(monkeypatch):
    read = []
    value = Extents.value

    def noted(self, at, **how):
        read.append(at)
        return value(self, at, **how)

    monkeypatch.setattr(Extents, "value", noted)
    redact = Redactor()
    assert redact("://a:" * 100) == "://a:" * 100
    assert read == []
    assert "pa5sW0rd" not in redact("postgres://me:pa5sW0rd@db/x")
    assert read


def test_secrets_far_into_a_long_text_are_found_across_windows():
    for size in range(32_700, 32_800, 7):
        text = "x " * (size // 2) + "ghp_" + "aB39" * 9 + " y" * 40_000
        assert clean(text).count("[redacted: token]") == 1


def test_without_re2_the_result_is_the_same():
    program = (
        "import random, sys; sys.modules['re2'] = None\n"
        "from sess_redaction import Redactor\n"
        "from tests import secrets_grid\n"
        "for _, text, _ in secrets_grid.cases(random.Random(5), 2):\n"
        "    print(ascii(Redactor(None)(text)))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    expected = [ascii(Redactor(None)(text)) for _, text, _ in cases(random.Random(5), 2)]
    assert ran.stdout.splitlines() == expected


PIECES = st.sampled_from([
    "password", "token", "API_KEY", "--secret ", "=", ": ", '"', "'", "\\", "\\n", "\n", " ",
    "://", "@", "u:", ":", "/", "/home/", "/home/demo", "-home-demo", "projects/", " C:\\Users\\",
    "a b", "bearer ", "Authorization: Basic ", "Cookie: a=", "Set-Cookie: b=", ";", "hunter2",
    "a1b2c3d4e5f6g7h8i9", "ghp_" + "aB39" * 9, "sk-" + "aB39" * 8, "AKIA" + "QWER7TYU" * 2,
    "eyJhbGciOi.eyJzdWIiOi.x", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", LINE,
    "[redacted: token]", "[redacted: API key]", "]", "$", "<", "é", "\x1b[32m", "~", "-", ".",
    "curl -u ", "sig=", "?", "&", "xox", "x", "Private-Lines: 2\n", "sshpass -p ",
])  # fmt: skip


@settings(max_examples=amount(200, 1800), deadline=None)
@given(st.lists(PIECES, max_size=14).map("".join))
@example(":///home/demo/home/demo")
def test_redacting_twice_changes_nothing_more(text):
    once = clean(text)
    assert clean(once) == once


@settings(max_examples=amount(100, 900), deadline=None)
@given(st.text(max_size=60), st.sampled_from(SHAPES), st.text(max_size=60))
def test_known_shapes_never_survive_among_any_text(before, shape, after):
    assert shape.sample not in clean(f"{before} {shape.sample} {after}")


@pytest.mark.parametrize("seed", range(3))
def test_secrets_of_all_symbols_leave_no_piece_in_any_syntax(seed):
    """Five characters in a row would be a piece: any alphabet, name, syntax and place."""
    leaked = [
        (syntax, text)
        for syntax, text, made in cases(random.Random(seed), 15)
        if leaks(clean(text), made)
    ]
    assert leaked == []


@pytest.mark.soak
def test_secrets_of_all_symbols_leave_no_piece_in_a_hundred_thousand_tries():
    leaked = [
        (syntax, text)
        for syntax, text, made in cases(random.Random(7), 750)
        if leaks(clean(text), made)
    ]
    assert leaked == []


@pytest.mark.parametrize("seed", range(2))
def test_what_was_masked_in_any_syntax_is_not_masked_again(seed):
    for _, text, _ in cases(random.Random(seed + 50), 5):
        once = clean(text)
        assert clean(once) == once


def test_hashes_ids_and_images_stay():
    """2,000 of them: not one is taken for a secret."""
    dice = random.Random(1)
    forms = (
        lambda: f"commit {dice.randbytes(20).hex()}",
        lambda: f"{dice.randbytes(20).hex()[:12]} Fix the test",
        lambda: str(UUID(bytes=dice.randbytes(16), version=4)),
        lambda: f'"sessionId": "{UUID(bytes=dice.randbytes(16), version=4)}"',
        lambda: f'"integrity": "sha512-{b64encode(dice.randbytes(64)).decode()}"',
        lambda: f"sha256:{dice.randbytes(32).hex()}",
        lambda: f"data:image/png;base64,{b64encode(dice.randbytes(3000)).decode()}",
        lambda: f'"etag": "{dice.randbytes(16).hex()}"',
        lambda: f"h1:{b64encode(dice.randbytes(32)).decode()}=",
        lambda: f"index {dice.randbytes(4).hex()}..{dice.randbytes(4).hex()} 100644",
    )
    changed = [text for n in range(2_000) if clean(text := forms[n % len(forms)]()) != text]
    assert changed == []


@pytest.mark.parametrize(
    "code",
    [
        "token, value = get_token(value)", "password = getpass.getpass()", "self.token = token",
        "if password != confirm_password:", "token = request.headers.get('X-Token')",
        "const token = await getToken();", "password: z.string().min(8),", "apiKey?: string;",
        "api_key=settings.OPENAI_API_KEY,", "secret = Secret.from_name(name)", "fn token(&self) -> Token {",
        "token: Option<String>,", "Token::Ident(name) => name,", "private_key = load_pem_private_key(data)",
        "password_hash = bcrypt.hash(password, rounds)", "PASS: tests/run.sh", "pass: 12, fail: 0",
        "access_token = credentials.token", "for token in tokenizer.tokenize(text):", "token = tokens[i + 1]",
        "parser.add_argument('--password', help='the password')", "the --password option is required",
        "two-pass algorithms, and more", "primary_key=True", "cache_key = f'{user}:{day}'", "tokens: 12,345",
        "user, password = line.split(':')", "('http', 'joe', 'password', 'proxy.example.com')",
        "    pass\n    value = D('NaN')", "pass `strict=True` to it", "hashlib.scrypt(b'password', salt=b'salt9', n=2)",
        "password = getpass.getpass('IMAP password for %s: ' % user)", 'Token: "#d8dee9",',
        "token: A string that may be empty", "(user + ':' + self.password).encode('latin-1')",
        "<for each input token>\nif a < 256:", "r'(?P<password>[^ /]*)@'", 'token: str = "0",', "inc_token = ('{', '(')",
        "key: RSAPrivateKey | RSAPublicKey,", "prompt='Password: ', stream=None", "- Bandpass:  wp = [0.2, 0.5]",
        'class Literal(Token):\n    """\n    A token of 2 letters.\n\n    Since 3.0.\n    """', "password: at least 8", 'print("token=" + repr(raw))', "Token:              '#d0d0d0',",
        "token = self.config.token_2", "password = settings.db_password", "token = settings.item_12", "token = hashes.sha256",
        "Generate a token:\n```\nopenssl rand -hex 32\n```", "  - Token: gho_************", "url.password += encoded",
        "token = re.compile('[a-z0-9]+', flags)", "INSERT INTO users (name, password) VALUES (?, ?)", "user, token, age\nbob, 1, 2", "kind: Secret\ntype: Opaque",
    ],
)  # fmt: skip
def test_code_that_only_names_a_variable_stays(code):
    assert clean(code) == code


def test_own_rules_mask_what_they_match_or_its_group():
    rules_ = rules([r"ACME-\d{3}", r"badge (\d+)"])
    redactor = Redactor(None, rules_)
    assert redactor("ACME-123 badge 77") == "[redacted: own rule] badge [redacted: own rule]"
    assert redactor("AC\x1b[1mME-123") == "[redacted: own rule]"
    assert redactor.report() == "2 own rules"


@pytest.mark.parametrize("pattern", ["(", "a*", ""])
def test_an_impossible_rule_is_told_in_one_line(pattern):
    with pytest.raises(SessError, match="regular expression"):
        rules([pattern])


@pytest.mark.parametrize("piece", ["b", "1", "b1", ".b", "'b", '"b ', "b=", "_", "$b", "b."])
def test_no_value_is_tried_in_every_way(piece):
    """What is nearly an expression is judged in one reading: another way would take years."""
    for name in ("password: ", "api_key=", 'token = "'):
        clean(f"{name}a={piece * 300}\x01\n")


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("DB_PASSWORD=qR7!vT2#xZ9wLm in .env and the token ghp_aB39xQ7kLm2Zp8RtaB39xQ7kLm2Zp8RtaB39 too",
         "DB_PASSWORD=[redacted: password] in .env and the token [redacted: token] too"),
        ("set API_KEY=aB39xQ7kLm2Zp8RtaB39 and SECRET=IAw3u3wRn@ZWH-q71 then run",
         "set API_KEY=[redacted: API key] and SECRET=[redacted: secret] then run"),
        ("PASSWORD=Falcon82x! or maybe token=aB39xQ7kLm2Zp8RtaB39 works",
         "PASSWORD=[redacted: password] or maybe token=[redacted: token] works"),
    ],
)  # fmt: skip
def test_the_words_between_two_secrets_stay(text, masked):
    assert clean(text) == masked


@pytest.mark.parametrize(
    "harmless",
    [
        "docker run -u 1000:1000 -p 8080:80 -w /app node:18", "ssh -l demo -p 2222 h.example.org", "git commit -p src/app2.py",
        "use x9-model as the token counter", "log in with google / github", "the seed words: one and two and three and so on, in any order",
        "git switch -b feature=2", "cp -p build-2024.11.tar.gz out", "REQUIRE_AUTH=SCRAM", "CLIENT_AUTH = '1.3.6.1.5.5.7.3.2'",
        "connect('clicked', 'on_button_clicked')", "password for the admin user is required", "RANDOM_SEED=20241119", "serial: WELL-KNOWN-NAME-HERE",
    ],
)  # fmt: skip
def test_sentences_and_commands_that_only_look_so_stay(harmless):
    assert clean(harmless) == harmless
