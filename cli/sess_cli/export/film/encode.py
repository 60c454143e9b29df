"""A film as MP4, WebM or GIF, encoded in this process without another program, and its captions."""

from __future__ import annotations

import os
import struct
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from sess_cli.export.film import fonts, themes
from sess_cli.export.film.rows import Film, Look, Row
from sess_cli.export.film.themes import RGB, Theme, mixed
from sess_common import installation
from sess_common.errors import Exit, SessError
from sess_schema import outputs

if TYPE_CHECKING:
    import av
    from av.container import OutputContainer
    from av.video.stream import VideoStream
    from PIL import Image

    from sess_cli.export.film.picture import Painter

Progress = Callable[[int, int], None]  # milliseconds drawn, total milliseconds
_THREADS = 3  # fixed, because the thread count changes the output
_ENTRY = 30  # seconds between key frames, where players can seek to
_NAMED = 5  # characters without a glyph that a warning lists
_BT709 = 1
# Searching far up and down (umh) finds scrolled text again, which makes films that scroll by
# several lines eight times smaller. Text moves by whole pixels, so subpixel search is off.
_H264 = {
    "preset": "superfast", "crf": "22", "forced-idr": "1", "bf": "0",
    "x264-params": "me=umh:merange=96:chroma-me=0:subme=0:partitions=i4x4:8x8dct=0:weightp=0"
    ":rc-lookahead=10:mbtree=1:scenecut=0:aq-strength=0.5",
}  # fmt: skip
_VP9 = {
    "deadline": "realtime", "cpu-used": "8", "crf": "28", "b": "0", "tune-content": "screen",
    "lag-in-frames": "0", "row-mt": "1", "tile-columns": "1",
}  # fmt: skip
_KEPT_STRIPS = 64 << 20  # bytes of strips: about 1,400 rows of 1,400 pixels
# BT.709 in the limited range, which players assume for this size.
_KR, _KB = 0.2126, 0.0722
_KG = 1 - _KR - _KB
_LUMA, _CHROMA = 219 / 255, 224 / 255
_MATRIX = (
    *(_LUMA * weight for weight in (_KR, _KG, _KB)), 16,
    *(_CHROMA / 2 / (1 - _KB) * weight for weight in (-_KR, -_KG, 1 - _KB)), 128,
    *(_CHROMA / 2 / (1 - _KR) * weight for weight in (1 - _KR, -_KG, -_KB)), 128,
)  # fmt: skip
Strip = tuple[bytes, bytes, bytes]
_MOST_COLOURS = 256
_BLENDS = 6  # blends from background to text, for smooth edges
_KEPT_GIF_ROWS = 1500
_LONGEST_DELAY = 65_535  # hundredths of a second


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
    with outputs.new_path(path, replace=True) as partial:
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
    with open(path, "wb") as file:
        writer = GifWriter(file, painter, palette_of(film, painter.theme))
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
            hint=f"`{installation.adding('video')}`",
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


