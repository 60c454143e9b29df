"""A film as MP4, WebM or GIF, encoded in this process without another program."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

from sess_cli.export import files
from sess_cli.export.film import fonts, themes
from sess_cli.export.film.frames import Film, Row
from sess_common.errors import Exit, SessError

if TYPE_CHECKING:
    import av
    from av.container import OutputContainer
    from av.video.stream import VideoStream

    from sess_cli.export.film.picture import Painter

Progress = Callable[[int, int], None]  # milliseconds drawn, total milliseconds
_THREADS = 3  # fixed, because the thread count changes the output
_ENTRY = 30  # seconds between key frames, where players can seek to
_NAMED = 5  # characters without a glyph that a warning lists
_BT709 = 1
# Searching far up and down (umh) finds scrolled text again, which makes films that scroll by
# several lines eight times smaller. Text moves by whole pixels, so subpixel search is off.
_H264 = {
    "preset": "superfast",
    "crf": "22",
    "forced-idr": "1",
    "bf": "0",
    "x264-params": "me=umh:merange=96:chroma-me=0:subme=0:partitions=i4x4:8x8dct=0:weightp=0"
    ":rc-lookahead=10:mbtree=1:scenecut=0:aq-strength=0.5",
}
_VP9 = {
    "deadline": "realtime",
    "cpu-used": "8",
    "crf": "28",
    "b": "0",
    "tune-content": "screen",
    "lag-in-frames": "0",
    "row-mt": "1",
    "tile-columns": "1",
}


@dataclass(frozen=True, slots=True)
class Kind:
    container: str
    codec: str
    options: dict[str, str]


_KINDS = {".mp4": Kind("mp4", "libx264", _H264), ".webm": Kind("webm", "libvpx-vp9", _VP9)}


def check_name(path: str, *, gif: bool) -> None:
    """Check that the file extension matches the format."""
    suffix = _suffix(path)
    if gif and suffix != ".gif":
        hint = "`sess export video` writes .mp4 and .webm" if suffix in _KINDS else None
        raise SessError(f'"{path}": the name of a GIF must end in .gif', hint=hint)
    if not gif and suffix not in _KINDS:
        hint = "`sess export gif` writes a .gif" if suffix == ".gif" else None
        raise SessError(f'"{path}": the name of a video must end in .mp4 or .webm', hint=hint)


def _suffix(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def write(
    film: Film,
    path: str,
    *,
    theme: str = themes.DEFAULT,
    width: int = 1400,
    height: int = 800,
    font_size: int = 16,
    fps: int = 15,
    progress: Progress | None = None,
) -> list[str]:
    """Write an `.mp4`, a `.webm` or a looping `.gif`, as the name says; return warnings."""
    gif = _suffix(path) == ".gif"
    check_name(path, gif=gif)
    painter = _painter(theme, width, height, font_size, fps)
    with files.new_path(path) as partial:
        if gif:
            _write_gif(film, partial, painter, fps=fps, progress=progress)
        else:
            kind = _KINDS[_suffix(path)]
            _encode(film, partial, kind, painter, fps=fps, progress=progress)
    return _warnings(painter)


def _write_gif(
    film: Film, path: str, painter: Painter, *, fps: int, progress: Progress | None
) -> None:
    """With at most 256 colours."""
    from sess_cli.export.film import gif  # needs Pillow

    with open(path, "wb") as file:
        writer = gif.Writer(file, painter, gif.colours(film, painter.theme))
        for moment in moments(film, fps):
            writer.show(moment.rows, _milliseconds(moment.begin, fps))
            if progress:
                progress(_milliseconds(moment.end, fps), film.duration)
        writer.close(film.duration)


@dataclass(frozen=True, slots=True)
class Moment:
    """A range of video frames that show the same screen."""

    begin: int
    end: int
    rows: tuple[Row, ...]
    last: bool = False


def moments(film: Film, fps: int) -> Iterator[Moment]:
    """The film without gaps: the last screen of each video frame, equal neighbours merged."""
    total = max(1, round(film.duration * fps / 1000))
    begin, rows = 0, tuple[Row, ...]()
    for frame in film.frames():
        at = max(begin, min(total - 1, round(frame.at * fps / 1000)))
        if frame.rows == rows:
            continue
        if at > begin:
            yield Moment(begin, at, rows)
        begin, rows = at, frame.rows
    yield Moment(begin, total, rows, last=True)


def _encode(
    film: Film, path: str, kind: Kind, painter: Painter, *, fps: int, progress: Progress | None
) -> None:
    import av
    from av.video.frame import PictureType

    from sess_cli.export.film.planes import Canvas

    canvas = Canvas(painter)
    # Reproducible: no random ids, no versions. The index comes first, to play while loading.
    settings = {"fflags": "+bitexact", "movflags": "+faststart"}
    with av.open(path, "w", format=kind.container, container_options=settings) as container:
        container.metadata["title"] = _one_line(film.title)
        container.set_chapters(_chapters(film))
        stream = cast("VideoStream", container.add_stream(kind.codec, fps, kind.options))
        _describe(stream, painter.place, fps)
        entries = deque(sorted(round(chapter.at * fps / 1000) for chapter in film.chapters))
        entry = -_ENTRY * fps
        for moment in moments(film, fps):
            frame = canvas.show(moment.rows)
            for at in _pictures(moment, fps):
                whole = at - entry >= _ENTRY * fps
                while entries and entries[0] <= at:
                    entries.popleft()
                    whole = True
                entry = at if whole else entry
                frame.pict_type = PictureType.I if whole else PictureType.NONE
                frame.pts, frame.time_base = at, Fraction(1, fps)
                _write(container, stream, frame)
            if progress:
                progress(_milliseconds(moment.end, fps), film.duration)
        _write(container, stream, None)


def _pictures(moment: Moment, fps: int) -> Iterator[int]:
    """The times to encode: the start, every second for seeking, and the very end."""
    yield from range(moment.begin, moment.end, fps)
    if moment.last and (moment.end - 1 - moment.begin) % fps:
        yield moment.end - 1


def _write(container: OutputContainer, stream: VideoStream, frame: av.VideoFrame | None) -> None:
    for packet in stream.encode(frame):
        packet.duration = packet.duration or 1
        container.mux(packet)


def _describe(stream: VideoStream, place: fonts.Layout, fps: int) -> None:
    stream.width, stream.height = place.width, place.height
    stream.pix_fmt = "yuv420p"
    context = stream.codec_context
    context.thread_count = _THREADS
    context.thread_type = "FRAME"  # encodes while the next picture is drawn
    context.gop_size = _ENTRY * fps
    context.color_range = context.color_primaries = _BT709
    context.color_trc = context.colorspace = _BT709


def _chapters(film: Film) -> list[Any]:
    """Each ends where the next begins; of several at the same time, the last wins."""
    titles = {min(c.at, film.duration): _one_line(c.title) for c in film.chapters}
    return [
        {
            "id": number,
            "start": start,
            "end": end,
            "time_base": Fraction(1, 1000),
            "metadata": {"title": titles[start]},
        }
        for number, (start, end) in enumerate(pairwise([*sorted(titles), film.duration]), 1)
        if end > start
    ]


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _milliseconds(picture: int, fps: int) -> int:
    return round(picture * 1000 / fps)


def _painter(theme: str, width: int, height: int, font_size: int, fps: int) -> Painter:
    try:
        import av  # noqa: F401
        import PIL  # noqa: F401
    except ImportError as error:
        raise SessError(
            "films need PyAV and Pillow",
            hint="`pip install 'sessiond[video]'`",
            code=Exit.PROGRAM_FAILED,
        ) from error
    from sess_cli.export.film.picture import Painter

    if not 1 <= fps <= 60:
        raise SessError(f"frame rate out of range: {fps}", hint="use 1 to 60")
    return Painter(fonts.layout(width, height, font_size), themes.theme(theme))


def _warnings(painter: Painter) -> list[str]:
    missing = sorted(painter.missing)
    if not missing:
        return []
    named = ", ".join(f"U+{ord(character):04X}" for character in missing[:_NAMED])
    more = ", …" if len(missing) > _NAMED else ""
    words = "1 character has" if len(missing) == 1 else f"{len(missing)} characters have"
    return [f"{words} no glyph: {named}{more}"]
