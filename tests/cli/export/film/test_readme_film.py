"""The film at the top of the README is what the release makes that it stands in."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from PIL import Image, ImageChops, ImageSequence, ImageStat

DOCS = Path(__file__).parents[4] / "docs"
MOST = 2.0  # of 255: how much pictures of two versions of Pillow may differ


def frames(path: Path) -> list[tuple[int, Image.Image]]:
    with Image.open(path) as film:
        pictures = ImageSequence.Iterator(film)
        return [(one.info["duration"], one.convert("RGB").reduce(4)) for one in pictures]


@pytest.fixture
def script():
    spec = importlib.util.spec_from_file_location("film", DOCS / "film.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_film_is_made_by_this_release(script, tmp_path):
    """`python docs/film.py` makes it again."""
    script.film(tmp_path, tmp_path / "film.gif")
    today, kept = frames(tmp_path / "film.gif"), frames(script.FILM)
    assert [length for length, _ in today] == [length for length, _ in kept]
    for (_, one), (_, other) in zip(today, kept, strict=True):
        assert max(ImageStat.Stat(ImageChops.difference(one, other)).mean) <= MOST
    assert (
        f"/{script.FILM.relative_to(DOCS.parent).as_posix()})"
        in (DOCS.parent / "README.md").read_text()
    )
