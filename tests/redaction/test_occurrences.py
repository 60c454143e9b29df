"""What a rule found once is found again, however it is written; what anybody might write is not."""

from __future__ import annotations

import base64
import html
import json
from urllib.parse import quote, quote_plus

import pytest

from sess_redaction.occurrences import Occurrences, is_telling
from sess_redaction.redactor import Redactor

SECRETS = (
    "qR7!vT2#xZ9wLm",
    "0a1b2c3d4e5f69780a1b2c3d4e5f6978",
    "aB39xQ7kLm2Zp8RtYw4VnC6sDfGh1JkL0PoIuYtR",
    "Falcon82!",
    "it's\"5\\&<x>ä9",
)
WAYS = {
    "an argument": lambda s: f"./deploy.sh {s} --now",
    "an answer": lambda s: f"connected with {s}.",
    "a list": lambda s: f"argv: ['x', '{s}']",
    "a diff": lambda s: f"-{s}\n+gone",
    "JSON": lambda s: json.dumps({"argv": [s]}),
    "JSON in JSON": lambda s: json.dumps({"body": json.dumps([s], ensure_ascii=False)}),
    "an address": lambda s: f"https://host/?v={quote(s, safe='')}&x=1",
    "a form": lambda s: f"v={quote_plus(s)}&x=1",
    "HTML": lambda s: f"<td>{html.escape(s)}</td>",
    "a shell's quotes": lambda s: "run '" + s.replace("'", "'\\''") + "'",
    "hexadecimal": lambda s: s.encode().hex(),
    "a narrow terminal": lambda s: f"see {s[:6]}\n{s[6:]} there",
    "a continued line": lambda s: f"run {s[:5]}\\\n{s[5:]}",
    "a box": lambda s: f"│ {s[:5]} │\n│ {s[5:]} │",
    "escaped line breaks": lambda s: f"{s[:6]}\\n{s[6:]}",
}


def known(secret: str) -> Redactor:
    redactor = Redactor(home=None)
    with redactor.learning():
        redactor.value({"password": secret})
    return redactor


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("secret", SECRETS)
def test_what_was_found_is_masked_wherever_it_is_written(secret, way):
    text = WAYS[way](secret)
    assert Redactor(home=None)(text) == text
    masked = known(secret)(text)
    assert "[redacted: password]" in masked
    assert all(secret[at : at + 5] not in masked for at in range(len(secret) - 4))


@pytest.mark.parametrize("before", ["", "u", "us", "user:", "somebody:"])
@pytest.mark.parametrize("after", ["", "\n", "@host"])
@pytest.mark.parametrize("secret", SECRETS[:3])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_in_base64_whatever_stands_around_it(secret, before, after, encode):
    coded = encode(f"{before}{secret}{after}".encode()).decode()
    masked = known(secret)(f"sent {coded} there")
    assert masked in (f"sent [redacted: password]{'=' * n} there" for n in range(3))


@pytest.mark.parametrize(
    "word",
    ["admin", "localhost", "password1", "postgres", "12345678", "changeme", "hunter2",
     "test_user_12", "production", "some-secret-name", "get_password()", "true"],
)  # fmt: skip
def test_what_people_write_anyway_is_not_looked_for(word):
    assert not is_telling(word)
    assert known(word)(f"the {word} of it") == f"the {word} of it"


def test_a_short_secret_is_no_part_of_a_longer_word():
    masked = known("Falcon82x")
    assert masked("see Falcon82x here") == "see [redacted: password] here"
    assert masked("see Falcon82xy and aFalcon82x") == "see Falcon82xy and aFalcon82x"


def test_each_line_of_a_key_is_a_secret_of_its_own():
    lines = ["MIIEpAIBAAKCAQEA7x2v" + c * 8 + "Zq9Lm4" for c in "abc"]
    redactor = Redactor(home=None)
    redactor("-----BEGIN PRIVATE KEY-----\n" + "\n".join(lines) + "\n-----END PRIVATE KEY-----")
    assert redactor(f"grep {lines[1]} key") == "grep [redacted: private key] key"


def test_what_is_learned_is_not_reported_but_where_it_is_masked():
    redactor = known("qR7!vT2#xZ9wLm")
    assert redactor.report() == ""
    redactor("run qR7!vT2#xZ9wLm, then qR7!vT2#xZ9wLm")
    assert redactor.report() == "1 password"


def test_what_was_read_to_learn_is_read_again_to_mask():
    redactor = Redactor(home=None)
    text = "see qR7!vT2#xZ9wLm here"
    with redactor.learning():
        redactor.value([{"password": "qR7!vT2#xZ9wLm"}, text])
    redactor("another session")
    with redactor.learning():
        redactor(text)
    assert redactor(text) == "see [redacted: password] here"


BREAKS = ("\n", "\r\n", "\\\n  ", " │\n│ ", "  \t┃\n > ", "\\n", "\\r", "\n+ ")
AMONG_WORDS = (
    "endpoint_viovipleeng_slopul!r7",
    "renderer-nn\\nr>x91 +|-rn",
    "Über┃ß│9x!naïve_endpoint_ÿ7",
    "endpoint 7!x endpoint_Q9",
)


@pytest.mark.parametrize("broken", BREAKS)
def test_the_screens_miss_no_place_that_a_form_has(broken):
    occurrences = Occurrences()
    for secret in (*SECRETS, *AMONG_WORDS):
        occurrences._known.add(secret)
        occurrences._learn("password", secret)
    words = "endpoint endpoint_v\nrenderer-nn slopul!r7\n"
    for secret in (*SECRETS, *AMONG_WORDS):
        form = occurrences._forms[secret]
        for at in range(len(secret) + 1):
            text = words + secret[:at] + broken + secret[at:] + broken + words
            has_piece = any(piece in text for piece in form.pieces)
            assert secret in occurrences.of(text) or not (has_piece and [*form.places(text)])
