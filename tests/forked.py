"""Our programs as real processes without the cost of starting Python for each of them.

A server imports both programs once and forks itself for every command. The process that a test
gets has its own pid, streams, environment and exit code, and runs the same entry point; only its
imports are already done. Tests about start-up, signals and daemons start the installed scripts.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import pkgutil
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from functools import cache
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests import at_length
from tests.rights import obey_permissions

BIN = Path(sys.executable).parent
_ENTRIES = {"sess": "sess_cli.start", "sessiond": "sessiond.main"}
# What Python, its libraries or the loader read before our code runs.
_READ_AT_START = ("PYTHON", "LC_", "LANG", "LD_")
_LONGEST_REQUEST = 1 << 20


# -- used by tests


class Running:
    """A started program, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, reply: socket.socket, command: list[str]) -> None:
        self._reply, self._command = reply, command
        self.pid = int(reply.recv(64))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._reply], [], [], 0)[0]:
            self.returncode = os.waitstatus_to_exitcode(int(self._reply.recv(64)))
            self._reply.close()
        return self.returncode

    def wait(self, seconds: float | None = None) -> int:
        if self.returncode is None and not select.select([self._reply], [], [], seconds)[0]:
            assert seconds is not None  # without a limit, select waits for the reply
            raise subprocess.TimeoutExpired(self._command, seconds)
        code = self.poll()
        assert code is not None
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def possible(program, environment, options) -> bool:
    """Whether a forked process behaves like a newly started one."""
    differing = dict(os.environ.items() ^ environment.items())
    return (
        program in _ENTRIES
        and options.keys() <= {"input", "cwd", "preexec_fn"}
        and options.get("preexec_fn", obey_permissions) is obey_permissions
        and sys.platform == "linux"  # forking without exec is not safe on macOS
        and not any(name.startswith(_READ_AT_START) for name in differing)
    )


def start(program, arguments, environment, streams, *, cwd=None, preexec_fn=None) -> Running:
    """Start a program with these three descriptors as its streams."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [str(BIN / program), *map(str, arguments)]
    plain = preexec_fn is not None
    request = json.dumps([program, command, environment, os.fspath(cwd or Path.cwd()), plain])
    with theirs:
        descriptors = [*streams, theirs.fileno()]
        socket.send_fds(_server(), [request.encode("utf-8", "surrogateescape")], descriptors)
    return Running(ours, command)


def run(program, arguments, environment, *, input=None, seconds=60.0, **options):  # noqa: A002
    """Like `subprocess.run` with text and captured output."""
    end = time.monotonic() + seconds
    ends = [os.pipe(), os.pipe()] + ([os.pipe()] if input is not None else [])
    (out, child_out), (err, child_err) = ends[:2]
    child_in, feed = ends[2] if input is not None else (0, None)
    try:
        streams = [child_in, child_out, child_err]
        running = start(program, arguments, environment, streams, **options)
    finally:
        for one in (child_out, child_err, *([child_in] if input is not None else [])):
            os.close(one)
    feeder = threading.Thread(target=_feed, args=(feed, (input or "").encode()))
    feeder.start()
    received = {out: bytearray(), err: bytearray()}
    with selectors.DefaultSelector() as selector:
        for one in received:
            selector.register(one, selectors.EVENT_READ)
        while selector.get_map() and time.monotonic() < end:
            for key, _ in selector.select(end - time.monotonic()):
                if piece := os.read(key.fd, 1 << 16):
                    received[key.fd] += piece
                else:
                    selector.unregister(key.fd)
    try:
        code = running.wait(max(end - time.monotonic(), 0))
    except subprocess.TimeoutExpired:
        running.kill()
        raise
    feeder.join()
    os.close(out)
    os.close(err)
    said = [received[one].decode().replace("\r\n", "\n").replace("\r", "\n") for one in (out, err)]
    return subprocess.CompletedProcess([BIN / program, *arguments], code, *said)


def _feed(descriptor, data):
    if descriptor is not None:
        with contextlib.suppress(BrokenPipeError), open(descriptor, "wb") as file:
            file.write(data)


@cache
def _server() -> socket.socket:
    """The server of this test process; it ends when we do."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()]
        )

    def stop() -> None:
        ours.close()
        process.wait(10)

    atexit.register(stop)
    return ours


# -- in the server


def _import_programs() -> None:
    """Everything but the finder: its toolkit reads the environment when it is imported."""
    for package in map(import_module, ("sess_schema", "sessiond", "sess_cli")):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if "finder" not in module.name and not module.name.endswith("__main__"):
                import_module(module.name)


def _serve(requests: socket.socket) -> None:
    waiting: dict[int, tuple[int, socket.socket]] = {}  # pidfd → pid, where to report its end
    commands: dict[int, str] = {}  # by pid
    with selectors.DefaultSelector() as selector:
        selector.register(requests, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is requests:
                    request, descriptors, _, _ = socket.recv_fds(requests, _LONGEST_REQUEST, 4)
                    if not request:
                        return
                    reply = socket.socket(fileno=descriptors.pop())
                    pid = os.fork()
                    if pid == 0:
                        selector.close()
                        for _, other in waiting.values():
                            other.close()
                        reply.close()
                        requests.close()
                        _become(descriptors, *json.loads(request))
                    for one in descriptors:
                        os.close(one)
                    reply.send(str(pid).encode())
                    watched = os.pidfd_open(pid)
                    waiting[watched] = pid, reply
                    program, command, *_ = json.loads(request)
                    commands[pid] = " ".join([program, *command[1:3]])
                    selector.register(watched, selectors.EVENT_READ)
                else:
                    pid, reply = waiting.pop(key.fd)
                    selector.unregister(key.fd)
                    os.close(key.fd)
                    _, status, used = os.wait4(pid, 0)
                    at_length.peak(used.ru_maxrss, commands.pop(pid))
                    with contextlib.suppress(OSError), reply:
                        reply.send(str(status).encode())


def _become(streams, program, command, environment, cwd, plain) -> None:  # noqa: PLR0917
    """Become the program as the interpreter would start it, and exit as it would."""
    code = 1
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.closerange(3, max(streams) + 1)
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(environment)
        time.tzset()
        if plain:
            obey_permissions()
        sys.argv[:] = command
        sys.path[0] = str(BIN)
        _open_streams()
        code = _code_of(program)
    finally:
        os._exit(code)


def _open_streams() -> None:
    encoding, errors = sys.stdout.encoding, sys.stdout.errors
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        stream = open(  # noqa: SIM115
            number, mode, encoding=encoding, errors=errors if number < 2 else "backslashreplace",
            buffering=1 if number == 2 or os.isatty(number) else -1, closefd=False,
        )  # fmt: skip
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _code_of(program) -> int:
    code = 0
    try:
        import_module(_ENTRIES[program]).run()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # private: types do not name it
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        return 120
    return code & 0xFF


if __name__ == "__main__":
    _import_programs()
    gc.collect()
    gc.freeze()
    _serve(socket.socket(fileno=int(sys.argv[1])))
