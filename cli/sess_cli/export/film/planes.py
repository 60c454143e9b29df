"""Rows as cached strips of video samples, copied into the frame that the encoder reads."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sess_cli.export.film.frames import Row
from sess_cli.export.film.picture import Painter

if TYPE_CHECKING:
    import av
    from PIL import Image

_KEPT = 64 << 20  # bytes of strips: about 1,400 rows of 1,400 pixels
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


class Canvas:
    """The current video frame. Only rows that differ are copied."""

    def __init__(self, painter: Painter) -> None:
        from av import VideoFrame

        place = painter.place
        self.frame: av.VideoFrame = VideoFrame(place.width, place.height, "yuv420p")
        self._painter = painter
        self._strides = [plane.line_size for plane in self.frame.planes]
        self._strips: OrderedDict[Row, Strip] = OrderedDict()
        self._most = max(place.lines + 1, _KEPT * 2 // (3 * self._strides[0] * place.cell_height))
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

    def _strip(self, row: Row) -> Strip:
        strip = self._strips.get(row)
        if strip is None:
            strip = self._strips[row] = self._samples(self._painter.row(row))
            if len(self._strips) > self._most:
                self._strips.popitem(last=False)
        else:
            self._strips.move_to_end(row)
        return strip

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
