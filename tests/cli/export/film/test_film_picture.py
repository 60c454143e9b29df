"""Rows drawn as pictures: every character in its cells, whatever it is."""

import pytest
from PIL import Image, ImageChops

from sess_cli.export.film import fonts, themes
from sess_cli.export.film.picture import Painter
from sess_cli.export.film.rows import Look, Row

PLACE = fonts.layout(480, 240, 12)
BASE = themes.theme("mocha").colour("base")


@pytest.fixture
def painter() -> Painter:
    return Painter(PLACE, themes.theme("mocha"))


def cell(image: Image.Image, column: int, count: int = 1) -> Image.Image:
    left = PLACE.left + column * PLACE.cell_width
    return image.crop((left, 0, left + count * PLACE.cell_width, PLACE.cell_height))


def row(text: str, look: Look | None = None) -> Row:
    return ((text, look or Look()),)


def same(one: Image.Image, other: Image.Image) -> bool:
    return ImageChops.difference(one, other).getbbox() is None


def blank(image: Image.Image) -> bool:
    return image.getcolors() == [(image.width * image.height, BASE)]


def test_each_character_is_in_its_cell(painter: Painter) -> None:
    both = painter.row(row("a b"))
    assert same(cell(both, 0), cell(painter.row(row("a")), 0))
    assert blank(cell(both, 1))
    assert same(cell(both, 2), cell(painter.row(row("  b")), 2))
    assert not blank(cell(both, 2))
    assert blank(cell(both, 3, PLACE.columns - 3))


def test_runs_go_on_where_the_last_one_ended(painter: Painter) -> None:
    whole = painter.row(row("one two"))
    assert same(whole, painter.row((("one", Look()), (" tw", Look()), ("o", Look()))))


@pytest.mark.parametrize("wide", ["中", "語", "한", "🚀", "✅"])
def test_wide_characters_take_two_cells(painter: Painter, wide: str) -> None:
    image = painter.row(row(f"{wide}a"))
    assert not blank(cell(image, 0))
    assert not blank(cell(image, 1))
    assert same(cell(image, 2), cell(painter.row(row("  a")), 2))


@pytest.mark.parametrize("narrow", ["e\u0301", "x\u0302", "\u26a0\ufe0e", "é"])
def test_marks_take_no_cell(painter: Painter, narrow: str) -> None:
    image = painter.row(row(f"{narrow}a"))
    assert same(cell(image, 1), cell(painter.row(row(" a")), 1))


def test_composed_and_combining_accents_look_the_same(painter: Painter) -> None:
    assert same(painter.row(row("café")), painter.row(row("cafe\u0301")))
    assert not same(painter.row(row("x\u0302")), painter.row(row("x")))


def test_a_broad_symbol_uses_the_blank_after_it_but_no_letter(painter: Painter) -> None:
    beside = painter.row(row("☀a"))
    assert same(cell(beside, 1), cell(painter.row(row(" a")), 1))


def test_backgrounds_fill_cells_from_edge_to_edge(painter: Painter) -> None:
    red = themes.theme("mocha").colour("red")
    image = painter.row((("  ", Look()), ("   ", Look(bg="red")), (" ", Look())))
    assert cell(image, 2, 3).getcolors() == [(3 * PLACE.cell_width * PLACE.cell_height, red)]
    assert blank(cell(image, 1))
    assert blank(cell(image, 5))


def test_looks_change_what_is_drawn(painter: Painter) -> None:
    looks = [
        Look(), Look("red"), Look(bold=True), Look(italic=True), Look(bold=True, italic=True),
        Look(dim=True), Look(underline=True), Look(strike=True), Look(inverse=True),
    ]  # fmt: skip
    pictures = {painter.row(row("word", look)).tobytes() for look in looks}
    assert len(pictures) == len(looks)


def test_vertical_lines_join_from_row_to_row(painter: Painter) -> None:
    image = painter.picture([row("╭──╮"), row("│  │"), row("╰──╯")])
    x = PLACE.left + (PLACE.cell_width - 1) // 2
    middle = PLACE.top + PLACE.cell_height // 2
    column = [image.getpixel((x, y)) for y in range(middle + 6, middle + 2 * PLACE.cell_height - 6)]
    assert set(column) == {themes.theme("mocha").colour("text")}


def test_horizontal_lines_join_from_cell_to_cell(painter: Painter) -> None:
    image = painter.row(row("├──┼──┤"))
    y = (PLACE.cell_height - 1) // 2
    begin = PLACE.left + PLACE.cell_width // 2
    line = [image.getpixel((x, y)) for x in range(begin, begin + 6 * PLACE.cell_width)]
    assert set(line) == {themes.theme("mocha").colour("text")}


def test_right_to_left_letters_are_seen_from_right_to_left(painter: Painter) -> None:
    image = painter.row(row("אב"))
    assert same(cell(image, 0), cell(painter.row(row("ב")), 0))
    assert not same(cell(image, 0), cell(painter.row(row("א")), 0))


def test_nothing_is_drawn_beyond_the_last_column(painter: Painter) -> None:
    image = painter.row(row("█" * (PLACE.columns + 50), Look(bg="red")))
    right = PLACE.left + PLACE.columns * PLACE.cell_width
    assert image.getpixel((right - 1, 5)) == themes.theme("mocha").colour("text")
    assert image.getpixel((right, 5)) == BASE
    odd = painter.row(row("a" * (PLACE.columns - 1) + "中"))
    assert blank(cell(odd, PLACE.columns - 1))


def test_hostile_text_is_drawn_without_a_failure(painter: Painter) -> None:
    texts = [
        "\x1b[31m\x07\x00\r\n\t", "\u202e\u2066abc\u2069", "a" + "\u0301" * 500, "\u200d\ufe0f",
        "\ud800", "👨‍👩‍👧🏽🇩", "\u0600\u06dd", "﷽", "\U0010ffff\U000e0001", "𒐫𒈙", "ﷺ" * 200,
    ]  # fmt: skip
    for text in texts:
        for look in (Look(), Look(bold=True, italic=True)):
            assert painter.row(row(text, look)).size == (PLACE.width, PLACE.cell_height)


def test_control_characters_are_blank(painter: Painter) -> None:
    assert same(painter.row(row("a\x1b\u200b\u00a0b")), painter.row(row("a   b")))


def test_a_character_that_no_font_has_is_a_box_and_is_remembered(painter: Painter) -> None:
    image = painter.row(row("a\ue123b"))
    assert not blank(cell(image, 1))
    assert painter.glyphs.missing == {"\ue123"}


def test_a_picture_has_a_panel_with_round_corners(painter: Painter) -> None:
    image = painter.picture([])
    theme = themes.theme("mocha")
    assert image.size == (480, 240)
    assert image.getpixel((0, 0)) == image.getpixel((479, 239)) == theme.colour("crust")
    assert image.getpixel((PLACE.margin, PLACE.margin)) != theme.colour("base")
    for y in (PLACE.margin, 120, 239 - PLACE.margin):
        assert image.getpixel((240, y)) == theme.colour("base")
    assert image.getpixel((PLACE.margin - 1, 120)) == theme.colour("crust")


def test_the_memory_of_glyphs_is_bounded(painter: Painter, monkeypatch) -> None:
    monkeypatch.setattr("sess_cli.export.film.glyphs._KEPT", 50)
    for code in range(0x4E00, 0x4E00 + 200):
        painter.row(row(chr(code)))
    assert len(painter.glyphs._kept) <= 50
