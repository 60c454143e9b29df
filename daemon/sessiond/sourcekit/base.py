"""What every parser hands to the store, and what it is told about its file.

A parser turns one raw record into one `Record`. It never sees the database; whatever it must
remember from one record to the next goes into a small JSON state that commits with the rows.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from sess_schema.edits import Edit, Hunks
from sessiond.sourcekit.files import Folders

if TYPE_CHECKING:
    from sessiond.engines.foreign import Foreign
    from sessiond.engines.known_rows import KnownRows

# Titles by precedence: a higher rank replaces a lower one; of equal ranks the last one counts,
# but of prompts the first.
TITLE_PROMPT, TITLE_SUMMARY, TITLE_AI, TITLE_CUSTOM = 1, 2, 3, 4

# How sure a subagent's link to the call that started it is.
LINK_PROMPT, LINK_QUEUE, LINK_PROGRESS, LINK_RESULT, LINK_META = 1, 2, 3, 4, 5


# In the state of a database's reader: not everything was compared, look again before long.
LOOK_AGAIN = "look_again"


class Described(NamedTuple):
    """What a tool call does, as far as its tool and its input tell."""

    kind: str  # see `sourcekit.kinds`
    summary: str = ""  # in one line
    files: tuple[tuple[str, str], ...] = ()  # (path, action)
    edits: tuple[Edit, ...] = ()


@dataclass(slots=True)
class Event:
    """One event that begins in this record; a tool call waits here for its result."""

    type: str  # user, assistant, thinking, tool_use, system, summary
    text: str = ""
    label: str | None = None
    tool: str | None = None
    status: str | None = None  # tool_use: pending until the result arrives
    summary: str | None = None
    input: str = ""  # searchable text of the tool input, values unescaped
    output: str = ""
    duration_ms: int | None = None
    images: int = 0
    call_id: str | None = None
    pointer: str | None = None
    files: tuple[tuple[str, str], ...] = ()  # (path, action)
    kind: str | None = None  # of a call: shell, read, edit ...; see `sourcekit.kinds`
    edits: tuple[Edit, ...] = ()

    def chars(self) -> int:
        """How much of it a model wrote."""
        by_model = self.type in ("assistant", "thinking", "tool_use")
        return len(self.text) + len(self.input) if by_model else 0


@dataclass(slots=True)
class Result:
    """The outcome of a tool call, to be joined with the call of the same id."""

    call_id: str
    output: str
    status: str  # ok, error, denied
    duration_ms: int | None = None  # as recorded; else the store subtracts times
    images: int = 0
    overflow: str | None = None  # base name of the file that holds the full output
    pointer: str | None = None  # to the result inside the raw record
    hunks: Hunks = ()  # what changed in the file that the call names


@dataclass(slots=True)
class Usage:
    message_id: str | None
    request_id: str | None
    model: str | None
    stop_reason: str | None
    input_tokens: int
    output_tokens: int
    cache_write_tokens: int
    cache_write_1h_tokens: int
    cache_read_tokens: int
    web_searches: int = 0
    service_tier: str | None = None
    speed: str | None = None
    cost_usd: float | None = None
    geo: str | None = None  # where it was computed
    context_window: int | None = None  # of the model, where the agent records it


@dataclass(slots=True)
class Title:
    text: str
    rank: int
    leaf: str | None = None  # native id of a record: the title is of the session that holds it


@dataclass(slots=True)
class Link:
    """A subagent of this session and the call that started it."""

    native_id: str  # of the subagent's session
    call_id: str
    rank: int


@dataclass(slots=True, frozen=True)
class Retire:
    """Earlier records of the same log that this one replaces or takes back."""

    native_id: str | None = None  # this record, and
    onward: bool = False  # with it everything after; all of the log, if the id is not known
    prompts: int = 0  # or: the last so many prompts, with everything after


@dataclass(slots=True)
class Record:
    """One turn with everything that it tells."""

    kind: str
    role: str | None = None
    native_id: str | None = None
    parent_id: str | None = None
    ts: int | None = None
    ts_from: str | None = None
    sidechain: bool = False
    subagent: str | None = None  # native id of the subagent that a sidechain record belongs to
    forked: bool = False
    session: str | None = None  # native id, where a file has records of several sessions
    session_alias: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    version: str | None = None
    model: str | None = None
    events: list[Event] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    usage: Usage | None = None
    usage_agent: str | None = None  # the subagent whose response it tells about
    advice: list[Usage] = field(default_factory=list)  # of other models, asked for this response
    titles: list[Title] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    retires: list[Retire] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)  # what was odd about it


@dataclass(slots=True, frozen=True)
class SessionSpec:
    """Which session the records of a file belong to, as far as its place and head tell."""

    native_id: str
    home: str = ""
    kind: str = "main"  # main, subagent, log
    parent: str | None = None  # native id of the parent session
    parent_home: str = ""
    call_id: str | None = None  # from a sidecar
    agent_type: str | None = None
    title: str | None = None
    project: str | None = None
    attachments: str | None = None  # directory of the outputs that were too long for a line
    fallback: int = 0  # of the sources of a session, only those with the smallest are shown
    resume: tuple[str, ...] = ()  # the command that goes on with it, in its project


@dataclass(slots=True)
class Item:
    """One record of a conversation in a document or a database."""

    key: str  # names it in the document or the database
    place: int = 0  # its rowid there
    digest: int = 0  # of its value
    raw: bytes = b""  # the line that stands for it in the archive
    record: Record | None = None  # None: it tells nothing, and only its digest is remembered
    alias: str | None = None  # the id that it gives itself, where the key has another

    @property
    def ts(self) -> int | None:
        return self.record.ts if self.record and self.record.ts_from is None else None


@dataclass(slots=True)
class Conversation:
    """What changed in one conversation, and what is known about it as a whole.

    The reader of a document gives all its items; what changed is found for it.
    """

    spec: SessionSpec
    order: list[str] = field(default_factory=list)  # keys of all its records, as people read them
    items: list[Item] = field(default_factory=list)
    moved: list[tuple[str, int]] = field(default_factory=list)  # same value in another place
    removed: list[str] = field(default_factory=list)
    times: dict[str, int] = field(default_factory=dict)  # of records that do not tell their own
    gone: bool = False  # it left the database; the index keeps it
    project: str | None = None
    project_rank: int = 0
    git_branch: str | None = None
    mode: str | None = None
    model: str | None = None
    created_at: int | None = None
    updated_at: int | None = None
    children: list[str] = field(default_factory=list)  # native ids of its subagents


class Parser(Protocol):
    """Turns the raw records of one file into `Record`s, in order."""

    def parse(self, value: dict[str, Any]) -> Record:
        """One decoded record."""

    def state(self) -> dict[str, Any]:
        """What must be given back to the next parser of this file; small and JSON."""


class NotReady(Exception):
    """A document is not whole yet, or not the agent's; the text says why in a few words."""


