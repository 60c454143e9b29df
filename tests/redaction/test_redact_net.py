"""What looks like a secret near a name that means one is masked, in forms that no rule knows."""

from __future__ import annotations

import random

import pytest
from tests.secrets_grid import leaks, secret
from tests.secrets_syntaxes import UNKNOWN

from sess_redaction import engine, looks
from sess_redaction.redactor import Redactor

SECRETS = (
    "Xk29vLqPz7RtW4mN8bYc", "0a7f3e9b1c5d8e2f4a6b9c0d1e3f5a7b", "kFVdo4aXdd6KikTqgID0Aja/a7U=",
    "tr0ub4dor&3", "P@ssw0rd123!", "x#9!kP$2vQ",
)  # fmt: skip
NAMES = ("password", "API_KEY", "clientSecret", "db_password", "access token", "passphrase")


def clean(text: str) -> str:
    return Redactor(home=None)(text)


@pytest.mark.parametrize("made", SECRETS)
@pytest.mark.parametrize("form", UNKNOWN)
def test_a_form_that_no_rule_knows_leaves_no_piece(form, made):
    for name in NAMES:
        text = form.format(name=name, secret=made)
        assert not leaks(clean(text), made), clean(text)


@pytest.mark.parametrize("made", ["Summer2024!", "hunter2-Blue", "monkey+Tree7", "lamp-tiger-4239"])
@pytest.mark.parametrize(
    "form",
    ["try {} as password", "{} is the admin password now", "[api key] {}", "the password reads {}"],
)
def test_words_and_a_number_are_masked_where_the_name_points_at_them(form, made):
    assert made not in clean(form.format(made))


@pytest.mark.parametrize(
    ("given", "masked"),
    [
        ("the password, which Eve sent, reads 'Xk29vLqPz7Rt'.", "the password, which Eve sent, reads '[redacted: password]'."),
        ("(x) send(Xk29vLqPz7RtW4mN8bYc) # api key", "(x) send([redacted: API key]) # api key"),
        ('def db_password():\n    return "P@ssw0rd123!"\n', 'def db_password():\n    return "[redacted: password]"\n'),
        ("- default: P@ssw0rd123!\n  name: db_password\n  id: x9Kq27vLbT", "- default: [redacted: password]\n  name: db_password\n  id: x9Kq27vLbT"),
        ("NAME     PASSWORD        AGE\nprod     P@ssw0rd123!    3d\ntest     Zx9!kLm2pQ      4d",
         "NAME     PASSWORD        AGE\nprod     [redacted: password]    3d\ntest     [redacted: password]      4d"),
        ("xfreerdp /u:bob /p:Summer2024! /v:h", "xfreerdp /u:bob /p:[redacted: password] /v:h"),
        ("> USER bob\n< 331 ok\n> PASS Summer7\n", "> USER bob\n< 331 ok\n> PASS [redacted: password]\n"),
        ("PIN: 4821", "PIN: [redacted: password]"), ("otp=482913", "otp=[redacted: password]"),
        ("the one-time code is 482913.", "the one-time code is [redacted: password]."),
        ("log in with admin / Zx9!kLm2pQ first", "log in with admin / [redacted: password] first"),
    ],
)  # fmt: skip
def test_a_run_is_masked_to_its_natural_end_and_no_further(given, masked):
    assert clean(given) == masked


@pytest.mark.parametrize(
    "harmless",
    [
        # a name of its own
        "commit 3f2a9b1c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a fixes the password reset", "password of user x9Kq27vLbT was reset",
        'the password expired, "request_id": "x9Kq27vLbT"', "password reset request_id=x9Kq27vLbT", "rotate the API key --region x9Kq27vLbT",
        "the password of 123e4567-e89b-12d3-a456-426614174000", "the password hash is sha256 0a7f3e9b1c5d8e2f4a6b9c0d1e3f5a7b",
        # other things
        "the password field is in src/auth2/reset_form.py:42", "password docs: https://h.example/a1B2c3D4e5", "password of bob42@mail.example.org",
        "password rules of v2.3.1-rc1, 2024-05-01T10:11:12Z, 12,345.67 ms", "the password uses PBKDF2-HMAC-SHA256 with utf-8 and x86_64",
        "no password for node-18-alpine and claude-3-5-sonnet-20241022", "password regex ^[A-Za-z0-9!@#$]{8,}$", "password template %(user)s:${VAR}{0}",
        "validate_password(user_name2, getHttpToken())", "if (password.length < minLength2) return errors[0];", "password policy issue-1234 and #4711",
        # names that cast none, and faint ones
        "1,234 tokens x9Kq27vLbTz4Wm8R", "use x9Kq27vLbTz4Wm8R with max_token", "password_length x9Kq27vLbTz4Wm8R", "tests pass x9Kq27vLbTz4Wm8R",
        "use x9Kq27vLbTz4Wm8R as PWD", "the token bucket of Summer2024! is full", "PASS src/app2.test.tsx (5.2 s)", "pin 13 of GPIO 4, PIN: 13, spinning 4000",
        # too far away
        "password" + " and so on" * 40 + " x9Kq27vLbTz4Wm8R", "the password\n\n\n\n\nx9Kq27vLbTz4Wm8R",
    ],
)  # fmt: skip
def test_what_stands_near_such_a_name_for_other_reasons_stays(harmless):
    assert clean(harmless) == harmless


def test_random_characters_are_told_from_words_names_and_numbers():
    """A thousand of each: the evidence of the one begins where that of the other ends."""
    dice = random.Random(11)
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    made = [f"{secret(dice, 20, letters)}7" for _ in range(1_000)]
    assert [one for one in made if looks.evidence(one) < 6] == []
    assert sum(looks.evidence(one) < 12 for one in made) <= 30
    words = ("user", "request", "handler", "config", "value", "index", "parse", "default", "table")
    joined = [
        dice.choice("_-.").join(dice.sample(words, dice.randint(2, 4)))
        + dice.choice(("", "2", "12", "_3"))
        for _ in range(1_000)
    ]
    assert [one for one in joined if looks.evidence(one) > 3] == []


@pytest.mark.parametrize(
    "piece",
    [
        "password ", "password: ", "password:\n", "|password", "api key aB3x9zQ1w7 ", "secret {\n", "log in with ",
        "password  api_key  ", 'name: "password"\n', "db_password(", "aB3$xZ9k7Q ", "a-", "1.", "(a",
    ],
)  # fmt: skip
def test_lines_full_of_names_are_looked_at_in_proportion(piece, monkeypatch):
    """Four times as long a text has about four times as many characters near its names."""
    within = looks.runs_within
    near: list[int] = []

    def noted(text, *span):
        near.append(span[1] - span[0])
        return within(text, *span)

    monkeypatch.setattr(looks, "runs_within", noted)

    def looked_at(size: int) -> int:
        near.clear()
        engine.find("password " + piece * (size // len(piece)))
        return sum(near)

    least = looked_at(10_000)
    assert looked_at(40_000) <= 5 * least + 2_000
