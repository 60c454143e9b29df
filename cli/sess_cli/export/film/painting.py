"""One event as a scene: a prompt, an answer, a command with its output, a small diff."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from sess_cli.export import json_values, meaning
from sess_cli.export.film import rows
from sess_cli.export.film.rows import Look, Row
from sess_cli.export.film.scenes import Body, Call, Scene, ending
from sess_cli.export.story import Item, Story
from sess_cli.render import amounts, layout
from sess_common.differ import DiffLine
from sess_schema import edits, labels
from sess_schema.calls import Todo

# Rows kept of each; pacing may show fewer.
PROMPT, COMMAND, ANSWER, FINAL, THOUGHT, FAILURE = 14, 6, 14, 28, 4, 5
DIFF, WRITTEN, TODOS, SUBAGENT = 16, 10, 12, 9
_SHOWN_NOTICES = labels.MESSAGES | {
    labels.COMPACT, labels.INTERRUPTED, labels.API_ERROR, labels.BASH_OUTPUT, labels.COMMAND_OUTPUT,
}  # fmt: skip
_END = 200_000  # characters read at each end of an output
_PROMPT = Look("user", bold=True)
_OUTPUT = Look("dim")
_ERROR = Look("red")
_BOLD = Look(bold=True)
_TOOL_NAMES = {"todo": "Todos", "agent": "Agent"}
_SCENES = frozenset({"shell", "edit", "write", "todo", "agent", "read", "search"})
_DIFF_LOOKS = {
    "-": (Look(bg="removed"), Look(bg="removed-word", bold=True)),
    "+": (Look(bg="added"), Look(bg="added-word", bold=True)),
}
_SIGN_LOOKS = {"-": Look("red", "removed", bold=True), "+": Look("green", "added", bold=True)}
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@")


class Painter:
    """Draws the events of one session for a screen of `columns`."""

    def __init__(self, story: Story, columns: int, max_output: int) -> None:
        self._story = story
        self._columns = columns
        self._room = columns - 4
        self._max_output = max_output
        self._todos: list[Todo] = []

    def scene(self, item: Item, chapter: int) -> Scene | None:
        """None for events that mean nothing to an outsider."""
        scene = Scene(item.type, item.id, item.ts, chapter, failed=item.failed)
        if item.type == "user":
            self._prompt(item, scene)
        elif item.type == "assistant":
            self._answer(item, scene)
        elif item.type == "thinking":
            self._thought(item, scene)
        elif item.type == "tool_use":
            self._call(item, scene)
        elif item.is_title or not self._notice(item, scene):
            return None
        return scene if scene.head.rows or scene.body.rows else None

    def commits(self, item: Item, chapter: int) -> Scene | None:
        """The commits of a call, as a separate scene."""
        if not item.commits:
            return None
        scene = Scene("commit", item.id, item.ts, chapter)
        for commit in item.commits[:5]:
            branch = f" {rows.one_line(commit.branch)}" if commit.branch else ""
            line = rows.row(
                ("● commit ", Look("mauve", bold=True)),
                (rows.one_line(commit.sha)[:10], Look("yellow")),
                (branch, Look("teal")),
                (f"  {rows.one_line(commit.subject)}", _BOLD),
            )
            scene.head.rows.append(rows.cut(line, self._room))
        return scene

    # -- the conversation

    def _prompt(self, item: Item, scene: Scene) -> None:
        scene.kind = "prompt"
        scene.typed = True
        text = json_values.pretty(item.text) or item.text.strip("\n").rstrip()
        if not text and not item.pictures:
            return
        lines: list[Row] = []
        for line in text[:8000].split("\n"):
            # Wider than the lines of an answer: a prompt is rarely long.
            runs = rows.row((rows.harmless(line.rstrip()), _PROMPT))
            lines += rows.wrap(runs, self._room - 2)
        if item.pictures:
            lines.append(rows.row((f"[{amounts.plural(len(item.pictures), 'image')}]", rows.DIM)))
        mark = Look("user", bold=True)
        marked = [
            rows.row(("❯ " if number == 0 else "  ", mark), *line)
            for number, line in enumerate(lines)
        ]
        scene.head = _first(marked, PROMPT, text[8000:])

    def _answer(self, item: Item, scene: Scene) -> None:
        scene.kind = "answer"
        failed = scene.failed = item.label == labels.API_ERROR
        lines = rows.markdown_rows(item.text, self._room - 2)
        look = _ERROR if failed else Look("mauve", bold=True)
        if failed:
            lines = [rows.row((rows.plain(line), _ERROR)) for line in lines]
        marked = [
            rows.row(("● " if number == 0 else "  ", look), *line) if line else line
            for number, line in enumerate(lines)
        ]
        scene.body = _first(marked, FINAL, item.text[24_000:])

    def _thought(self, item: Item, scene: Scene) -> None:
        scene.kind = "thought"
        look = Look("dim", italic=True)
        words = rows.one_line(item.text)
        lines = [*rows.wrap(rows.row((f"✻ {words}", look)), self._room, rows.row(("  ", look)))]
        if words:
            scene.body = _first(lines, THOUGHT)

    def _notice(self, item: Item, scene: Scene) -> bool:
        label = item.label or ""
        if item.type == "system" and label not in _SHOWN_NOTICES:
            return False
        scene.kind = "notice"
        scene.failed = label == labels.API_ERROR
        if label == labels.COMPACT:
            words = "conversation compacted"
            scene.head = Body([self._rule(words, Look("yellow"))])
        elif label in labels.OUTPUTS:
            scene.body = self._output(item.text, _OUTPUT, 6)
        else:
            look = _ERROR if scene.failed else Look("yellow")
            line = rows.row(("● ", look), (rows.one_line(item.text), look))
            scene.head = Body([rows.cut(line, self._room)])
        return True

    # -- calls

    def _call(self, item: Item, scene: Scene) -> None:
        kind = scene.kind = meaning.kind_of(item)
        if kind not in _SCENES:
            kind = scene.kind = "tool"
        scene.wait = max(0, item.duration_ms or 0)
        painters: dict[str, Callable[[Item, Scene], None]] = {
            "shell": self._shell, "edit": self._edit, "write": self._write, "todo": self._todo,
            "agent": self._agent,
        }  # fmt: skip
        painters.get(kind, self._plain_call)(item, scene)
        if item.failed and kind not in ("shell", "todo", "agent"):
            scene.body = self._output(item.output, _ERROR, FAILURE)
        if kind in ("read", "edit", "write", "agent"):
            subject = self._subject(item, kind)
            scene.call = Call(kind, self._tool(item), subject, "", item.status or "pending")

    def _shell(self, item: Item, scene: Scene) -> None:
        command = meaning.command(item).strip()
        if not command:
            return
        scene.typed = True
        if words := rows.one_line(meaning.description(item)):
            scene.above = [rows.cut(rows.row((f"# {words}", rows.DIM)), self._room)]
        lines: list[Row] = []
        for number, line in enumerate(command[:4000].split("\n")):
            lead = rows.row(("$ " if number == 0 else "> ", Look("green", bold=True)))
            runs = (*lead, *rows.row((rows.harmless(line), _BOLD)))
            lines += rows.wrap(runs, self._room, rows.row(("  ", _BOLD)))
        scene.head = _first(lines, COMMAND, command[4000:])
        scene.head.of = " of the command"
        scene.body = self._output(item.output, _OUTPUT, self._max_output)
        scene.tail = self._outcome(item)
        status, output = item.status or "pending", item.output[:2000]
        scene.call = Call("shell", self._tool(item), command[:2000], output, status)

    def _plain_call(self, item: Item, scene: Scene) -> None:
        plan = meaning.says(item, "plan") if scene.kind == "tool" else ""
        scene.head = Body([self._heading(item, "" if plan else self._subject(item, scene.kind))])
        if plan:
            drawn = rows.markdown_rows(plan, self._room - 4)
            lines = [rows.row(("  │ ", rows.DIM), *line) for line in drawn]
            scene.body = _first(lines, ANSWER, indent="  │ ")
        elif scene.kind == "tool":
            scene.body = self._output(item.output, _OUTPUT, 3)

    def _edit(self, item: Item, scene: Scene) -> None:
        diff = diff_rows(item, self._room - 2, DIFF)
        added = f"  +{diff.added}" if diff.added else ""
        removed = f"{'' if added else ' '} -{diff.removed}" if diff.removed else ""
        counts = rows.row((added, Look("green")), (removed, Look("red")))
        scene.head = Body([self._heading(item, self._subject(item, "edit"), counts)])
        scene.body = Body(diff.rows, diff.hidden, indent="    ")

    def _write(self, item: Item, scene: Scene) -> None:
        text = (meaning.written(item) or "").rstrip("\n")
        count = rows.row((f"  {amounts.plural(rows.line_count(text), 'line')}", Look("green")))
        scene.head = Body([self._heading(item, self._subject(item, "write"), count)])
        shown = [
            printed_row(f"+ {line}", "+", self._room) if line.strip() else ()
            for line in text[:8000].split("\n")[:WRITTEN]
        ]  # fmt: skip
        if text:
            scene.body = Body(shown, rows.line_count(text) - len(shown), indent="    ")

    def _todo(self, item: Item, scene: Scene) -> None:
        todos = [todo for todo in meaning.todos(item) if todo.text.strip()]
        done = sum(todo.state == "done" for todo in todos)
        count = rows.row((f"  {done} of {len(todos)} done", rows.DIM)) if todos else ()
        scene.head = Body([self._heading(item, "", count)])
        looks = {
            "done": ("✓", Look("green"), Look("dim", strike=True)),
            "doing": ("▸", Look("yellow", bold=True), Look(bold=True)),
            "open": ("□", rows.DIM, Look()),
        }
        # Later lists mostly repeat the first, so show only what changed.
        changed = [todo for todo in todos if todo.state == "doing" or todo not in self._todos]
        self._todos = todos
        lines = []
        for todo in changed:
            mark, colour, look = looks[todo.state]
            line = rows.row((f"  {mark} ", colour), (rows.one_line(todo.text), look))
            lines.append(rows.cut(line, self._room))
        scene.body = _first(lines, TODOS)

    def _agent(self, item: Item, scene: Scene) -> None:
        scene.head = Body([self._heading(item, self._subject(item, "agent"))])
        bar = rows.row(("  │ ", Look("teal")))
        room = min(self._room, rows.WIDEST_PROSE) - 4
        lines: list[Row] = []
        if prompt := rows.one_line(meaning.prompt(item)):
            lines.append(rows.cut(rows.row((f"❯ {prompt}", Look("user"))), room))
        answer = item.output
        if item.agent is not None:
            work, said = _folded(item.agent)
            if work:
                lines.append(rows.cut(rows.row((work, rows.DIM)), room))
            answer = said or answer
        answered = rows.markdown_rows(answer, room)
        if item.failed:
            answered = [rows.row((rows.plain(line), _ERROR)) for line in answered]
        lines += answered[:SUBAGENT]
        shown = [rows.row(*bar, *line) for line in lines]
        scene.body = Body(shown, max(0, len(answered) - SUBAGENT), indent="  │ ")
        if item.status in ("ok", "error", "denied"):
            scene.tail = self._outcome(item, "  └ ")

    # -- pieces of scenes

    def _heading(self, item: Item, subject: str, more: Row = ()) -> Row:
        colour = "red" if item.failed else "dim" if item.status == "pending" else "green"
        name = _TOOL_NAMES.get(meaning.kind_of(item)) or self._tool(item)
        after = rows.width(more)
        room = max(8, self._room - layout.cells(name) - after - 4)
        failed = "  ✗ DENIED" if item.status == "denied" else "  ✗ FAILED" if item.failed else ""
        subject = layout.cut(rows.one_line(subject), room - len(failed))
        line = rows.row(
            ("● ", Look(colour)),
            (name, _BOLD),
            (f"  {subject}" if subject else "", Look("blue")),
            *more,
            (failed, Look("red", bold=True)),
        )
        return rows.cut(line, self._room)

    def _tool(self, item: Item) -> str:
        name = rows.one_line(item.tool or "result")
        if name.startswith("mcp__"):
            name = name.removeprefix("mcp__").replace("__", ": ")
        return layout.cut(name, 40)

    def _subject(self, item: Item, kind: str) -> str:
        if kind == "agent":
            words = meaning.description(item) or rows.first_line(meaning.prompt(item), 120)
            return words or item.summary
        if kind == "todo":
            return ""
        path = meaning.path_of(item)
        if kind == "search" or not path:
            return item.summary or path
        project = self._story.project
        if project and path.startswith(project.rstrip("/") + "/"):
            return path[len(project.rstrip("/")) + 1 :]
        return path

    def _output(self, text: str, look: Look, most: int) -> Body:
        most = min(most, self._max_output)
        output, hidden = _output_lines(text)
        lines = [*printed(output)]
        if most <= 0 or not lines:
            return Body()
        if len(lines) > most:
            hidden += len(lines) - most
            last = ending(most)
            lines = [*lines[: most - last], *lines[-last:]]
        shown = [
            printed_row(line, sign, self._room) if sign
            else rows.cut(rows.row(("  ", look), *rows.coloured(line, look)), self._room)
            for line, sign in lines
        ]  # fmt: skip
        return Body(shown, hidden, from_end=True)

    def _outcome(self, item: Item, lead: str = "  ") -> Row:
        took = ""
        if item.duration_ms is not None and item.duration_ms >= 0:
            took = f" {amounts.duration(item.duration_ms)}"
        words, colour = {
            "ok": ("✓ OK", "green"),
            "error": ("✗ FAILED", "red"),
            "denied": ("✗ DENIED", "red"),
        }.get(item.status or "", ("… no result", "yellow"))
        return rows.row((lead, Look("teal")), (words, Look(colour, bold=True)), (took, rows.DIM))

    def _rule(self, words: str, look: Look) -> Row:
        words = f"─── {words} "
        return rows.row((words + "─" * max(0, self._room - layout.cells(words)), look))


def _first(lines: list[Row], most: int, rest: str = "", *, indent: str = "  ") -> Body:
    """The first rows, with the number of those not kept; `rest` is text that was not drawn."""
    hidden = max(0, len(lines) - most) + (rows.line_count(rest) if rest.strip() else 0)
    return Body(lines[:most], hidden, indent=indent)


def _output_lines(text: str) -> tuple[list[str], int]:
    """Nonblank lines; of a huge text only those at its ends, and the number in between."""
    between = 0
    if len(text) > 2 * _END:
        between = text.count("\n", _END, len(text) - _END)
        last = text[-_END:].split("\n", 1)  # begins in the middle of a line that was counted
        text = "\n".join((text[:_END], *last[1:]))
    text = text.replace("<tool_use_error>", "").replace("</tool_use_error>", "")
    return [line for line in text.split("\n") if line.strip()], between


def _folded(story: Story) -> tuple[str, str]:
    """A subagent's work in one line, and its last message."""
    tools: Counter[str] = Counter()
    errors, said = 0, ""
    for item in story.items():
        if item.type == "tool_use":
            tools[rows.one_line(item.tool or "other")] += 1
            errors += item.failed
        elif item.type == "assistant" and item.text.strip():
            said = item.text
    if not tools:
        return "", said
    most = ", ".join(f"{count:,} {tool}" for tool, count in tools.most_common(4))
    words = f"{amounts.plural(tools.total(), 'tool call')}: {most}"
    if len(tools) > 4:
        words += ", …"
    if errors:
        words += f" · {errors:,} failed"
    if story.duration_ms:
        words += f" · {amounts.duration(story.duration_ms)}"
    return words, said


