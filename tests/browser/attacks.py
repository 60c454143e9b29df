"""A session in which every field tries to run code, and a browser that detects it."""

from __future__ import annotations

import shutil
from contextlib import contextmanager

import pytest
from playwright.sync_api import sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E"
    "rkJggg=="
)
RUN = "window.ran=(window.ran||0)+1"
PAYLOADS = (
    f"<script>{RUN}</script>",
    f'"><script>{RUN}</script>',
    f"'><img src=x onerror={RUN}>",
    f"<img src=https://evil.invalid/x.png onerror={RUN}>",
    f"</noscript></template></textarea></title></style></script><script>{RUN}</script>",
    f"<!--><svg onload={RUN}>--!>",
    f'" autofocus onfocus="{RUN}" x="',
    f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    f"<details open ontoggle={RUN}>",
    f"<a href='javascript:{RUN}'>x</a>",
    "<link rel=stylesheet href=https://evil.invalid/x.css><base href=https://evil.invalid/>",
    "<meta http-equiv=refresh content='0;url=https://evil.invalid'>",
    f"[x](javascript:{RUN}) [y](data:text/html,<script>{RUN}</script>) ![z](https://evil.invalid/z)",
    f"[x]: javascript:{RUN}\n\n[x] <javascript:{RUN}>",
    "\x1b]8;;https://evil.invalid\x07link\x1b]8;;\x07\x1b[31m<b>red\x1b[0m\x1b]0;title\x07\x9b31m",
    f'```html" onmouseover="{RUN}\n<script>{RUN}</script>\n```',
    f'{{"<script>{RUN}</script>": "</script><img src=x onerror={RUN}>"}}',
    "\u202e\u2066reversed\u2069\x00\ufeff\ud800",
)


def hostile(t):
    """Records of one session with every payload in every field."""
    for number, evil in enumerate(PAYLOADS):
        call = f"c{number}"
        yield {**t.prompt(evil), "cwd": f"/code/{evil}", "gitBranch": evil}
        yield t.prompt(f"<command-name>/{evil}</command-name><command-args>{evil}</command-args>")
        yield t.prompt(f"<bash-input>{evil}</bash-input>")
        answer = t.answer(evil)
        answer["message"]["model"] = evil
        yield answer
        yield t.assistant([{"type": "thinking", "thinking": evil}])
        yield t.call(call, evil, **{evil: evil, "file_path": evil, "description": evil})
        yield t.result(call, [{"type": "text", "text": evil}], is_error=bool(number % 2))
        for tool, given in (
            ("Bash", {"command": evil, "description": evil}),
            ("Edit", {"file_path": evil, "old_string": evil, "new_string": f"{evil} two"}),
            ("Write", {"file_path": f"/a/{evil}.html", "content": evil}),
            ("TodoWrite", {"todos": [{"content": evil, "status": evil, "activeForm": evil}]}),
            ("WebFetch", {"url": f"javascript:{RUN}", "prompt": evil}),
            ("Task", {"description": evil, "prompt": evil, "subagent_type": evil}),
            ("Grep", {"pattern": evil, "path": evil}),
        ):
            yield t.call(f"{call}{tool}", tool, **given)
            yield t.result(f"{call}{tool}", evil)
        yield t.call(f"{call}git", command=f"git commit -m '{evil}'")
        yield t.result(f"{call}git", f"[main abc{number:04}] {evil}\n 1 file changed")
        yield t.record("system", None, subtype=evil, content=evil, level=evil)
        yield {"type": "summary", "summary": evil, "leafUuid": evil}
    yield t.prompt("the compact summary " + PAYLOADS[0], isCompactSummary=True)
    images = [
        ("image/png", PIXEL),
        ("image/svg+xml", f"<svg onload={RUN}>"),
        (f'image/png" onerror="{RUN}', PIXEL),
    ]
    yield t.prompt(
        [{"type": "text", "text": "see"}]
        + [
            {"type": "image", "source": {"type": "base64", "media_type": media, "data": data}}
            for media, data in images
        ]
    )


class Watched:
    """A tab that remembers everything a page should not do."""

    def __init__(self, context) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.tab = context.new_page()
        self.tab.on("request", lambda request: self.requests.append(request.url))
        self.tab.on("console", lambda message: self.complaints.append(message.text))
        self.tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.tab.on("dialog", self._dialog)
        self.tab.on("popup", lambda _: self.complaints.append("popup"))

    def _dialog(self, dialog):
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def open(self, path, fragment=""):
        self.tab.goto(f"{path.as_uri()}{fragment}")
        return self.tab

    def assert_quiet(self):
        """Only local files were read, nothing ran, no error was logged."""
        outside = [url for url in self.requests if not url.startswith(("file:", "data:image/"))]
        assert (outside, self.complaints) == ([], []), f"{outside} {self.complaints}"
        assert self.tab.evaluate("window.ran") is None


@contextmanager
def chromium():
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("no Chromium on PATH")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()
