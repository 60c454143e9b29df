"""Film files: what other programs read from them, what they show, and that they are complete."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import av
import pytest
from PIL import GifImagePlugin, Image, ImageChops, ImageSequence, ImageStat
from tests.must import must

from sess_cli.export.film import encode, fonts, themes
from sess_cli.export.film.picture import Painter
from sess_cli.export.film.rows import Chapter, Film, Frame, Look
from sess_common import installation
from sess_common.errors import SessError


class Size(TypedDict):
    width: int
    height: int
    font_size: int


SIZE: Size = {"width": 480, "height": 240, "font_size": 12}
PLACE = fonts.layout(480, 240, 12)
PAGES = [
    ((("first page", Look()),), (("│ box │", Look("teal")),)),
    ((("second page", Look("green", bold=True)),), (), (("中文 🚀", Look("yellow")),)),
    ((("third page", Look("red", bg="surface")),), (("+ added", Look("green")),)),
]


def film(
    *frames: tuple[int, tuple[Any, ...]], duration: int = 6000, chapters: tuple[Chapter, ...] = ()
) -> Film:
    def played() -> Iterator[Frame]:
        for at, rows in frames:
            yield Frame(at, rows)

    return Film(PLACE.columns, PLACE.lines, duration, "A film", list(chapters), played)


def three_pages() -> Film:
    chapters = (Chapter(0, "Begin"), Chapter(2000, "Go\x1b on"), Chapter(4000, "日本"))
    return film((0, PAGES[0]), (2000, PAGES[1]), (4000, PAGES[2]), chapters=chapters)


def typing(count: int = 40) -> Film:
    rows = [((("x" * number, Look()),), ((f"{number}", Look("red")),)) for number in range(count)]
    return film(*((100 * number, row) for number, row in enumerate(rows)), duration=100 * count)


def probed(path: Path) -> dict[str, Any]:
    """Size, codec, format of samples, seconds and chapters, as another program reads them."""
    if shutil.which("ffprobe"):
        command = ["ffprobe", "-v", "error", "-of", "json", "-show_streams", "-show_format"]
        out = subprocess.run([*command, "-show_chapters", path], capture_output=True, check=True)
        found = json.loads(out.stdout)
        stream = next(s for s in found["streams"] if s["codec_type"] == "video")
        return {
            "size": (stream["width"], stream["height"]),
            "codec": stream["codec_name"],
            "pixels": stream["pix_fmt"],
            "seconds": float(found["format"]["duration"]),
            "title": found["format"].get("tags", {}).get("title"),
            "chapters": [
                (round(float(c["start_time"]), 3), c["tags"]["title"]) for c in found["chapters"]
            ],
        }
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        return {
            "size": (stream.width, stream.height),
            "codec": stream.codec_context.name,
            "pixels": stream.codec_context.pix_fmt,
            "seconds": must(container.duration) / av.time_base,
            "title": container.metadata.get("title"),
            "chapters": [
                (float(round(c["start"] * must(c["time_base"]), 3)), c["metadata"]["title"])
                for c in container.chapters()
            ],
        }


def pictures(path: Path) -> dict[float, Image.Image]:
    with av.open(str(path)) as container:
        return {frame.time: frame.to_image() for frame in container.decode(video=0)}


def shown_at(path: Path, seconds: float) -> Image.Image:
    decoded = pictures(path)
    return decoded[max(time for time in decoded if time <= seconds + 0.001)]


def difference(one: Image.Image, other: Image.Image) -> float:
    """On average, in levels of 255."""
    return sum(ImageStat.Stat(ImageChops.difference(one, other.convert("RGB"))).mean) / 3


def expected(page: int, theme: str = "mocha") -> Image.Image:
    return Painter(PLACE, themes.theme(theme)).picture(PAGES[page])


@pytest.mark.parametrize(("name", "codec"), [("film.mp4", "h264"), ("film.webm", "vp9")])
def test_another_program_reads_size_codec_length_and_chapters(tmp_path, name, codec) -> None:
    path = tmp_path / name
    assert encode.write(three_pages(), str(path), **SIZE) == []
    found = probed(path)
    assert found["size"] == (480, 240)
    assert found["codec"] == codec
    assert found["pixels"] == "yuv420p"
    assert found["seconds"] == pytest.approx(6.0, rel=0.02)
    assert found["title"] == "A film"
    assert found["chapters"] == [(0.0, "Begin"), (2.0, "Go on"), (4.0, "日本")]


@pytest.mark.parametrize("name", ["film.mp4", "film.webm"])
def test_pictures_at_known_times_show_what_was_drawn(tmp_path, name) -> None:
    path = tmp_path / name
    encode.write(three_pages(), str(path), **SIZE)
    for seconds, page in ((0.0, 0), (1.9, 0), (2.0, 1), (3.9, 1), (4.0, 2), (5.9, 2)):
        image = shown_at(path, seconds)
        assert difference(image, expected(page)) < 1.5, seconds
        text = (PLACE.left, PLACE.top, PLACE.left + 100, PLACE.top + 3 * PLACE.cell_height)
        off = [difference(image.crop(text), expected(other).crop(text)) for other in range(3)]
        assert off[page] < 3, seconds
        assert min(off[:page] + off[page + 1 :]) > 3 * off[page], seconds


def test_letters_and_colours_survive_the_encoder(tmp_path) -> None:
    """Every cell of the first page looks like the cell that was drawn, not like its neighbour."""
    path = tmp_path / "film.mp4"
    encode.write(three_pages(), str(path), **SIZE)
    image, wanted = shown_at(path, 1.0), expected(0)
    for column, letter in enumerate("first page"):
        left = PLACE.left + column * PLACE.cell_width
        box = (left, PLACE.top, left + PLACE.cell_width, PLACE.top + PLACE.cell_height)
        assert difference(image.crop(box), wanted.crop(box)) < 12, letter
    background = image.getpixel((240, 200))
    base = themes.theme("mocha").colour("base")
    assert isinstance(background, tuple)
    assert max(abs(a - b) for a, b in zip(background, base, strict=True)) <= 3


def test_an_mp4_has_its_index_before_its_pictures(tmp_path) -> None:
    path = tmp_path / "film.mp4"
    encode.write(three_pages(), str(path), **SIZE)
    content = path.read_bytes()
    assert 0 < content.index(b"moov") < content.index(b"mdat")


def test_players_can_begin_at_each_chapter(tmp_path) -> None:
    path = tmp_path / "film.mp4"
    encode.write(three_pages(), str(path), **SIZE)
    with av.open(str(path)) as container:
        packets = [p for p in container.demux(video=0) if p.is_keyframe and p.pts is not None]
        assert [float(must(p.pts) * must(p.time_base)) for p in packets] == [0.0, 2.0, 4.0]


def test_equal_frames_are_skipped_but_for_one_a_second(tmp_path) -> None:
    path = tmp_path / "film.mp4"
    same = film(*((at, PAGES[at // 1500 % 2]) for at in range(0, 3000, 10)), duration=3000)
    encode.write(same, str(path), **SIZE)
    assert [round(time, 2) for time in pictures(path)] == [0.0, 1.0, 1.47, 2.47, 2.93]


@pytest.mark.parametrize("name", ["film.mp4", "film.webm", "film.gif"])
def test_the_same_film_gives_the_same_bytes(tmp_path, name) -> None:
    path = tmp_path / name
    contents = set()
    for _ in range(3):
        encode.write(typing(), str(path), **SIZE)
        contents.add(path.read_bytes())
    assert len(contents) == 1


def test_a_gif_is_read_by_pillow_with_its_length_and_pictures(tmp_path) -> None:
    path = tmp_path / "film.gif"
    assert encode.write(three_pages(), str(path), **SIZE) == []
    with Image.open(path) as image:
        assert image.size == (480, 240)
        assert image.info["loop"] == 0
        frames = [(f.info["duration"], f.convert("RGB")) for f in ImageSequence.Iterator(image)]
    assert [duration for duration, _ in frames] == [2000, 2000, 2000]
    for page, (_, picture) in enumerate(frames):
        assert difference(picture, expected(page)) < 1.0


def test_the_delays_of_a_gif_add_up_to_the_film(tmp_path) -> None:
    path = tmp_path / "film.gif"
    encode.write(typing(), str(path), **SIZE)
    with Image.open(path) as image:
        total = sum(frame.info["duration"] for frame in ImageSequence.Iterator(image))
        assert isinstance(image, GifImagePlugin.GifImageFile)
        assert image.n_frames == 40
    assert total == pytest.approx(4000, rel=0.01)


def test_a_gif_with_more_looks_than_colours_is_still_legible(tmp_path) -> None:
    rows = tuple(
        tuple((f"{r}", Look((r * 12, c * 12, 99), bg=(c * 9, 40, r * 9))) for c in range(20))
        for r in range(10)
    )
    path = tmp_path / "film.gif"
    encode.write(film((0, rows)), str(path), **SIZE)
    with Image.open(path) as image:
        picture = Painter(PLACE, themes.theme("mocha")).picture(rows)
        assert difference(image.convert("RGB"), picture) < 4


@pytest.mark.parametrize(("width", "height"), [(481, 243), (651, 301), (335, 203)])
@pytest.mark.parametrize("name", ["film.mp4", "film.webm"])
def test_odd_sizes_become_even_and_no_line_is_shifted(tmp_path, name, width, height) -> None:
    path = tmp_path / name
    encode.write(three_pages(), str(path), width=width, height=height, font_size=12)
    assert probed(path)["size"] == (width - 1, height - 1)
    drawn = Painter(fonts.layout(width, height, 12), themes.theme("mocha")).picture(PAGES[2])
    assert difference(shown_at(path, 5.0), drawn) < 2


def test_other_themes_and_rates(tmp_path) -> None:
    path = tmp_path / "film.mp4"
    encode.write(three_pages(), str(path), theme="latte", fps=30, **SIZE)
    assert difference(shown_at(path, 5.0), expected(2, "latte")) < 1.5
    assert probed(path)["seconds"] == pytest.approx(6.0, rel=0.02)


def test_characters_without_a_glyph_are_reported(tmp_path) -> None:
    one = film((0, ((("a\ue123", Look()),),)))
    many = film((0, ((("".join(map(chr, range(0xE200, 0xE207))), Look()),),)))
    path = str(tmp_path / "film.mp4")
    assert encode.write(one, path, **SIZE) == ["1 character has no glyph: U+E123"]
    listed = "U+E200, U+E201, U+E202, U+E203, U+E204, …"
    assert encode.write(many, path, **SIZE) == [f"7 characters have no glyph: {listed}"]


@pytest.mark.parametrize("name", ["film.mp4", "film.webm", "film.gif"])
def test_a_film_without_frames_or_length_is_one_empty_picture(tmp_path, name) -> None:
    path = tmp_path / name
    assert (
        encode.write(film(duration=0, chapters=(Chapter(0, "Nothing"),)), str(path), **SIZE) == []
    )
    with av.open(str(path)) as container:
        (frame,) = container.decode(video=0)
    assert difference(frame.to_image(), Painter(PLACE, themes.theme("mocha")).picture([])) < 1.5


@pytest.mark.parametrize("name", ["film.mp4", "film.gif"])
@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt])
def test_an_interrupted_film_leaves_only_the_old_file(tmp_path, name, failure) -> None:
    path = tmp_path / name
    path.write_bytes(b"as it was")

    def broken() -> Iterator[Frame]:
        yield Frame(0, PAGES[0])
        yield Frame(500, PAGES[1])
        raise failure

    with pytest.raises(failure):
        encode.write(Film(60, 12, 1000, "", [], broken), str(path), **SIZE)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert path.read_bytes() == b"as it was"


def test_mistakes_are_reported_before_anything_is_drawn(tmp_path) -> None:
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("film.avi", {}, "the name of a video must end in .mp4 or .webm"),
        ("film.mp4", {"theme": "neon"}, 'no such theme: "neon"'),
        ("film.mp4", {"fps": 0}, "frame rate out of range: 0"),
        ("film.mp4", {"width": 90}, "90x800 is too small for font size 16"),
        ("none/film.mp4", {}, "no such directory"),
    ]
    for name, options, message in wrong:
        with pytest.raises(SessError, match=message):
            encode.write(three_pages(), str(tmp_path / name), **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("library", ["av", "PIL"])
@pytest.mark.parametrize("name", ["film.mp4", "film.gif"])
def test_without_the_extra_one_line_says_what_to_install(
    tmp_path, monkeypatch, name, library
) -> None:
    monkeypatch.setitem(sys.modules, library, None)  # as Python marks what cannot be imported
    with pytest.raises(SessError, match="films need PyAV and Pillow") as error:
        encode.write(three_pages(), str(tmp_path / name), **SIZE)
    assert error.value.hint == f"`{installation.adding('video')}`"
    assert list(tmp_path.iterdir()) == []


def test_progress_grows_to_the_whole_film(tmp_path) -> None:
    for name in ("film.mp4", "film.gif"):
        told: list[tuple[int, int]] = []
        encode.write(
            typing(), str(tmp_path / name), progress=lambda *of, told=told: told.append(of), **SIZE
        )
        assert told == sorted(told)
        assert told[-1] == (4000, 4000)


def test_moments_cover_the_film_and_show_the_last_of_what_comes_together() -> None:
    shown = film((10, PAGES[0]), (900, PAGES[0]), (1000, PAGES[1]), (1020, PAGES[2]), duration=2000)
    found = [(m.begin, m.end, m.rows) for m in encode.moments(shown, 10)]
    assert found == [(0, 10, PAGES[0]), (10, 20, PAGES[2])]


def test_moments_begin_empty_and_end_in_time_whatever_the_frames_say() -> None:
    late = film((500, PAGES[0]), (200, PAGES[1]), (99_000, PAGES[2]), duration=1000)
    found = [(m.begin, m.end, m.rows) for m in encode.moments(late, 10)]
    assert found == [(0, 5, ()), (5, 9, PAGES[1]), (9, 10, PAGES[2])]


def test_strips_of_rows_are_kept_up_to_a_limit(monkeypatch) -> None:
    monkeypatch.setattr(encode, "_KEPT_STRIPS", 1 << 20)
    canvas = encode.Canvas(Painter(PLACE, themes.theme("mocha")))
    for number in range(300):
        canvas.show([((f"line {number}", Look()),)])
    kept = canvas._strip.cache_info()
    assert must(kept.maxsize) < 120
    assert kept.currsize == kept.maxsize


def test_the_canvas_shows_what_the_painter_draws_whatever_was_there_before() -> None:
    painter = Painter(PLACE, themes.theme("mocha"))
    canvas = encode.Canvas(painter)
    for page in (0, 1, 2, 1, 0):
        image = canvas.show(PAGES[page]).to_image(src_colorspace="ITU709")
        assert difference(image, painter.picture(PAGES[page])) < 1.5
