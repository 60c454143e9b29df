"""A secret that a terminal, a shell or a box broke is masked to its end, and no word after it."""

from __future__ import annotations

import json
import random
import string

import pytest

from sess_redaction.redactor import Redactor

DICE = random.Random(7)


def drawn(count: int, also: str = "") -> str:
    return "".join(DICE.choices(string.ascii_letters + string.digits + also, k=count))


SECRETS = {
    "JSON web token": f"eyJ{drawn(40)}.eyJ{drawn(120)}.{drawn(342, '-_')}",
    "short web token": f"eyJ{drawn(17)}.eyJ{drawn(40)}.{drawn(43, '-_')}",
    "GitHub": f"github_pat_{drawn(22)}_{drawn(59)}",
    "GitHub, classic": f"ghp_{drawn(36)}",
    "Anthropic": f"sk-ant-api03-{drawn(95, '-_')}",
    "GitLab": f"glpat-{drawn(20)}",
    "SendGrid": f"SG.{drawn(22)}.{drawn(43)}",
    "variable": f"AWS_SESSION_TOKEN={drawn(240, '+/')}",
    "quoted": f'"client_secret": "{drawn(70)}"',
    "header": f"Authorization: Bearer {drawn(120)}",
    "address": f"postgres://app:{drawn(60)}@db.example.org/shop",
}
STYLES = {
    "terminal": ("", "", "\n"),
    "carriage returns": ("", "", "\r\n"),
    "indented": ("", "  ", "\n"),
    "continued": ("\\", "", "\n"),
    "box": (" │", "│ ", "\n"),
    "ASCII box": (" |", "| ", "\n"),
    "quotation": ("", "> ", "\n"),
}


def wrapped(text: str, width: int, style: str) -> str:
    end, beginning, line_break = STYLES[style]
    room = width - len(end) - len(beginning)
    boxed = room if "box" in style else 0
    lines = [text[at : at + room] for at in range(0, len(text), room)]
    body = [beginning + line.ljust(boxed) + end for line in lines]
    if style == "continued":
        body[-1] = body[-1].removesuffix("\\")
    return line_break.join(["$ cat it", *body, "$ next"])


@pytest.mark.parametrize("width", [30, 40, 60, 76, 80, 100, 120])
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", SECRETS)
def test_nothing_of_a_broken_secret_is_left(name, style, width):
    secret = SECRETS[name]
    for text in (
        lines := wrapped(
            f"{secret} is what it said"[: 400 if name != "header" else len(secret)], width, style
        ),
        json.dumps(lines),
    ):
        masked = Redactor(None)(text)
        assert "[redacted: " in masked
        assert "$ next" in masked
        plain = "".join(
            c for c in masked.replace("\\n", "").replace("\\r", "") if c.isalnum() or c in "-_+/"
        )
        drawn_part = secret.removesuffix("@db.example.org/shop").strip('"')[30:]
        assert not any(drawn_part[at : at + 8] in plain for at in range(len(drawn_part) - 8))


@pytest.mark.parametrize(
    "text",
    [
        "export GITHUB_TOKEN=ghp_aB39xQ7kLm2Zp8RtaB39xQ7kLm2Zp8RtaB39\nand then it worked",
        "DB_PASSWORD=qR7vT2xZ9wLmqR7vT2xZ9wLm\nS3_BUCKET=shop2024backups",
        "token: sk_live_aB39xQ7kLm2Zp8RtaB39xQ7k \n2nd line of it, which is longer than the first",
    ],
)  # fmt: skip
def test_the_next_line_is_not_taken_for_a_part(text):
    kept = text.partition("\n")[2]
    assert Redactor(None)(text).endswith(kept)


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"{DICE.randbytes(20).hex()}  src/module{n}.py" for n in range(8)),
        "\n".join(f"+{'A1b2' * 18}" for _ in range(5)),
        "index 3f2a1b0c9d8e..77aabbccddee 100644 of a long line\nabcdef1234567890abcdef12 Merge it",
    ],
)  # fmt: skip
def test_lines_of_hashes_and_data_stay(text):
    assert Redactor(None)(text) == text