# -- removed and added lines, of an edit and in a printed diff, on grounds of their own


@dataclass(slots=True)
class Diff:
    rows: list[Row]
    hidden: int
    added: int
    removed: int


def diff_rows(item: Item, room: int, most: int) -> Diff:
    """The first lines of an edit, numbered if the agent recorded line numbers."""
    numbered = bool(edits.hunks_of(item.edits))
    lines = [line for line in _diff_lines(item) if line.sign != " "]
    shown = [_filled(_diff_row(line, numbered=numbered), room) for line in lines[:most]]
    added = sum(line.sign == "+" for line in lines)
    removed = sum(line.sign == "-" for line in lines)
    return Diff(shown, max(0, len(lines) - most), added, removed)


def _diff_lines(item: Item) -> list[DiffLine]:
    lines: list[DiffLine] = []
    for edit in edits.shown(item.edits):
        if lines:
            lines.append(DiffLine("@", None, None))
        lines += edits.lines(edit, context=0)
    return lines


def _diff_row(line: DiffLine, *, numbered: bool) -> Row:
    number = line.new if line.new is not None else line.old
    lead = f"{number:>6} " if numbered and number is not None else "    "
    if line.sign == "@":
        words = "" if line.text.startswith("@@") else rows.one_line(line.text)
        return rows.row((f"    {words}" if words else "", rows.DIM))
    usual, marked = _DIFF_LOOKS[line.sign]
    pieces = [
        (rows.harmless(text), marked if changed and text.strip() else usual)
        for text, changed in line.runs
    ]
    return rows.row((lead, rows.DIM), (f"{line.sign} ", _SIGN_LOOKS[line.sign]), *pieces)


def _filled(line: Row, room: int) -> Row:
    """The ground reaches to the end of the row."""
    ground = next((look.bg for _, look in line if look.bg), None)
    shown = rows.cut(line, room)
    return rows.padded(shown, room, Look(bg=ground)) if ground else shown


def printed(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each line of an output, with `+` or `-` if it is a changed line of a printed diff."""
    inside = False
    for line in lines:
        if _HUNK.match(line):
            inside = True
        elif inside and line[:1] not in " +-\\":
            inside = False
        yield line, line[0] if inside and line[:1] in ("+", "-") else ""


def printed_row(line: str, sign: str, room: int) -> Row:
    usual, _ = _DIFF_LOOKS[sign]
    pieces = rows.row(("  ", Look()), (sign, _SIGN_LOOKS[sign]), (rows.harmless(line[1:]), usual))
    return _filled(pieces, room)
