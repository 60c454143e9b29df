"""The checks of `sess doctor` and `sess check`, and a report about them for others.

No check of `sess doctor` stops the others.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import shlex
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from sess_cli import fresh
from sess_cli.commands.demo import throw_away
from sess_cli.render import amounts, layout
from sess_common import lock, paths, upkeep
from sess_common.errors import REPAIR, SessError
from sess_common.program import say
from sess_common.progress import progress_line
from sess_schema import __version__, archive, connection, migrate, outputs, soundness
from sess_schema.queries import sources
from sess_schema.soundness import ArchiveCheck, Finding

if TYPE_CHECKING:
    from sess_common.paths import Home

OK, WARN, FAIL = "ok", "warn", "fail"
_MOST_EXAMPLES = 3
_MOST_SKIPPED = 20
_LIBRARIES = ("apsw", "orjson", "zstandard", "watchdog", "typer", "rich", "google-re2", "comrak")
_TABLES = ("sources", "sessions", "records", "events", "usage", "chunks", "warnings")


@dataclass(slots=True)
class Check:
    """The result of one check."""

    name: str
    state: str
    message: str
    details: list[str] = field(default_factory=list)
    hint: str | None = None

    def as_object(self) -> dict[str, Any]:
        return {
            "check": self.name,
            "state": self.state,
            "message": self.message,
            "details": self.details,
            "hint": self.hint,
        }


def every_check(home: Home, *, deep: bool) -> Iterator[Check]:
    """Run every check, the foundations first."""
    yield _sqlite()
    yield _home(home)
    yield _places(home)
    yield _daemon(home)
    yield _roots()
    facts = fresh.agents()
    yield _agents(facts)
    yield _passed_over(facts)
    if home.index.exists():
        yield from _index(home, deep=deep)
    else:
        yield Check("index", WARN, "not created yet", hint="`sessiond sync` creates it")
    yield _upkeep(home)
    yield _end_to_end()


def _sqlite() -> Check:
    try:
        connection.refuse_old_sqlite()
    except SessError as error:
        return Check("SQLite", FAIL, error.message, hint=error.hint)
    return Check("SQLite", OK, apsw.sqlite_lib_version())


def _home(home: Home) -> Check:
    shown = layout.home_short(str(home.data))
    if not home.data.exists():
        return Check("home", OK, f"{shown} (not created yet)")
    if not home.data.is_dir():
        hint = "set SESSIOND_HOME to a directory"
        return Check("home", FAIL, f"{shown} is not a directory", hint=hint)
    if os.name != "posix":
        return Check("home", OK, shown)
    open_to_others = [
        f"{layout.home_short(str(path))} is {stat.S_IMODE(mode):04o}"
        for path, mode in _modes(home)
        if stat.S_IMODE(mode) & 0o077
    ]
    if not open_to_others:
        return Check("home", OK, f"{shown}, private to you")
    return Check(
        "home",
        WARN,
        f"{shown} is readable by others",
        open_to_others,
        hint=f"`chmod -R go= {shlex.quote(str(home.data))}`",
    )


def _places(home: Home) -> Check:
    """Where to look and what to edit; `sessiond config` shows what it says."""
    places = (home.config_file, home.index, home.log)
    return Check(
        "places",
        OK,
        "the configuration, the index and the log",
        [
            f"{layout.home_short(str(path))}{'' if path.exists() else ' (not there)'}"
            for path in places
        ],
    )


def _modes(home: Home) -> Iterator[tuple[Path, int]]:
    names = [home.data, home.config, home.logs, home.lock, home.log, home.status]
    names += [home.index.with_name(home.index.name + end) for end in ("", "-wal", "-shm")]
    for path in dict.fromkeys(names):
        try:
            yield path, path.lstat().st_mode
        except OSError:
            continue


def close_to_others(home: Home) -> Iterator[Path]:
    """Take others' permissions from what is ours."""
    for path, mode in _modes(home):
        if os.name == "posix" and stat.S_IMODE(mode) & 0o077 and not stat.S_ISLNK(mode):
            path.chmod(stat.S_IMODE(mode) & 0o700)
            yield path


def _daemon(home: Home) -> Check:
    holder = lock.holder(home.lock)
    if problem := fresh.service_problem():
        return Check("daemon", WARN, problem[0], hint=problem[1])
    if holder is None:
        return Check(
            "daemon",
            OK,
            "not running; `sess` updates the index itself",
            hint="`sessiond install` keeps it up to date in the background",
        )
    what = "a sync is" if holder.get("mode") == "sync" else "sessiond is"
    return Check("daemon", OK, f"{what} running (pid {holder.get('pid', 'unknown')})")


