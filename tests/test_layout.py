"""Tests lie where the code that they guard lies."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
PRODUCT = {
    "cli": "cli/sess_cli",
    "daemon": "daemon/sessiond",
    "common": "schema/sess_common",
    "redaction": "schema/sess_redaction",
    "schema": "schema/sess_schema",
}
BESIDE = {".", "browser", "faults", "fuzz", "oracle"}  # what is not about one folder


def test_every_folder_of_tests_mirrors_a_folder_of_the_product():
    """Who looks for the tests of `X/y.py` finds them in `tests/X/`."""
    tests = ROOT / "tests"
    folders = {file.parent.relative_to(tests) for file in tests.rglob("test_*.py")}
    strays = []
    for folder in sorted(folders):
        top, *rest = folder.parts or (".",)
        mirrored = top in PRODUCT and ROOT.joinpath(PRODUCT[top], *rest).is_dir()
        if not mirrored and folder.as_posix() not in BESIDE:
            strays.append(folder.as_posix())
    assert strays == []
