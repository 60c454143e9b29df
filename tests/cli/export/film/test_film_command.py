"""`sess export video` and `gif` as a person runs them: real files, read by another library."""

from __future__ import annotations

import os
import pty
import subprocess

import pytest
from tests.conftest import BIN

av = pytest.importorskip("av")
pytest.importorskip("PIL")

MAIN = "11111111-1111-4111-8111-111111111111"
SMALL = ("--width", "480", "--height", "300", "--font-size", "12", "--duration", "6s")


@pytest.fixture
def told(world):
    t = world.transcript(MAIN)
    t.append(
        t.prompt("First question"),
        t.call("c1", command="echo hi"),
        t.result("c1", "hi"),
        t.answer("It said **hi**."),
        t.prompt("Second question"),
        t.answer("Yes."),
    )
    world.ingest()
    return world


@pytest.mark.parametrize(("suffix", "codec"), [("mp4", "h264"), ("webm", "vp9")])
def test_a_video_has_the_length_size_and_chapters_it_should(told, tmp_path, suffix, codec):
    path = tmp_path / f"film.{suffix}"
    done = told.run("sess", "export", "video", MAIN, "--no-sync", "-o", path, *SMALL, check=0)
    assert done.stdout == ""
    assert done.stderr.startswith(f"wrote {path} (")
    with av.open(path) as container:
        stream = container.streams.video[0]
        assert (stream.width, stream.height) == (480, 300)
        assert stream.codec_context.codec.canonical_name == codec
        assert abs(container.duration / 1e6 - 6) <= 0.12
        titles = [chapter["metadata"]["title"] for chapter in container.chapters()]
        assert titles == ["First question", "Second question"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_gif_moves(told, tmp_path):
    path = tmp_path / "film.gif"
    told.run("sess", "export", "gif", MAIN, "--no-sync", "-o", path, *SMALL, check=0)
    with av.open(path) as container:
        frames = [*container.decode(video=0)]
    assert len(frames) > 10
    assert (frames[0].width, frames[0].height) == (480, 300)


def test_two_films_of_one_session_are_the_same_bytes(told, tmp_path):
    films = [tmp_path / "one.mp4", tmp_path / "two.mp4"]
    for film in films:
        told.run("sess", "export", "video", MAIN, "--no-sync", "-o", film, *SMALL, check=0)
    assert films[0].read_bytes() == films[1].read_bytes()


def test_a_bar_shows_progress_on_a_terminal_only(told, tmp_path):
    master, slave = pty.openpty()
    command = [BIN / "sess", "export", "video", MAIN, "--no-sync", "-o", tmp_path / "a.mp4", *SMALL]
    with subprocess.Popen(
        command, env={**told.env, "TERM": "xterm"}, stdout=subprocess.DEVNULL, stderr=slave
    ) as program:
        os.close(slave)
        seen = b""
        while True:
            try:
                part = os.read(master, 4096)
            except OSError:
                break
            if not part:
                break
            seen += part
        assert program.wait() == 0
    os.close(master)
    assert b"filming" in seen
    assert b"100%" in seen


def test_a_film_does_not_go_to_standard_output(told):
    done = told.run("sess", "export", "video", MAIN, "--no-sync", "-o", "-")
    assert done.returncode == 2
    assert done.stderr.startswith("sess: cannot write a film to stdout\n")
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("video", "film", "the name of a video must end in .mp4 or .webm\n"),
        (
            "video",
            "film.gif",
            (
                "the name of a video must end in .mp4 or .webm\n"
                "hint: `sess export gif` writes a .gif\n"
            ),
        ),
        ("gif", "film", "the name of a GIF must end in .gif\n"),
        (
            "gif",
            "film.mp4",
            "the name of a GIF must end in .gif\nhint: `sess export video` writes .mp4 and .webm\n",
        ),
    ],
)
def test_a_name_that_promises_something_else_is_refused(told, tmp_path, kind, name, said):
    path = tmp_path / name
    done = told.run("sess", "export", kind, MAIN, "--no-sync", "-o", path, *SMALL)
    assert done.returncode == 2
    assert done.stderr == f'sess: "{path}": {said}'
    assert [*tmp_path.glob("film*")] == []


def test_a_speed_that_is_no_number_is_one_line(told, tmp_path):
    path = tmp_path / "film.mp4"
    done = told.run("sess", "export", "video", MAIN, "--no-sync", "-o", path, "--speed", "nan")
    assert done.returncode == 2
    assert done.stderr == "sess: invalid speed: nan\nhint: use a number from 0.1 to 20\n"


@pytest.mark.parametrize("name", ["missing/film.mp4", "film.avi"])
def test_a_place_that_cannot_be_written_is_one_line(told, tmp_path, name):
    done = told.run("sess", "export", "video", MAIN, "--no-sync", "-o", tmp_path / name, *SMALL)
    assert done.returncode == 2
    assert done.stderr.startswith("sess: ")
    assert "Traceback" not in done.stderr
    assert not [*tmp_path.glob("**/*.avi"), *tmp_path.glob("**/*.mp4")]


@pytest.mark.parametrize(
    ("preset", "size"),
    [("wide", (1920, 1080)), ("square", (1080, 1080)), ("portrait", (1080, 1920))],
)
def test_a_preset_is_a_shape_and_captions_stand_beside_the_film(told, tmp_path, preset, size):
    path = tmp_path / "film.mp4"
    told.run("sess", "export", "video", MAIN, "--no-sync", "--preset", preset, "--duration", "5s",
             "--fps", "2", "--captions", "--title", "A tale", "-o", path, check=0)  # fmt: skip
    with av.open(path) as container:
        stream = container.streams.video[0]
        assert (stream.width, stream.height) == size
        assert container.metadata["title"] == "A tale"
    assert path.with_suffix(".vtt").read_text("utf-8").startswith("WEBVTT\n")
