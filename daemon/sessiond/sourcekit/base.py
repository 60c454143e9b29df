"""What every source returns to the store, and the interface of a source.

A parser turns one raw record into one `Record`. It never sees the index; what it must remember from
one record to the next goes into a small JSON state that commits with the rows.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from sess_common.decode import decode
from sess_schema.edits import Edit, Hunks
from sess_schema.session import EventFacts
from sessiond.sourcekit.disk import Folders, holds_lines
from sessiond.sourcekit.folders import ProjectFolder
from sessiond.sourcekit.values import as_line, prompt_title

if TYPE_CHECKING:
    from sess_schema.chains import Chain
    from sessiond.sourcekit.foreign import Foreign, KnownRows


# Titles by precedence: a higher rank replaces a lower one; of equal ranks the last one wins, but of
# prompts the first.
TITLE_PROMPT, TITLE_SUMMARY, TITLE_AI, TITLE_CUSTOM = 1, 2, 3, 4

# How certain the link from a subagent to the call that started it is.
LINK_PROMPT, LINK_QUEUE, LINK_PROGRESS, LINK_RESULT, LINK_META = 1, 2, 3, 4, 5


# In the state of a database reader: not everything was compared, so read the database again soon.
LOOK_AGAIN = "look_again"


# How sure we are that an agent is read correctly: what its source was written from.
REAL_FILES, SOURCE_CODE, DOCUMENTATION, ONE_READER = (
    "real files",
    "its source code",
    "documentation",
    "one public reader",
)
_WAL = "-wal"  # what SQLite writes first, beside a database
_SQLITE = b"SQLite format 3\0"


class Described(NamedTuple):
    """What a tool call does, judging by its tool and its input."""

    kind: str  # see `sess_schema.kinds`
    summary: str = ""  # in one line
    files: tuple[tuple[str, str], ...] = ()  # (path, action)
    edits: tuple[Edit, ...] = ()


@dataclass(slots=True)
class Event(EventFacts):
    """An event that starts in this record; a tool call waits here for its result."""

    files: tuple[tuple[str, str], ...] = ()  # (path, action)
    edits: tuple[Edit, ...] = ()

    def chars(self) -> int:
        """How many characters of it the model wrote."""
        by_model = self.type in ("assistant", "thinking", "tool_use")
        return len(self.text) + len(self.input) if by_model else 0


@dataclass(slots=True)
class Result:
    """The outcome of a tool call, to be joined with the call of the same id."""

    call_id: str
    output: str
    status: str  # ok, error, denied
    duration_ms: int | None = None  # as recorded; otherwise the store subtracts timestamps
    images: int = 0
    overflow: str | None = None  # base name of the file that holds the full output
    pointer: str | None = None  # to the result inside the raw record
    hunks: Hunks = ()  # what changed in the file that the call names


@dataclass(slots=True)
class Usage:
    message_id: str | None
    request_id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0
    cache_read_tokens: int = 0
    web_searches: int = 0
    service_tier: str | None = None
    speed: str | None = None
    cost_usd: float | None = None
    geo: str | None = None  # where it was computed
    context_window: int | None = None  # of the model, where the agent records it
    reasoning_tokens: int = 0  # part of output_tokens
    fallback: int = 0  # of a session's usage, only that with the lowest value counts
    sum_of: int = 1  # responses, each of which has its own `Usage`


@dataclass(slots=True)
class Title:
    text: str
    rank: int
    leaf: str | None = None  # native id of a record: the title belongs to its session


@dataclass(slots=True)
class Link:
    """A subagent of this session and the call that started it."""

    native_id: str  # of the subagent's session
    call_id: str
    rank: int
    home: str | None = None  # of the subagent's session; None: the main session's id


@dataclass(slots=True, frozen=True)
class Retire:
    """Earlier records of the same log that this one replaces or takes back."""

    native_id: str | None = None  # this record
    onward: bool = False  # and all after it; the whole log if the id is unknown
    after: bool = False  # with `onward`: but not the record itself; nothing if it is unknown
    prompts: int = 0  # or: this many of the last prompts, and all after them


@dataclass(slots=True)
class Record:
    """One record with everything that it contains."""

    kind: str
    role: str | None = None
    native_id: str | None = None
    parent_id: str | None = None
    ts: int | None = None
    ts_from: str | None = None
    sidechain: bool = False
    subagent: str | None = None  # native id of the subagent that a sidechain record belongs to
    forked: bool = False
    session: str | None = None  # native id, in files with records of several sessions
    session_alias: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    version: str | None = None
    model: str | None = None
    mode: str | None = None  # that the agent works in from here on: plan, ask, auto ...
    events: list[Event] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    usage: Usage | None = None
    usage_agent: str | None = None  # the subagent whose response it reports
    advice: list[Usage] = field(default_factory=list)  # of models consulted for this response
    titles: list[Title] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    retires: list[Retire] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)  # oddities found while parsing

    def say(self, kind: str, text: Any, label: str | None = None) -> None:
        """Add an event of this type, if there is a text to it."""
        if isinstance(text, str) and (text := text.strip()):
            self.events.append(Event(kind, text, label=label))

    def ask(self, text: str, images: int = 0, label: str | None = None) -> None:
        """Add a prompt, if it says or shows something, and the title that it makes."""
        if text or images:
            self.events.append(Event("user", text or "[image]", label=label, images=images))
        if title := prompt_title(text, label):
            self.titles.append(Title(title, TITLE_PROMPT))

    def link(
        self, native_id: str, call_id: str, rank: int = LINK_RESULT, home: str | None = None
    ) -> None:
        """Name the session of a subagent, and the call that started it."""
        self.links.append(Link(native_id, call_id, rank, home))


@dataclass(slots=True, frozen=True)
class SessionSpec:
    """The session of a file's records, judging by its place and first bytes."""

    native_id: str
    home: str = ""
    kind: str = "main"  # main, subagent, log
    parent: str | None = None  # native id of the parent session
    parent_home: str = ""
    call_id: str | None = None  # from a sidecar
    agent_type: str | None = None
    title: str | None = None
    project: str | None = None
    folder: ProjectFolder | None = None  # names the project if nothing else does
    attachments: str | None = None  # directory of outputs that were too long for a line
    fallback: int = 0  # of a session's sources, only those with the lowest value are shown
    resume: tuple[str, ...] = ()  # the command that resumes it, run in its project


