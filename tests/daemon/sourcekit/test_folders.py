"""What the name of a project's folder tells about the project."""

from __future__ import annotations

import pytest

from sessiond.sourcekit.folders import ProjectFolder, coded


def decoded(path, known=()):
    name = str(path).rpartition("/")[2]
    return ProjectFolder(str(path), name).project(known)


def test_everything_but_letters_and_digits_becomes_a_dash():
    """Also each half of a character beyond 16 bits."""
    assert coded("/home/ada/my.app_1") == "-home-ada-my-app-1"
    assert coded("/é/\U0001f375") == "----" + "-"
    assert coded("C:\\code\\tea") == "C--code-tea"


def test_a_known_path_decodes_the_name():
    """Others do not matter."""
    known = ["/home/nobody/tea-pot", "/home/nobody/tea-pot/src", "/elsewhere"]
    assert decoded("/x/projects/-home-nobody-tea-pot", known) == "/home/nobody/tea-pot"


def test_two_known_paths_with_the_same_name_decode_nothing():
    """`tea-pot` and `tea/pot` are written alike."""
    known = ["/home/nobody/tea-pot", "/home/nobody/tea/pot"]
    assert decoded("/x/projects/-home-nobody-tea-pot", known) is None
    assert decoded("/x/projects/-home-nobody-tea-pot") is None


def test_a_directory_that_exists_decodes_the_name(tmp_path):
    """Dots, dashes and underscores are found again; a file is no directory."""
    wanted = tmp_path / ".hidden" / "tea_pot-2" / "a.b"
    wanted.mkdir(parents=True)
    (tmp_path / ".hidden" / "tea_pot-2" / "c").touch()
    assert decoded(f"/x/projects/{coded(str(wanted))}") == str(wanted)
    assert decoded(f"/x/projects/{coded(str(wanted.parent / 'c'))}") is None


def test_two_directories_with_the_same_name_decode_nothing(tmp_path):
    """Neither do one that exists and another that is known."""
    (tmp_path / "tea-pot").mkdir()
    name = coded(str(tmp_path / "tea-pot"))
    assert decoded(f"/x/projects/{name}") == str(tmp_path / "tea-pot")
    assert decoded(f"/x/projects/{name}", [str(tmp_path / "tea.pot")]) is None
    assert decoded(f"/x/projects/{name}", [str(tmp_path / "tea-pot")]) is not None
    (tmp_path / "tea" / "pot").mkdir(parents=True)
    assert decoded(f"/x/projects/{name}") is None


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("%2Fhome%2Fnobody%2Ftea-pot", "/home/nobody/tea-pot"),
        ("%2fhome%2fnobody", "/home/nobody"),
        ("C%3A%5Ccode%5Ctea", "C:\\code\\tea"),
        ("100%25", None),
        ("%2Fhome%0A", None),
    ],
)
def test_percent_signs_decode_plainly(name, path):
    """If that gives the path of a directory."""
    assert ProjectFolder(f"/x/projects/{name}").project(()) == path


def test_a_name_that_is_no_path_stays_a_name():
    """Even if a directory of this name exists at the root."""
    assert ProjectFolder("/x/projects/tmp").project(["/tmp"]) is None


def test_a_long_name_ends_in_a_hash():
    """Its start is compared."""
    path = "/home/nobody/" + "deep/" * 50
    name = coded(path)[:200] + "-1x2y3z"
    assert decoded(f"/x/projects/{name}", [path]) == path
    assert decoded(f"/x/projects/{name}", [path, path + "er"]) is None
