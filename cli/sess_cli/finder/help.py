"""The help screen and the key bar."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.screen import ModalScreen
from textual.widgets import Static

from sess_cli.finder import looks

_KEYS = (
    ("enter", "read the session from here, then return"),
    ("y  ctrl+y", "copy SESSION#EVENT, as `sess show` takes it"),
    ("m", "copy the event, or a whole session, as Markdown"),
    ("e", "write the session to a Markdown file here"),
    ("r  ctrl+r", "quit and resume the session in its agent"),
    ("p  ctrl+o", "hide or show the conversation"),
    ("F2 F3 F4 F5 F6", "filter by agent, project, tool, errors, date"),
    ("ctrl+n/j  ctrl+p/k", "next and previous hit; n and N while reading"),
    ("tab  arrows  page", "move within and between the panes"),
    ("/", "back to the input"),
    ("esc  ctrl+q", "quit"),
)
_WORDS = (
    ("retry timeout", "both words; the last may be incomplete"),
    ('"exit code 1"', "an exact phrase"),
    ("-word", "exclude a word"),
    ("one OR other", "either word"),
    ("tool:Bash is:error", "failed calls of a tool"),
    ("project:web since:7d", "by project and time"),
    ("type:user file:*.py", "prompts; files touched by a call"),
)


# The bottom line: key, label, and the action for a click.
_IN_LIST = (
    ("enter", "read", "read"),
    ("y", "id", "copy_name"),
    ("m", "md", "copy_markdown"),
    ("e", "export", "export"),
    ("r", "resume", "resume"),
    ("p", "preview", "toggle_preview"),
    ("/", "type", "type"),
    ("?", "help", "help"),
    ("esc", "quit", "quit"),
)
_IN_LINE = (
    ("enter", "read", "read"),
    ("↓", "list", "list"),
    ("^Y", "id", "copy_name"),
    ("^R", "resume", "resume"),
    ("^O", "preview", "toggle_preview"),
    ("F1", "help", "help"),
    ("esc", "quit", "quit"),
)


class KeyBar(Static):
    """The keys available for the current focus; each can be clicked."""

    def __init__(self, *, choosing: bool) -> None:
        super().__init__()
        self._choosing = choosing

    def show(self, *, typing: bool) -> None:
        text = Text(no_wrap=True)
        for key, what, action in _IN_LINE if typing else _IN_LIST:
            if self._choosing and action == "resume":
                continue
            if self._choosing and action == "read":
                what = "choose"  # noqa: PLW2901
            click = Style.from_meta({"@click": f"app.{action}"})
            text.append("  " if text else "")
            text.append(key, looks.NAME + click).append(f" {what}", looks.DIM + click)
        self.update(text)


class Help(ModalScreen[None]):
    def compose(self) -> ComposeResult:
        text = Text()
        for title, rows in (("Keys", _KEYS), ("Search syntax", _WORDS)):
            text.append(f"{title}\n", looks.BOLD)
            for left, right in rows:
                text.append(f"  {left:<22}", looks.NAME)
                text.append(f"{right}\n")
        text.append("\nSingle letters work in the list; in the input they are typed.", looks.DIM)
        yield Static(text)

    def on_key(self, event: events.Key) -> None:
        event.stop()
        self.dismiss()

    def on_click(self) -> None:
        self.dismiss()
