"""A long session as a page in a tab: more cards than a page draws at once."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from tests.browser.attacks import PIXEL, Watched

from sess_cli.export.html import encrypted, page
from sess_cli.export.story import Story
from sess_schema.connection import open_reader
from sess_schema.queries import sessions

MAIN = "11111111-1111-4111-8111-111111111111"
ROUNDS = 70
FAILED = (3, 40, 66)  # turns whose command failed
AGENT = 50  # the turn that started a subagent
LONG = 2  # the turn with a long output
IMAGE = 1


def long_session(world):
    """Each turn: a prompt, a thought, a command, an edit, an answer."""
    t = world.transcript(MAIN)
    for number in range(ROUNDS):
        t.append(
            t.prompt(f"prompt number {number}: please change the retry code"),
            t.assistant([{"type": "thinking", "thinking": f"thought {number} about the needle"}]),
            t.call(f"b{number}", command=f"make test-{number}", description=f"run {number}"),
            t.result(f"b{number}", _output(number), is_error=number in FAILED),
            t.call(
                f"e{number}", "Edit", file_path="/code/demo/a.py",
                old_string=f"x = {number}\ny = 1\n", new_string=f"x = {number + 1}\ny = 1\n",
            ),
            t.result(f"e{number}", "The file was updated."),
            t.answer(f"Round {number} is **done**, with a [link](https://example.org/{number})."),
        )  # fmt: skip
        if number == IMAGE:
            source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
            t.append(
                t.prompt([{"type": "text", "text": "see"}, {"type": "image", "source": source}])
            )
        if number == AGENT:
            asked = {"subagent_type": "Explore", "description": "find callers", "prompt": "look"}
            t.append(
                t.call("task", "Task", **asked),
                t.result("task", "found", toolUseResult={"agentId": "abc12345"}),
            )
    agent = world.transcript("agent-abc12345", f"-code-demo/{MAIN}/subagents")
    agent.append(
        agent.prompt("look", isSidechain=True, sessionId=MAIN),
        agent.answer("the buried treasure", isSidechain=True, sessionId=MAIN),
    )
    world.ingest()


def _output(number):
    if number == LONG:
        return "\n".join(f"line {line} of a long output {'=' * 60}" for line in range(200))
    return f"{number} passed, the needle among them" if number % 10 == 0 else f"{number} passed"


class Reader:
    """Writes pages of a world and opens them with the network cut."""

    def __init__(self, world, browser) -> None:
        self.world = world
        self.browser = browser
        self.contexts: list[Any] = []

    def written(self, look=None, *, session=MAIN, passphrase=None, name="session.html"):
        path = self.world.root / name
        look = look or page.Look(utc=True)
        with closing(open_reader(self.world.state / "index.db")) as db, path.open("wb") as out:
            story = Story(db, sessions.resolve(db, session))
            if passphrase is None:
                page.write(story, out, look)
            else:
                page.write(story, out, look, encrypted.Lock(passphrase))
        return path

    def items(self):
        with closing(open_reader(self.world.state / "index.db")) as db:
            return list(Story(db, sessions.resolve(db, MAIN)).items())

    def tab(self, path, fragment="", **options):
        size = {"viewport": {"width": 1280, "height": 800}, "locale": "en-GB"}
        context = self.browser.new_context(offline=True, **{**size, **options})
        self.contexts.append(context)
        watched = Watched(context)
        watched.open(path, fragment)
        return watched

    def close(self):
        for context in self.contexts:
            context.close()


READY = "html[data-ready]"
AT_TOP = """() => {
  const bar = document.querySelector(".toolbar").getBoundingClientRect().bottom;
  const box = document.elementFromPoint(700, bar + 20).closest("#talk article");
  return box?.querySelector(":scope > .body")?.innerText.split("\\n")[0] ?? null;
}"""
SETTLED = "() => new Promise((done) => setTimeout(done, 150))"
