from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessiond.sourcekit.foreign import Foreign, ForeignError
from sessiond.sources.cursor.storedb import (
    Chat,
    Meta,
    child_ids,
    message_ids,
    read_chat,
    read_message,
    read_meta,
    read_root,
)

USER = {"role": "user", "content": "tie a knot"}
ANSWER = {"role": "assistant", "content": [{"type": "text", "text": "tied"}]}


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def listed(*ids: str) -> bytes:
    return b"".join(field(1, bytes.fromhex(id_)) for id_ in ids)


class Store:
    """A chat's database that a test fills and opens."""

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, "store.db")
        self._closing = ExitStack()
        self._db = self._closing.enter_context(closing(apsw.Connection(self.path)))
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.execute("CREATE TABLE blobs (id TEXT PRIMARY KEY, data BLOB)")
        self._db.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def opened(self) -> Foreign:
        return self._closing.enter_context(Foreign(self.path))

    def add(self, data: Any, blob_id: str | None = None) -> str:
        if isinstance(data, dict):
            data = json.dumps(data).encode()
        blob_id = blob_id or hashlib.sha256(data).hexdigest()
        self._db.execute("INSERT OR REPLACE INTO blobs VALUES (?, ?)", (blob_id, data))
        return blob_id

    def describe(self, value: Any) -> None:
        self._db.execute("INSERT INTO meta VALUES ('0', ?)", (value,))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(str(tmp_path)) as made:
        yield made


FACTS = {
    "agentId": "a1",
    "latestRootBlobId": "ab" * 32,
    "name": "Tie  a\nknot",
    "mode": "default",
    "createdAt": 1772600767123,
    "lastUsedModel": "composer-2",
    "blobEncryptionKey": "hush-hush",
}
CHAT = Chat("a1", "ab" * 32, "Tie a knot", "default", "composer-2", 1772600767123)


@pytest.mark.parametrize("as_bytes", [False, True])
@pytest.mark.parametrize("in_hex", [False, True])
def test_a_chat_describes_itself(store: Store, as_bytes: bool, in_hex: bool) -> None:
    """The description is JSON, in hexadecimal digits or not, as text or as bytes."""
    value = json.dumps(FACTS)
    value = value.encode().hex() if in_hex else value
    store.describe(value.encode() if as_bytes else value)
    assert read_chat(store.opened()) == CHAT


def test_the_encryption_key_is_not_kept(store: Store) -> None:
    store.describe(json.dumps(FACTS).encode().hex())
    assert "hush-hush" not in repr(read_chat(store.opened()))


@pytest.mark.parametrize("name", ["New Agent", "new agent ", "", " ", None, 5])
def test_a_chat_that_was_not_named(store: Store, name: Any) -> None:
    """The name that every chat begins with is none."""
    store.describe(json.dumps({**FACTS, "name": name}))
    chat = read_chat(store.opened())
    assert chat is not None
    assert chat.title is None


@pytest.mark.parametrize("model", ["default", "Auto", "", None, []])
def test_a_chat_that_left_the_model_open(store: Store, model: Any) -> None:
    store.describe(json.dumps({**FACTS, "lastUsedModel": model}))
    chat = read_chat(store.opened())
    assert chat is not None
    assert chat.model is None


@pytest.mark.parametrize("value", [None, "", "7b", "zz", "[]", b"\xff", 5, "{", "5b5d"])
def test_an_unreadable_description(store: Store, value: Any) -> None:
    store.describe(value)
    assert read_chat(store.opened()) is None


def test_a_chat_without_a_description(store: Store) -> None:
    assert read_chat(store.opened()) is None


def test_a_database_without_tables(tmp_path: Path) -> None:
    """Cursor may have made the file only just now."""
    (tmp_path / "store.db").touch()
    with Foreign(str(tmp_path / "store.db")) as db:
        assert read_chat(db) is None


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    """Whoever opened it is told."""
    (tmp_path / "store.db").write_bytes(b"rope" * 1000)
    with Foreign(str(tmp_path / "store.db")) as db, pytest.raises(ForeignError):
        read_chat(db)


