"""Draw changed pages, keep the rest, remove obsolete ones; a failed page does not stop the run."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import BinaryIO

import apsw

from sess_cli.export import ansi, files, forge
from sess_cli.export.html import page, shell
from sess_cli.export.html.cards import Workshop
from sess_cli.export.html.chunks import packed
from sess_cli.export.html.page import loose_key
from sess_cli.export.learning import learn, repeated
from sess_cli.export.site import lists, plan
from sess_cli.export.site.plan import ListedSession, Manifest
from sess_cli.export.story import Item, Story
from sess_common.errors import SessError
from sess_redaction import Redactor
from sess_schema import outputs
from sess_schema.ids import SessionId
from sess_schema.queries import sessions
from sess_schema.queries.sessions import SessionRow

_PAGE_ABOVE = "../"
# In long output, what people search for is mostly at the ends.
_HEAD, _TAIL = 3000, 1000
_CALL = "sessTexts"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Options of the pages; changing any redraws all of them."""

    masks: str = ""  # the rules of redaction; empty: none
    utc: bool = False


@dataclass(slots=True)
class Outcome:
    drawn: list[str] = field(default_factory=list)
    unchanged: int = 0
    removed: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)  # session, why


class Site:
    """A site in one directory."""

    def __init__(
        self, db: apsw.Connection, folder: str, rows: Sequence[SessionRow], wanted: Wanted
    ) -> None:
        self._db = db
        self._folder = folder
        self._wanted = wanted
        self._before = plan.load(folder) or Manifest()
        self._rows = rows
        self._listed = sessions.listed(db)
        looks = plan.digest(repr(wanted) + shell.style() + shell.script())
        self._prints = plan.prints(db, rows, looks)
        self._damaged = self._damaged_bundles()
        self._now = Manifest()
        self._lines: dict[str, str] = {}  # search texts of drawn pages, by file
        self._outcome = Outcome()
        self._workshop = Workshop()

    @property
    def unlisted(self) -> int:
        return sum(row.key not in self._listed for row in self._rows)

    def stale(self) -> list[SessionRow]:
        """Sessions whose page is missing or out of date."""
        return [row for row in self._rows if not self._is_current(row)]

    def leaving(self) -> list[ListedSession]:
        keys = {plan.key_of(row) for row in self._rows}
        return [entry for key, entry in self._before.sessions.items() if key not in keys]

    def build(
        self, redactor: Redactor | None, progress: Callable[[str], None] = lambda _: None
    ) -> Outcome:
        if not os.path.exists(os.path.join(self._folder, plan.MANIFEST)):
            self._put(plan.MANIFEST, plan.dump(self._now))  # in case this run is interrupted
        names = plan.Names(self._before)
        stale = {row.key for row in self.stale()}
        if stale:  # a secret found in one session is masked in all
            learn(self._db, self._rows, redactor)
            stale |= self._repeating(redactor)
        try:
            for row in self._rows:
                key = plan.key_of(row)
                if row.key not in stale:
                    self._now.sessions[key] = replace(
                        self._before.sessions[key], listed=row.key in self._listed
                    )
                    self._outcome.unchanged += 1
                    continue
                file, bundle = names.of(row)
                try:
                    entry = self._draw(row, file, bundle, redactor)
                except Exception as error:
                    self._outcome.failed.append((row.session, str(error) or type(error).__name__))
                else:
                    self._now.sessions[key] = entry
                    self._outcome.drawn.append(file)
                progress(row.session)
        finally:
            self._workshop.close()
        self._bundles()
        self._lists()
        self._remove()
        if self._now != self._before:
            self._put(plan.MANIFEST, plan.dump(self._now))
        return self._outcome

    def _repeating(self, redactor: Redactor | None) -> set[SessionId]:
        """Sessions in which other secrets occur than when their pages were drawn."""
        return {
            row.key
            for row in self._rows
            if (entry := self._before.sessions.get(plan.key_of(row))) is not None
            and entry.secrets != repeated(self._db, row, redactor)
        }

    def _is_current(self, row: SessionRow) -> bool:
        entry = self._before.sessions.get(plan.key_of(row))
        return (
            entry is not None
            and entry.print == self._prints[row.key]
            and entry.bundle not in self._damaged
            and self._size(entry.file) == entry.size
        )

    def _damaged_bundles(self) -> set[int]:
        """Bundles whose size changed since they were written; their sessions are redrawn."""
        written = Counter[int]()
        for entry in self._before.sessions.values():
            written[entry.bundle] += entry.texts
        return {
            number for number, size in written.items() if self._size(bundle_name(number)) != size
        }

    def _size(self, name: str) -> int | None:
        try:
            return os.path.getsize(self._path(name))
        except OSError:
            return None

    def _path(self, name: str) -> str:
        path = os.path.join(self._folder, *name.split("/"))
        if "/" in name and os.path.islink(os.path.dirname(path)):
            raise SessError(
                f'"{os.path.dirname(path)}" is a symbolic link', hint="remove it, or use another -o"
            )
        return path

    def _draw(
        self, row: SessionRow, file: str, bundle: int, redactor: Redactor | None
    ) -> ListedSession:
        story = ListeningStory(self._db, row, redactor)
        project = story.project or plan.NO_PROJECT
        look = page.Look(
            utc=self._wanted.utc,
            repository=forge.repository_of(story),
            assets=f"{_PAGE_ABOVE}assets",
            workshop=self._workshop,
            trail=[
                ("All sessions", f"{_PAGE_ABOVE}index.html"),
                (project, _PAGE_ABOVE + plan.project_file(project)),
            ],
        )
        size = _written(self._path(file), lambda out: page.write(story, out, look))
        line = self._lines[file] = texts_call(file, story.heard)
        total, own = story.total, story.own_total
        return ListedSession(
            plan.key_of(row), file, bundle, self._prints[row.key], row.key in self._listed,
            project, story.title, row.agent, story.branch, row.started, row.ended,
            total.prompts, total.tool_calls, total.tool_errors, total.tool_denied,
            own.prompts, own.tool_calls, own.tool_errors, own.tool_denied,
            total.tokens, total.cost_nano, size, len(line.encode()),
            repeated(self._db, row, redactor),
        )  # fmt: skip

    # -- bundles and lists

    def _bundles(self) -> None:
        members: dict[int, list[str]] = defaultdict(list)
        for entry in self._now.sessions.values():
            members[entry.bundle].append(entry.file)
        lost = {
            entry.bundle
            for key, entry in self._before.sessions.items()
            if key not in self._now.sessions
        }
        for number, held in members.items():
            if number in lost or any(file in self._lines for file in held):
                kept = kept_lines(self._folder, number, set(held))
                calls = [self._lines.get(file) or kept.get(file, "") for file in sorted(held)]
                self._put(bundle_name(number), "".join(calls).encode())
        self._now.files += [bundle_name(number) for number in members]

    def _lists(self) -> None:
        entries = sorted(
            self._now.sessions.values(), key=lambda entry: (-(entry.ended or 0), entry.file)
        )
        bundles = sorted({entry.bundle for entry in entries})
        documents = lists.documents(
            entries, [bundle_name(number) for number in bundles], utc=self._wanted.utc
        )
        for name, text in documents:
            self._put(name, text.encode("utf-8", "replace"))
            self._now.files.append(name)

    def _remove(self) -> None:
        """Only what an earlier run wrote here and this one did not."""
        here = {entry.file for entry in self._now.sessions.values()} | {*self._now.files}
        before = {entry.file for entry in self._before.sessions.values()} | {*self._before.files}
        for name in sorted(before - here):
            if ".." in name.split("/") or os.path.isabs(name):
                continue  # the manifest is not ours
            path = self._path(name)
            with suppress(FileNotFoundError):  # another run may remove it first
                if os.path.isfile(path):
                    os.unlink(path)
                    self._outcome.removed += name.startswith("sessions/")

    def _put(self, name: str, data: bytes) -> None:
        """Write a file unless its content is the same."""
        path = self._path(name)
        try:
            with open(path, "rb") as file:
                if file.read() == data:
                    return
        except OSError:
            pass
        _written(path, lambda out: out.write(data))


