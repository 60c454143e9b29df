"""A session as every export shows it: complete events in order, calls with their results.

Everything returned here is already redacted, so an export cannot forget to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import apsw

from sess_cli.export import notice_names
from sess_cli.export.json_values import Image, block_in, images_in, text_in
from sess_cli.export.learning import learn
from sess_common import paths
from sess_redaction.redactor import Redactor, configured_rules, rules
from sess_schema import archive, labels, numbers, shown
from sess_schema.edits import Edit
from sess_schema.ids import EventId, SessionId
from sess_schema.numbers import Numbers
from sess_schema.queries import sessions
from sess_schema.queries.sessions import SessionRow
from sess_schema.queries.stats import Stats
from sess_schema.session import FACTS, Entry, Reader
from sess_schema.sums import Tally

_ESCAPE = (b"\\u001b", b"\\u001B", b"\x1b")
# The index cuts longer titles; half a secret at the end would not be recognised.
_CUT_TITLE = 198
_FOLDERS = "projects/"
DAMAGED = "A part of this record is damaged in the archive"
# A title is the beginning of a prompt on one line, where a block of code or a heading is noise.
_BLOCK = re.compile(r"(?<=\S)\s+(?:```|#{1,6}\s).*", re.DOTALL)
_LAST_WORD = re.compile(r"[!-~]+…?\Z")

_OF_ENTRY = tuple(fact.name for fact in fields(Entry) if fact.name != "summary")
# Every other fact of an event is masked: `given` stands for the input, summaries are excerpts.
_MASKED = tuple(
    name
    for name in FACTS
    if name not in ("type", "status", "kind", "call_id", "pointer", "input", "summary")
)


@dataclass(slots=True)
class Spent:
    """What responses used: tokens, and cost where the price is known."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_write_tokens: int = 0
    cache_read_tokens: int = 0
    cost_nano: int = 0
    unpriced: int = 0
    model: str | None = None  # the last, if several were asked

    def add(self, other: Spent) -> None:
        self.requests += other.requests
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.cache_write_tokens += other.cache_write_tokens
        self.cache_read_tokens += other.cache_read_tokens
        self.cost_nano += other.cost_nano
        self.unpriced += other.unpriced
        self.model = other.model or self.model

    @property
    def tokens(self) -> int:
        cached = self.cache_write_tokens + self.cache_read_tokens
        return self.input_tokens + self.output_tokens + cached


@dataclass(slots=True, frozen=True)
class Commit:
    sha: str
    branch: str | None
    subject: str


@dataclass(slots=True, eq=False, kw_only=True)
class Item(Entry):
    """One event: something a person would say happened."""

    number: int  # 0, 1, 2 ... in its session
    key: str  # the same in every export and on every machine: `sess show ID#KEY`
    summary: str = ""  # never missing
    given: Any = None  # the input of a call as the agent wrote it; usually an object
    edits: list[Edit] = field(default_factory=list)  # what a call changed in files
    pictures: list[Image] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    spent: Spent | None = None  # since the previous event
    agent: Story | None = None  # the subagent session that this call started
    copied_from: str | None = None  # the session it was first written in, if not this one
    files: list[dict[str, str]] = field(default_factory=list)  # path and action
    unknown: Any = None  # a record or block of a kind that nobody has described, as it was written
    damaged: bool = False  # a part of it could not be read from the archive

    @property
    def failed(self) -> bool:
        return self.status in ("error", "denied")

    def spend(self, more: Spent) -> None:
        self.spent = self.spent or Spent()
        self.spent.add(more)

    @property
    def is_title(self) -> bool:
        """It is a title of the session; an export's header already shows it."""
        return self.type == "summary" and self.label in labels.TITLES


