"""Writes a conversation, entry by entry, in the format of jcode's sessions."""

from __future__ import annotations

import json
import os
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from sess_cli.recording import files

_START, _PROMPT = "session_start", "system_prompt"
# At least one of these must be there.
_NEEDED = {
    "user": ("content", "images"), "assistant": ("content",), "system_prompt": ("content",),
    "tool_call": ("name",), "tool_result": ("output", "error", "denied"),
    "plan_update": ("plan_status",), "todo_snapshot": ("todos",), "mode_change": ("mode",),
    "compact": ("summary",), "subagent_start": ("subagent_name",),
    "subagent_result": ("subagent_name",), "subagent_async": ("subagent_name",),
}  # fmt: skip
_ROLES = {
    "user": "user", "assistant": "assistant", "system": "system_prompt",
    "developer": "system_prompt",
}  # fmt: skip


class InvalidId(ValueError):
    """An id that must not become a file name; the message says why."""


def check_id(given: str) -> str:
    """The id of a session or teammate, if it is safe as a file name."""
    if not given:
        raise InvalidId("the ID is empty")
    if given in (".", ".."):
        raise InvalidId(f'"{given}" is a directory, not an ID')
    if "/" in given or "\\" in given:
        raise InvalidId(f'the ID "{given}" contains a path separator')
    if ".." in given:
        raise InvalidId(f'the ID "{given}" contains ".."')
    if not given.isprintable():
        raise InvalidId("the ID contains control characters")
    return given


