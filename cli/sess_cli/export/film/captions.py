"""What is said in a film as WebVTT, for players and for people who cannot read a screen."""

from __future__ import annotations

from collections.abc import Iterator

from sess_cli.export.film.frames import Film


def lines(film: Film) -> Iterator[str]:
    yield "WEBVTT\n"
    for number, caption in enumerate(film.captions, 1):
        yield f"\n{number}\n{_clock(caption.at)} --> {_clock(caption.end)}\n{_text(caption.text)}\n"


def _text(said: str) -> str:
    """One line without markup; an arrow would begin a new cue."""
    return said.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _clock(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest:03}"