IDS = st.binary(min_size=32, max_size=32).map(bytes.hex)
OTHER = st.one_of(
    st.builds(lambda n, v: varint(n << 3) + varint(v), st.integers(1, 99), st.integers(0, 2**64)),
    st.builds(
        lambda n, v: varint(n << 3 | 1) + v, st.integers(1, 99), st.binary(min_size=8, max_size=8)
    ),
    st.builds(
        lambda n, v: varint(n << 3 | 5) + v, st.integers(1, 99), st.binary(min_size=4, max_size=4)
    ),
    st.builds(field, st.integers(2, 5000), st.binary(max_size=200)),
    st.builds(field, st.just(1), st.binary(max_size=31)),
)


@given(st.lists(IDS))
def test_a_root_lists_its_children_in_order(ids: list[str]) -> None:
    assert child_ids(listed(*ids)) == ids


@given(st.lists(st.tuples(st.lists(OTHER, max_size=3), IDS)), st.lists(OTHER, max_size=3))
def test_other_fields_of_a_root_are_passed_over(
    parts: list[tuple[list[bytes], str]], rest: list[bytes]
) -> None:
    """Fields of every kind may stand between the children."""
    data = b"".join(b"".join(others) + listed(id_) for others, id_ in parts) + b"".join(rest)
    assert child_ids(data) == [id_ for _, id_ in parts]


@given(st.lists(IDS, min_size=1), st.integers(1, 33))
def test_a_root_that_was_cut_off(ids: list[str], missing: int) -> None:
    """What came whole is read."""
    assert child_ids(listed(*ids)[:-missing]) == ids[:-1]


@given(st.binary())
def test_no_bytes_can_fail(data: bytes) -> None:
    assert all(len(id_) == 64 for id_ in child_ids(data))


def test_a_number_without_an_end() -> None:
    assert child_ids(listed("ab" * 32) + b"\xff" * 1000) == ["ab" * 32]


def test_the_messages_of_a_root(store: Store) -> None:
    """Only what the root lists, in its order; older roots and abandoned answers are not seen."""
    user, answer = store.add(USER), store.add(ANSWER)
    store.add({"role": "assistant", "content": "abandoned"})
    store.add(listed(user))
    root = store.add(listed(user, answer))
    assert message_ids(store.opened(), root) == [user, answer]


def test_equal_messages_are_both_listed(store: Store) -> None:
    """The same words twice are one blob and two messages."""
    user, answer = store.add(USER), store.add(ANSWER)
    root = store.add(listed(user, answer, user))
    assert message_ids(store.opened(), root) == [user, answer, user]


def test_roots_inside_a_root(store: Store) -> None:
    user, answer = store.add(USER), store.add(ANSWER)
    inner = store.add(listed(answer) + field(9, b"file:///code/demo"))
    outer = store.add(listed(user, store.add(listed(inner)), user))
    assert message_ids(store.opened(), outer) == [user, answer, user]


def test_roots_in_a_circle(store: Store) -> None:
    """No chain of roots is followed twice."""
    user = store.add(USER)
    first, second = "01" * 32, "02" * 32
    store.add(listed(second, user), first)
    store.add(listed(first, user), second)
    assert message_ids(store.opened(), first) == [user, user]


def test_roots_nested_without_end(store: Store) -> None:
    """A chain that is too long ends in a blob that is no message."""
    store.add(USER, "00" * 32)
    for number in range(1, 30):
        store.add(listed(f"{number - 1:02x}" * 32), f"{number:02x}" * 32)
    assert message_ids(store.opened(), "1d" * 32) == ["15" * 32]
    assert read_message(store.opened(), "15" * 32) is None


def test_blobs_that_were_seen_are_not_looked_into(store: Store) -> None:
    user = store.add(USER)
    inner = store.add(listed(user))
    root = store.add(listed(inner, user))
    assert message_ids(store.opened(), root, {inner}) == [inner, user]


def test_a_missing_blob_is_listed(store: Store) -> None:
    """The reader of the message finds that it is missing."""
    user = store.add(USER)
    root = store.add(listed("ab" * 32, user))
    assert message_ids(store.opened(), root) == ["ab" * 32, user]
    assert read_message(store.opened(), "ab" * 32) is None