NOTHING = object()


@dataclass(slots=True)
class Item:
    """One record of a conversation in a document or a database."""

    key: str  # unique in the document or database
    place: int = 0  # its rowid in the database
    digest: int = 0  # of its value
    raw: bytes = b""  # its line in the archive
    record: Record | None = None  # None: no content, only the digest is stored
    alias: str | None = None  # the id it gives itself, if the key has another
    value: Any = NOTHING  # instead of `raw`: the line is made of it when it is needed
    length: int = 0  # of that line, once it was made

    @property
    def ts(self) -> int | None:
        return self.record.ts if self.record and self.record.ts_from is None else None

    @property
    def size(self) -> int:
        return self.length or len(self.raw)

    def line(self) -> bytes:
        """Its line in the archive, without the newline."""
        return self.raw if self.value is NOTHING else as_line(self.value)


@dataclass(slots=True)
class Conversation:
    """What changed in one conversation, and facts about it as a whole.

    Readers of documents give all items; the engine finds what changed.
    """

    spec: SessionSpec
    order: list[str] = field(default_factory=list)  # keys of all its records, in reading order
    items: list[Item] = field(default_factory=list)
    moved: list[tuple[str, int]] = field(default_factory=list)  # same value, new place
    removed: list[str] = field(default_factory=list)
    times: dict[str, int] = field(default_factory=dict)  # of records without a timestamp
    gone: bool = False  # no longer in the database; the index keeps it
    project: str | None = None
    project_rank: int = 0
    git_branch: str | None = None
    mode: str | None = None
    model: str | None = None  # of responses that name none
    created_at: int | None = None
    updated_at: int | None = None
    children: list[str] = field(default_factory=list)  # native ids of its subagents
    # Dollars for the whole of it, by model; an empty name is its model.
    costs: dict[str, float] = field(default_factory=dict)


