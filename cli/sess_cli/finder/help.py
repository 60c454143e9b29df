"""One screen that says everything."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.screen import ModalScreen
from textual.widgets import Static

from sess_cli.finder import looks

_KEYS = (
    ("enter", "read the session from here on, then come back"),
    ("y  ctrl+y", "copy SESSION#EVENT, as `sess show` takes it"),
    ("m", "copy the event, or a whole session, as Markdown"),
    ("e", "write the session to a Markdown file here"),
    ("r  ctrl+r", "leave, and resume the session with its agent"),
    ("p  ctrl+p", "hide or show the conversation"),
    ("F2 F3 F4 F5 F6", "only an agent, a project, a tool, errors, a time"),
    ("tab  arrows  page", "move in and between line, list and conversation"),
    ("/", "back to the line"),
    ("esc  ctrl+q", "leave"),
)
_WORDS = (
    ("retry timeout", "both words; the last one may be a beginning"),
    ('"exit code 1"', "the phrase"),
    ("-word", "without it"),
    ("one OR other", "either"),
    ("tool:Bash is:error", "failed calls of a tool"),
    ("project:web since:7d", "where and when"),
    ("type:user file:*.py", "what people said; files that a call touched"),
)


# What the bottom line says: key, what it does, and the action for a click on it.
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
    ("^P", "preview", "toggle_preview"),
    ("F1", "help", "help"),
    ("esc", "quit", "quit"),
)


class KeyBar(Static):
    """The keys that work where the focus is; each can be clicked."""

    def show(self, *, typing: bool) -> None:
        text = Text(no_wrap=True)
        for key, what, action in _IN_LINE if typing else _IN_LIST:
            click = Style.from_meta({"@click": f"app.{action}"})
            text.append("  " if text else "")
            text.append(key, looks.NAME + click).append(f" {what}", looks.DIM + click)
        self.update(text)


class Help(ModalScreen[None]):
    def compose(self) -> ComposeResult:
        text = Text()
        for title, rows in (("Keys", _KEYS), ("What you can type", _WORDS)):
            text.append(f"{title}\n", looks.BOLD)
            for left, right in rows:
                text.append(f"  {left:<22}", looks.NAME)
                text.append(f"{right}\n")
        text.append("\nLetters work in the list; in the line they type.", looks.DIM)
        yield Static(text)

    def on_key(self, event: events.Key) -> None:
        event.stop()
        self.dismiss()

    def on_click(self) -> None:
        self.dismiss()
