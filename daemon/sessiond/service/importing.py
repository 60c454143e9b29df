"""Takes files from anywhere: recognises their agent by content, and reads and follows them.

`sess import FILE` and `sessiond sync FILE` do it. A file may be an address: the only use of the
network.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from typing import Any
from urllib.parse import unquote, urlsplit

from sess_common import lock, paths, program, requests, upkeep
from sess_common.errors import Exit, SessError
from sess_common.escape import safe
from sess_common.program import counted
from sess_common.progress import Bar
from sess_schema import __version__
from sess_schema.connection import open_reader
from sessiond import config
from sessiond.reading import tail, territory
from sessiond.reading.territory import KINDS, Handed, Territory, claims_by_name, head_of, recognised
from sessiond.service import one_pass, pass_report
from sessiond.sourcekit.base import Source
from sessiond.sources import all_sources

STDIN = "-"
PATIENCE = 60.0  # seconds to wait for a running daemon
_LOOK = 0.05
_MOST_SHOWN = 10
_BLOCK = 1 << 20
LARGEST_DOWNLOAD = 256 << 20
DOWNLOAD_TIMEOUT = 30.0
_DOWNLOAD_BLOCK = 1 << 16
_PROTOCOLS = ("http", "https")


def sync_named(targets: Sequence[str], *, agent: str | None, as_json: bool, quiet: bool) -> int:
    """One pass over the targets; a running daemon gets what is named."""
    if not any(map(is_there, targets)):
        raise no_such_file(targets[0])
    home = paths.home()
    if agent is None and lock.daemon_runs(home.lock):
        folders = [one for one in targets if os.path.isdir(os.path.expanduser(one))]
        files = [one for one in targets if one not in folders]
        code = run(files, as_json=as_json, quiet=quiet)
        if folders:
            absolute = [os.path.abspath(os.path.expanduser(one)) for one in folders]
            facts = _read_by_daemon(home, absolute, show=not as_json and not quiet)
            code = max(code, pass_report.tell(facts, as_json=as_json, quiet=quiet, named=True))
        return code
    if agent is not None or STDIN in targets:
        return run(targets, agent=agent, as_json=as_json, quiet=quiet)
    follow(home, all_sources(config.load(home.config_file)), targets)
    return one_pass.run(targets, as_json=as_json, quiet=quiet)


def _read_by_daemon(home: paths.Home, folders: Sequence[str], *, show: bool) -> pass_report.Facts:
    """What it read, with its progress while it does."""
    with Bar(show=show) as bar:

        def draw() -> None:
            status = upkeep.writer_status(home.status)
            bar.update(status.get(upkeep.DONE) or 0, status.get(upkeep.TOTAL) or 0)

        return requests.ask(home, "read", meanwhile=draw, paths=folders)


def run(
    targets: Sequence[str],
    *,
    agent: str | None = None,
    as_json: bool = False,
    quiet: bool = False,
) -> int:
    """Import each target; the first that fails ends it."""
    home = paths.home()
    home.create()
    sources = all_sources(config.load(home.config_file))
    if agent is not None:
        _check_agent(sources, agent)
    code: int = Exit.OK
    for target in targets:
        file = _hand_over(home, sources, target, agent)
        if lock.daemon_runs(home.lock):
            done = _wait(home, file)
        else:
            done = one_pass.run([file.path], quiet=True) in (Exit.OK, Exit.SKIPPED_SOME)
        code = max(code, _report(home, file, done=done, as_json=as_json, quiet=quiet))
    return code


def follow(home: paths.Home, sources: Sequence[Source], targets: Sequence[str]) -> None:
    """Also read the growth of files that are named once, where it is clear whose they are."""
    for target in targets:
        path = tail.log_name(os.path.realpath(os.path.expanduser(target)))
        if os.path.isfile(tail.log_file(path)) and len(recognised(sources, path)) == 1:
            _hand_over(home, sources, target, None)


def _hand_over(
    home: paths.Home, sources: Sequence[Source], target: str, agent: str | None
) -> Handed:
    path = _path_of(home, target)
    try:
        source, kind = _recognise(sources, path, agent, _called(target))
    except SessError:
        if _is_saved(target) and path not in [one.path for one in territory.handed_files(home)]:
            territory.throw_away_handed(path)
        raise
    file = Handed(path, source.agent, kind)
    around = Territory(sources).place_of(path)
    followed = around is not None and (source, kind) in claims_by_name(around.sources, path)
    if not followed and file not in territory.handed_files(home):
        territory.follow_handed(home, file)
    return file


def _path_of(home: paths.Home, target: str) -> str:
    """The file on this machine, after saving one that is not."""
    if not is_there(target):
        raise no_such_file(target)
    if target == STDIN:
        return territory.save_handed(
            home, "stdin", iter(lambda: sys.stdin.buffer.read(_BLOCK), b"")
        )
    if is_address(target):
        return territory.save_handed(home, name_in_address(target), download(target))
    path = os.path.realpath(os.path.expanduser(target))
    if os.path.isdir(path):
        raise SessError(
            f'"{target}" is a directory',
            hint="import its files, or add it to `roots` in config.toml",
            code=Exit.USAGE,
        )
    return tail.log_name(path)


def _is_saved(target: str) -> bool:
    """Whether it is no file yet, and is made one."""
    return target == STDIN or is_address(target)


def _called(target: str) -> str:
    return "standard input" if target == STDIN else f'"{target}"'


def is_there(target: str) -> bool:
    if _is_saved(target):
        return True
    path = os.path.realpath(os.path.expanduser(target))
    return os.path.exists(tail.log_file(tail.log_name(path)))


def no_such_file(target: str) -> SessError:
    return SessError(
        f'no such file: "{target}"',
        hint="give a file, an address (https://...), or - for standard input",
        code=Exit.NOTHING_FOUND,
    )


def _recognise(
    sources: Sequence[Source], path: str, agent: str | None, called: str
) -> tuple[Source, str]:
    candidates = [one for one in sources if agent in (None, one.agent)]
    claims = recognised(candidates, path)
    if len(claims) == 1:
        return claims[0]
    if agent is not None and (kind := candidates[0].kind_if_ours(path, head_of(path))) in KINDS:
        return candidates[0], kind
    if claims:
        names = ", ".join(sorted(source.agent for source, _ in claims))
        raise SessError(
            f"{called} may be of several agents: {names}",
            hint="choose one with --agent",
            code=Exit.USAGE,
        )
    known = agent or "any agent that sessiond knows"
    raise SessError(
        f"{called} is {'not a file of ' + known if head_of(path) else 'empty'}",
        hint="`sessiond agents` lists the agents and what is read of each",
        code=Exit.NOTHING_FOUND,
    )


def _check_agent(sources: Sequence[Source], agent: str) -> None:
    known = sorted(source.agent for source in sources)
    if agent not in known:
        raise SessError(
            f'unknown agent "{agent}"', hint=f"one of: {', '.join(known)}", code=Exit.USAGE
        )


def _wait(home: paths.Home, file: Handed) -> bool:
    """Whether the running daemon has read the file to its end, or cannot."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and lock.daemon_runs(home.lock):
        # A daemon that has just started may still be making the index.
        with suppress(SessError), closing(open_reader(home.index)) as db:
            for size, state in db.execute(
                "SELECT size, state FROM sources WHERE path = ?", (file.path,)
            ):
                if state != "live" or size == os.path.getsize(tail.log_file(file.path)):
                    return True
        time.sleep(_LOOK)
    return False


