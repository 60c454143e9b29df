"""A session as one Markdown document that any forge renders, or several as a tree of notes."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from html import escape
from typing import Any, BinaryIO

from sess_cli.export import ansi, files, forge, json_values, meaning
from sess_cli.export.files import Failures, all_or_nothing
from sess_cli.export.json_values import as_json
from sess_cli.export.notice_names import NAMES
from sess_cli.export.story import DAMAGED, Item, Story
from sess_cli.render import amounts, layout, tallies
from sess_cli.render.markdown import code, escaped, fenced, in_html, prose, quoted, shortened
from sess_common import times
from sess_common.errors import SessError
from sess_common.escape import safe
from sess_schema import edits, kinds, labels, outputs
from sess_schema.queries.sessions import one_line

_HEADING = 80
_SUMMARY = 100
_BOX = {"done": "x", "doing": "~", "open": " "}
_NO_PROJECT = "No project"
_LONGEST_TITLE = 80  # characters of a title in a name
# Not allowed in names on some system, or with a meaning in links.
_SPECIAL = re.compile(r"[\x00-\x1f\x7f*\"\\/<>:|?#^\[\]]+")
_NOT_IN_TAGS = re.compile(r"[^\w-]+")


def write(
    story: Story,
    out: BinaryIO,
    *,
    full: bool = False,
    utc: bool = False,
    repository: forge.Repository | None = None,
) -> None:
    """`full` leaves nothing out; otherwise the middle of long inputs and outputs is cut."""
    document = _Document(full=full, utc=utc, repository=repository)
    out.writelines(
        line.encode("utf-8", "backslashreplace") + b"\n" for line in document.lines(story)
    )


def write_all(
    stories: Sequence[Story],
    out: BinaryIO,
    failures: Failures,
    *,
    full: bool = False,
    utc: bool = False,
) -> None:
    """Several sessions, one after the other, below a list of them."""
    lines = [f"# {amounts.plural(len(stories), 'session')}", ""]
    for story in stories:
        when = amounts.period(story.row.started, story.row.ended, utc=utc)
        lines.append(f"- {when}: {escaped(story.title)} ({escaped(story.row.agent)})")
    out.writelines(line.encode("utf-8", "backslashreplace") + b"\n" for line in lines)
    for story in stories:
        out.write(b"\n---\n\n")
        with failures.noted(story), all_or_nothing(out) as part:
            write(story, part, full=full, utc=utc)
        if failures.why is not None:
            name, said = code(story.row.session), escaped(one_line(failures.why))
            out.write(f"*Session {name} could not be exported: {said}*\n".encode())


class _Document:
    """One session, line by line."""

    def __init__(self, *, full: bool, utc: bool, repository: forge.Repository | None) -> None:
        self._full = full
        self._utc = utc
        self._repository = repository

    def lines(self, story: Story) -> Iterator[str]:
        yield from _block(f"# {escaped(story.title)}")
        yield from self._facts(story)
        yield ""
        prompts = 0
        for item in story.items():
            if item.type == "user":
                prompts += 1
                words = layout.cut(one_line(item.text[: 100 * _HEADING]), _HEADING)
                yield from _block(f"## {prompts}. {escaped(words)}")
            yield from self._item(item)
        for child in story.loose:
            yield from self._agent(child)

    def _facts(self, story: Story) -> Iterator[str]:
        row, total = story.row, story.total
        models = ", ".join(map(code, story.models))
        yield f"- session {code(row.session)} of {escaped(row.agent)}" + (
            f", {models}" if models else ""
        )
        place = f"project {code(story.project)}" if story.project else "no project"
        yield f"- {place}" + (f" on {code(story.branch)}" if story.branch else "")
        when = amounts.period(row.started, row.ended, utc=self._utc)
        zone = " UTC" if self._utc and row.started is not None else ""
        spent = amounts.spans(story.duration_ms, story.numbers.active_ms)
        yield f"- {when}{zone}{f' ({spent})' if spent else ''}"
        outcomes = amounts.outcomes(total.tool_errors, total.tool_denied)
        yield (
            f"- {amounts.plural(total.prompts, 'prompt')},"
            f" {amounts.plural(total.tool_calls, 'tool call')}{f', {outcomes}' if outcomes else ''}"
        )
        if total.tokens:
            cost = f", {tallies.money(total.cost_nano)}" if total.cost_nano else ""
            yield f"- {tallies.tokens(total.tokens)}{cost}"

    def _item(self, item: Item) -> Iterator[str]:
        """The event's blocks, each followed by an empty line."""
        if item.is_title:
            return
        if item.type == "user":
            shown = json_values.pretty(item.text)
            yield from quoted(item.text) if shown is None else fenced(shown, "json")
        elif item.type == "assistant":
            yield from prose(item.text)
            yield ""
        elif item.type == "thinking":
            yield from self._folded("Thinking", quoted(item.text))
        elif item.type == "tool_use":
            yield from self._call(item)
        elif item.type == "summary":
            yield from self._folded("Summary", quoted(item.text))
        elif item.label == labels.COMPACT:
            yield from _block(f"*{escaped(one_line(item.text))}*")
        elif item.label in labels.MESSAGES:
            yield from quoted(item.text)
        elif item.label in labels.UNREADABLE:
            yield from _block(f"*{NAMES[item.label]}*")
            yield from fenced(self._shown(item.text))
        elif item.unknown is not None and (shown := json_values.readable(item.unknown)) is not None:
            head = in_html(item.label or "record")
            yield from self._folded(head, fenced(self._shown(shown), "json"))
        if item.damaged:
            yield from _block(f"*{DAMAGED}*")
        if item.pictures:
            yield from _block(f"*{amounts.plural(len(item.pictures), 'image')}*")

    def _call(self, item: Item) -> Iterator[str]:
        about = amounts.outcome(item.status)
        if item.duration_ms is not None:
            about += f", {amounts.duration(item.duration_ms)}"
        tool = in_html(item.tool or "unknown tool")
        said = escape(layout.cut(one_line(safe(item.summary)), _SUMMARY)) if item.summary else ""
        head = f"<b>{tool}</b> {f'<code>{said}</code> ' if said else ''}{escape(about)}"
        yield from self._folded(head, self._inside(item))
        for commit in item.commits:
            sha = code(commit.sha[:10])
            link = self._repository.commit(commit.sha) if self._repository else None
            yield from _block(
                f"- commit {f'[{sha}]({link})' if link else sha} {escaped(commit.subject)}"
            )
        if item.agent is not None:
            yield from self._agent(item.agent)

    def _inside(self, item: Item) -> Iterator[str]:
        kind = meaning.kind_of(item)
        changes = _changes(item)
        if kind == meaning.TODO and meaning.todos(item):
            for todo in meaning.todos(item):
                yield f"- [{_BOX[todo.state]}] {escaped(todo.text)}"
            yield ""
        elif changes:
            yield from fenced(self._shown(changes), "diff")
        elif kind == "shell":
            yield from fenced(self._shown(meaning.command(item)), "sh")
        elif kind == "write":
            yield from fenced(self._shown(meaning.written(item) or ""))
        else:
            yield from fenced(self._shown(_arguments(item)))
        output = ansi.plain(item.output)
        if output.strip():
            yield from _block("Output:")
            yield from fenced(self._shown(output))

    def _agent(self, story: Story) -> Iterator[str]:
        kind = story.row.agent_type or "subagent"
        head = f"<b>{in_html(kind)}</b> {in_html(story.title)}"
        inside = (line for item in story.items() for line in self._nested(item))
        yield from self._folded(head, inside)

    def _nested(self, item: Item) -> Iterator[str]:
        if item.type == "user":
            yield from _block("**Prompt**")
        yield from self._item(item)

    def _shown(self, text: str) -> str:
        return text if self._full else shortened(text)

    @staticmethod
    def _folded(head: str, inside: Iterator[str]) -> Iterator[str]:
        yield from _block(f"<details><summary>{head}</summary>")
        yield from inside
        yield from _block("</details>")


