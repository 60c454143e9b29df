"""Sessions as a tree of Markdown notes, as Obsidian reads it: a folder per project.

Every name and every value is from a `Story`, so it is masked already.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

from sess_cli.export import files, markdown
from sess_cli.export.failures import Failures
from sess_cli.export.story import Story
from sess_common import times
from sess_common.errors import SessError
from sess_common.escape import safe

_NO_PROJECT = "No project"
_LONGEST = 80  # characters of a title in a name
# Not allowed in names on some system, or with a meaning in links.
_SPECIAL = re.compile(r"[\x00-\x1f\x7f*\"\\/<>:|?#^\[\]]+")
_NOT_IN_TAGS = re.compile(r"[^\w-]+")


def write(
    stories: Iterable[Story],
    folder: str,
    failures: Failures,
    *,
    full: bool = False,
    utc: bool = False,
) -> int:
    """Write a note per session and an index per project; return the number of notes."""
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise SessError(f'"{folder}" is not a directory', hint="name another with `--tree`")
    projects: dict[str, list[Story]] = {}
    for story in stories:
        projects.setdefault(story.project, []).append(story)
    names = _folders(projects)
    count = 0
    for project, own in projects.items():
        inside = os.path.join(folder, names[project])
        files.make_folder(inside)
        count += _write_project(inside, names[project], project, own, failures, full=full, utc=utc)
    return count


def _write_project(
    folder: str,
    name: str,
    project: str,
    stories: list[Story],
    failures: Failures,
    *,
    full: bool,
    utc: bool,
) -> int:
    taken = {name.casefold()}
    count = 0
    for story in stories:
        with failures.noted(story):
            note = _free(_note_name(story, utc=utc), taken)
            path = os.path.join(folder, f"{note}.md")
            files.check_replacing(path, force=False)
            with files.new_file(path) as out:
                out.write(_front(_facts(story, name, utc=utc)))
                markdown.write(story, out, full=full, utc=utc)
            _remove_older(folder, note)
            count += 1
    index = os.path.join(folder, f"{name}.md")
    files.check_replacing(index, force=False)
    with files.new_file(index) as out:
        out.write(_front({"project": project, "tags": ["sessiond"]}))
        lines = [f"# {name}", "", *(f"- [[{name}/{note}|{note}]]" for note in _notes(folder, name))]
        out.write(("\n".join(lines) + "\n").encode("utf-8", "backslashreplace"))
    return count


def _notes(folder: str, index: str) -> Iterator[str]:
    """The notes of this and earlier runs, newest first."""
    for file in sorted(os.listdir(folder), reverse=True):
        note, extension = os.path.splitext(file)
        if extension == ".md" and note != index and files.is_export(os.path.join(folder, file)):
            yield note


def _remove_older(folder: str, note: str) -> None:
    """A session whose title has changed has a note under its old one."""
    ending = note.rpartition(" ")[2]
    for other in [*_notes(folder, note)]:
        if other.rpartition(" ")[2] == ending:
            os.unlink(os.path.join(folder, f"{other}.md"))


def _folders(projects: Iterable[str]) -> dict[str, str]:
    """A name for each project: its last part, with a hash where several share one."""
    short = {one: _name(os.path.basename(one.rstrip("/\\"))) or _NO_PROJECT for one in projects}
    shared = [name.casefold() for name in short.values()]
    return {
        one: name
        if shared.count(name.casefold()) == 1
        else f"{name} {sha256(one.encode('utf-8', 'replace')).hexdigest()[:6]}"
        for one, name in short.items()
    }


def _note_name(story: Story, *, utc: bool) -> str:
    """Date, title and a part of the ID, which tells sessions with the same title apart."""
    session = sha256(story.row.session.encode("utf-8", "replace")).hexdigest()[:8]
    return " ".join(filter(None, (_date(story, utc=utc), _name(story.title), session)))


def _free(name: str, taken: set[str]) -> str:
    while name.casefold() in taken:
        name += "x"
    taken.add(name.casefold())
    return name


def _date(story: Story, *, utc: bool) -> str:
    started = story.row.started
    return "" if started is None else f"{times.local(started, utc=utc):%Y-%m-%d}"


def _name(text: str) -> str:
    """A text as a part of a file name that every system and Obsidian take."""
    plain = " ".join(_SPECIAL.sub(" ", safe(text)).split())
    while len(plain.encode("utf-8", "replace")) > 2 * _LONGEST or len(plain) > _LONGEST:
        plain = plain[:-1]
    return plain.strip(" .~")


def _facts(story: Story, folder: str, *, utc: bool) -> dict[str, Any]:
    row, total = story.row, story.total
    tags = ["sessiond", f"agent/{_tag(row.agent)}", f"project/{_tag(folder)}"]
    return {
        "title": story.title,
        "date": _date(story, utc=utc) or None,
        "agent": row.agent,
        "project": story.project or None,
        "branch": story.branch or None,
        "models": story.models,
        "session": story.cleaned(row.session),
        "prompts": total.prompts,
        "tool_calls": total.tool_calls,
        "tokens": total.tokens,
        "cost": round(total.cost_nano / 1e9, 4) if total.cost_nano else None,
        "tags": tags,
    }


def _tag(text: str) -> str:
    return _NOT_IN_TAGS.sub("-", text).strip("-").casefold() or "none"


def _front(facts: dict[str, Any]) -> bytes:
    """Front matter; every value is JSON, which is YAML too."""
    lines = [
        f"{name}: {json.dumps(_harmless(value), ensure_ascii=False)}"
        for name, value in facts.items()
        if value is not None
    ]
    return files.NOTE + ("\n".join([*lines, "---", "", ""])).encode("utf-8", "backslashreplace")


def _harmless(value: Any) -> Any:
    if isinstance(value, list):
        return [_harmless(one) for one in value]
    return safe(value) if isinstance(value, str) else value