class Parser(Protocol):
    """Turns the raw records of one file into `Record`s, in order."""

    def parse(self, value: dict[str, Any]) -> Record:
        """Parse one decoded record."""

    def state(self) -> dict[str, Any]:
        """Small JSON to give to the next parser of this file."""


class NotReady(Exception):
    """A document is incomplete or not the agent's; the message gives the reason."""


class Source:
    """One agent: where its files are, how to recognise them, and how to read them."""

    agent: str  # its name in the index, in configuration and in filters
    title: str  # its display name
    # Increase it when the same bytes should become other rows: what older editions read is then
    # read again once, logs from the archive (`writing/reread.py`), documents and databases anew.
    edition: int = 1
    variables: tuple[str, ...] = ()  # environment variables that move its places
    reads: str  # what is read, in one sentence
    leaves: tuple[tuple[str, str], ...] = ()  # what is there and not read, and why
    known_from: str  # REAL_FILES, SOURCE_CODE, DOCUMENTATION or ONE_READER
    records_tokens: bool = True
    subscription: bool = False  # nobody pays by token: a cost is what the API would have asked
    databases: Databases | None = None  # how to read its databases
    documents: Documents | None = None  # how to read files that are rewritten whole
    chain: Chain | None = None  # what it follows when it continues a session; None: the order
    whole: re.Pattern[bytes] | None = None  # what its documents have, where it has logs, too
    streams: bool = False  # its documents are arrays of any size, read one element at a time

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

    def moved(self, variable: str) -> str:
        """The directory that a variable of the environment names; empty if it is not set."""
        return self.folders.expand(self.environ.get(variable, "").strip())

    def places(self) -> list[str]:
        """Directories where the agent keeps its files on this system, existing or not."""
        raise NotImplementedError

    def roots(self) -> list[str]:
        """Directories to watch: the agent's own and those from config.toml."""
        roots = [*self.places(), *map(self.folders.expand, self.extra_roots)]
        return list(dict.fromkeys(map(os.path.normpath, roots)))

    def classify(self, path: str) -> str | None:
        """`transcript`, `document`, `database`, `attachment` or `sidecar`, by name and place."""
        raise NotImplementedError

    def claims(self, path: str, head: bytes) -> bool:  # noqa: ARG002 - for those that can tell
        """Whether a file with these first bytes is this agent's, wherever it is.

        Asked where places overlap and for files that are imported. The default knows none by sight.
        """
        return False

    def kind_anywhere(self, path: str, head: bytes) -> str | None:
        """The kind of a file that somebody hands over, whatever its name and place."""
        return self.kind_if_ours(path, head) if self.claims(path, head) else None

    def kind_if_ours(self, path: str, head: bytes) -> str | None:
        """The kind of a file of which a person says that it is this agent's."""
        kind = self.classify(path)
        if kind is not None:  # what belongs to a conversation is none itself
            return kind if kind in ("transcript", "document", "database") else None
        if head.startswith(_SQLITE):
            return "database" if self.databases is not None else None
        reads_logs = type(self).identify is not Source.identify
        if reads_logs and (self.documents is None or holds_lines(head) or not self.is_whole(head)):
            return "transcript"
        return "document" if self.documents is not None else None

    def is_whole(self, head: bytes) -> bool:
        """Whether one JSON object is a document, not the only line of a log."""
        return self.whole is None or self.whole.search(head) is not None

    def enters(self, directory: str) -> bool:  # noqa: ARG002 - anything may be below
        """Whether a directory below a root may contain files of this agent."""
        return True

    def kind_of(self, path: str) -> str | None:
        """As `classify`, which need not know the files that SQLite makes."""
        kind = self.classify(path)
        if kind is None and self.databases is not None and path.endswith(_WAL):
            return "sidecar" if self.classify(path.removesuffix(_WAL)) == "database" else None
        return kind

    def sidecars(self, path: str) -> Sequence[str]:
        """Files, existing or not, whose change means that this one must be read again."""
        is_database = self.databases is not None and self.classify(path) == "database"
        return (path + _WAL,) if is_database else ()

    def owner(self, sidecar: str) -> str:
        """The file that a sidecar belongs to; a directory if it belongs to all files in it."""
        return sidecar.removesuffix(_WAL)

    def readers(self, path: str) -> Sequence[str]:  # noqa: ARG002 - most files stand alone
        """Documents that are read with this one, and so change when it does."""
        return ()

    def identify(self, path: str, head: bytes) -> SessionSpec:
        """The session of a transcript, from its path, its first bytes and its sidecar."""
        raise NotImplementedError

    def parser(self, spec: SessionSpec, state: dict[str, Any]) -> Parser:
        """A parser of a transcript that continues from `state`."""
        raise NotImplementedError

    def probe(self, word: str) -> dict[str, bytes]:  # noqa: ARG002 - most cannot be faked
        """Files by path, as the agent would write them, for `sess doctor` to find `word` in."""
        return {}


