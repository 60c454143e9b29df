"""Highlight comments, strings, numbers and keywords in code, at a bounded cost.

The patterns run over escaped text, so unmatched text needs no further escaping. A token never
splits an entity: strings end at their quotes, comments at the end of the line. Each alternative
begins with a rare character, which lets `re` skip the rest quickly.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_MOST = 8_000  # characters of one block: what is folded needs no colours

# An unclosed string ends with its line, so that its closing quote never opens another one.
_DOUBLE = r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"?'
_OPEN_DOUBLE = r'"[^"\\]*+(?:\\[\s\S][^"\\]*+)*+"?'  # may span lines
_SINGLE = r"'(?:[^'\\\n]|\\.){0,200}+'"
_CHARACTER = r"'(?:[^'\\\n]|\\.[^'\n]{0,8})'"
_TRIPLE = r'"""[\s\S]*?"""|' r"'''[\s\S]*?'''"
_NUMBER = r"\d(?<!\w\d)[\w.]*"
_HASH = r"#(?<!\S#)[^\n]*"
_BLOCK = r"/\*(?:[\s\S]*?\*/|[\s\S]*)"
_SLASHES = rf"/(?<!:/)/[^\n]*|{_BLOCK}"
_DASHES = rf"--[^\n]*|{_BLOCK}"

_C_WORDS = (
    "abstract as async await bool boolean break byte case catch char chan class const"
    " continue crate default defer delete do double dyn else enum export extends extern false"
    " final finally float fn for from func function go goto if impl implements import in"
    " instanceof int interface let long loop map match mod move mut namespace new nil null"
    " number object of operator override package private protected pub public range readonly"
    " ref return self short signed sizeof static string struct super switch template this"
    " throw throws trait true try type typedef typeof undefined union unsafe unsigned use"
    " using val var virtual void volatile when where while with yield"
)
_HASH_WORDS = (
    "and as assert async await begin break case class continue def del do elif else elsif end"
    " ensure except False finally for from global if import in is lambda match module nil None"
    " nonlocal not or pass raise require rescue return self super then True try unless until"
    " when while with yield"
)
_SHELL_WORDS = (
    "case do done elif else esac export fi for function if in local return select set then unset"
    " until while"
)
_SQL_WORDS = (
    "add all alter and as asc begin between by case check column commit constraint create cross"
    " default delete desc distinct drop else end exists foreign from full group having if in index"
    " inner insert into is join key left like limit not null offset on or order outer primary"
    " references return right rollback select set table then union unique update using values view"
    " when where with local function elseif"
)
_DATA_WORDS = "true false null yes no on off"

_QUOTED = {'"': "hs", "'": "hs", "`": "hs"}


@dataclass(slots=True, frozen=True)
class _Family:
    """Languages with a similar syntax: tokens, classes by a token's first character, keywords."""

    tokens: re.Pattern[str]
    classes: dict[str, str]
    other: str = "hn"
    words: dict[str, str] = field(default_factory=dict)


def _family(*tokens: str, words: str = "", other: str = "hn", **classes: str) -> _Family:
    marks = _QUOTED | {_SIGNS[name]: value for name, value in classes.items()}
    keywords = {word: f'<span class="hk">{word}</span>' for word in words.split()}
    return _Family(re.compile(f"({'|'.join(tokens)})", re.MULTILINE), marks, other, keywords)