class Source:
    """One agent: where its files are, how they are told apart, and how they are read."""

    agent: str  # its name in the index, in configuration and in filters
    title: str  # its name to people
    variables: tuple[str, ...] = ()  # environment variables that move its places
    databases: Databases | None = None  # how to read those of its files that are databases
    documents: Documents | None = None  # and those that are rewritten whole

    def __init__(
        self,
        extra_roots: Sequence[str] = (),
        environ: Mapping[str, str] = os.environ,
        platform: str = sys.platform,
    ) -> None:
        self.extra_roots = extra_roots
        self.environ = environ
        self.folders = Folders(environ, platform)
        self.platform = platform

    def places(self) -> list[str]:
        """Where the agent keeps its files on this system, whether the directories exist or not."""
        raise NotImplementedError

    def roots(self) -> list[str]:
        """Directories to watch: the agent's own, and those of config.toml."""
        roots = [*self.places(), *map(self.folders.expand, self.extra_roots)]
        return list(dict.fromkeys(map(os.path.normpath, roots)))

    def classify(self, path: str) -> str | None:
        """`transcript`, `document`, `database`, `attachment` or `sidecar`, by name and place."""
        raise NotImplementedError

    def claims(self, path: str, head: bytes) -> bool:
        """Whether the first bytes of a file are this agent's; asked where places overlap."""
        raise NotImplementedError

    def enters(self, directory: str) -> bool:  # noqa: ARG002 - anything may be below
        """Whether files of this agent may be in a directory below a root."""
        return True

    def sidecars(self, path: str) -> Sequence[str]:  # noqa: ARG002 - most files stand alone
        """Files whose change means that this one must be looked at, whether they exist or not."""
        return ()

    def owner(self, sidecar: str) -> str:
        """The file that a sidecar tells more about."""
        raise NotImplementedError

    def identify(self, path: str, head: bytes) -> SessionSpec:
        """The session of a transcript, from its path, its first bytes and its sidecar."""
        raise NotImplementedError

    def parser(self, spec: SessionSpec, state: dict[str, Any]) -> Parser:
        """A parser of a transcript that goes on where `state` left off."""
        raise NotImplementedError

    def describe_stored(
        self, tool: str | None, record: Any, pointer: str, answer: Callable[[], Any]
    ) -> Described:
        """What a parser would say of a call in a record of the archive.

        `pointer` leads to its input, `answer` reads the record of its result, if there is one.
        """
        raise NotImplementedError

    def probe(self, word: str) -> dict[str, bytes]:  # noqa: ARG002 - most cannot be faked
        """Files by path, as the agent would write them, in which `sess doctor` looks for a word."""
        return {}


class Documents(Protocol):
    """An agent's documents: the conversations in one, each read whole."""

    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:
        """Every conversation with all its items in order; keys need to be unique in each."""


class Databases(Protocol):
    """An agent's databases: which conversations are in them, and what changed."""

    def conversations(
        self, foreign: Foreign, known: KnownRows, state: dict[str, Any]
    ) -> Iterator[Conversation]:
        """What changed since `known`; `state` is small JSON to be kept once everything was read."""