class Documents(Protocol):
    """Reads the conversations of an agent's documents, each whole.

    If the source streams, `data` is one element of the outermost array.
    """

    def conversations(self, path: str, data: bytes) -> Iterator[Conversation]:
        """Every conversation with all its items in order, their keys unique within it."""


class Databases(Protocol):
    """Reads the changed conversations of an agent's databases."""

    def conversations(
        self, foreign: Foreign, known: KnownRows, state: dict[str, Any]
    ) -> Iterator[Conversation]:
        """What changed since `known`; `state` is small JSON, saved after a complete read."""


class Listed(NamedTuple):
    """A record in a list of a conversation's records."""

    key: str
    mark: tuple[Any, ...]  # differs when the record does
    changed_at: int | None = None  # milliseconds


class Table(NamedTuple):
    name: str
    conversation: str  # the indexed column that names it


class Layout:
    """How one agent uses its tables."""

    def tables(self, db: Foreign) -> Sequence[Table]:
        """The tables of records that exist in this database."""
        raise NotImplementedError

    def heads(self, db: Foreign) -> Iterable[tuple[str, Any]]:
        """The id of every conversation, with a mark that differs when the conversation does."""
        raise NotImplementedError

    def whole(self, db: Foreign, conversation: str) -> Conversation | None:
        """The conversation without its records; None if it has just been deleted.

        With all its items, it is compared as a whole, and the methods below are not called.
        `NotReady` if it cannot be decoded: the index keeps what it has.
        """
        raise NotImplementedError

    def listing(self, db: Foreign, conversation: str) -> list[Listed]:  # noqa: ARG002
        """All its records in order, with keys unique in the conversation."""
        return []

    def fetch(
        self, db: Foreign, conversation: str, keys: Sequence[str]
    ) -> Iterable[tuple[str, dict[str, Any]]]:
        """The values of records, as they are archived."""
        raise NotImplementedError

    def is_dropped(self, key: str) -> bool:  # noqa: ARG002
        """Whether a missing record was deleted only to save space: the index keeps it."""
        return False

    def record(self, value: dict[str, Any]) -> Record:
        raise NotImplementedError


def whole_json(data: bytes) -> Any:
    """The value of a document; one that is being written is not ready."""
    try:
        value, _ = decode(data)
    except ValueError:
        raise NotReady("is not complete JSON") from None
    return value


def whole_object(data: bytes, items: str, reason: str) -> dict[str, Any]:
    """The object of a document, which has a list of this name; otherwise it is not ready."""
    value = whole_json(data)
    if not isinstance(value, dict) or not isinstance(value.get(items), list):
        raise NotReady(reason)
    return value


def borrowed_times(items: Iterable[Item], began: int | None) -> dict[str, int]:
    """For `Conversation.times`: a record without a time has that of the one before it."""
    times: dict[str, int] = {}
    for item in items:
        began = item.ts or began
        if began is not None:
            times[item.key] = began
    return times