def _roots() -> Check:
    roots = fresh.roots()
    if not roots:
        return Check("roots", FAIL, "cannot list transcript directories", hint="`sessiond sync`")
    present = [root for root in roots if os.path.isdir(root)]
    if present:
        details = [layout.home_short(root) for root in present]
        return Check("roots", OK, f"{len(present)} of {len(roots)} exist", details)
    return Check("roots", WARN, "none exists", hint="`sess demo` works without them")


def _agents(facts: list[dict[str, Any]]) -> Check:
    """Which agents are on this machine, and which of them are not read."""
    here = [agent for agent in facts if agent["found"]]
    read = [agent["title"] for agent in here if agent["agent"] and not agent["excluded"]]
    details = [
        *(f"{agent['title']}: excluded by config.toml" for agent in here if agent.get("excluded")),
        *(f"{agent['title']}: not known to sessiond" for agent in here if agent["agent"] is None),
    ]
    message = f"{', '.join(read)} on this machine" if read else "none on this machine"
    if details:
        message += f"; {len(details)} not read"
    return Check("agents", OK, message, details, hint="`sessiond agents` says more")


def _passed_over(facts: list[dict[str, Any]]) -> Check:
    """Files in the places of agents that are of no known kind: some may be conversations."""
    places = {place["path"]: place for agent in facts for place in agent["places"]}
    counted, details = 0, []
    for path, place in places.items():
        groups = place.get("unclaimed", ())
        if files := sum(group["files"] for group in groups):
            counted += files
            kinds = ", ".join(
                f"{one['files']:,} {one['ending'] or 'without ending'}" for one in groups
            )
            details.append(f"{layout.home_short(path)}: {kinds}")
    if not counted:
        return Check("unclaimed", OK, "nothing")
    message = f"{counted:,} files in the agents' places that no rule claims"
    hint = "`sessiond agents` names the newest, and what is left out on purpose"
    return Check("unclaimed", OK, message, details[:_MOST_SKIPPED], hint)


# -- the index


def _index(home: Home, *, deep: bool) -> Iterator[Check]:
    try:
        db = connection.open_reader(home.index)
    except SessError as error:
        yield Check("index", FAIL, error.message, hint=error.hint)
        return
    with closing(db):
        size = amounts.size(home.index.stat().st_size)
        yield Check("index", OK, f"opens, {size}, schema {migrate.latest()}")
        try:
            yield _structure(db, deep=deep)
            yield _references(db)
            yield _archive(db) if deep else _missing(db)
            if deep:
                yield _size(db)
            yield _sources(db)
            yield _skipped(db)
            yield _warnings(db)
            yield _calls(db)
        except apsw.Error as error:
            yield Check("structure", FAIL, f"cannot be read: {error}", hint=REPAIR)
            return
    if deep:
        yield _full_text(home)


def _structure(db: apsw.Connection, *, deep: bool) -> Check:
    pragma = "integrity_check" if deep else "quick_check"
    problems = [finding.message for finding in soundness.structure(db, deep=deep)]
    if not problems:
        return Check("structure", OK, f"{pragma} found no damage")
    return Check("structure", FAIL, f"{pragma} found damage", problems[:5], hint=REPAIR)


def _archive(db: apsw.Connection) -> Check:
    """Every archived piece against its checksum."""
    checking = ArchiveCheck(db)
    problems = [finding.message for finding in checking.findings()]
    archive.met.clear()
    pieces = amounts.plural(checking.looked.chunks, "piece")
    if not problems:
        return Check("archive", OK, f"{pieces}, all intact")
    return Check("archive", FAIL, f"{len(problems):,} of {pieces} damaged", problems[:5], REPAIR)


def _missing(db: apsw.Connection) -> Check:
    """Whether every byte that was read has a place in the archive; none is read for it."""
    problems = [finding.message for finding in ArchiveCheck(db).missing()]
    if not problems:
        return Check("archive", OK, "complete (`--deep` verifies every piece)")
    return Check("archive", FAIL, f"{len(problems):,} gaps", problems[:5], REPAIR)


def _size(db: apsw.Connection) -> Check:
    """Where the bytes are; nothing here is a fault."""
    parts = {name: size for name, size in soundness.bytes_by_part(db).items() if size}
    whole, read = sum(parts.values()), soundness.transcript_bytes(db)
    share = f", {whole / read:.2f} times the {amounts.size(read)} that were read" if read else ""
    details = [f"{name} {amounts.size(size)} ({size / whole:.0%})" for name, size in parts.items()]
    return Check("size", OK, f"{amounts.size(whole)}{share}", details)


