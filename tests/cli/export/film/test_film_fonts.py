"""Fonts, glyphs' geometry, order of writing and colours of films."""

import io
import sys
import unicodedata
import zipfile

import pytest
from tests.cli.export.film.conftest import folders

from sess_cli.export.film import fonts, glyphs, picture, themes
from sess_cli.export.film.rows import Look
from sess_common.errors import SessError

SEEN_IN_SESSIONS = (
    "✓✗✔✖●○◉◆◇■□▪★☆❯❮…✻✳✶✢⏺⎿⏵☐☑☒⚠⚒→←↑↓⇒↵⏎⌘⌥⇧≠≤≥≈∑∈∀∞√±×÷·•–—“”‘’«»€£¥§©®™°µ"
    "✅❌🚀🎉🔧📝🔥🐛💡⚡🟢🔴🤖👍🙏✨📦🔒⏳🕐🇩🇪"
    "äßéñçøåŁžőșİẞΑΩαωπλБЯбяіїא中文日本語カナ한국어"
)


def packaged(character: str) -> bool:
    alike = glyphs._ALIKE.get(character, character)
    return (
        glyphs.is_geometry(alike)
        or fonts.mono(bold=False, italic=False).has(alike)
        or any(face.has(alike) for face in fonts.packaged())
        or fonts.bitmap(alike) is not None
    )


def test_the_usual_film_has_a_grid_of_134_by_34() -> None:
    assert fonts.grid(1400, 800, 16) == (134, 34)


@pytest.mark.parametrize("size", [(1400, 800, 16), (641, 361, 11), (1920, 1080, 24), (333, 201, 9)])
def test_cells_lie_inside_the_panel_at_even_places(size: tuple[int, int, int]) -> None:
    place = fonts.layout(*size)
    assert (place.width % 2, place.height % 2, place.top % 2, place.cell_height % 2) == (0,) * 4
    assert place.left > place.margin
    assert place.left + place.columns * place.cell_width < place.width - place.margin
    assert place.top > place.margin
    assert place.top + place.lines * place.cell_height < place.height - place.margin


def test_a_picture_without_room_for_letters_is_refused() -> None:
    with pytest.raises(SessError, match="100x80 is too small for font size 16"):
        fonts.grid(100, 80, 16)


def test_fonts_come_with_their_licences_and_are_small_in_a_wheel() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(fonts.ASSETS.iterdir()):
            archive.write(file, file.name)
    names = {file.name for file in fonts.ASSETS.iterdir()}
    assert {"OFL.txt", "DejaVu.txt"} < names
    assert len(buffer.getvalue()) < 1_500_000


def test_what_sessions_show_needs_no_font_of_the_system() -> None:
    assert [character for character in SEEN_IN_SESSIONS if not packaged(character)] == []


@pytest.mark.slow
@pytest.mark.skipif(
    tuple(map(int, unicodedata.unidata_version.split("."))) > (15, 0, 0),
    reason="this Python knows characters that are younger than the packaged fonts",
)
def test_every_letter_and_sign_of_the_first_plane_has_a_glyph() -> None:
    missing = [
        f"U+{code:04X}"
        for code in range(0x21, 0x10000)
        if unicodedata.category(chr(code))[0] in "LNPS" and not packaged(chr(code))
    ]
    assert missing == []


def test_bold_and_italic_have_what_the_regular_font_has() -> None:
    text = "The quick brown fox, ÄÖÜ ß é ñ Ω я → ✓ ●"
    for bold in (False, True):
        for italic in (False, True):
            face = fonts.mono(bold=bold, italic=italic)
            assert [c for c in text if not face.has(c)] == []


def test_a_font_has_what_its_table_lists_and_nothing_else() -> None:
    face = fonts.mono(bold=False, italic=False)
    assert face.has("A")
    assert face.has("ω")
    assert not face.has("中")
    assert not face.has("\u0378")  # not a character
    assert not face.has("\U0010ffff")


def test_a_file_that_is_no_font_has_no_characters(tmp_path) -> None:
    for content in (
        b"",
        b"ttcf",
        b"\0\1\0\0\0\1" + b"\0" * 6 + b"cmap" + b"\xff" * 12,
        b"text" * 99,
    ):
        file = tmp_path / "broken.ttf"
        file.write_bytes(content)
        assert "A" not in fonts.read_coverage(file)
    assert "A" not in fonts.read_coverage(tmp_path / "missing.ttf")


@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="where Linux has its fonts")
def test_a_font_in_the_users_directory_is_found_by_its_name(tmp_path, monkeypatch) -> None:
    (tmp_path / "fonts" / "deep").mkdir(parents=True)
    file = tmp_path / "fonts" / "deep" / "NotoColorEmoji.ttf"
    file.write_bytes((fonts.ASSETS / "emoji.ttf").read_bytes())
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(fonts, "folders", folders)
    assert fonts.coloured() == fonts.Face(file, coloured=True)


