"""Text to HTML: everything from a transcript goes through `text` or `attr`."""

from __future__ import annotations

import re

from sess_common import escape

_CONTROLS = bytes({*range(0x20), 0x7F} - {0x09, 0x0A})
_ODD = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_RUN = 8_000  # characters
_TEXT_NODE = re.compile(rf"(?<=>)[^<]{{{2 * _RUN},}}")
_UNBROKEN = re.compile(rf"[^\n]{{{2 * _RUN},}}")
_PIECE = re.compile(rf"(?:&[^;]{{1,8}};|[^&]){{1,{_RUN}}}")
_LONG_LINES = 8
# In what is shown, not in an attribute: the next sign of a tag begins one.
_MASK = re.compile(r'(?<!<span class="mask">)\[redacted: [A-Za-z ]{1,30}\](?=[^<>]*<)')
_MARKS = re.compile(r"`([^`]+)`|\*\*([^\s*](?:[^*]*[^\s*])?)\*\*")
_LONG_TEXT = 600


def clean(value: str) -> str:
    """The text with control and bidirectional characters made visible."""
    if value.isascii():
        raw = value.encode()
        if len(raw.translate(None, _CONTROLS)) == len(raw):
            return value
    elif _ODD.search(value) is None:
        return value
    return escape.safe(value)


def text(value: str) -> str:
    return escaped(clean(value))


def escaped(value: str) -> str:
    """For clean text between tags; quotes stay, so that highlighting sees them."""
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def attr(value: str) -> str:
    """For attribute values in double quotes."""
    if value.isascii() and value.isalnum():
        return value
    return text(value).replace('"', "&quot;").replace("'", "&#39;").replace("\n", " ")


def set_apart(html: str) -> str:
    """HTML in which masks are seen at once."""
    if "[redacted: " not in html:
        return html
    return _MASK.sub(r'<span class="mask">\g<0></span>', html)


def title(value: str) -> str:
    """A title is often the beginning of a prompt: draw `code` and **bold** words as such."""
    return _MARKS.sub(
        lambda mark: f"<code>{mark[1]}</code>" if mark[1] else f"<b>{mark[2]}</b>", text(value)
    )


def unmarked(value: str) -> str:
    """The same without the marks, where nothing can be drawn."""
    return _MARKS.sub(lambda mark: mark[1] or mark[2], value)


def line(value: str, longest: int = 300) -> str:
    """A text on one line, not escaped."""
    shown = " ".join(value[: 4 * longest].split())
    return f"{shown[: longest - 1]}…" if len(shown) > longest else shown


def fold(html: str, source: str, kind: str = "fold") -> str:
    """A block that the page may fold; short content gets none."""
    is_long = len(source) > _LONG_TEXT or source.count("\n") > _LONG_LINES
    return f'<div class="{kind}">{html}</div>' if is_long else html


def pre(html: str, source: str, name: str = "out") -> str:
    """What failed is folded to its end, where programs say why."""
    kind = "fold tail" if name == "out bad" else "fold"
    return fold(f'<pre class="{name}" dir="auto">{html}</pre>', source, kind)


def in_runs(html: str) -> str:
    """Markup whose endless lines are in runs: browsers take minutes to break one of a megabyte."""
    if len(html) < 2 * _RUN:
        return html
    return _TEXT_NODE.sub(lambda node: _UNBROKEN.sub(_runs, node[0]), html)


def _runs(unbroken: re.Match[str]) -> str:
    return _PIECE.sub(r'<span class="run">\g<0></span>', unbroken[0])


def details(summary: str, html: str, name: str = "more") -> str:
    """`summary` is text, `html` is markup."""
    return (
        f'<details class="{name}"><summary>{text(summary)}</summary>'
        f'<div class="inside">{html}</div></details>'
    )


def link(target: str, html: str) -> str | None:
    """An external link, or None if the target's scheme is not allowed."""
    target = target.strip()
    if not _FAMILIAR.match(target):
        return None
    return f'<a href="{attr(target)}" rel="noopener noreferrer nofollow">{html}</a>'


_FAMILIAR = re.compile(r"(?:https?://|mailto:)[^\s\x00-\x20<>\"'`]+\Z", re.IGNORECASE)