class Recorder:
    """One conversation. Nothing is written before its first entry, and each entry is then on disk
    when its method returns.

    A method returns False if the entry could not be written; `error` says why. Recording must not
    break the program that is recorded, so nothing is raised.
    """

    def __init__(
        self,
        project: str | None = None,
        *,
        model: str = "",
        provider: str = "",
        folder: str | None = None,
        refine: Callable[[str], str | None] | None = None,
    ) -> None:
        """`project`: the working directory, by default the current one.

        `folder`: where sessions are kept, by default `~/.jcode/sessions`.

        `refine`: called once, with the first prompt, when the session has its first title; returns
        a better one or None. `user` waits for it: one that takes long calls `rename` later.
        """
        self.folder = os.path.abspath(os.path.expanduser(folder or "~/.jcode/sessions"))
        self.session = str(uuid.uuid4())
        self.path = os.path.join(self.folder, f"{self.session}.json")
        self.project = project if project is not None else _working_directory()
        self.error: Exception | None = None
        self._provider, self._model = provider, model
        self._refine, self._turn = refine, threading.Lock()
        self._listed, self._titled = True, False
        self._prompt: dict[str, Any] | None = None  # waits for the first entry
        self._opened = _now()
        self._fd: int | None = None

    @classmethod
    def teammate(
        cls, leader: str, name: str, *, model: str = "", folder: str | None = None
    ) -> Recorder:
        """The transcript of an agent that works for another one; `leader` is a session."""
        recorder = cls(check_id(name), model=model, provider="teammate", folder=folder)
        recorder.session = f"{check_id(leader)}/{name}"
        below = os.path.join(recorder.folder, leader, "subagents")
        recorder.path = os.path.join(below, f"agent-{name}.jsonl")
        recorder._listed, recorder._titled = False, True
        return recorder

    def resume(self, session: str) -> bool:
        """Append to this session; if there is none, give the new one this id.

        False if the id is not safe as a file name: then nothing changes.
        """
        try:
            self.session = check_id(session)
        except InvalidId as error:
            self.error = error
            return False
        self.close()
        self.path = os.path.join(self.folder, f"{session}.json")
        self._listed, self._titled = True, self.has_recording  # whoever began it named it
        return True

    @property
    def has_recording(self) -> bool:
        """Whether anything is on disk."""
        return os.path.exists(self.path)

    # -- what can be recorded

    def user(self, text: str, images: Sequence[Mapping[str, str]] = ()) -> bool:
        """A prompt; images are `{"media_type": "image/png", "data": BASE64}`."""
        return self._entry("user", content=text, images=[*images])

    def assistant(self, text: str) -> bool:
        return self._entry("assistant", content=text)

    def tool_call(self, name: str, arguments: Any, call_id: str = "") -> bool:
        """`arguments`: an object, or JSON as a model wrote it."""
        return self._entry("tool_call", name=name, args=arguments, tool_call_id=call_id)

    def tool_result(
        self,
        name: str,
        output: str,
        call_id: str = "",
        *,
        error: str | BaseException | None = None,
        denied: bool = False,
        duration_ms: int = 0,
    ) -> bool:
        """A long output is cut in the middle, and all of it is written to a file beside."""
        fields = {"name": name, "output": output, "tool_call_id": call_id}
        fields["error"] = str(error) if error else ""
        return self._entry("tool_result", **fields, denied=denied, duration_ms=duration_ms)

    def plan(self, status: str, title: str = "", content: str = "", feedback: str = "") -> bool:
        """`status`: draft, submitted, approved or rejected."""
        plan = {"plan_status": status, "plan_title": title, "plan_content": content}
        return self._entry("plan_update", **plan, feedback=feedback)

    def todos(self, todos: Iterable[Mapping[str, Any]]) -> bool:
        """The whole list: `{"id": 1, "title": "...", "status": "pending"}`."""
        return self._entry("todo_snapshot", todos=[*todos])

    def mode(self, mode: str) -> bool:
        return self._entry("mode_change", mode=mode)

    def compact(self, summary: str, compacted: int = 0, kept: int = 0) -> bool:
        """A summary takes the place of the messages so far, but for the last `kept`."""
        return self._entry("compact", summary=summary, compacted_n=compacted, kept_n=kept)

    def subagent_start(self, name: str, kind: str = "") -> bool:
        """What follows, up to its result, the subagent does."""
        return self._entry("subagent_start", subagent_name=name, subagent_type=kind)

    def subagent_result(
        self, name: str, output: str = "", error: str | BaseException | None = None
    ) -> bool:
        failure = str(error) if error else ""
        return self._entry("subagent_result", subagent_name=name, output=output, error=failure)

    def subagent_async(self, name: str, task: str, kind: str = "") -> bool:
        """A subagent that works in the background."""
        return self._entry("subagent_async", subagent_name=name, subagent_type=kind, output=task)

    def system_prompt(self, text: str, env_info: str = "") -> bool:
        """Kept until there is a conversation to write it to."""
        return self._entry(_PROMPT, content=text, env_info=env_info)

    def _entry(self, kind: str, **fields: Any) -> bool:
        return self.entry({"type": kind, **fields})

    def entry(self, fields: Mapping[str, Any]) -> bool:
        """Any entry, of a type above or not. Empty fields are left out."""
        kept = _kept(fields)
        kind = kept.get("type")
        if kind == _PROMPT and not self.has_recording:
            self._prompt = kept if kept.get("content") or kept.get("env_info") else None
            return True
        kept.setdefault("timestamp", _now())
        with self._turn:
            try:
                self._append(self._fitted(kept))
            except (OSError, ValueError, RecursionError) as error:
                self.error = error
                return False
            names = kind == "user" and not self._titled
            if names:
                self._titled = True
                prompt = str(kept.get("content") or "")
                self._list(files.entitle_session, files.title_from(prompt))
        if names and self._refine is not None:
            self._rename_by(self._refine, prompt)
        return True

    def _rename_by(self, refine: Callable[[str], str | None], prompt: str) -> None:
        try:
            title = refine(prompt)
        except Exception as error:
            self.error = error
        else:
            self.rename(title or "", by_user=False)

    def rename(self, title: str, *, by_user: bool = True) -> bool:
        """Name the session; a name that a person gave stays when a program has another idea.

        False if the name is empty, or if there is no session yet.
        """
        title = " ".join(title.split())
        if not title or not self._listed or not self.has_recording:
            return False
        return self._list(files.rename_session, title, by_user)

    def close(self) -> None:
        """Close the file. A later entry opens it again and is appended."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- the file

    def _fitted(self, entry: dict[str, Any]) -> dict[str, Any]:
        output, arguments = entry.get("output"), entry.get("args", "")
        if entry.get("type") == "tool_result" and isinstance(output, str):
            call = str(entry.get("tool_call_id") or "")
            entry["output"] = files.shortened(output, self._overflow(), call)
        if entry.get("type") == "tool_call" and not isinstance(arguments, str):
            entry["args"] = _json(arguments)
        return entry

    def _list(self, change: Callable[..., None], *what: Any) -> bool:
        """The list of sessions only adds a title: the entry is safe without it."""
        if self._listed:
            try:
                change(self.folder, self.session, *what)
            except (OSError, ValueError) as error:
                self.error = error
                return False
        return True

    def _overflow(self) -> str:
        return os.path.join(self.folder, "overflow", *self.session.split("/"))

    def _append(self, entry: dict[str, Any]) -> None:
        while True:
            fd = self._open()
            with files.locked(fd):
                if files.is_at(fd, self.path):  # not replaced by an edit meanwhile
                    begun = self._write(fd, entry)
                    break
            self.close()
        if begun:
            files.sync_folder(os.path.dirname(self.path))
            self._list(files.list_session, self._about() | {"start_time": self._opened})

    def _open(self) -> int:
        if self._fd is not None and not files.is_at(self._fd, self.path):
            self.close()
        if self._fd is None:
            files.make_folder(os.path.dirname(self.path))
            self._fd = files.open_to_append(self.path)
        return self._fd

    def _write(self, fd: int, entry: dict[str, Any]) -> bool:
        """Append an entry, with the header if it is the first; all of it or nothing."""
        size = os.fstat(fd).st_size
        entries = [entry]
        if size == 0:
            header = {"type": _START, **self._about(), "timestamp": self._opened}
            entries = [_kept(header), *self._prompts(entry["timestamp"]), entry]
        data = b"".join(map(_line, entries))
        if size and _last_byte(fd, size) != b"\n":
            data = b"\n" + data  # whoever wrote the last line was killed within it
        try:
            while data:
                data = data[os.write(fd, data) :]
            os.fsync(fd)
        except OSError:
            os.ftruncate(fd, size)
            raise
        self._prompt = None
        return size == 0

    def _prompts(self, moment: str) -> list[dict[str, Any]]:
        return [{"timestamp": moment} | self._prompt] if self._prompt else []

    def _about(self) -> dict[str, str]:
        about = {"project": self.project, "provider": self._provider, "model": self._model}
        return {"uuid": self.session, **about}


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return ""


def _last_byte(fd: int, size: int) -> bytes:
    os.lseek(fd, size - 1, os.SEEK_SET)
    return os.read(fd, 1)


def _json(value: Any) -> str:
    return json.dumps(
        value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=str
    )


def _kept(fields: Mapping[str, Any]) -> dict[str, Any]:
    empty: tuple[Any, ...] = (None, "", [], {})
    return {k: v for k, v in fields.items() if v is not False and v != 0 and v not in empty}


def _line(entry: Mapping[str, Any]) -> bytes:
    return _json(entry).encode("utf-8", "backslashreplace") + b"\n"


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="milliseconds")


class Refused(ValueError):
    """A line that is not recorded; the message says why."""


class Incoming:
    """Turns lines into entries; remembers the names of calls, which chats do not repeat."""

    def __init__(self) -> None:
        self._called: dict[str, str] = {}

    def entries(self, line: bytes) -> list[dict[str, Any]]:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Refused("not JSON") from error
        if not isinstance(value, dict):
            raise Refused("not a JSON object")
        if isinstance(value.get("type"), str) and value["type"]:
            return [self._entry(value)]
        if isinstance(value.get("role"), str):
            return [*self._message(value)]
        raise Refused('neither "type" nor "role"')

    def _entry(self, value: dict[str, Any]) -> dict[str, Any]:
        kind = value["type"]
        if kind == "session_start":
            raise Refused("session_start is written by sess; use --project and --model")
        needed = _NEEDED.get(kind, ())
        if needed and not any(name in value for name in needed):
            raise Refused(f'{kind} without "{needed[0]}"')
        if kind == "tool_result" and not isinstance(value.get("output", ""), str):
            value = value | {"output": json.dumps(value["output"], ensure_ascii=False)}
        return value

    def _message(self, value: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """A message as chat completions have it, tool calls included."""
        role, when = value["role"], {"timestamp": value.get("timestamp")}
        text, images = _content(value.get("content"))
        if role == "tool":
            call = str(value.get("tool_call_id") or "")
            name = value.get("name") or self._called.get(call, "")
            fields = {"name": name, "output": text, "tool_call_id": call}
            yield {"type": "tool_result", **fields, **when}
            return
        if role not in _ROLES:
            raise Refused(f'unknown role "{role}"')
        if text or images:
            yield {"type": _ROLES[role], "content": text, "images": images, **when}
        for call in value.get("tool_calls") or ():
            function = call.get("function") if isinstance(call, dict) else None
            if not isinstance(function, dict):
                raise Refused("a tool call without a function")
            name, call_id = str(function.get("name") or ""), str(call.get("id") or "")
            self._called[call_id] = name
            fields = {"name": name, "args": function.get("arguments"), "tool_call_id": call_id}
            yield {"type": "tool_call", **fields, **when}


def _content(content: Any) -> tuple[str, list[dict[str, str]]]:
    """The text and the images of a message's content, which may be in parts."""
    if not isinstance(content, list):
        return (content if isinstance(content, str) else ""), []
    texts, images = [], []
    for part in content:
        if not isinstance(part, dict):
            continue
        if isinstance(part.get("text"), str):
            texts.append(part["text"])
        address = part.get("image_url")
        url = address.get("url") if isinstance(address, dict) else address
        if isinstance(url, str) and url.startswith("data:"):
            media, _, data = url.removeprefix("data:").partition(";base64,")
            images.append({"media_type": media, "data": data})
    return "\n".join(texts), images
