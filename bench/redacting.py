"""Measures redaction: forms of secrets, broken ones, and masks in texts that hold none.

`python bench/redacting.py [--show] [FOLDER...]`; the folders hold code and logs without secrets.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from secret_forms import ALNUM, Form, characters, forms

from sess_redaction import Redactor, find

HERE = Path(__file__).parent
LISTS = (HERE / "secret_forms.txt", HERE / "secret_forms_late.txt")
SEEN = 6  # characters of a secret in a row that may be seen
LONG, MOST_SEEN = 40, 20
WIDTHS = (30, 40, 60, 76, 80, 100, 120)
TEXTS = {
    ".py",
    ".js",
    ".ts",
    ".json",
    ".lock",
    ".log",
    ".md",
    ".txt",
    ".toml",
    ".yaml",
    ".yml",
    ".c",
}


def is_left(secret: str, masked: str) -> bool:
    """Whether half of a secret can be read, or six characters of a short one."""
    size = len(secret)
    span = min(size, max(SEEN, size // 2) if size < LONG else MOST_SEEN)
    return any(secret[at : at + span] in masked for at in range(size - span + 1))


def results(form: Form, count: int) -> Iterator[tuple[str, str, bool, bool]]:
    """Of `count` secrets: text, masked text, whether it is left, whether words were lost."""
    rng = random.Random(form.name)
    number = 0
    while count > 0:
        text, secrets, words = form.sample(rng, number)
        masked = Redactor(None)(text)
        number += 1
        lost = any(word not in masked for word in words)
        for secret in secrets[:count]:
            count -= 1
            yield text, masked, is_left(secret, masked), lost


def broken(token: str, width: int, style: str) -> str:
    """As a terminal, a shell, a quotation or a box breaks it."""
    end, beginning = {"box": (" │", "│ "), "shell": ("\\", ""), "quote": ("", "> ")}.get(
        style, ("", "  " if style == "indent" else "")
    )
    room = width - len(end) - len(beginning)
    lines = [token[at : at + room] for at in range(0, len(token), room)]
    filled = [line.ljust(room) if end == " │" else line for line in lines]
    body = "\n".join(beginning + line + end for line in filled)
    return f"$ show it\n{body.removesuffix(chr(92))}\n$ next"


def measure_forms(listed: Path, each: int, *, show: bool) -> None:
    by_form: Counter[str] = Counter()
    total = lost = 0
    for form in forms(listed):
        shown: set[str] = set()
        for text, masked, is_leak, is_lost in results(form, each):
            total += 1
            lost += is_lost
            by_form[form.name] += is_leak
            if show and is_leak and text[:12] not in shown:
                shown.add(text[:12])
                print(f"{form.name}: {text!r}\n    {masked!r}")
    left = by_form.total()
    print(f"{listed.stem}: {len(by_form)} forms, {total} secrets, {left} left ({left / total:.1%})")


def measure_broken(each: int) -> None:
    rng = random.Random(5)
    total = left = 0
    shapes = [
        *("eyJ{20}.eyJ{60}.{43}", "eyJ{40}.eyJ{120}.{342}", "ghp_{36}", "github_pat_{22}_{59}"),
        *("sk-ant-api03-{95}", "sk-proj-{150}", "hvs.{90}", "sk_live_{99}", "DB_PASSWORD={60}"),
    ]
    for shape in shapes:
        for width in WIDTHS:
            for style in ("terminal", "indent", "shell", "quote", "box"):
                for _ in range(each):
                    parts = shape.replace("}", "{").split("{")
                    parts[1::2] = [characters(rng, ALNUM, int(count)) for count in parts[1::2]]
                    masked = Redactor(None)(broken("".join(parts), width, style))
                    plain = "".join(c for c in masked.replace("\n", "") if c not in " │\\>")
                    total += 1
                    left += any(
                        is_left(part, plain) for part in parts[1::2] if len(part) > LONG // 2
                    )
    print(f"broken at {WIDTHS[0]} to {WIDTHS[-1]} columns: {total} secrets, {left} left")


def measure_clean(folder: Path, *, show: bool) -> None:
    size = masks = 0
    for path in sorted(folder.rglob("*") if folder.is_dir() else [folder]):
        if path.suffix in TEXTS and path.is_file() and "test" not in str(path):
            text = path.read_text("utf-8", "replace")
            size += len(text)
            for begin, end, kind in find(text):
                masks += 1
                if show:
                    print(f"{path.name}: {kind}: {text[begin - 40 : begin]!r} {text[begin:end]!r}")
    print(f"{folder.name}: {size / 1e6:.1f} MB, {masks} masks")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--each", type=int, default=20)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    for listed in LISTS:
        measure_forms(listed, options.each, show=options.show)
    measure_broken(max(1, options.each // 5))
    for folder in options.folders:
        measure_clean(folder, show=options.show)


if __name__ == "__main__":
    main()