def _block(line: str) -> tuple[str, str]:
    """A line that stands alone."""
    return line, ""


def _changes(item: Item) -> str:
    """An edit as a diff, with the file's line numbers if the agent recorded them."""
    if patch := meaning.patch_text(item):
        return patch
    if meaning.kind_of(item) == kinds.WRITE and not edits.hunks_of(item.edits):
        return ""
    lines = (line for edit in edits.shown(item.edits) for line in edits.lines(edit))
    return "\n".join(f"{line.sign} {line.text}" for line in lines)


def _arguments(item: Item) -> str:
    return "\n".join(
        f"{name}: {value if isinstance(value, str) else as_json(value).decode()}"
        for name, value in meaning.arguments(item)
    )


# -- a tree of notes, as Obsidian reads it: a folder per project
#
# Every name and every value is from a `Story`, so it is masked already.


def write_tree(
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
            note = _free_name(_note_name(story, utc=utc), taken)
            path = os.path.join(folder, f"{note}.md")
            with outputs.new_file(path) as out:
                out.write(_front_matter(_front_facts(story, name, utc=utc)))
                write(story, out, full=full, utc=utc)
            _remove_older(folder, note)
            count += 1
    index = os.path.join(folder, f"{name}.md")
    with outputs.new_file(index) as out:
        out.write(_front_matter({"project": project, "tags": ["sessiond"]}))
        lines = [f"# {name}", "", *(f"- [[{name}/{note}|{note}]]" for note in _notes(folder, name))]
        out.write(("\n".join(lines) + "\n").encode("utf-8", "backslashreplace"))
    return count


def _notes(folder: str, index: str) -> Iterator[str]:
    """The notes of this and earlier runs, newest first."""
    for file in sorted(os.listdir(folder), reverse=True):
        note, extension = os.path.splitext(file)
        if extension == ".md" and note != index and outputs.is_export(os.path.join(folder, file)):
            yield note


def _remove_older(folder: str, note: str) -> None:
    """A session whose title has changed has a note under its old one."""
    ending = note.rpartition(" ")[2]
    for other in [*_notes(folder, note)]:
        if other.rpartition(" ")[2] == ending:
            os.unlink(os.path.join(folder, f"{other}.md"))


def _folders(projects: Iterable[str]) -> dict[str, str]:
    """A name for each project: its last part, with a hash where several share one."""
    short = {
        path: _file_name(os.path.basename(path.rstrip("/\\"))) or _NO_PROJECT for path in projects
    }
    uses = Counter(name.casefold() for name in short.values())
    return {
        path: name if uses[name.casefold()] == 1 else f"{name} {_hash(path)[:6]}"
        for path, name in short.items()
    }


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()


def _note_name(story: Story, *, utc: bool) -> str:
    """Date, title and a part of the ID, which tells sessions with the same title apart."""
    words = (_date(story, utc=utc), _file_name(story.title), _hash(story.row.session)[:8])
    return " ".join(filter(None, words))


def _free_name(name: str, taken: set[str]) -> str:
    while name.casefold() in taken:
        name += "x"
    taken.add(name.casefold())
    return name


def _date(story: Story, *, utc: bool) -> str:
    started = story.row.started
    return "" if started is None else f"{times.local(started, utc=utc):%Y-%m-%d}"


def _file_name(text: str) -> str:
    """A text as a part of a file name that every system and Obsidian take."""
    plain = " ".join(_SPECIAL.sub(" ", safe(text)).split())
    while len(plain.encode("utf-8", "replace")) > 2 * _LONGEST_TITLE or len(plain) > _LONGEST_TITLE:
        plain = plain[:-1]
    return plain.strip(" .~")


def _front_facts(story: Story, folder: str, *, utc: bool) -> dict[str, Any]:
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


def _front_matter(facts: dict[str, Any]) -> bytes:
    """Front matter; every value is JSON, which is YAML too."""
    lines = [
        f"{name}: {json.dumps(_harmless(value), ensure_ascii=False)}"
        for name, value in facts.items()
        if value is not None
    ]
    return outputs.NOTE + ("\n".join([*lines, "---", "", ""])).encode("utf-8", "backslashreplace")


def _harmless(value: Any) -> Any:
    if isinstance(value, list):
        return [*map(_harmless, value)]
    return safe(value) if isinstance(value, str) else value