def _report(home: paths.Home, file: Handed, *, done: bool, as_json: bool, quiet: bool) -> int:
    with closing(open_reader(home.index)) as db:
        sessions = list(
            db.execute(
                "SELECT DISTINCT s.native_id, coalesce(s.title, s.first_prompt) FROM sources p"
                " JOIN records t ON t.source_id = p.id JOIN sessions s ON s.id = t.session_id"
                " WHERE (p.path = ?1 OR p.part_of = (SELECT id FROM sources WHERE path = ?1))"
                " AND t.retired = 0 AND (s.prompts > 0 OR s.tool_calls > 0 OR EXISTS (SELECT 1"
                " FROM events e WHERE e.session_id = s.id AND e.type NOT IN ('system', 'summary')))"
                " ORDER BY s.started_at, s.native_id",
                (file.path,),
            )
        )
        problem = db.execute("SELECT error FROM sources WHERE path = ?", (file.path,)).get
    if as_json:
        facts = {
            "file": file.path,
            "agent": file.agent,
            "sessions": [native_id for native_id, _ in sessions],
            "read": done,
            "error": problem,
        }
        sys.stdout.write(json.dumps(facts) + "\n")
    elif not quiet:
        sys.stdout.writelines(_lines(file, sessions, problem, done=done))
    if done and not sessions and not problem:
        return Exit.NOTHING_FOUND
    return Exit.OK if sessions and not problem else Exit.SKIPPED_SOME


