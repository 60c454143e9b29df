"""The tailer: complete lines only, whatever the writer does between two looks."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.at_length import amount

from sessiond.reading import tail


def read_all(path, checkpoint):
    """Everything after a checkpoint, and the checkpoint after it."""
    fd = tail.open_regular(str(path))
    try:
        edges = tail.verify(checkpoint, fd)
        found = []
        for block in tail.blocks(fd, checkpoint, longest=64):
            found.append(block)
            if block.kind != "rest":
                oversize = block.start if block.kind == "oversize" else None
                edges.add(block.data)
                end = block.start + len(block.data)
                checkpoint = tail.advance(checkpoint, edges, end, oversize)
        return found, checkpoint
    finally:
        os.close(fd)


@settings(max_examples=amount(66, 600), deadline=None)
@given(
    lines=st.lists(st.binary(max_size=200).map(lambda b: b.replace(b"\n", b"")), max_size=12),
    cuts=st.lists(st.integers(0, 2000), max_size=8),
)
def test_every_byte_is_seen_once_and_only_whole_lines_are_consumed(tmp_path_factory, lines, cuts):
    """However the file grows, the blocks join to the file, and all but the last end in newline."""
    path = tmp_path_factory.mktemp("tail") / "x"
    whole = b"".join(line + b"\n" for line in lines)
    checkpoint = tail.Checkpoint()
    consumed = b""
    for cut in [*sorted(min(c, len(whole)) for c in cuts), len(whole)]:
        path.write_bytes(whole[:cut])
        found, checkpoint = read_all(path, checkpoint)
        for block in found:
            if block.kind == "lines":
                assert block.data.endswith(b"\n")
            if block.kind != "rest":
                consumed += block.data
        assert len(consumed) == checkpoint.offset
        assert whole.startswith(consumed)
    assert consumed == whole


@pytest.mark.parametrize(
    "change",
    [
        lambda old: old[:-10],
        lambda old: b"X" + old[1:],
        lambda old: old[:-2] + b"X\n",
        lambda _old: b"",
    ],
    ids=["shrunk", "head changed", "tail changed", "emptied"],
)
def test_a_rewrite_is_noticed_before_anything_is_read(tmp_path, change):
    """A file whose bytes before the offset changed raises, even at equal size."""
    path = tmp_path / "x"
    old = b"".join(b"line %d\n" % n for n in range(2000))
    path.write_bytes(old)
    _, checkpoint = read_all(path, tail.Checkpoint())
    path.write_bytes(change(old))
    with pytest.raises(tail.Rewritten):
        read_all(path, checkpoint)


def test_a_line_over_the_limit_is_passed_over_in_bounded_pieces(tmp_path):
    """An oversize line comes as oversize blocks; the line behind it is read as usual."""
    path = tmp_path / "x"
    path.write_bytes(b"a\n" + b"x" * (3 << 20) + b"\nb\n")
    kinds = [(b.kind, b.data[-2:]) for b in read_all(path, tail.Checkpoint())[0]]
    assert kinds[0] == ("lines", b"a\n")
    assert kinds[1][0] == "oversize"
    assert kinds[-2][0] == "oversize-end"
    assert kinds[-1] == ("lines", b"b\n")


def test_only_regular_files_are_opened(tmp_path):
    """A FIFO, a directory and a symbolic link are refused with a reason, without blocking."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    reasons = {}
    for name in ("fifo", "link", "loop", "."):
        with pytest.raises(tail.Unreadable) as caught:
            tail.open_regular(str(tmp_path / name))
        reasons[name] = str(caught.value)
    assert reasons == {
        "fifo": "is not a regular file",
        "link": "is a symbolic link",
        "loop": "is a symbolic link",
        ".": "is not a regular file",
    }
