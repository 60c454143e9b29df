"""Forms in which secrets stand in transcripts, written without a look at the rules that find them.

In a template, ⟨kind⟩ is a secret of that kind, ⟨kind:n⟩ one of n characters, ⏎ a new line, and
everything else must stay readable. `secret_forms.txt` has the forms.
"""

from __future__ import annotations

import base64
import random
import re
import string
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ALNUM = string.ascii_letters + string.digits
_WORDS = """
    marble otter copper lantern velvet harbor pickle thunder walnut meadow falcon ginger
    saddle ribbon cobalt tundra maple pepper anchor quartz willow badger candle drifter
    ember garnet hollow island jigsaw kettle legend magnet nectar orchid paddle quiver raven
    sierra timber urchin vortex wander yonder zephyr
"""
WORDS = _WORDS.split()
_SEED_WORDS = """
    abandon ability able about above absent absorb abstract absurd abuse access accident
    account accuse achieve acid acoustic acquire across act action actor actress actual
    adapt add addict address adjust admit adult advance advice
"""
SEED_WORDS = _SEED_WORDS.split()


def characters(rng: random.Random, alphabet: str, count: int) -> str:
    return "".join(rng.choices(alphabet, k=count))


def password(rng: random.Random, count: int) -> str:
    """As a password manager makes them, with signs that need no quoting in most places."""
    body = (
        characters(rng, ALNUM, count - 3)
        + rng.choice("!#%^*+?@")
        + rng.choice("-_.~!")
        + rng.choice(string.digits)
    )
    return (
        rng.choice(string.ascii_letters)
        + "".join(rng.sample(body, len(body)))[1:]
        + rng.choice(ALNUM)
    )


def human(rng: random.Random, _count: int) -> str:
    """As people make them: words, a year, a sign."""
    first, second = rng.sample(WORDS, 2)
    return rng.choice(
        [
            f"{first.title()}{second.title()}{rng.randrange(10, 99)}!",
            f"{first.title()}-{rng.randrange(1950, 2026)}-{second}",
            f"{first}{rng.choice('@#$')}{second}{rng.randrange(100, 999)}",
            f"{first.title()}{rng.randrange(1000, 9999)}!",
        ]
    )


def encoded(rng: random.Random, count: int) -> str:
    return base64.b64encode(rng.randbytes(count)).decode()


def pem_body(rng: random.Random, _count: int) -> str:
    text = encoded(rng, 440)
    return "\n".join(text[place : place + 64] for place in range(0, len(text), 64))


def identifier(rng: random.Random, _count: int) -> str:
    digits = characters(rng, "0123456789abcdef", 32)
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


KINDS: dict[str, tuple[Callable[[random.Random, int], str], int]] = {
    "pw": (password, 16),
    "human": (human, 0),
    "tok": (lambda rng, count: characters(rng, ALNUM, count), 32),
    "low": (lambda rng, count: characters(rng, string.ascii_lowercase + string.digits, count), 24),
    "up": (lambda rng, count: characters(rng, string.ascii_uppercase + string.digits, count), 20),
    "url": (
        lambda rng, count: characters(rng, ALNUM + "-_", count - 2) + characters(rng, ALNUM, 2),
        40,
    ),
    "hex": (lambda rng, count: characters(rng, "0123456789abcdef", count), 32),
    "num": (lambda rng, count: characters(rng, string.digits, count), 8),
    "b32": (lambda rng, count: characters(rng, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", count), 32),
    "b64": (encoded, 32),
    "uuid": (identifier, 36),
    "pem": (pem_body, 0),
    "seed": (lambda rng, count: " ".join(rng.sample(SEED_WORDS, count)), 12),
    "pass4": (lambda rng, _count: "-".join(rng.sample(WORDS, 4)), 0),
}


@dataclass(frozen=True)
class Form:
    name: str
    variants: tuple[str, ...]

    def sample(self, rng: random.Random, number: int) -> tuple[str, list[str], list[str]]:
        """A text of this form, its secrets, and the words around them that must stay."""
        template = self.variants[number % len(self.variants)].replace("⏎", "\n")
        secrets: list[str] = []

        def secret(match: re.Match[str]) -> str:
            make, usual = KINDS[match["kind"]]
            secrets.append(make(rng, int(match["count"] or usual)))
            return secrets[-1]

        text = re.sub(r"⟨(?P<kind>\w+?)(?::(?P<count>\d+))?⟩", secret, template)
        return text, secrets, re.findall(r"[^\W\d_]{2,}", re.sub(r"\S*⟨.*?⟩", " ", template))


def forms(listed: Path) -> list[Form]:
    """One per line: its name, and its variants with " ¦ " between them."""
    lines = [line.partition(": ") for line in listed.read_text("utf-8").splitlines()]
    return [Form(name, tuple(variants.split(" ¦ "))) for name, _colon, variants in lines]