class Canvas:
    """The current video frame. Only rows that differ are copied."""

    def __init__(self, painter: Painter) -> None:
        from av import VideoFrame

        place = painter.place
        self.frame: av.VideoFrame = VideoFrame(place.width, place.height, "yuv420p")
        self._painter = painter
        self._strides = [plane.line_size for plane in self.frame.planes]
        kept = _KEPT_STRIPS * 2 // (3 * self._strides[0] * place.cell_height)
        self._strip = lru_cache(max(place.lines + 1, kept))(
            lambda row: self._samples(painter.row(row))
        )
        self._shown: list[Row | None] = [None] * place.lines
        self._put(0, self._samples(painter.top))
        self._put(place.height - painter.bottom.height, self._samples(painter.bottom))

    def show(self, rows: Sequence[Row]) -> av.VideoFrame:
        """The frame with these rows; the same object each time."""
        place = self._painter.place
        self.frame.make_writable()  # the encoder may still hold the last one
        for line in range(place.lines):
            row = rows[line] if line < len(rows) else ()
            if row is not self._shown[line] and row != self._shown[line]:
                self._put(place.top + line * place.cell_height, self._strip(row))
                self._shown[line] = row
        return self.frame

    def _samples(self, image: Image.Image) -> Strip:
        """Lines as long as the encoder's, so that a strip is contiguous in each plane."""
        luma, *chroma = image.convert("RGB", _MATRIX).split()
        height = image.height
        blue, red = (
            plane.reduce(2).crop((0, 0, stride, height // 2)).tobytes()
            for plane, stride in zip(chroma, self._strides[1:], strict=True)
        )
        return luma.crop((0, 0, self._strides[0], height)).tobytes(), blue, red

    def _put(self, y: int, strip: Strip) -> None:
        for plane, samples, step in zip(self.frame.planes, strip, (1, 2, 2), strict=True):
            begin = y // step * plane.line_size
            memoryview(plane)[begin : begin + len(samples)] = samples


def palette_of(film: Film, theme: Theme) -> list[RGB]:
    """The palette of the film: plain colours first, then the edges of letters."""
    seen: set[Row] = set()
    looks: Counter[Look] = Counter()
    before: tuple[Row, ...] = ()
    for frame in film.frames():
        for line, row in enumerate(frame.rows):
            if (line < len(before) and row is before[line]) or row in seen:
                continue
            seen.add(row)
            for text, look in row:
                looks[look] += len(text)
        before = frame.rows
    pairs = [theme.of(look) for look, _ in looks.most_common()]
    palette = dict.fromkeys([theme.colour("base"), theme.colour("crust"), *sum(pairs, ())])
    for step in range(1, _BLENDS):
        # If there are too many looks, rare ones get no edge colours.
        for front, behind in pairs:
            palette[mixed(behind, front, step / _BLENDS)] = None
    return list(palette)[:_MOST_COLOURS]


class GifWriter:
    """Writes while drawing: one palette for the whole film, and only changed rows."""

    def __init__(self, file: BinaryIO, painter: Painter, palette: Iterable[RGB]) -> None:
        from PIL import Image

        place = painter.place
        self._file = file
        self._painter = painter
        self._palette = Image.new("P", (1, 1))
        flat = [level for colour in palette for level in colour]
        self._palette.putpalette(flat + flat[:3] * (_MOST_COLOURS - len(flat) // 3))
        self._canvas = Image.new("P", (place.width, place.height))
        self._canvas.paste(self._indexed(painter.top), (0, 0))
        self._canvas.paste(self._indexed(painter.bottom), (0, place.height - painter.bottom.height))
        self._rows: list[Row | None] = [None] * place.lines
        self._strip = lru_cache(_KEPT_GIF_ROWS)(lambda row: self._indexed(painter.row(row)))
        self._pending: tuple[int, bytes] | None = None  # start time, picture
        table = bytes(self._palette.getpalette() or ()).ljust(3 * _MOST_COLOURS, b"\0")
        file.write(b"GIF89a" + struct.pack("<HHBBB", place.width, place.height, 0xF7, 0, 0) + table)
        file.write(b"!\xff\x0bNETSCAPE2.0\x03\x01\0\0\0")  # loop forever

    def show(self, rows: Sequence[Row], at: int) -> None:
        """Show the picture from `at` milliseconds on."""
        place = self._painter.place
        changed = []
        for line in range(place.lines):
            row = rows[line] if line < len(rows) else ()
            if row != self._rows[line]:
                self._canvas.paste(self._strip(row), (0, place.top + line * place.cell_height))
                self._rows[line] = row
                changed.append(line)
        if self._pending is None:
            box = (0, 0, place.width, place.height)
        elif changed:
            upper, lower = (
                place.top + n * place.cell_height for n in (changed[0], changed[-1] + 1)
            )
            box = (0, upper, place.width, lower)
        else:
            return
        self._flush(at)
        self._pending = at, self._picture(box)

    def close(self, end: int) -> None:
        self._flush(end)
        self._file.write(b";")

    def _flush(self, until: int) -> None:
        if self._pending is None:
            return
        begin, picture = self._pending
        # Each end is rounded, not each length, so that errors do not add up.
        delay = min(_LONGEST_DELAY, max(2, round(until / 10) - round(begin / 10)))
        self._file.write(b"!\xf9\x04" + struct.pack("<BHBB", 4, delay, 0, 0) + picture)

    def _picture(self, box: tuple[int, int, int, int]) -> bytes:
        left, upper, right, lower = box
        head = struct.pack("<BHHHHBB", 0x2C, left, upper, right - left, lower - upper, 0, 8)
        return head + self._canvas.crop(box).tobytes("gif", "P") + b"\0"

    def _indexed(self, image: Image.Image) -> Image.Image:
        from PIL import Image

        return image.quantize(palette=self._palette, dither=Image.Dither.NONE)


def webvtt(film: Film) -> Iterator[str]:
    """What is said, for players and for people who cannot read a screen."""
    yield "WEBVTT\n"
    for number, caption in enumerate(film.captions, 1):
        # One line without markup; an arrow would begin a new cue.
        text = escape(caption.text, quote=False)
        yield f"\n{number}\n{_cue_time(caption.at)} --> {_cue_time(caption.end)}\n{text}\n"


def _cue_time(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest:03}"
