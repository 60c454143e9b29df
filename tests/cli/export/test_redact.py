"""Secrets are masked; what only looks like one stays."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.at_length import amount

from sess_cli.export.redact import Redactor
from sess_cli.export.secrets import PATTERNS

MASK = re.compile(r"\[redacted: [A-Za-z ]+\]")
HEX = "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"
LINE = "MIIEpAIBAAKCAQEA75aB39xQ"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{LINE}\n{LINE}==\n-----END RSA PRIVATE KEY-----"


def clean(text: str) -> str:
    return Redactor("/home/demo")(text)


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda one: one.expression[-30:])
@pytest.mark.parametrize(
    "around", ["{}", "see {} there", '{{"a": "{}"}}', "\x1b[32m{}\x1b[0m", "line\\n{}\\nline"]
)
def test_each_pattern_masks_its_sample_anywhere(pattern, around):
    redactor = Redactor(None)
    secret = pattern.compiled.search(pattern.matches)
    masked = redactor(around.format(pattern.matches))
    assert MASK.search(masked)
    assert sum(redactor.masked.values()) == 1
    if pattern.judge is None:
        assert secret[secret.re.groups and 1] not in masked


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda one: one.expression[-30:])
def test_each_pattern_spares_its_counter_example(pattern):
    assert clean(pattern.spares) == pattern.spares


@pytest.mark.parametrize(
    ("given", "masked"),
    [
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
    ],
)  # fmt: skip
def test_values_are_masked_and_their_names_kept(given, masked):
    assert clean(given) == masked


@pytest.mark.parametrize(
    "harmless",
    [
        "commit 0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
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
    assert redactor.named("file_path", "a1b2c3d4") == "a1b2c3d4"
    assert redactor.named("password", "$PASSWORD") == "$PASSWORD"
    assert redactor.named("token", "a\nb1c2d3e4") == "a\nb1c2d3e4"
    assert redactor.named("x", "ghp_" + "aB39" * 9) == "[redacted: token]"


def test_secrets_after_other_scripts_and_lone_surrogates_are_masked_in_their_place():
    text = "日本語 \ud800 é password=hunter2 → token=a1b2c3d4 ü"
    assert (
        clean(text) == "日本語 \ud800 é password=[redacted: password] → token=[redacted: token] ü"
    )


def test_secrets_far_into_a_long_text_are_found_across_windows():
    for size in range(32_700, 32_800, 7):
        text = "x " * (size // 2) + "ghp_" + "aB39" * 9 + " y" * 40_000
        assert clean(text).count("[redacted: token]") == 1


def test_without_re2_the_result_is_the_same():
    program = (
        "import sys; sys.modules['re2'] = None\n"
        "from sess_cli.export.redact import Redactor\n"
        "from sess_cli.export.secrets import PATTERNS\n"
        "for one in PATTERNS:\n"
        "    for text in (one.matches, one.spares): print(ascii(Redactor(None)(text)))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    expected = [ascii(Redactor(None)(t)) for one in PATTERNS for t in (one.matches, one.spares)]
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
@given(st.text(max_size=60), st.sampled_from(PATTERNS), st.text(max_size=60))
def test_known_secrets_never_survive_among_any_text(before, pattern, after):
    if pattern.judge is not None or pattern.compiled.groups != 1:
        return
    secret = pattern.compiled.search(pattern.matches)[1]
    assert secret not in clean(f"{before} {pattern.matches} {after}")
