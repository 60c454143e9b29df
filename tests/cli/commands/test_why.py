"""`sess why`: each line of a file leads to the edit that wrote it, or says that it may not."""

from __future__ import annotations

import json
import os
import random
import subprocess
from datetime import timedelta

import pytest
from tests.cli.conftest import MAIN, Client
from tests.conftest import TEN_O_CLOCK, World

from sess_common import differ

VERBS = ("load", "store", "parse", "check", "merge", "count", "close", "send", "wait", "drop")
NOUNS = ("index", "record", "session", "event", "chunk", "path", "lock", "daemon", "query", "page")
HUMAN = "human"


class History:
    """A repository that an agent and a person change by turns; who wrote each line is known."""

    def __init__(self, world: World, seed: int, *, hunks: bool = True) -> None:
        self.random = random.Random(seed)
        self.hunks = hunks
        self.root = world.root / "repo"
        self.root.mkdir()
        self.path = self.root / "a.py"
        self.lines: list[tuple[str, str]] = []  # text, and the call that wrote it
        self.transcript = world.transcript(MAIN)
        self.calls = 0
        self.commits = 0
        self.git("init", "-q")

    def git(self, *words: str) -> str:
        when = f"{TEN_O_CLOCK + timedelta(seconds=self.transcript.count + 1):%Y-%m-%dT%H:%M:%SZ}"
        who = {
            f"GIT_{role}_{fact}": value
            for role in ("AUTHOR", "COMMITTER")
            for fact, value in (("NAME", "Ada"), ("EMAIL", "ada@example.org"), ("DATE", when))
        }
        return subprocess.run(
            ["git", *words],
            cwd=self.root,
            env={"PATH": os.environ["PATH"], "HOME": str(self.root), **who},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    def line(self) -> str:
        pick = self.random.choice
        return self.random.choice(
            [
                *[
                    f"    {pick(NOUNS)}_{n} = {pick(VERBS)}_{pick(NOUNS)}({pick(NOUNS)}, {n % 99})"
                    for n in self.random.choices(range(900), k=5)
                ],
                f"def {pick(VERBS)}_{pick(NOUNS)}_{self.random.randrange(99)}({pick(NOUNS)}):",
                "    return None",
                "",
                f"    # {pick(VERBS)} the {pick(NOUNS)} before the {pick(NOUNS)} is gone",
            ]
        )

    def save(self) -> None:
        self.path.write_text("".join(f"{text}\n" for text, _ in self.lines))

    def commit(self, *words: str) -> None:
        self.save()
        self.git("add", "-A")
        self.commits += 1
        self.git("commit", "-q", "--allow-empty", "-m", f"change {self.commits}", *words)

    def _record(self, tool: str, before: list[str], **given: object) -> None:
        call = f"call{self.calls}"
        t = self.transcript
        result: dict[str, object] = {}
        if self.hunks:
            old, new = "\n".join(before) + "\n", "".join(f"{text}\n" for text, _ in self.lines)
            result = {"toolUseResult": {"structuredPatch": structured(old, new)}}
        t.append(
            t.prompt(f"please do number {self.calls}"),
            t.answer(f"I will do number {self.calls}."),
            t.call(call, tool, file_path=str(self.path), **given),
            t.result(call, "done", **result),
        )

    def write(self, count: int) -> None:
        """The agent writes the whole file."""
        self.calls += 1
        before = [text for text, _ in self.lines]
        after = [self.line() for _ in range(count)]
        self._change(0, len(before), after)
        self._record("Write", before, content="".join(f"{text}\n" for text in after))

    def _change(self, start: int, end: int, after: list[str], who: str | None = None) -> None:
        """Lines that stay keep who wrote them."""
        old = self.lines[start:end]
        kept = {b: a for a, b in differ.common_pairs([text for text, _ in old], after)}
        self.lines[start:end] = [
            old[kept[n]] if n in kept else (text, who or f"call{self.calls}")
            for n, text in enumerate(after)
        ]

    def edit(self) -> None:
        """The agent replaces some lines, found by their text."""
        before = [text for text, _ in self.lines]
        for _ in range(100):
            start = self.random.randrange(len(before))
            end = min(len(before), start + self.random.randint(1, 6))
            old = "\n".join(before[start:end])
            if old.strip() and "\n".join(before).count(old) == 1:
                break
        after = [text for text in before[start:end] if self.random.random() < 0.5]
        for _ in range(self.random.randint(1, 5)):
            after.insert(self.random.randint(0, len(after)), self.line())
        self.calls += 1
        self._change(start, end, after)
        self._record("Edit", before, old_string=old, new_string="\n".join(after))

    def by_hand(self) -> None:
        """A person changes and adds lines without any agent."""
        for _ in range(2):
            at = self.random.randrange(len(self.lines))
            self.lines[at : at + self.random.randint(0, 1)] = [
                (f"{self.line()}  # by hand {self.random.randrange(999)}", HUMAN)
            ]

    def reformat(self) -> None:
        """A formatter breaks long lines, and spaces others anew."""
        lines = []
        for text, who in self.lines:
            head, bracket, rest = text.partition("(")
            if bracket and " = " in head and self.random.random() < 0.5:
                inner = rest.removesuffix(")").split(", ")
                lines += [(f"{head}(", who), *((f"        {one},", who) for one in inner)]
                lines.append(("    )", who))
            else:
                lines.append((text.replace("    ", "  ", 1), who))
        self.lines = lines


def structured(old: str, new: str) -> list[dict[str, object]]:
    """What Claude Code records of an edit."""
    hunks: list[dict[str, object]] = []
    for line in differ.between(old, new):
        if line.sign == "@" or not hunks:
            hunks.append({"oldStart": line.old or 1, "newStart": line.new or 1, "lines": []})
        if line.sign != "@":
            hunks[-1]["lines"].append(line.sign + line.text)  # type: ignore[attr-defined]
    return hunks


def lived(world: World, seed: int, *, hunks: bool) -> History:
    """Forty edits, with changes by hand, a rename, a formatter and a squash among them."""
    history = History(world, seed, hunks=hunks)
    history.write(300)
    history.commit()
    for turn in range(40):
        history.edit()
        if turn % 3 == 0:
            history.commit()
        if turn % 9 == 4:
            history.by_hand()
        if turn == 12:
            history.commit()
            history.git("mv", "a.py", "b.py")
            history.path = history.root / "b.py"
            history.commit()
        if turn == 25:
            history.reformat()
    history.commit()
    history.git("reset", "--soft", "HEAD~4")
    history.commit()
    world.ingest()
    return history


@pytest.mark.parametrize("hunks", [True, False], ids=["hunks", "texts"])
def test_each_line_leads_to_the_edit_that_wrote_it(tmp_path, hunks):
    """95 of 100 lines of the agent do, and none leads elsewhere without a stated doubt."""
    led: list[tuple[str, str]] = []
    for seed in range(3):
        sess = Client(World(tmp_path / str(seed)))
        history = lived(sess.world, seed, hunks=hunks)
        lines = sess.json("why", str(history.path))
        assert [line["text"] for line in lines] == [text for text, _ in history.lines]
        calls: dict[str | None, str] = {None: HUMAN}
        for event in sess.json("show", MAIN):
            if event["type"] == "tool_use":
                calls[event["event"][:8]] = f"call{len(calls)}"
        for line, (_, writer) in zip(lines, history.lines, strict=True):
            call = calls[line["event"]]
            assert call in (writer, HUMAN) or line["doubt"], (seed, line)
            led.append((call, writer))
    own = [call == writer for call, writer in led if writer != HUMAN]
    assert len(own) > 1000
    assert sum(own) / len(own) >= 0.95


@pytest.fixture
def repository(world):
    """Two edits by an agent and one line by hand, committed."""
    history = History(world, 0)
    history.lines = [("by hand = 1", HUMAN)]
    history.commit()
    t = history.transcript
    (world.root / "repo/a.py").write_text("by hand = 1\nretry(three_times=True)\n")
    t.append(
        t.prompt("make the upload retry"),
        t.answer("The connection drops, so I retry."),
        t.call(
            "c1",
            "Edit",
            file_path=str(history.path),
            old_string="by hand = 1",
            new_string="by hand = 1\nretry(three_times=True)",
        ),
        t.result("c1", "done"),
        t.call("c2", "Edit", file_path=str(history.path), old_string="by hand", new_string="x"),
        t.result("c2", "refused", is_error=True),
    )
    history.lines.append(("retry(three_times=True)", "c1"))
    history.commit()
    world.ingest()
    return history


def test_a_line_has_its_call_its_prompt_and_its_commit(sess, repository):
    [line] = sess.json("why", f"{repository.path}:2")
    events = {event["event"][:8]: event for event in sess.json("show", MAIN)}
    assert line["text"] == "retry(three_times=True)"
    assert (line["session"], line["agent"], line["tool"]) == (MAIN, "claude", "Edit")
    assert events[line["event"]]["input"]["new_string"].endswith("retry(three_times=True)")
    assert events[line["prompt_event"]]["text"] == line["prompt"] == "make the upload retry"
    assert line["said"] == "The connection drops, so I retry."
    assert (line["certainty"], line["doubt"]) == ("exact", None)
    assert line["commit"] == repository.git("rev-parse", "HEAD").strip()
    assert (line["author"], line["subject"]) == ("Ada", "change 2")


def test_a_subagent_was_asked_by_a_person(world, sess):
    """The prompt is the one that led to the call that started it."""
    path = world.root / "a.py"
    path.write_text("x = subagent_wrote_this()\n")
    t = world.transcript(MAIN)
    t.append(t.prompt("first"), t.prompt("send someone"), t.call("c1", "Task", prompt="write it"))
    t.append(t.result("c1", "done", toolUseResult={"agentId": "abc12345"}), t.prompt("later"))
    agent = world.transcript("agent-abc12345", f"-code-demo/{MAIN}/subagents")
    inside = {"isSidechain": True, "sessionId": MAIN}
    agent.append(
        agent.prompt("write it", **inside),
        agent.call("c2", "Write", file_path=str(path), content="x = subagent_wrote_this()\n"),
    )
    world.ingest()
    [line] = sess.json("why", str(path))
    assert (line["session"], line["prompt"]) == ("agent-abc12345", "send someone")
    assert line["asked_in"] == MAIN[:8]


def test_a_line_by_hand_is_said_to_be_nobodys(sess, repository):
    done = sess("why", f"{repository.path}:1", code=1)
    assert done.stderr == f"no recorded session wrote line 1 of {repository.path}\n"
    assert "change 1 (Ada" in done.stdout


def test_the_same_file_in_another_clone(sess, repository, tmp_path):
    clone = tmp_path / "elsewhere/repo"
    repository.git("clone", "-q", str(repository.root), str(clone))
    [line] = sess.json("why", f"{clone}/a.py:2")
    assert line["session"] == MAIN
    other = tmp_path / "other"
    repository.git("clone", "-q", str(repository.root), str(other))
    sess("why", f"{other}/a.py:2", code=1)


def test_after_the_transcript_is_gone_and_without_git(sess, repository, tmp_path):
    repository.transcript.path.unlink()
    sess.world.ingest()
    subprocess.run(["rm", "-rf", str(repository.root / ".git")], check=True)
    [line] = sess.json("why", f"{repository.path}:2")
    assert (line["session"], line["commit"]) == (MAIN, None)


def test_a_person_reads_it(sess, repository):
    text, code = sess.on_terminal("why", f"{repository.path}:2", "--no-sync", "--utc")
    assert code == 0
    sha = repository.git("rev-parse", "HEAD")[:10]
    lines = text.splitlines()
    assert lines[0] == "a.py:2  retry(three_times=True)"
    assert lines[1].startswith("wrote     Edit by claude, 2026-02-01 10:00 11111111#")
    assert lines[2] == "asked     make the upload retry"
    assert lines[3].startswith("          11111111#")
    assert lines[4] == "said      The connection drops, so I retry."
    assert lines[5] == f"commit    {sha} change 2 (Ada, 2026-02-01 10:00)"


def test_notes_of_other_tools(sess, repository):
    """git-ai names the agent of a line in a note, Agent Trace in a file."""
    head = repository.git("rev-parse", "HEAD~1").strip()
    prompts = '{"prompts": {"abc": {"agent_id": {"tool": "cursor", "id": "s-1"}}}}'
    note = f"a.py\n  abc 1-1\n---\n{prompts}"
    repository.git("notes", "--ref=refs/notes/ai", "add", "-m", note, head)
    [line] = sess.json("why", f"{repository.path}:1")
    assert line["noted"] == {"source": "git-ai", "agent": "cursor", "session": "s-1"}
    repository.git("notes", "--ref=refs/notes/ai", "remove", head)
    (repository.root / ".agent-trace").mkdir()
    (repository.root / ".agent-trace/traces.jsonl").write_text(
        json.dumps(
            {
                "vcs": {"type": "git", "revision": head},
                "tool": {"name": "windsurf"},
                "files": [
                    {
                        "path": "a.py",
                        "conversations": [
                            {
                                "url": "https://x.example/c/s-2",
                                "ranges": [{"start_line": 1, "end_line": 1}],
                            }
                        ],
                    }
                ],
            }
        )
        + "\nbroken\n"
    )
    [line] = sess.json("why", f"{repository.path}:1")
    assert line["noted"] == {"source": "agent-trace", "agent": "windsurf", "session": "s-2"}


@pytest.mark.parametrize(
    ("place", "code", "message"),
    [
        ("missing.py", 1, "cannot read missing.py: No such file or directory"),
        ("a.py:9", 1, "a.py has 2 lines: no line 9"),
        ("a.py:0", 2, 'no such lines: "a.py:0"'),
        (".", 2, ". is a directory"),
    ],
)
def test_what_cannot_be_asked(sess, repository, place, code, message):
    done = sess("why", place, code=code, cwd=repository.root)
    assert done.stdout == ""
    assert message in done.stderr.splitlines()[0]