@pytest.mark.parametrize("root", [b"", b"{}", b"text", None])
def test_a_root_without_children(store: Store, root: bytes | None) -> None:
    store.add(root, "ab" * 32)
    assert message_ids(store.opened(), "ab" * 32) == []


def test_a_missing_root(store: Store) -> None:
    assert message_ids(store.opened(), "deadbeef") == []


@pytest.mark.parametrize(
    "data",
    [
        json.dumps(USER).encode(),
        json.dumps(USER),
        field(4, json.dumps(USER).encode()),
        field(1, field(1, b"tied"))
        + varint(3 << 3)
        + b"\x05"
        + field(4, json.dumps(USER).encode()),
        field(7, json.dumps(USER).encode()),
        field(2, b'{"a": 1}') + field(3, b"{") + field(7, json.dumps(USER).encode()),
        field(1, json.dumps(ANSWER).encode()) + field(4, json.dumps(USER).encode()),
    ],
)
def test_messages_in_every_wrapping(store: Store, data: Any) -> None:
    """A message is JSON, or the field of a protobuf that holds JSON; the fourth counts first."""
    store.add(data, "ab" * 32)
    assert read_message(store.opened(), "ab" * 32) == USER


def test_a_wrapped_message_is_no_root(store: Store) -> None:
    """Even if it has a field that looks like the id of a child."""
    message = store.add(field(1, b"x" * 32) + field(4, json.dumps(ANSWER).encode()))
    root = store.add(listed(message))
    assert message_ids(store.opened(), root) == [message]


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b'{"role": 5}', b'["role"]', b"{torn", b"# text", field(4, b"{}"), None, 5],
)
def test_blobs_that_are_no_messages(store: Store, data: Any) -> None:
    store.add(data, "ab" * 32)
    assert read_message(store.opened(), "ab" * 32) is None


def test_a_lone_surrogate_is_replaced(store: Store) -> None:
    """What JavaScript writes of half a character costs that character only."""
    blob = store.add(rb'{"role": "user", "content": "a\ud83d"}')
    assert read_message(store.opened(), blob) == {"role": "user", "content": "a\ufffd"}


@given(st.binary())
def test_no_blob_can_fail(data: bytes) -> None:
    with TemporaryDirectory() as folder, Store(folder) as made:
        made.add(data, "ab" * 32)
        made.add(listed("ab" * 32), "cd" * 32)
        made.add(field(4, data), "ef" * 32)
        db = made.opened()
        assert isinstance(message_ids(db, "cd" * 32), list)
        for blob in ("ab", "ef"):
            message = read_message(db, blob * 32)
            assert message is None or message["role"]


def test_a_root_names_its_folder(store: Store) -> None:
    root = store.add(listed("ab" * 32) + field(9, b"file:///code/my%20demo"))
    assert read_root(store.opened(), root).folder == "/code/my demo"


def test_a_root_that_names_no_folder(store: Store) -> None:
    root = store.add(listed("ab" * 32))
    assert read_root(store.opened(), root).folder is None


def test_a_file_beside_the_chat(tmp_path: Path) -> None:
    facts = {"cwd": "/code/demo", "title": "Tie it", "createdAtMs": 1772600767123}
    (tmp_path / "meta.json").write_text(json.dumps({**facts, "updatedAtMs": 1772600767124}))
    meta = read_meta(str(tmp_path / "meta.json"))
    assert meta == Meta("/code/demo", "Tie it", 1772600767123, 1772600767124)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b'{"cwd": 5, "title": "New Agent", "createdAtMs": "soon"}', b"{" + b" " * 70_000],
)
def test_a_file_that_tells_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "meta.json").write_bytes(content)
    assert read_meta(str(tmp_path / "meta.json")) == Meta()


def test_a_link_beside_the_chat_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_text('{"cwd": "/code/demo"}')
    (tmp_path / "meta.json").symlink_to(tmp_path / "real")
    assert read_meta(str(tmp_path / "meta.json")) == Meta()


def test_a_pipe_beside_the_chat_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "meta.json")
    assert read_meta(str(tmp_path / "meta.json")) == Meta()