def _lines(
    file: Handed, sessions: Sequence[tuple[str, str | None]], problem: str | None, *, done: bool
) -> Iterator[str]:
    path = safe(file.path)
    if problem:
        yield f'"{path}" could not be read: {safe(problem)}\n'
    elif not done:
        yield f'handed "{path}" to the running daemon, which has not read it yet\n'
    elif not sessions:
        yield f'no conversations in "{path}", read as a file of {file.agent}\n'
        if file.kind == "database":
            yield f"hint: {file.agent} may hold what it has not saved yet; quit it and try again\n"
    else:
        yield f'{counted(len(sessions), "session")} of {file.agent} in "{path}"\n'
    for native_id, title in sessions[:_MOST_SHOWN]:
        yield f"  {safe(native_id)}  {safe(title or '')}".rstrip() + "\n"
    if len(sessions) > _MOST_SHOWN:
        yield f"  and {len(sessions) - _MOST_SHOWN} more\n"


# -- from an address


def is_address(target: str) -> bool:
    if target.partition("://")[0].lower() not in _PROTOCOLS or "://" not in target:
        return False
    try:
        urlsplit(target)
    except ValueError as error:
        raise SessError(f'"{target}" is not an address: {error}') from None
    return True


def name_in_address(address: str) -> str:
    return unquote(urlsplit(address).path).rstrip("/").rpartition("/")[2] or "download"


def download(address: str) -> Iterator[bytes]:
    """The bytes at an address; says which host is asked before it is asked."""
    _announce(address)
    request = urllib.request.Request(  # noqa: S310 - the protocol was checked
        address, headers={"User-Agent": f"sessiond/{__version__}"}
    )
    opener = urllib.request.build_opener(_Redirects)
    try:
        with opener.open(request, timeout=DOWNLOAD_TIMEOUT) as answer:
            received = 0
            while piece := answer.read(_DOWNLOAD_BLOCK):
                received += len(piece)
                if received > LARGEST_DOWNLOAD:
                    raise _download_failed(address, f"is larger than {LARGEST_DOWNLOAD >> 20} MiB")
                yield piece
    except urllib.error.HTTPError as error:
        with error:  # it holds the connection
            why = f"the server answered {error.code} {error.reason}"
        raise _download_failed(address, why) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise _download_failed(address, str(reason) or type(error).__name__) from error


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a redirect only to the web, and names the host first."""

    def redirect_request(self, *given: Any) -> Any:
        asked, target = given[0].full_url, given[-1]
        unsafe = asked.startswith("https:") and not target.startswith("https:")
        if unsafe or not is_address(target):
            raise urllib.error.URLError(f"refused a redirect to {target}")
        _announce(target)
        return super().redirect_request(*given)


def _announce(address: str) -> None:
    program.say(f"downloading from {urlsplit(address).hostname}")


def _download_failed(address: str, why: str) -> SessError:
    return SessError(
        f'cannot download "{address}": {why}',
        hint="save the file yourself and import it from disk",
        code=Exit.PROGRAM_FAILED,
    )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="sess import")
    parser.add_argument("targets", nargs="+")
    parser.add_argument("--agent")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    try:
        return run(options.targets, agent=options.agent, as_json=options.json)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except Exception as error:
        return program.explain("sess", error)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