def _written(path: str, write: Callable[[BinaryIO], object]) -> int:
    """Return the size of the file."""
    files.make_folder(os.path.dirname(path))
    with outputs.new_file(path, replace=True) as out:
        write(out)
        return out.tell()


# -- the texts for the search over all pages, in bundles
#
# A bundle is a script with one call per session, because a page opened from disk may load scripts
# but not read other files. A session that grew changes one line of one bundle.


class ListeningStory(Story):
    """A story that collects its searchable texts while it is drawn."""

    def __init__(self, db: apsw.Connection, row: SessionRow, clean: Redactor | None) -> None:
        super().__init__(db, row, clean)
        self.heard: list[tuple[str, str, str]] = []  # card, tool or event type, text
        self.prefix = ""  # of the card keys of a subagent, which are drawn inside another card

    def _child(self, row: SessionRow) -> Story:
        child = ListeningStory(self.db, row, self._clean)
        child.heard, child._above = self.heard, self._above | {row.key}
        child.prefix = f"{loose_key(child)}-"  # until the call that started it is found
        return child

    def items(self) -> Iterator[Item]:
        for item in super().items():
            card = self.prefix + item.key
            if text := _searched(item):
                self.heard.append((card, item.tool or item.type, text))
            if isinstance(item.agent, ListeningStory):
                item.agent.prefix = f"{card}-"
            yield item


def _searched(item: Item) -> str:
    if item.type == "system" or item.is_title:
        return ""
    if item.type != "tool_use":
        return _ends(item.text.strip())
    return _ends("\n".join(filter(None, (item.summary, ansi.plain(item.output).strip()))))


def _ends(text: str) -> str:
    if len(text) <= _HEAD + _TAIL:
        return text
    return f"{text[:_HEAD]}\n…\n{text[-_TAIL:]}"


def texts_call(file: str, heard: list[tuple[str, str, str]]) -> str:
    """The call that loads one session's texts."""
    columns = [[*column] for column in zip(*heard, strict=True)] or [[], [], []]
    texts = json.dumps(columns, separators=(",", ":"), ensure_ascii=False)
    return f'{_CALL}({json.dumps(file)},"{packed(texts)}");\n'


def bundle_name(number: int) -> str:
    return f"search/{number:03}.js"


def kept_lines(folder: str, number: int, wanted: set[str]) -> dict[str, str]:
    """The calls of an earlier run, by file, for the files in `wanted`."""
    calls = {}
    try:
        with open(os.path.join(folder, bundle_name(number)), encoding="utf-8") as bundle:
            for call in bundle:
                name = call[len(_CALL) + 1 :].partition(",")[0]
                if call.startswith(f"{_CALL}(") and json.loads(name) in wanted:
                    calls[json.loads(name)] = call
    except (OSError, ValueError):
        return {}
    return calls