_SIGNS = {
    "hash": "#", "slash": "/", "dash": "-", "at": "@", "plus": "+", "dollar": "$", "bang": "!",
    "and_": "&",
}  # fmt: skip
_FAMILIES = {
    "c": _family(_SLASHES, _DOUBLE, _SINGLE, "`[^`]*`", _NUMBER, words=_C_WORDS, slash="hc"),
    "rust": _family(_SLASHES, _DOUBLE, _CHARACTER, _NUMBER, words=_C_WORDS, slash="hc"),
    "hash": _family(_HASH, _TRIPLE, _DOUBLE, _SINGLE, _NUMBER, words=_HASH_WORDS, hash="hc"),
    "shell": _family(
        _HASH, _OPEN_DOUBLE, "'[^']*'", r"\$\{[^{}\n]{1,60}\}|\$\w+", r"-(?<=\s-)-?[A-Za-z][\w-]*",
        words=_SHELL_WORDS, hash="hc", dollar="hf", dash="hf",
    ),
    "sql": _family(
        _DASHES, _SINGLE, _DOUBLE, _NUMBER, words=f"{_SQL_WORDS} {_SQL_WORDS.upper()}",
        dash="hc", slash="hc",
    ),
    "data": _family(
        _HASH, r"^[ \t]*+(?:- )?[\w.-]++(?=[ \t]*[:=])", r"^\[[^\]\n]+\]", _DOUBLE, _SINGLE,
        words=_DATA_WORDS, hash="hc", other="hf",
    ),
    "json": _family(rf"{_DOUBLE}(?:[ \t]*+:)?+", _NUMBER, words=_DATA_WORDS),
    "css": _family(
        _BLOCK, _DOUBLE, _SINGLE, r"#[0-9a-fA-F]{3,8}\b", r"@[\w-]+|!important", _NUMBER,
        slash="hc", at="hk", bang="hk",
    ),
    "markup": _family(
        r"&lt;!--(?:[\s\S]*?--&gt;|[\s\S]*)", r"&lt;/?[\w:.-]+|/?&gt;", _DOUBLE,
        and_="hk", slash="hk",
    ),
    "diff": _family(r"^[-+@][^\n]*", at="hc", plus="hs", dash="hk"),
}  # fmt: skip
_LANGUAGES = {
    "c": "c h cc cpp cxx hpp hh js jsx mjs cjs ts tsx mts cts javascript typescript java kt kts"
    " kotlin go golang swift cs csharp dart scala php groovy proto zig jsonc json5 c++ objc m mm"
    " sol v glsl wgsl",
    "rust": "rs rust",
    "hash": "py python pyi py3 rb ruby pl perl r ex exs elixir cr nim jl julia gd coffee starlark"
    " bzl bazel",
    "shell": "sh bash zsh fish shell console shellsession shell-session ksh dockerfile docker"
    " makefile make mk powershell ps1 bat cmake terminal",
    "sql": "sql psql mysql sqlite lua hs haskell elm ada vhdl",
    "data": "yaml yml toml ini cfg conf env properties editorconfig hcl tf nix service",
    "json": "json jsonl ndjson webmanifest ipynb geojson",
    "css": "css scss sass less",
    "markup": "html htm xml svg vue svelte xhtml plist jinja hbs astro xsl",
    "diff": "diff patch",
}
_FAMILY_OF = {name: family for family, names in _LANGUAGES.items() for name in names.split()}


def family(language: str) -> str | None:
    """The family of a language, given by a fence or a file name's extension."""
    return _FAMILY_OF.get(language.strip().casefold().lstrip(".").removeprefix("language-"))


def family_of_path(path: str) -> str | None:
    name = path.rsplit("/", 1)[-1].rsplit("\\", 1)[-1]
    return family(name.rsplit(".", 1)[-1])


def coloured(escaped: str, chosen: str | None) -> str:
    """`escaped` is already escaped; the result has `<span>` around its tokens."""
    if chosen is None:
        return escaped
    if len(escaped) <= _MOST:
        return _marked(escaped, _FAMILIES[chosen])
    end = escaped.rfind("\n", 0, _MOST) + 1
    return _marked(escaped[:end], _FAMILIES[chosen]) + escaped[end:]


def _marked(escaped: str, family: _Family) -> str:
    pieces = family.tokens.split(escaped)
    classes, other = family.classes, family.other
    for number in range(1, len(pieces), 2):
        token = pieces[number]
        name = classes.get(token[0], other)
        if token[-1] == ":" and name == "hs":
            name = "hf"
        elif token.startswith("&lt;!--"):
            name = "hc"
        pieces[number] = f'<span class="{name}">{token}</span>'
    if family.words:
        pieces[::2] = _keywords("\0".join(pieces[::2]), family.words).split("\0")
    return "".join(pieces)


def _keywords(escaped: str, words: dict[str, str]) -> str:
    pieces = _WORD.split(escaped)
    return "".join(map(words.get, pieces, pieces))


_WORD = re.compile(r"(\w+)")