class Story:
    """One session, with its subagents' sessions below the calls that started them."""

    def __init__(
        self,
        db: apsw.Connection,
        row: SessionRow,
        clean: Redactor | None = None,
        *,
        images: bool = True,
        depth: int | None = None,
        above: frozenset[SessionId] = frozenset(),
    ) -> None:
        """`clean` removes secrets from a text; subagents are followed `depth` levels down.

        Of several stories that are exported together, `learn` reads all before the first is made.
        """
        learn(db, [row], clean)
        self.db = db
        self._clean = clean
        self._arguments: dict[str, str] = {}  # of the current call: original to cleaned
        self.row = self._cleaned_row(row)
        self._images = images
        self._depth = depth
        self._above = above | {row.key}
        self._originals: dict[SessionId, str] = {}

    # -- the session as a whole

    @cached_property
    def title(self) -> str:
        title = sessions.title_of(self.db, self.row)
        self._look_at("", "title")
        if self.redacts and len(title) >= _CUT_TITLE:
            title = _LAST_WORD.sub("…", title)
        return _BLOCK.sub(" …", self.cleaned(title))

    @cached_property
    def models(self) -> list[str]:
        return [self.cleaned(model) for model in json.loads(self.row.models)]

    @cached_property
    def project(self) -> str:
        project = self.row.project or ""
        if self.row.project_from != "name":
            return self.cleaned(project)
        # The name of a folder may contain that of a person, as in `-home-ada-code`.
        return self.cleaned(_FOLDERS + project).removeprefix(_FOLDERS)

    @cached_property
    def branch(self) -> str:
        return self.cleaned(self.row.git_branch or "")

    @cached_property
    def numbers(self) -> Numbers:
        """The same numbers that every view of a session shows."""
        return numbers.of(self.db, self.row)

    @property
    def duration_ms(self) -> int:
        return self.row.duration_ms

    @property
    def total(self) -> Tally:
        """Including subagents."""
        return self.numbers.total

    @property
    def own_total(self) -> Tally:
        """Without what was copied from another session."""
        return Stats(session=self.row.key, copies=False).total(self.db)

    @cached_property
    def children(self) -> list[Story]:
        """The subagents' sessions, in the order they began."""
        if self._depth == 0:
            return []
        return [
            self._child(row)
            for row in sessions.children(self.db, self.row.key)
            if row.key not in self._above
        ]

    def _child(self, row: SessionRow) -> Story:
        depth = None if self._depth is None else self._depth - 1
        return Story(self.db, row, self._clean, images=self._images, depth=depth, above=self._above)

    @cached_property
    def loose(self) -> list[Story]:
        """Subagents that no call of this session is known to have started."""
        called = {
            call
            for (call,) in self.db.execute(
                f"SELECT e.call_id FROM {shown.EVENTS}"
                f" WHERE t.session_id = ? AND {shown.CURRENT} AND e.call_id IS NOT NULL",
                (self.row.key,),
            )
        }
        return [child for child in self.children if child.row.call_id not in called]

    # -- events

    def items(self) -> Iterator[Item]:
        """Every event once, in record order, read lazily."""
        reader = Reader(self.db, self.row.key)
        spent, commits = self._spent(), self._commits()
        by_call = {child.row.call_id: child for child in self.children if child.row.call_id}
        waiting: Item | None = None
        for number, entry in enumerate(reader.entries()):
            met = len(archive.met)
            item = Item(
                **{name: getattr(entry, name) for name in _OF_ENTRY},
                summary=entry.summary or "",
                number=number,
                key=reader.keys.of[entry.id],
                edits=reader.edits(entry.id),
                commits=commits.get(entry.id, []),
                agent=by_call.pop(entry.call_id, None) if entry.call_id else None,
                copied_from=self._name_of(entry.session_id),
                files=reader.files(entry.id),
            )
            if waiting is not None:
                yield waiting
            while spent and spent[-1][0] <= reader.places[entry.id]:
                item.spend(spent.pop()[1])
            if entry.type == "tool_use":
                item.given = reader.input(entry)
            elif entry.type == "system" and not notice_names.is_known(entry.label):
                item.unknown = block_in(reader.record(entry), entry.label, entry.text)
            self._fill_result(item, reader, entry)
            if entry.images and self._images and not item.pictures:
                item.pictures = images_in(reader.record(entry))
            item.damaged = len(archive.met) > met
            waiting = self._cleaned_item(item)
        if waiting is not None:
            for _, more in spent:  # of records after the last event
                waiting.spend(more)
            yield waiting

    def _name_of(self, owner: SessionId) -> str | None:
        """The id of the session that had the event first; None if it is this one."""
        if owner == self.row.key:
            return None
        if owner not in self._originals:
            self._originals[owner] = sessions.by_key(self.db, owner).session
        return self._originals[owner]

    def _fill_result(self, item: Item, reader: Reader, entry: Entry) -> None:
        """Load what the index's texts lack: colours and images."""
        raw = reader.result_bytes(entry)
        if not entry.overflow and any(mark in raw for mark in _ESCAPE):
            item.output = text_in(reader.result(entry)) or item.output
        if self._images and (b"image/" in raw or b'"image"' in raw):
            item.pictures = images_in(reader.result(entry))

    # -- redaction

    @property
    def redacts(self) -> bool:
        return self._clean is not None

    def _look_at(self, place: str, part: str) -> None:
        """Say where the next texts are from, for the report of masks."""
        if self._clean is not None and self._clean.places is not None:
            self._clean.place = f"{self.row.session}{place}, {part}"

    def cleaned(self, text: str) -> str:
        return self._clean(text) if self._clean is not None and text else text

    def _cleaned_name(self, name: str | None) -> str | None:
        return None if name is None else self.cleaned(name)

    def _cleaned_row(self, row: SessionRow) -> SessionRow:
        """Clean the fields that pages print directly; ids and paths stay, for lookups."""
        if self._clean is None:
            return row
        return replace(
            row,
            agent_type=self._cleaned_name(row.agent_type),
            version=self._cleaned_name(row.version),
            mode=self._cleaned_name(row.mode),
        )

    def _cleaned_item(self, item: Item) -> Item:
        if self._clean is not None:
            self._clean.begin_event()
            self._look_at(f"#{item.key}", item.tool or item.type)
            for name in _MASKED:
                if isinstance(words := getattr(item, name), str):
                    setattr(item, name, self.cleaned(words))
            item.unknown = self.cleaned_value(item.unknown)
            self._look_at(f"#{item.key}", "input")
            item.given = self.cleaned_value(item.given)
            item.edits = [self._cleaned_edit(edit) for edit in item.edits]
            self._arguments.clear()
            self._look_at(f"#{item.key}", item.tool or item.type)
            item.summary = self._clean.excerpt(item.summary)
            item.files = [{**file, "path": self.cleaned(file["path"])} for file in item.files]
            if item.spent is not None:
                item.spent.model = self._cleaned_name(item.spent.model)
            self._look_at(f"#{item.key}", "commit")
            item.commits = [
                Commit(commit.sha, self._cleaned_name(commit.branch), self.cleaned(commit.subject))
                for commit in item.commits
            ]
        return item

    def _cleaned_edit(self, edit: Edit) -> Edit:
        return Edit(
            self.cleaned(edit.path),
            self._cleaned_again(edit.old),
            self._cleaned_again(edit.new),
            self._cleaned_again(edit.patch),
            tuple(self._cleaned_hunk(hunk) for hunk in edit.hunks),
        )

    def _cleaned_again(self, text: str | None) -> str | None:
        """Clean a text that is usually also an argument of the call, already cleaned."""
        if text is None or text not in self._arguments:
            return self._cleaned_name(text)
        return self._arguments[text]

    def _cleaned_hunk(self, hunk: dict[str, Any]) -> dict[str, Any]:
        """Clean all lines at once, which is faster, unless a secret spans several of them."""
        lines = hunk.get("lines")
        if isinstance(lines, list) and all(isinstance(line, str) for line in lines):
            cleaned = self.cleaned("\n".join(lines)).split("\n")
            if len(cleaned) == len(lines):
                return {**hunk, "lines": cleaned}
        return {**self.cleaned_value(hunk)}

    def cleaned_value(self, value: Any) -> Any:
        return value if self._clean is None else self._clean.value(value, self._arguments)

    # -- usage and commits

    def _spent(self) -> list[tuple[tuple[int, int], Spent]]:
        """Usage by the position of its record, last first.

        A record may hold only usage; the next event gets it.
        """
        return [
            ((source, offset), Spent(*sums))
            for source, offset, *sums in self.db.execute(
                "SELECT t.source_id, t.offset, 1, u.input_tokens, u.output_tokens,"
                " u.cache_write_tokens, u.cache_read_tokens, coalesce(u.cost_nano, 0),"
                " u.cost_nano IS NULL, u.model FROM usage u JOIN records t ON t.id = u.record_id"
                " WHERE u.session_id = ? AND u.counted ORDER BY 1 DESC, 2 DESC",
                (self.row.key,),
            )
        ]

    def _commits(self) -> dict[EventId, list[Commit]]:
        commits: dict[EventId, list[Commit]] = {}
        for event, sha, branch, subject in self.db.execute(
            "SELECT c.event_id, c.sha, c.branch, c.subject FROM commits c"
            f" WHERE c.event_id IN ({shown.IDS}) ORDER BY 1, c.sha",
            (self.row.key,),
        ):
            commits.setdefault(event, []).append(Commit(sha, branch, subject))
        return commits


def usual_redactor(patterns: Iterable[str] = (), home: str | None = "~") -> Redactor:
    """What masks secrets in an export: built-in rules, those of config.toml, those of options."""
    own = rules(patterns)
    return Redactor(home, [*configured_rules(paths.home().config_file), *own])