@pytest.mark.parametrize(
    ("character", "edges"),
    [("─", "left right"), ("│", "up down"), ("┌", "right down"), ("╰", "up right"),
     ("╬", "up down left right"), ("┫", "up down left"), ("╤", "left right down"),
     ("╙", "up right"), ("╾", "left right"), ("█", "up down left right"), ("▀", "up left right"),
     ("╱", "up down left right")],
)  # fmt: skip
def test_box_drawing_reaches_exactly_the_edges_it_should(character: str, edges: str) -> None:
    image = glyphs.geometry_mask(character, 10, 22)
    sides = {
        "up": (0, 0, 10, 1), "down": (0, 21, 10, 22),
        "left": (0, 0, 1, 22), "right": (9, 0, 10, 22),
    }  # fmt: skip

    def brightest(box: tuple[int, int, int, int]) -> float:
        _, most = image.crop(box).getextrema()
        assert not isinstance(most, tuple), "a mask has one channel"
        return most

    reached = {side for side, box in sides.items() if brightest(box) > 60}
    assert reached == set(edges.split())


def test_all_box_drawing_blocks_and_braille_can_be_drawn_at_any_size() -> None:
    for code in (*range(0x2500, 0x25A0), *range(0x2801, 0x2900)):
        for size in ((3, 8), (10, 22), (29, 62)):
            assert glyphs.geometry_mask(chr(code), *size).getbbox() is not None, hex(code)


def test_the_gap_of_a_double_line_stays_open_through_corners() -> None:
    corner = glyphs.geometry_mask("╔", 10, 22)
    row = [corner.getpixel((9, y)) for y in range(22)]
    assert [y for y in range(22) if row[y]] == [9, 11]


@pytest.mark.parametrize(
    ("said", "seen"),
    [
        ("abc שלום xyz", "abc םולש xyz"),
        ("שלום עולם", "םלוע םולש"),
        ("(שלום) 12", "(םולש) 12"),
        ("שלום 123 עולם", "םלוע 123 םולש"),
        ("א(ב)ג", "ג(ב)א"),
        ("plain", "plain"),
    ],
)
def test_right_to_left_words_are_turned_around_and_numbers_are_not(said: str, seen: str) -> None:
    assert "".join(piece for piece, _ in picture.in_visual_order([(c, None) for c in said])) == seen


def test_arabic_letters_take_the_shape_of_their_place() -> None:
    shaped = [piece for piece, _ in picture.in_visual_order([(c, None) for c in "بيت"])]
    names = [unicodedata.name(piece) for piece in shaped]
    assert names == [
        "ARABIC LETTER TEH FINAL FORM",
        "ARABIC LETTER YEH MEDIAL FORM",
        "ARABIC LETTER BEH INITIAL FORM",
    ]
    seen = [piece for piece, _ in picture.in_visual_order([(c, None) for c in "سلام"])]
    assert unicodedata.name(seen[1]) == "ARABIC LIGATURE LAM WITH ALEF FINAL FORM"


def test_a_family_is_one_picture() -> None:
    family = "👨\u200d👩\u200d👧\u200d👦"
    assert list(glyphs.clusters(f"a{family}b")) == ["a", family, "b"]
    assert glyphs.taken_by(family) == 2
    drawn = glyphs.Glyphs(fonts.layout(400, 200, 20)).glyph(family, bold=False, italic=False)
    one = glyphs.Glyphs(fonts.layout(400, 200, 20)).glyph("👨", bold=False, italic=False)
    assert drawn is not None
    assert one is not None
    assert drawn.image.size == one.image.size
    assert drawn.image.tobytes() != one.image.tobytes()


def test_marks_stay_with_the_letter_before_them() -> None:
    assert list(glyphs.clusters("e\u0301a⚠\ufe0f中")) == ["e\u0301", "a", "⚠\ufe0f", "中"]
    assert list(glyphs.clusters("\u0301x")) == ["\u0301", "x"]
    assert list(glyphs.clusters("")) == []


def contrast(one: themes.RGB, other: themes.RGB) -> float:
    def light(colour: themes.RGB) -> float:
        parts = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    lower, upper = sorted((light(one), light(other)))
    return (upper + 0.05) / (lower + 0.05)


@pytest.mark.parametrize("name", themes.names())
def test_every_theme_has_all_colours_and_is_legible(name: str) -> None:
    theme = themes.theme(name)
    base = theme.colour("base")
    assert len(theme.terminal) == 16
    assert contrast(theme.colour("text"), base) > 5
    for colour in ("dim", "accent", "user", "green", "red", "yellow", "blue", "mauve", "peach"):
        assert contrast(theme.colour(colour), base) > 2.8, colour


def test_colours_by_name_number_and_parts() -> None:
    theme = themes.theme("mocha")
    assert theme.colour("base") == (0x1E, 0x1E, 0x2E)
    assert theme.colour(1) == (0xF3, 0x8B, 0xA8)
    assert theme.colour(16) == (0, 0, 0)
    assert theme.colour(208) == (255, 135, 0)
    assert theme.colour(255) == (238, 238, 238)
    assert theme.colour((1, 2, 3)) == (1, 2, 3)
    assert theme.colour("nonesuch") == theme.colour(999) == theme.colour("text")


def test_looks_as_what_is_in_front_and_behind() -> None:
    theme = themes.theme("mocha")
    base, text, red = (theme.colour(name) for name in ("base", "text", "red"))
    assert theme.of(Look()) == (text, base)
    assert theme.of(Look("red", bg="text")) == (red, text)
    assert theme.of(Look(inverse=True)) == (base, text)
    assert theme.of(Look(dim=True))[0] == themes.mixed(base, text, 0.6)


def test_an_unknown_theme_names_the_known_ones() -> None:
    with pytest.raises(SessError, match='no such theme: "neon"') as error:
        themes.theme("neon")
    assert "mocha, " in str(error.value.hint)
    assert themes.theme("Catppuccin Mocha") is not None
