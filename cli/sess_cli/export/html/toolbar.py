"""The toolbar: search, levels, filters, theme, and the list of keyboard shortcuts."""

from __future__ import annotations

_LEVELS = (
    ("conversation", "Conversation"),
    ("tools", "+ Tools"),
    ("thinking", "+ Thinking"),
    ("everything", "Everything"),
)
_KEYS = (
    ("/", "search"),
    ("n N", "next, previous match (also Enter, Shift+Enter)"),
    ("Esc", "clear the search"),
    ("j k", "next, previous prompt"),
    ("e E", "next, previous error"),
    ("g G", "top, bottom"),
    ("1 2 3 4", "level: conversation, tools, thinking, everything"),
    ("o", "outline"),
    ("t", "theme: system, dark, light"),
    ("?", "this list"),
)
_TOP = """\
<div class="toolbar js-only" role="group" aria-label="Toolbar">
<button type="button" id="show-outline" aria-expanded="false" \
aria-controls="outline"><span aria-hidden="true">☰</span> Prompts</button>
<form role="search" id="search"><input type="search" id="query" placeholder="Search  /" \
aria-label="Search this session" autocomplete="off" spellcheck="false">\
<output id="found" aria-live="polite"></output>\
<button type="button" id="elsewhere" title="Show everything" hidden>hidden</button>\
<button type="button" id="previous" aria-label="Previous match" disabled>↑</button>\
<button type="button" id="next" aria-label="Next match" disabled>↓</button></form>
<fieldset class="levels"><legend>Detail</legend>
"""
_END = """\
</fieldset>
<details class="filters" id="filters"><summary>Filter<span id="filtered"></span></summary>\
<div class="panel"></div></details>
<button type="button" id="theme" aria-label="Theme">◐</button>
<button type="button" id="show-help" aria-label="Keyboard shortcuts">?</button>
<span id="said" class="unseen" role="status" aria-live="polite"></span>
</div>
<noscript><p class="plain-note">Search and filters need JavaScript.</p></noscript>
"""


def html(level: str) -> str:
    choices = "".join(
        f'<label><input type="radio" name="level" value="{name}"'
        f"{' checked' if name == level else ''}><span>{shown}</span></label>\n"
        for name, shown in _LEVELS
    )
    return _TOP + choices + _END


def _keys(keys: str) -> str:
    return " ".join(f"<kbd>{key}</kbd>" for key in keys.split())


HELP = (
    '<dialog id="help" aria-labelledby="help-title"><form method="dialog">'
    '<h2 id="help-title">Keyboard shortcuts</h2><dl>'
    + "".join(f"<div><dt>{_keys(keys)}</dt><dd>{what}</dd></div>" for keys, what in _KEYS)
    + "</dl><button>Close</button></form></dialog>\n"
)
