"""Messages to the service manager, received on a real datagram socket."""

from __future__ import annotations

import socket
import sys
import time
import uuid

import pytest

from sessiond.service import notify


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path, monkeypatch):
    """A socket that stands for systemd; the daemon knows its address."""
    if request.param == "abstract" and sys.platform != "linux":
        pytest.skip("abstract sockets exist on Linux only")
    address = f"@sessiond-{uuid.uuid4()}" if request.param == "abstract" else f"{tmp_path}/notify"
    if len(address) > 100:
        pytest.skip("the temporary directory is too deep for a socket address")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind("\0" + address[1:] if address.startswith("@") else address)
        server.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        yield server


def test_each_message_arrives_as_one_datagram(manager):
    """READY, STATUS, WATCHDOG and STOPPING reach the manager in order and in its syntax."""
    notify.ready("indexing 3 sources")
    notify.status("idle")
    notify.alive()
    notify.stopping()
    assert [manager.recv(4096) for _ in range(4)] == [
        b"READY=1\nSTATUS=indexing 3 sources",
        b"STATUS=idle",
        b"WATCHDOG=1",
        b"STOPPING=1",
    ]


def test_long_work_asks_for_more_time(manager, monkeypatch):
    """A start-up that upgrades the index is neither ended nor silent; one message a second does."""
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(notify, "_last_busy", 0.0)
    notify.busy("upgrading the index")
    notify.busy("upgrading the index: 1 of 2")
    now += 1
    notify.busy("upgrading the index: 2 of 2")
    assert [manager.recv(4096) for _ in range(2)] == [
        b"EXTEND_TIMEOUT_USEC=120000000\nWATCHDOG=1\nSTATUS=upgrading the index",
        b"EXTEND_TIMEOUT_USEC=120000000\nWATCHDOG=1\nSTATUS=upgrading the index: 2 of 2",
    ]
    with pytest.raises(BlockingIOError):
        manager.recv(4096)


def test_reloading_carries_the_time(manager):
    """RELOADING comes with MONOTONIC_USEC, without which systemd ignores it."""
    notify.reloading()
    first, second = manager.recv(4096).decode().split("\n")
    assert first == "RELOADING=1"
    name, _, value = second.partition("=")
    assert name == "MONOTONIC_USEC"
    assert int(value) > 0


def test_a_status_stays_one_line(manager):
    """A line break in a status, for example from a path, cannot smuggle in another assignment."""
    notify.status("reading x\nSTOPPING=1\r\n.jsonl \udc80")
    assert manager.recv(4096) == b"STATUS=reading x STOPPING=1 .jsonl ?"


@pytest.mark.parametrize(
    "address",
    [
        None,
        "",
        "relative/path",
        "vsock:2:1234",
        "/no/such/socket",
        "@no-such-socket",
        "/" + "x" * 200,
    ],
    ids=["unset", "empty", "relative", "vsock", "missing", "missing-abstract", "too-long"],
)
def test_no_manager_means_no_effect(address, monkeypatch):
    """Where nobody listens, every call returns quietly."""
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    if address is not None:
        monkeypatch.setenv("NOTIFY_SOCKET", address)
    notify.ready("x")
    notify.status("x")
    notify.alive()
    notify.reloading()
    notify.stopping()


@pytest.mark.parametrize(
    ("name", "expected"),
    [("io.github.sessiond", True), ("application.com.apple.Terminal", False), (None, False)],
)
def test_under_launchd(name, expected, monkeypatch):
    """Only our own agent's name counts as being run by launchd."""
    monkeypatch.delenv("XPC_SERVICE_NAME", raising=False)
    if name is not None:
        monkeypatch.setenv("XPC_SERVICE_NAME", name)
    assert notify.under_launchd() is expected
