"""Colour themes."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from sess_cli.export.film.rows import Colour, Look
from sess_common.errors import no_such

RGB = tuple[int, int, int]

_NAMES = (
    "base", "crust", "surface", "text", "dim", "accent", "user",
    "green", "red", "yellow", "blue", "mauve", "peach", "teal",
)  # fmt: skip
# For each theme the named colours, then the terminal's: black, red, green, yellow, blue, magenta,
# cyan, white, and their bright variants.
_THEMES = {
    "mocha": """
        1e1e2e 11111b 313244 cdd6f4 8c91aa b4befe 89dceb
        a6e3a1 f38ba8 f9e2af 89b4fa cba6f7 fab387 94e2d5
        45475a f38ba8 a6e3a1 f9e2af 89b4fa f5c2e7 94e2d5 a6adc8
        7f849c f37799 89d88b ebd391 74a8fc f2aede 6bd7ca cdd6f4
    """,
    "macchiato": """
        24273a 181926 363a4f cad3f5 8f95b0 b7bdf8 91d7e3
        a6da95 ed8796 eed49f 8aadf4 c6a0f6 f5a97f 8bd5ca
        494d64 ed8796 a6da95 eed49f 8aadf4 f5bde6 8bd5ca a5adcb
        8087a2 ec7486 8ccf7f e1c682 78a1f6 f2a9dd 63cbc0 cad3f5
    """,
    "frappe": """
        303446 232634 414559 c6d0f5 959cb8 babbf1 99d1db
        a6d189 e78284 e5c890 8caaee ca9ee6 ef9f76 81c8be
        51576d e78284 a6d189 e5c890 8caaee f4b8e4 81c8be a5adce
        838ba7 e67172 8ec772 d9ba73 7b9ef0 f2a4db 5abfb5 c6d0f5
    """,
    "latte": """
        eff1f5 dce0e8 d5d9e3 4c4f69 767a90 5b6ee1 0481b8
        40a02b d20f39 b5730c 1e66f5 8839ef e05a08 179299
        5c5f77 d20f39 40a02b b5730c 1e66f5 d12b9c 179299 8c8fa1
        6c6f85 de293e 49af3d c8800c 456eff c94fa5 2d9fa8 4c4f69
    """,
    "dracula": """
        282a36 1e1f29 44475a f8f8f2 8b98c4 bd93f9 8be9fd
        50fa7b ff5555 f1fa8c 80b5ff bd93f9 ffb86c 8be9fd
        44475a ff5555 50fa7b f1fa8c bd93f9 ff79c6 8be9fd f8f8f2
        6272a4 ff6e6e 69ff94 ffffa5 d6acff ff92df a4ffff ffffff
    """,
    "nord": """
        2e3440 242933 3b4252 e5e9f0 8f9bb3 88c0d0 8fbcbb
        a3be8c d5707b ebcb8b 81a1c1 b48ead d08770 8fbcbb
        4c566a bf616a a3be8c ebcb8b 81a1c1 b48ead 88c0d0 e5e9f0
        7b88a1 d5707b b1cc9a f0d49a 94b3d2 c39ebc 9bcfde eceff4
    """,
    "gruvbox": """
        282828 1d2021 3c3836 ebdbb2 a89984 fabd2f 8ec07c
        b8bb26 fb4934 fabd2f 83a598 d3869b fe8019 8ec07c
        504945 cc241d 98971a d79921 458588 b16286 689d6a a89984
        928374 fb4934 b8bb26 fabd2f 83a598 d3869b 8ec07c ebdbb2
    """,
    "tokyo-night": """
        1a1b26 13141c 292e42 c0caf5 7982a9 7aa2f7 7dcfff
        9ece6a f7768e e0af68 7aa2f7 bb9af7 ff9e64 73daca
        414868 f7768e 9ece6a e0af68 7aa2f7 bb9af7 7dcfff a9b1d6
        6b739c ff899d 9fe044 faba4a 8db0ff c7a9ff a4daff c0caf5
    """,
    "one-dark": """
        282c34 1f2329 3a3f4b c8ccd4 8b93a3 61afef 56b6c2
        98c379 e06c75 e5c07b 61afef c678dd d19a66 56b6c2
        3f4451 e06c75 98c379 e5c07b 61afef c678dd 56b6c2 abb2bf
        6b7280 f07a84 a9d48a f0cd8d 74bcff d58bea 6bc8d4 e6e8ee
    """,
    "solarized-dark": """
        002b36 00212b 0a3c49 a9b7b9 6f8a92 2aa198 2aa198
        9cae0c e8544f c79a10 4aa3e0 8a8ee0 db6533 2aa198
        0f4552 dc322f 859900 b58900 268bd2 d33682 2aa198 eee8d5
        586e75 e8544f 9cae0c c79a10 4aa3e0 e0589a 45b8af fdf6e3
    """,
    "solarized-light": """
        fdf6e3 eee8d5 eee8d5 4f646c 7c8b8d 1c7fc4 1b8a82
        6b7c00 dc322f 9a7500 268bd2 6c71c4 cb4b16 1b8a82
        073642 dc322f 6b7c00 9a7500 268bd2 d33682 1b8a82 93a1a1
        586e75 cb4b16 5c6b00 856500 1f77b4 b82c70 167a73 586e75
    """,
    "github-dark": """
        0d1117 010409 21262d e6edf3 8b949e 58a6ff 79c0ff
        3fb950 ff7b72 d29922 58a6ff bc8cff f0883e 39c5cf
        484f58 ff7b72 3fb950 d29922 58a6ff bc8cff 39c5cf b1bac4
        6e7681 ffa198 56d364 e3b341 79c0ff d2a8ff 56d4dd ffffff
    """,
    "github-light": """
        ffffff f0f3f6 eaeef2 1f2328 656d76 0969da 0550ae
        1a7f37 cf222e 9a6700 0969da 8250df bc4c00 1b7c83
        24292f cf222e 116329 7d5200 0969da 8250df 1b7c83 6e7781
        57606a a40e26 1a7f37 633c01 218bff a475f9 3192aa 57606a
    """,
}
DEFAULT = "mocha"
# Grounds of changed lines, and of the words changed in them: how much of which colour.
TINTS = {
    "added": ("green", 0.16), "added-word": ("green", 0.36),
    "removed": ("red", 0.16), "removed-word": ("red", 0.36),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Theme:
    named: dict[str, RGB]
    terminal: tuple[RGB, ...]

    def colour(self, colour: Colour) -> RGB:
        """Unknown names and numbers are drawn as text: a film must not fail because of a colour."""
        if isinstance(colour, str):
            return self.named.get(colour) or self.named["text"]
        if isinstance(colour, int):
            return self._number(colour)
        return colour

    def of(self, look: Look) -> tuple[RGB, RGB]:
        """Foreground and background."""
        behind = self.colour("base" if look.bg is None else look.bg)
        front = self.colour(look.fg)
        if look.inverse:
            front, behind = behind, front
        if look.dim:
            front = mixed(behind, front, 0.6)
        return front, behind

    def _number(self, number: int) -> RGB:
        if 0 <= number < 16:
            return self.terminal[number]
        if 16 <= number < 232:
            red, rest = divmod(number - 16, 36)
            green, blue = divmod(rest, 6)
            return _step(red), _step(green), _step(blue)
        if 232 <= number < 256:
            return (8 + 10 * (number - 232),) * 3
        return self.named["text"]


def names() -> list[str]:
    return list(_THEMES)


@functools.cache
def theme(name: str) -> Theme:
    table = _THEMES.get(name.lower().replace(" ", "-").removeprefix("catppuccin-"))
    if table is None:
        raise no_such("theme", name, _THEMES)
    colours = [_rgb(code) for code in table.split()]
    named = dict(zip(_NAMES, colours, strict=False))
    base = named["base"]
    named |= {tint: mixed(base, named[of], share) for tint, (of, share) in TINTS.items()}
    return Theme(named, tuple(colours[len(_NAMES) :]))


def mixed(behind: RGB, front: RGB, amount: float) -> RGB:
    red, green, blue = (round(b + (f - b) * amount) for b, f in zip(behind, front, strict=True))
    return red, green, blue


def _rgb(code: str) -> RGB:
    red, green, blue = bytes.fromhex(code)
    return red, green, blue


def _step(level: int) -> int:
    return 55 + 40 * level if level else 0
