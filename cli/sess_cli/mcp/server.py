"""The protocol: JSON-RPC, a message a line, with a handshake (2024 to 2025) or without (2026).

Requests that read the index wait for each other in one thread, so that the loop can hear of a
cancellation meanwhile. Between calls nothing is open: a server that is left alone holds no
snapshot of the index and uses no processor time.
"""

from __future__ import annotations

import contextlib
import json
import queue
import sys
import threading
from typing import Any, BinaryIO

from sess_cli.mcp import tools
from sess_cli.mcp.tools import Caller, Toolbox
from sess_common.errors import SessError
from sess_schema import __version__

_HANDSHAKES = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
_WITHOUT_HANDSHAKE = ("2026-07-28",)
_META = "io.modelcontextprotocol/"
_PARSE, _INVALID, _NO_METHOD, _BAD_PARAMS, _INTERNAL = -32700, -32600, -32601, -32602, -32603
_UNSUPPORTED = -32022
_LONGEST = 4 << 20  # bytes of a message
_FRESH_MS = 3_600_000  # the list of tools never changes while the server runs


class _Failure(Exception):
    def __init__(self, code: int, message: str, **data: Any) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **({"data": data} if data else {})}


class Server:
    """Answers one client until it closes its end."""

    def __init__(self, toolbox: Toolbox, source: BinaryIO, target: BinaryIO) -> None:
        self._toolbox = toolbox
        self._source, self._target = source, target
        self._writing = threading.Lock()
        self._calls: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._cancelled: set[str] = set()
        self._running: str | None = None
        self._state = threading.Lock()

    def serve(self) -> None:
        worker = threading.Thread(target=self._work, daemon=True)
        worker.start()
        while line := self._source.readline(_LONGEST + 1):
            if len(line) > _LONGEST:
                while line and not line.endswith(b"\n"):
                    line = self._source.readline(_LONGEST)
                self._fail(None, _Failure(_INVALID, f"a message is longer than {_LONGEST} bytes"))
            elif line.strip():
                self._read(line)
        self._calls.put(None)
        worker.join()

    def _read(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self._fail(None, _Failure(_PARSE, "not JSON"))
            return
        for one in message if isinstance(message, list) else [message]:
            self._take(one)

    def _take(self, message: Any) -> None:
        if not isinstance(message, dict):
            self._fail(None, _Failure(_INVALID, "not a request"))
            return
        if not isinstance(message.get("method"), str):
            if not {"result", "error"} & message.keys():
                self._fail(message.get("id"), _Failure(_INVALID, "not a request"))
            return
        if "id" not in message:
            if message["method"] == "notifications/cancelled":
                self._cancel(_params(message).get("requestId"))
            return
        if message["method"] == "tools/call":
            self._calls.put(message)
        else:
            self._answer(message, self._respond)

    # -- requests

    def _respond(self, message: dict[str, Any]) -> dict[str, Any]:
        method, params = message["method"], _params(message)
        if method == "initialize":
            return self._initialize(params)
        if method == "server/discover":
            return {
                "supportedVersions": [*_WITHOUT_HANDSHAKE],
                "capabilities": {"tools": {}},
                "instructions": tools.INSTRUCTIONS,
                **_cached(),
            }
        if method == "tools/list":
            listed: dict[str, Any] = {"tools": self._toolbox.listed()}
            return {**listed, **(_cached() if _version(params) else {})}
        if method == "ping":
            return {}
        raise _Failure(_NO_METHOD, f"no such method: {method}")

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        client = params.get("clientInfo")
        self._toolbox.caller.called(client.get("name") if isinstance(client, dict) else None)
        wanted = params.get("protocolVersion")
        return {
            "protocolVersion": wanted if wanted in _HANDSHAKES else _HANDSHAKES[0],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "sess", "version": __version__},
            "instructions": tools.INSTRUCTIONS,
        }

    def _call(self, message: dict[str, Any]) -> dict[str, Any]:
        params = _params(message)
        client = _meta(params).get(f"{_META}clientInfo")
        if isinstance(client, dict):
            self._toolbox.caller.called(client.get("name"))
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str) or not isinstance(arguments, (dict, type(None))):
            raise _Failure(_BAD_PARAMS, "a call has a name, and arguments in an object")
        try:
            text, failed = self._toolbox.call(name, arguments or {}), False
        except SessError as error:
            text, failed = tools.as_text(error), True
        return {"content": [{"type": "text", "text": text}], "isError": failed}

    # -- the thread that reads the index

    def _work(self) -> None:
        while (message := self._calls.get()) is not None:
            name = _name(message)
            with self._state:
                if name in self._cancelled:
                    self._cancelled.discard(name)
                    continue
                self._running = name
                self._toolbox.begin()
            self._answer(message, self._call)
            with self._state:
                self._running = None

    def _cancel(self, id_: Any) -> None:
        name = json.dumps(id_)
        with self._state:
            self._cancelled.add(name)
            if self._running == name:
                self._toolbox.interrupt()

    # -- answers

    def _answer(self, message: dict[str, Any], respond: Any) -> None:
        params = _params(message)
        try:
            version = _supported(params)
            result = respond(message)
        except _Failure as failure:
            self._fail(message["id"], failure)
            return
        except Exception as error:
            if not self._forgotten(message):
                self._fail(message["id"], _Failure(_INTERNAL, f"{type(error).__name__}: {error}"))
            return
        if self._forgotten(message):
            return
        if version is not None:
            server = {f"{_META}serverInfo": {"name": "sess", "version": __version__}}
            result = {"resultType": "complete", **result, "_meta": server}
        self._write({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _forgotten(self, message: dict[str, Any]) -> bool:
        """Whether the client does not want the answer any more."""
        with self._state:
            name = _name(message)
            cancelled = name in self._cancelled
            self._cancelled.discard(name)
            return cancelled

    def _fail(self, id_: Any, failure: _Failure) -> None:
        self._write({"jsonrpc": "2.0", "id": id_, "error": failure.error})

    def _write(self, message: dict[str, Any]) -> None:
        line = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        # A client that went away has closed its other end, too: the loop ends.
        with self._writing, contextlib.suppress(BrokenPipeError):
            self._target.write(line.encode("utf-8", "replace") + b"\n")
            self._target.flush()


def _params(message: dict[str, Any]) -> dict[str, Any]:
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def _meta(params: dict[str, Any]) -> dict[str, Any]:
    meta = params.get("_meta")
    return meta if isinstance(meta, dict) else {}


def _version(params: dict[str, Any]) -> str | None:
    """The version that a request without a handshake names."""
    version = _meta(params).get(f"{_META}protocolVersion")
    return version if isinstance(version, str) else None


def _supported(params: dict[str, Any]) -> str | None:
    version = _version(params)
    if version is not None and version not in _WITHOUT_HANDSHAKE:
        message = f"unsupported protocol version: {version}"
        raise _Failure(_UNSUPPORTED, message, supported=[*_WITHOUT_HANDSHAKE], requested=version)
    return version


def _cached() -> dict[str, Any]:
    return {"ttlMs": _FRESH_MS, "cacheScope": "private"}


def _name(message: dict[str, Any]) -> str:
    return json.dumps(message["id"])


def serve(*, full: bool = False) -> None:
    """Serve the client at standard input and output."""
    source, target = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing but answers may stand in between
    Server(Toolbox(Caller(), full=full), source, target).serve()