def _upkeep(home: Home) -> Check:
    """When it was last checked and backed up; advice, not a fault."""
    parts, hints = [], []
    for what, done, command in (
        (upkeep.CHECK, "checked", "sess check"),
        (upkeep.BACKUP, "backed up", "sess backup DIR"),
    ):
        last = upkeep.last(home.data, what)
        if last is None:
            parts.append(f"never {done}")
            hints.append(f"`{command}`")
        elif not last.get("ok"):
            return Check("upkeep", WARN, "the last check found damage", hint=REPAIR)
        else:
            parts.append(f"{done} {amounts.ago(last['at'], round(time.time() * 1000))}")
    hint = f"{' and '.join(hints)} from time to time" if hints else None
    return Check("upkeep", OK, ", ".join(parts), hint=hint)


def _references(db: apsw.Connection) -> Check:
    broken = soundness.broken_references(db)
    if not broken:
        return Check("references", OK, "every reference leads to a row")
    return Check(
        "references",
        FAIL,
        "some rows refer to missing rows",
        broken,
        hint="`sessiond repair` mends this",
    )


def _full_text(home: Home) -> Check:
    try:
        findings = _compared_full_text(home)
    except apsw.Error as error:
        findings = [Finding(soundness.FULL_TEXT, str(error))]
    except SessError as error:
        return Check("full text", WARN, f"not checked: {error.message}", hint=error.hint)
    if findings is None:
        return Check("full text", OK, "not checked while the daemon is running")
    if findings:
        message = findings[0].message
        return Check("full text", FAIL, message, hint="`sessiond repair` mends this")
    return Check("full text", OK, "the index matches the texts")


def _sources(db: apsw.Connection) -> Check:
    states = sources.states(db)
    message = ", ".join(f"{count:,} {state}" for state, count in states.items()) or "none yet"
    details = [
        f"{layout.home_short(source.path)}: {source.error or state}"
        for state in ("unreadable", "parked")
        for source in sources.in_state(db, state, _MOST_EXAMPLES)
    ]
    if states.get("gone"):
        message += " (their sessions are kept)"
    if not details:
        return Check("sources", OK, message)
    return Check("sources", WARN, message, details, hint="`sessiond status` lists all")


def _skipped(db: apsw.Connection) -> Check:
    """What the last walk passed over."""
    places = [f"{layout.home_short(path)}: {reason}" for path, reason in sources.skipped_places(db)]
    if not places:
        return Check("skipped", OK, "nothing")
    more = len(places) - _MOST_SKIPPED
    hint = f"{more:,} more; `sessiond status` lists all" if more > 0 else None
    return Check("skipped", WARN, f"{len(places):,} not read", places[:_MOST_SKIPPED], hint)


def _warnings(db: apsw.Connection) -> Check:
    warnings = sources.warning_counts(db)
    total = sum(count for _, count, _, _ in warnings)
    if not total:
        return Check("records", OK, "all records were understood")
    details = [
        f"{count:,} × {reason}, e.g. {layout.home_short(path)}:{line}"
        for reason, count, path, line in warnings
    ]
    words = f"{amounts.plural(total, 'unusual record')}, all kept"
    return Check("records", WARN, words, details)


def _calls(db: apsw.Connection) -> Check:
    pending, orphans = sources.unmatched_calls(db)
    calls, results = amounts.plural(pending, "call"), amounts.plural(orphans, "result")
    message = f"{calls} without a result, {results} without a call"
    missing = sources.missing_outputs(db)
    if not missing:
        return Check("calls", OK, message)
    files = amounts.plural(len(missing), "file")
    details = [layout.home_short(path) for path in missing[:_MOST_EXAMPLES]]
    message += f", {files} with full outputs never found"
    hint = "of these outputs only what the transcripts say is known"
    return Check("calls", OK, message, details, hint)


# -- end to end


def _end_to_end() -> Check:
    """In a private home, a transcript of each agent must be found by a word in it."""
    word = f"kettle{secrets.token_hex(6)}"
    started = time.monotonic()
    with throw_away() as sandbox:
        wrote = sandbox.run("sessiond.service.agents", "--probe", word)
        search = sandbox.sess("search", word, "--json", "--limit", "0", capture=True)
    took = amounts.duration(round((time.monotonic() - started) * 1000))
    agents = set(wrote.stdout.split())
    read = {json.loads(line)["agent"] for line in search.stdout.splitlines() if word in line}
    if agents and read == agents:
        names = ", ".join(sorted(agents))
        return Check("end to end", OK, f"wrote, indexed and found transcripts of {names} in {took}")
    missing = ", ".join(sorted(agents - read)) or "any agent"
    return Check(
        "end to end",
        FAIL,
        f"a new transcript of {missing} was not found (exit code {search.returncode})",
        [*wrote.stderr.splitlines(), *search.stderr.splitlines()][:5],
        hint="`sess --debug demo` shows more",
    )


