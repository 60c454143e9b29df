"""jcode by cnjack: its sessions, teammates and overflowed outputs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson

from sess_common.decode import decode
from sess_schema import kinds, labels
from sess_schema.calls import todos_in
from sess_schema.chains import Chain
from sessiond.sourcekit.base import (
    LINK_PROMPT,
    SOURCE_CODE,
    TITLE_AI,
    Conversation,
    Event,
    NotReady,
    Parser,
    Record,
    Result,
    SessionSpec,
    Source,
    Title,
    whole_json,
)
from sessiond.sourcekit.disk import KeptFile, first_line
from sessiond.sourcekit.toolbox import Toolbox, arguments_in
from sessiond.sourcekit.values import as_dict, as_list, as_milliseconds, as_text, as_time

_PLACES = (".jcode", ".jcoding")  # today's and that of the first release
_SESSIONS, _OVERFLOW, _SUBAGENTS = "sessions", "overflow", "subagents"
_INDEX = "session.json"
_STATE = frozenset({"projects.json", "last_session.json"})
_OTHER_JCODE = "session_"  # how 1jehuang's jcode, which uses the same folder, names its files
_AGENT = "agent-"
_UNTITLED = "New session"
_HEADER = re.compile(rb'\A\s*\{"type"\s*:\s*"session_start"\s*,.*"timestamp"\s*:')
_LARGEST_INDEX = 64 << 20


class JcodeSource(Source):
    agent = "jcode"
    title = "jcode"
    edition = 4
    reads = "Sessions of all versions, teammates, overflowed outputs, and titles from the index."
    leaves = (
        ("projects.json, last_session.json", "what the program opened last"),
        ("config.json, log files", "settings and the program's own log"),
    )
    known_from = SOURCE_CODE
    chain = Chain(heads=("session_start",))
    records_tokens = False

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.documents = _Index()
        self._titles = KeptFile(_titles_in, _LARGEST_INDEX)

    def places(self) -> list[str]:
        return [os.path.join(self.folders.home(), place, _SESSIONS) for place in _PLACES]

    def classify(self, path: str) -> str | None:
        folder, name = os.path.split(path)
        if name.startswith((".", _OTHER_JCODE)) or name in _STATE:
            return None
        above = os.path.basename(folder)
        if name.endswith(".jsonl"):
            return "transcript" if above == _SUBAGENTS and name.startswith(_AGENT) else None
        if name.endswith(".txt"):
            return "attachment" if _OVERFLOW in folder.split(os.sep) else None
        if not name.endswith(".json") or above in (_SUBAGENTS, _OVERFLOW):
            return None
        return "document" if name == _INDEX else "transcript"

    def claims(self, path: str, head: bytes) -> bool:  # noqa: ARG002 - the content decides
        return _HEADER.match(head.partition(b"\n")[0]) is not None

    def sidecars(self, path: str) -> Sequence[str]:
        leader = _leader(path)
        return (leader,) if leader else ()

    def identify(self, path: str, head: bytes) -> SessionSpec:  # noqa: ARG002 - the name decides
        folder, name = os.path.split(path)
        leader = _leader(path)
        if leader:
            member = name.removeprefix(_AGENT).removesuffix(".jsonl")
            session = os.path.basename(leader).removesuffix(".json")
            above = os.path.join(os.path.dirname(leader), _OVERFLOW)
            return SessionSpec(
                f"{session}/{member}",
                kind="subagent",
                parent=session,
                agent_type="teammate",
                title=member,
                project=_project_in(leader),
                attachments=os.path.join(above, session, member),
            )
        session = name.removesuffix(".json")
        return SessionSpec(
            session,
            title=self._titles.of(os.path.join(folder, _INDEX)).get(session),
            attachments=os.path.join(folder, _OVERFLOW, session),
            resume=("jcode", "--resume", session),
        )

    def parser(self, spec: SessionSpec, state: dict[str, Any]) -> Parser:
        return JcodeParser(spec, state)

    def probe(self, word: str) -> dict[str, bytes]:
        session, moment = "d0c70000-0000-4000-8000-00000000000c", "2026-01-01T00:00:00Z"
        entries = (
            {"type": "session_start", "uuid": session, "project": "/doctor", "timestamp": moment},
            {"type": "user", "content": f"put the {word} on", "timestamp": moment},
        )
        path = os.path.join(self.places()[0], f"{session}.json")
        return {path: b"".join(orjson.dumps(entry) + b"\n" for entry in entries)}


class _Index:
    """`session.json`: names sessions after their first prompt, and when a person renames one."""

    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:  # noqa: ARG002
        value = whole_json(data)
        if not isinstance(value, dict):
            raise NotReady("is not an index of jcode")
        for session, title in _titles(value):
            yield Conversation(SessionSpec(session, title=title))


def _titles_in(data: bytes) -> dict[str, str]:
    try:
        value, _ = decode(data)
    except ValueError:
        return {}
    return dict(_titles(value))


def _titles(index: Any) -> Iterator[tuple[str, str]]:
    for listed in as_dict(as_dict(index).get("sessions")).values():
        for meta in as_list(listed):
            session, title = as_text(as_dict(meta).get("uuid")), as_text(as_dict(meta).get("title"))
            if session and title and title != _UNTITLED:
                yield session, " ".join(title.split())


def _leader(path: str) -> str | None:
    """The file of the session that a teammate works for."""
    folder = os.path.dirname(path)
    if os.path.basename(folder) != _SUBAGENTS:
        return None
    return os.path.dirname(folder) + ".json"


def _project_in(leader: str) -> str | None:
    try:
        return as_text(as_dict(orjson.loads(first_line(leader))).get("project"))
    except orjson.JSONDecodeError:
        return None


# -- entries; older versions have no call ids: calls and results pair up by name

_TOOLS = Toolbox(
    {
        kinds.SHELL: ("execute", "background", "check_background", "stop_background"),
        kinds.READ: ("read", "load_skill"),
        kinds.WRITE: ("write", "generate_image"),
        kinds.EDIT: ("edit", "multi_edit"),
        kinds.SEARCH: ("grep", "glob", "list", "tool_search"),
        kinds.FETCH: ("web_fetch", "web_search", "webfetch", "websearch", "browser"),
        kinds.AGENT: ("subagent", "team_spawn", "team_create", "workflow"),
        kinds.PLAN: ("todowrite", "todoread", "create_plan", "submit_plan", "goal"),
        kinds.QUESTION: ("ask_user",),
    }
)
# In results of commands, which have no `error` for a command that merely failed.
_EXIT = re.compile(r"^\[Exit code: -?[1-9]\d*\]$", re.MULTILINE)
_TAIL = 400
_SAVED = re.compile(r"^Full output saved to: .*?([^/\\\n]+\.txt)$", re.MULTILINE)
_LONGEST_NAME = 200  # as `sess record` cuts it
_MOST_WAITING = 1000
_MOVE = "switch_env"  # to another machine or container
# About the program's own work; the archive keeps them.
_SILENT = frozenset({"tool_observation", "generation_operation", "provider_tool_operation"})
_OF_TOOLS = _SILENT | {"tool_result"}  # may name the model of a tool, such as one that paints
_INSIDE = frozenset({"assistant", "tool_call", "tool_result"})  # what a subagent may add


class JcodeParser:
    """Parses the entries of one session, in order."""

    def __init__(self, spec: SessionSpec, state: dict[str, Any]) -> None:
        self._session = spec.native_id
        self._is_member = spec.kind == "subagent"
        self._project = as_text(state.get("project"))
        self._calls = int(state.get("calls") or 0)  # without an id so far
        self._started = int(state.get("started") or 0)  # subagents so far
        self._moves: dict[str, str] = dict(state.get("moves") or {})  # call to environment
        # Calls without a result (name, id, the subagent that made it or "", the one that it
        # starts or ""), then subagents without one (name, id, the call that started it or "").
        self._waiting: list[tuple[str, str, str, str]] = [*map(tuple, state.get("waiting") or ())]
        self._running: list[tuple[str, str, str]] = [*map(tuple, state.get("running") or ())]

    def state(self) -> dict[str, Any]:
        return {
            "project": self._project,
            "calls": self._calls,
            "started": self._started,
            "moves": dict(self._moves),
            "waiting": [list(one) for one in self._waiting],
            "running": [list(one) for one in self._running],
        }

    def parse(self, value: dict[str, Any]) -> Record:
        kind = as_text(value.get("type")) or "other"
        record = Record(kind, role="system", ts=as_time(value.get("timestamp")))
        if kind not in _OF_TOOLS:
            record.model = as_text(value.get("model"))
        if kind in _INSIDE and self._running:
            name, record.subagent, _ = self._running[-1]
            record.sidechain, record.cwd = True, self._project
            record.titles.append(Title(name, TITLE_AI))
        if kind not in _SILENT:
            _READERS.get(kind, JcodeParser.read_other)(self, record, value)
        return record

    # -- the conversation

    def read_session_start(self, record: Record, value: dict[str, Any]) -> None:
        if not self._is_member:  # the project of a teammate is its name
            record.cwd = self._project = as_text(value.get("project"))
        _note(record, [as_text(value.get("agent"))], labels.PROFILE)

    def read_user(self, record: Record, value: dict[str, Any]) -> None:
        if self._running:
            record.warnings.append("a subagent without a result")
        # Nothing of before is answered now.
        self._waiting, self._running, self._moves = [], [], {}
        text = (as_text(value.get("content")) or "").strip()
        record.role = "user"
        record.ask(text, len(as_list(value.get("images"))))

    def read_assistant(self, record: Record, value: dict[str, Any]) -> None:
        record.role = "assistant"
        record.say("assistant", value.get("content"))

    def read_tool_call(self, record: Record, value: dict[str, Any]) -> None:
        record.role = "assistant"
        tool = as_text(value.get("name"))
        call_id = as_text(value.get("tool_call_id"))
        if call_id is None:
            self._calls += 1
            call_id = f"{self._session}#{self._calls}"
        given = arguments_in(value.get("args"), "")
        starts = as_text(as_dict(given).get("name")) if _TOOLS.kind(tool) == kinds.AGENT else None
        self._waiting = self._waiting[-_MOST_WAITING:]
        self._waiting.append((tool or "", call_id, record.subagent or "", starts or ""))
        record.events.append(_TOOLS.call(tool, given, call_id, "/args"))
        target = as_text(as_dict(given).get("target")) if tool == _MOVE else None
        if target and not record.sidechain:
            self._moves[call_id] = target

    def read_tool_result(self, record: Record, value: dict[str, Any]) -> None:
        record.role = "tool"
        call_id = self._take_call(record, value)
        output, error = as_text(value.get("output")) or "", as_text(value.get("error"))
        target = self._moves.pop(call_id, None)
        if target and not error and value.get("denied") is not True:
            _note(record, [target], labels.ENVIRONMENT)
        record.results.append(
            Result(
                call_id,
                "\n".join(filter(None, (output, error))) if error != output else output,
                _status(value, output, error),
                duration_ms=as_milliseconds(value.get("duration_ms")) or None,
                overflow=_overflow(output, as_text(value.get("tool_call_id"))),
                pointer="/output" if output else "/error",
            )
        )

    def _take_call(self, record: Record, value: dict[str, Any]) -> str:
        """The call of a result; also decides whether a subagent made it."""
        call_id, tool = as_text(value.get("tool_call_id")), as_text(value.get("name")) or ""
        for number, (name, waiting, subagent, _) in enumerate(self._waiting):
            if waiting == call_id or (call_id is None and name == tool):
                del self._waiting[number]
                record.sidechain, record.subagent = bool(subagent), subagent or None
                return waiting
        if call_id:
            return call_id
        self._calls += 1
        return f"{self._session}#{self._calls}"

    def read_compact(self, record: Record, value: dict[str, Any]) -> None:
        if text := as_text(value.get("summary")):
            record.events.append(Event("summary", text))

    # -- subagents

    def read_subagent_start(self, record: Record, value: dict[str, Any]) -> None:
        name = self._note_subagent(record, value, "")
        self._started += 1
        subagent = f"{self._session}/{self._started}-{name}"
        call = self._call_that_starts(name)
        self._running.append((name, subagent, call))
        if call:
            record.link(subagent, call, LINK_PROMPT)

    def _call_that_starts(self, name: str) -> str:
        """Several may run at once: the call that names it, or else the first that is free."""
        taken = {call for _, _, call in self._running}
        free = [
            (starts == name, call)
            for tool, call, _, starts in self._waiting
            if _TOOLS.kind(tool) == kinds.AGENT and call not in taken
        ]
        return max(free, key=lambda one: one[0], default=(False, ""))[1]

    def read_subagent_result(self, record: Record, value: dict[str, Any]) -> None:
        said = (as_text(value.get("output")), as_text(value.get("error")))
        name = self._note_subagent(record, value, "\n".join(filter(None, said)))
        at = next((n for n, one in enumerate(self._running) if one[0] == name), None)
        if at is not None:
            del self._running[at]

    def read_subagent_async(self, record: Record, value: dict[str, Any]) -> None:
        self._note_subagent(record, value, as_text(value.get("output")) or "")

    @staticmethod
    def _note_subagent(record: Record, value: dict[str, Any], more: str) -> str:
        name, kind = as_text(value.get("subagent_name")) or "", as_text(value.get("subagent_type"))
        head = f"{name} ({kind})" if kind else name
        record.events.append(
            Event("system", "\n".join(filter(None, (head, more))), label=record.kind)
        )
        return name

    # -- what the program notes

    def read_plan_update(self, record: Record, value: dict[str, Any]) -> None:
        names = ("plan_title", "plan_content", "feedback")
        status = as_text(value.get("plan_status"))
        lines = [f"plan {status}" if status else None, *(as_text(value.get(n)) for n in names)]
        _note(record, lines, labels.PLAN)

    def read_todo_snapshot(self, record: Record, value: dict[str, Any]) -> None:
        todos = todos_in({"todos": value.get("todos")}) or []
        lines = [f"[{todo.mark}] {todo.text}".rstrip() for todo in todos]
        _note(record, lines or ["no to-dos"], labels.TODO)

    def read_mode_change(self, record: Record, value: dict[str, Any]) -> None:
        record.mode = as_text(value.get("mode"))
        _note(record, [record.mode], labels.MODE)

    def read_agent_change(self, record: Record, value: dict[str, Any]) -> None:
        _note(record, [as_text(value.get("agent")) or "default"], labels.PROFILE)

    def read_system_prompt(self, record: Record, value: dict[str, Any]) -> None:
        said = [as_text(value.get("content")), as_text(value.get("env_info"))]
        _note(record, said, labels.SYSTEM_PROMPT)

    def read_goal_update(self, record: Record, value: dict[str, Any]) -> None:
        said = [as_text(value.get("goal_objective")), as_text(value.get("goal_status"))]
        _note(record, said, labels.GOAL)

    def read_artifact(self, record: Record, value: dict[str, Any]) -> None:
        said = [as_text(value.get("artifact_title")), as_text(value.get("artifact_path"))]
        _note(record, said, record.kind)

    def read_other(self, record: Record, value: dict[str, Any]) -> None:
        """Also entries of later versions: whatever they say in words."""
        names = ("content", "mode", "agent", "name", "output", "error")
        _note(record, [as_text(value.get(name)) for name in names], record.kind)


_READERS: dict[str, Callable[[JcodeParser, Record, dict[str, Any]], None]] = {
    name.removeprefix("read_"): read
    for name, read in vars(JcodeParser).items()
    if name.startswith("read_")
}


def _note(record: Record, lines: Sequence[str | None], label: str) -> None:
    record.say("system", "\n".join(filter(None, lines)), label)


def _overflow(output: str, call_id: str | None) -> str | None:
    """The file of the whole output, named after the call; the output may quote other notices."""
    safe = re.sub(r"[/\\\0]|\.\.", "_", call_id or "unknown")[:_LONGEST_NAME]
    own = re.compile(re.escape(safe) + r"(?:-\d+)?\.txt")
    names = (saved[1] for saved in _SAVED.finditer(output))
    return next(filter(own.fullmatch, names), None)


def _status(value: dict[str, Any], output: str, error: str | None) -> str:
    if value.get("denied") is True:
        return "denied"
    is_command = _TOOLS.kind(as_text(value.get("name"))) == kinds.SHELL
    failed = error or (is_command and _EXIT.search(output[-_TAIL:]))
    return "error" if failed else "ok"


SOURCE = JcodeSource
