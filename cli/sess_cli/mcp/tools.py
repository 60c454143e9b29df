"""The tools: one for each thing an agent may want to know of the past.

Tools are chosen when their descriptions say when to use them: they name the moments. Each answer is
small by default, cites what it quotes, and says so when nothing fits.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from sess_cli import fresh, given
from sess_cli.mcp.quoting import DEFAULT_TOKENS, MOST_TOKENS, Masks, Quotation, bounded
from sess_common import paths, times
from sess_common.errors import SessError
from sess_common.errors import explained as known_error
from sess_common.program import counted

if TYPE_CHECKING:
    from sess_schema.ids import EventId, SessionId
    from sess_schema.queries.recall import Place, Recalled
    from sess_schema.queries.sessions import SessionRow

INSTRUCTIONS = (
    "What the person's coding agents did in past sessions. Use `recall` before the first edit of a"
    " task, when earlier work is mentioned, and before saying that something does not exist or was"
    " never done; `similar_failures` when a command fails; `file_history` before changing lines"
    " whose reason is unclear. Cite what you use as ID#EVENT. If nothing fits, ask once more with"
    f" other words at most. Answers have up to max_tokens ({DEFAULT_TOKENS}, most {MOST_TOKENS})."
)
_FULL_PLACES, _BRIEF_SESSIONS = 5, 15
_POOL = 40  # places among which those of other sessions are looked for
_PER_SESSION = 3
_MOST_ALSO = 8
_SHARE_OF_BRIEF = 3  # a third of the budget is for sessions in a line each
_ASIDE = 600_000  # milliseconds: what was said just now is known
_MOST_LINES = 200
_STEPS = 10_000  # of SQLite between two looks for a cancellation
_CHANGED = 3  # files that are named


class Tool(NamedTuple):
    description: str
    required: tuple[str, ...]
    arguments: dict[str, dict[str, Any]]

    @property
    def schema(self) -> dict[str, Any]:
        properties = {**self.arguments, "max_tokens": _NUMBER}
        return {"type": "object", "properties": properties, "required": [*self.required]}


def _text(description: str = "") -> dict[str, Any]:
    return {"type": "string", **({"description": description} if description else {})}


_NUMBER = {"type": "integer"}
_WORDS = {
    "type": "array",
    "items": {"type": "string"},
    "description": "up to 8 words the answer may use",
}
_PROJECT = _text("path; its sessions come first (default: here)")
_TOOLS = {
    "recall": Tool(
        "What past sessions know about a question in plain words, with what followed and how it"
        " ended.",
        ("question",),
        {
            "question": _text(),
            "also": _WORDS,
            "project": _PROJECT,
            "since": _text("7d, 2026-02-20"),
        },
    ),
    "search": Tool(
        'Exact search in all sessions, full outputs included: words, "phrases", prefix*, OR, -not,'
        " tool:Bash is:error agent: project: since:7d.",
        ("query",),
        {"query": _text()},
    ),
    "read": Tool(
        "The event that a citation ID#EVENT names, in full, with those around it.",
        ("citation",),
        {"citation": _text(), "before": _NUMBER, "after": _NUMBER},
    ),
    "similar_failures": Tool(
        "Where a pasted error occurred before, and what was done until it worked.",
        ("error",),
        {"error": _text(), "project": _PROJECT},
    ),
    "file_history": Tool(
        "Which sessions changed a file, or wrote a line of it, and what they were asked.",
        ("path",),
        {"path": _text(), "line": _NUMBER},
    ),
}
_MORE = {
    "list": Tool(
        "The latest sessions.",
        (),
        {"project": _text(), "agent": _text(), "since": _text(), "limit": _NUMBER},
    ),
    "stats": Tool(
        "Tokens, cost, calls and failures.",
        (),
        {"by": _text("agent, model, project, day, tool"), "since": _text()},
    ),
}


def as_text(error: SessError) -> str:
    """An error as a text that a model can act on."""
    return f"{error}\nhint: {error.hint}" if error.hint else str(error)


class Caller:
    """The agent that asks: where it works, and which sessions are its own."""

    def __init__(self) -> None:
        self.project = os.getcwd()
        self._name = ""
        self._since = times.now_ms() - 2 * times.MINUTE

    def called(self, name: Any) -> None:
        """By the name that the client gives itself."""
        if isinstance(name, str):
            self._name = name.lower()

    def own(self, db: apsw.Connection) -> set[SessionId]:
        """Sessions of this agent, here, that went on since the server started; with their
        subagents, and the forks that share records with them."""
        from sess_schema.queries import sessions

        rows = db.execute(
            "SELECT id, agent FROM sessions WHERE kind = 'main' AND ended_at >= ?1"
            " AND (project = ?2 OR ?2 LIKE project || '/%' OR project LIKE ?2 || '/%')",
            (self._since, self.project),
        )
        named = [(key, agent in self._name) for key, agent in rows]
        known = any(is_named for _, is_named in named)
        own = {key for key, is_named in named if is_named or not known}
        family = {member for key in own for member in sessions.family(db, key)}
        for key in own:
            family.update(fork for (fork,) in db.execute(_FORKS, (key,)))
        return family


_FORKS = (
    "SELECT DISTINCT o.session_id FROM records t JOIN records o ON o.id = t.copy_of"
    " WHERE t.session_id = ?1 AND t.copy_of IS NOT NULL UNION SELECT DISTINCT c.session_id"
    " FROM records t JOIN records c ON c.copy_of = t.id WHERE t.session_id = ?1"
)


class Toolbox:
    """Calls the tools. Each call opens the index and closes it."""

    def __init__(self, caller: Caller, *, full: bool = False) -> None:
        self.caller = caller
        self._tools = {**_TOOLS, **(_MORE if full else {})}
        self._handlers: dict[str, Callable[[apsw.Connection, Quotation, dict[str, Any]], str]] = {
            "recall": self._recall,
            "search": self._search,
            "read": self._read,
            "similar_failures": self._similar_failures,
            "file_history": self._file_history,
            "list": self._list,
            "stats": self._stats,
        }
        self._masks = Masks()
        self._db: apsw.Connection | None = None  # of the call that runs
        self._stop = threading.Event()

    def listed(self) -> list[dict[str, Any]]:
        return [
            {
                "name": name,
                "description": tool.description,
                "inputSchema": tool.schema,
                "annotations": {"readOnlyHint": True},
            }
            for name, tool in self._tools.items()
        ]

    def begin(self) -> None:
        """The next call may be interrupted from now on."""
        self._stop.clear()

    def interrupt(self) -> None:
        """Stop the call that runs, also between two statements; another thread asks."""
        self._stop.set()
        if self._db is not None:
            self._db.interrupt()

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        if name not in self._tools:
            raise SessError(f"no such tool: {name}", hint=", ".join(self._tools))
        self._check(name, arguments)
        began = time.perf_counter()
        quotation = Quotation(bounded(arguments.get("max_tokens")), self._masks)
        with self._opened() as db:
            note = self._handlers[name](db, quotation, arguments)
        text = quotation.text(note)
        given.log("mcp", name, text, seconds=time.perf_counter() - began, found=quotation.found)
        return text

    def _check(self, name: str, arguments: dict[str, Any]) -> None:
        tool = self._tools[name]
        for field in tool.required:
            if not arguments.get(field):
                raise SessError(f"{name} needs {field}", hint=f'{{"{field}": ...}}')
        kinds = {"string": str, "integer": int, "array": list}
        properties = tool.schema["properties"]
        for field, value in arguments.items():
            if field not in properties:
                hint = f"it has {', '.join(properties)}"
                raise SessError(f"{name} has no argument {field}", hint=hint)
            kind = properties[field]["type"]
            if value is not None and not isinstance(value, kinds[kind]):
                raise SessError(f"{field} is not {'an' if kind[0] in 'ai' else 'a'} {kind}")

    @contextmanager
    def _opened(self) -> Iterator[apsw.Connection]:
        try:
            with fresh.open_with_sessions() as db, db:
                self._db = db
                db.set_progress_handler(self._stop.is_set, _STEPS)
                yield db
        except (SessError, apsw.InterruptError):
            raise
        except Exception as error:
            reason = known_error(error, paths.home().index_file)
            if reason is None:
                raise
            raise reason from error
        finally:
            self._db = None

    # -- the tools

    def _recall(self, db: apsw.Connection, out: Quotation, given_: dict[str, Any]) -> str:
        from sess_schema.queries.recall import Options, recall
        from sess_schema.queries.search import Filter

        question, also = given_["question"], given_.get("also") or []
        filters = [Filter("since", given_["since"])] if given_.get("since") else []
        options = Options(
            filters,
            prefer=given_.get("project") or self.caller.project,
            leave_out=self.caller.own(db),
            limit=_POOL,
        )
        answer = recall(db, question, options)
        words = " ".join(word for word in also[:_MOST_ALSO] if isinstance(word, str))
        if words:
            other = recall(db, f"{question} {words}", options)
            if other.confidence >= answer.confidence or not answer.found:
                answer = other
        if not answer.places:
            return "nothing fits: no recorded session has these words"
        self._quote_places(db, out, answer)
        if answer.found:
            return f"{counted(answer.matched, 'place')} matched; the best first"
        out.found = False
        return "nothing fits; the nearest place is quoted, and may be about something else"

    def _quote_places(self, db: apsw.Connection, out: Quotation, answer: Recalled) -> None:
        most = _FULL_PLACES if answer.found else 1
        per: dict[SessionId, int] = {}
        full: list[Place] = []
        brief: list[Place] = []
        for place in answer.places:
            per[place.session_key] = per.get(place.session_key, 0) + 1
            if len(full) < most and per[place.session_key] <= _PER_SESSION:
                full.append(place)
            elif per[place.session_key] == 1 and len(brief) < _BRIEF_SESSIONS:
                brief.append(place)
        aside = out.room // _SHARE_OF_BRIEF if brief else 0
        each = (out.room - aside) // max(1, len(full))
        for place in full:
            value = self._about(db, place.session_key, place.event, place.ts)
            value |= {
                "outcome": place.outcome,
                "title": place.title[:100],
                "changed_since": _changed_since(db, place.event, place.ts),
            }
            room = max(120, each - len(str(value)) - 40)
            value["quote"] = place.quote[: room // 3]
            value["answer"] = place.answer[: room - len(value["quote"])]
            out.add(value, ("answer", "quote", "title"))
        for place in brief:
            value = self._about(db, place.session_key, place.event, place.ts)
            out.add({**value, "title": place.title[:80]}, ("title",))

    def _about(
        self, db: apsw.Connection, session: SessionId, event: EventId, ts: int | None
    ) -> dict[str, Any]:
        """Where a quotation is from."""
        from sess_schema.citations import Citations
        from sess_schema.queries import sessions

        row = sessions.by_key(db, session)
        return {
            "cite": f"{sessions.ShortIds(db).of(row)}#{Citations(db).short(event, session)}",
            "when": _when(ts),
            "agent": row.agent,
            "project": row.project,
        }

    def _search(self, db: apsw.Connection, out: Quotation, given_: dict[str, Any]) -> str:
        from sess_schema.queries.search import Search

        search = Search(given_["query"], limit=_POOL, width=400)
        search.check()
        own = self.caller.own(db)
        per: dict[SessionId, int] = {}
        total = 0
        for hit in search.hits(db):
            if hit.session_key in own:
                continue
            total += 1
            per[hit.session_key] = per.get(hit.session_key, 0) + 1
            if per[hit.session_key] > _PER_SESSION or out.left_out:
                continue
            value = self._about(db, hit.session_key, hit.event, hit.ts)
            value |= {"type": hit.tool or hit.type, "status": hit.status, "title": hit.title[:80]}
            out.add({**value, "text": hit.snippet.text}, ("text", "title"))
        if not total:
            out.found = False
            return "nothing found; `recall` takes a question in plain words"
        shown = len(out)
        least = "at least " if total == _POOL else ""
        return f"{least}{counted(total, 'event')} matched; {shown} quoted"

    def _read(self, db: apsw.Connection, out: Quotation, given_: dict[str, Any]) -> str:
        from sess_cli.options import cited_event, split_citation
        from sess_schema.queries import sessions
        from sess_schema.session import Reader

        name, key = split_citation(given_["citation"].strip().strip("[]"))
        row = sessions.resolve(db, name)
        reader = Reader(db, row.key)
        if key is None:
            at = 0
            before, after = 0, given_.get("after") or 8
        else:
            event = cited_event(db, row, key)
            at = reader.order.index(event) if reader.holds(event) else 0
            before, after = given_.get("before") or 0, given_.get("after") or 0
        before, after = (max(0, min(count, 50)) for count in (before, after))
        chosen = reader.order[max(0, at - before) : at + after + 1]
        entries = reader.some(chosen)
        ids = sessions.ShortIds(db).of(row)
        each = max(200, out.room // max(1, len(entries)) - 160)
        for entry in entries:
            own = (
                out.room if len(entries) == 1 else each * (2 if entry.id == reader.order[at] else 1)
            )
            value: dict[str, Any] = {
                "cite": f"{ids}#{reader.keys.short(entry.id)}",
                "when": _when(entry.ts),
                "type": entry.tool or entry.type,
                "status": entry.status,
                "text": entry.text[:own],
                "input": entry.input[: own // 2],
                "output": entry.output[:own],
            }
            out.add(value, ("output", "input", "text"))
        return f"{row.agent} session in {row.project or 'an unknown project'}"

    def _similar_failures(self, db: apsw.Connection, out: Quotation, given_: dict[str, Any]) -> str:
        from sess_schema.queries.failures.similar import similar

        found = similar(db, given_["error"], most=_POOL // 8, leave_out=self.caller.own(db))
        here = given_.get("project") or self.caller.project
        places = sorted(
            found.places, key=lambda place: not self._is_here(db, place.found.session, here)
        )[:_FULL_PLACES]
        if not found.found:
            out.found = False
            places = places[:1]
        each = out.room // max(1, len(places))
        for place in places:
            value = self._about(db, place.found.session, place.found.event, place.found.ts)
            value |= {"outcome": place.outcome, "error": place.found.quote[: each // 4]}
            room = max(120, each - len(str(value)) - 40)
            out.add({**value, "what_followed": place.answer[:room]}, ("what_followed", "error"))
        if not places:
            return "nothing fits: this error is in no recorded session"
        if not found.found:
            return "nothing fits; the nearest error is quoted, and may have another cause"
        solved = "; never solved" if found.never_solved else ""
        where = f"{counted(found.times, 'time')} in {counted(found.sessions, 'session')}"
        return f"this error occurred {where}{solved}"

    def _is_here(self, db: apsw.Connection, session: SessionId, project: str) -> bool:
        from sess_schema.queries import sessions

        here = sessions.by_key(db, session).project
        return here is not None and (here == project or here.startswith(project + os.sep))

    def _file_history(self, db: apsw.Connection, out: Quotation, given_: dict[str, Any]) -> str:
        from sess_cli import blame
        from sess_schema.queries.origins import Reasons

        reasons = Reasons(db)
        path = os.path.join(self.caller.project, os.path.expanduser(given_["path"]))
        line = given_.get("line")
        if line is not None:
            file = blame.File.read(path)
            if not 0 < line <= len(file.lines):
                lines = counted(len(file.lines), "line")
                raise SessError(f"{given_['path']} has {lines}: no line {line}")
            place = blame.origins_of(db, file)[line - 1]
            if place.commit is not None:
                committed = f"{place.commit.sha[:10]} {place.commit.subject}"
                out.add({"line": place.text, "commit": committed, "author": place.commit.author})
            if place.origin is None:
                out.found = False
                return "no recorded session wrote this line"
            self._quote_change(out, reasons, place.origin.change, place.origin.doubt)
            return f"how sure: {place.origin.certainty}"
        changes = blame.changes_of(db, path)
        latest = list({change.event: change for change in reversed(changes)}.values())
        for change in latest[:_MOST_LINES]:
            if out.left_out:
                break
            self._quote_change(out, reasons, change, None)
        if not latest:
            out.found = False
            return "no recorded session changed this file"
        return f"{counted(len(latest), 'call')} changed it, the last one first"

    def _quote_change(self, out: Quotation, reasons: Any, change: Any, doubt: str | None) -> None:
        reason = reasons.of(change)
        value = {
            "cite": reason.citation,
            "when": _when(change.ts),
            "agent": reason.row.agent,
            "tool": change.tool,
            "doubt": doubt,
            "asked": (reason.prompt or "")[:400],
            "said": (reason.said or "")[:400],
        }
        if reason.prompt_event:
            value["asked_in"] = f"{reason.asked_in}#{reason.prompt_event}"
        out.add(value, ("said", "asked"))

    def _list(self, db: apsw.Connection, out: Quotation, given_: dict[str, Any]) -> str:
        from sess_schema.queries import sessions

        limit = max(1, min(given_.get("limit") or 20, 100))
        listing = sessions.Listing(
            [given_["agent"]] if given_.get("agent") else (),
            [given_["project"]] if given_.get("project") else (),
            since=times.since(given_["since"]) if given_.get("since") else None,
            limit=limit,
        )
        ids = sessions.ShortIds(db)
        rows: list[SessionRow] = [*listing.rows(db)]
        for row in rows:
            value = {"session": ids.of(row), "when": _when(row.ended), "agent": row.agent}
            title = sessions.title_of(db, row)[:100]
            out.add({**value, "project": row.project, "title": title}, ("title",))
        return counted(listing.count(db), "session")

    def _stats(self, db: apsw.Connection, out: Quotation, given_: dict[str, Any]) -> str:
        from sess_schema import objects
        from sess_schema.queries.stats import Stats

        asked = Stats(since=times.since(given_["since"]) if given_.get("since") else None)
        groups = asked.groups(db, given_["by"]) if given_.get("by") else {"total": asked.total(db)}
        for name, tally in groups.items():
            out.add(objects.group(name, tally))
        return "sums of tokens, cost and calls"


def _when(ts: int | None) -> str | None:
    """The day and the minute, in UTC."""
    moment = times.iso(ts)
    return moment and f"{moment[:16]}Z"


def _changed_since(db: apsw.Connection, event: EventId, ts: int | None) -> str | None:
    """Files that the place is about and that were written after it."""
    if ts is None:
        return None
    changed = []
    for (path,) in db.execute("SELECT DISTINCT path FROM files WHERE event_id = ?", (event,)):
        try:
            if os.stat(path).st_mtime_ns // 1_000_000 > ts + times.MINUTE:
                changed.append(path)
        except OSError:
            continue
    return ", ".join(changed[:_CHANGED]) or None