# -- `sess check`


Checked = tuple[str, str, list[Finding]]  # name, message, what is wrong


def check_all(home: Home, share: float) -> Iterator[Checked]:
    """What `sess check` does. A damaged database is still read as far as possible."""
    with closing(connection.open_reader(home.index)) as db:
        with progress_line() as progress:
            progress("checking the pages")
            broken = soundness.structure(db)
        pages = [finding for finding in broken if finding.about != soundness.FULL_TEXT]
        yield "pages", "damaged" if pages else "intact", pages
        yield _check_archive(db, share)
        yield _check_rows(db)
    if pages:  # only the writer compares it, and a damaged index is never written to
        yield "full text", "not compared: pages are damaged", []
    else:
        yield _check_full_text(home, [finding for finding in broken if finding not in pages])


def _check_archive(db: apsw.Connection, share: float) -> Checked:
    checking = ArchiveCheck(db, share)
    findings: list[Finding] = []
    with progress_line() as progress:

        def draw(done: int, of: int) -> None:
            progress(f"checking the archive, {done:,} of {of:,} pieces")

        try:
            findings.extend(checking.findings(draw))
        except apsw.Error as error:
            findings.append(Finding(soundness.STRUCTURE, f"cannot be read further: {error}"))
    archive.met.clear()  # it is in the findings
    looked = checking.looked
    pieces = amounts.plural(looked.chunks, "piece")
    if looked.chunks < looked.of_chunks:
        pieces += f" of {looked.of_chunks:,}"
    message = (
        f"{pieces}, {amounts.size(looked.bytes)} read,"
        f" {amounts.plural(looked.files, 'unchanged file')} compared"
    )
    if looked.accepted:
        message += f"; {amounts.size(looked.accepted)} are lost, which was accepted"
    return "archive", message, findings


def _check_rows(db: apsw.Connection) -> Checked:
    try:
        findings = soundness.rows(db)
    except apsw.Error as error:
        findings = [Finding(soundness.STRUCTURE, f"cannot be read: {error}")]
    return "rows", "references and sums", findings


def _check_full_text(home: Home, findings: list[Finding]) -> Checked:
    if findings:
        return "full text", "damaged", findings
    try:
        compared = _compared_full_text(home)
    except (apsw.Error, SessError) as error:
        return "full text", "not compared", [Finding(soundness.STRUCTURE, str(error))]
    if compared is None:
        message = "sound in itself; not compared with the texts while the daemon is running"
        return "full text", message, []
    return "full text", "compared with the texts", compared


def _compared_full_text(home: Home) -> list[Finding] | None:
    """FTS5 compares its index with the texts only in a statement that may write.

    None while the daemon is running.
    """
    held = lock.acquire(home.lock)
    if held is None:
        return None
    try:
        with closing(connection.open_writer(home.index)) as db:
            return soundness.full_text(db)
    finally:
        held.release()


# -- a report for others


def write_bundle(path: str, checks: Sequence[Check]) -> None:
    """Versions, checks and counts of an installation, and no content."""
    report = {
        "sessiond": __version__,
        "python": sys.version,
        "system": platform.platform(),
        "sqlite": apsw.sqlite_lib_version(),
        "libraries": {name: _version(name) for name in _LIBRARIES},
        "checks": [
            {"check": check.name, "state": check.state, **_message_or_count(check)}
            for check in checks
        ],
        "index": _counts_of_index(),
    }
    text = json.dumps(report, indent=1) + "\n"
    with outputs.new_file(path, hint="name another file") as file:
        file.write(text.encode())
    say(f'wrote "{path}"; it has no transcript content, but look at it before you send it')


def _message_or_count(check: Check) -> dict[str, Any]:
    """Details name files, so only their number is told."""
    private = check.name in ("home", "roots", "sources", "skipped", "records", "archive")
    return {"details": len(check.details)} if private else {"message": check.message}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except LookupError:
        return None


def _counts_of_index() -> dict[str, Any]:
    home = paths.home()
    try:
        with closing(connection.open_reader(home.index)) as db:
            rows = {table: db.execute(f"SELECT count(*) FROM {table}").get for table in _TABLES}
            states = db.execute("SELECT agent, kind, state, count(*) FROM sources GROUP BY 1, 2, 3")
            reasons = db.execute("SELECT reason, sum(times) FROM warnings GROUP BY 1")
            return {
                "bytes": home.index.stat().st_size,
                "rows": rows,
                "sources": [list(row) for row in states],
                "warnings": {str(reason): count for reason, count in reasons},
            }
    except (SessError, apsw.Error, OSError) as error:
        return {"error": str(error)}
