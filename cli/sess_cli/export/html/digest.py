"""What is shown without scripts: prompts, answers, and a line for each call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sess_cli.export.html import markup
from sess_cli.export.story import Item

_MOST_CHARACTERS = 4000
_MOST_OF_A_CALL = 90


class Digest:
    """Collects the items after the first screens."""

    def __init__(self) -> None:
        self._blocks: list[str] = []
        self._calls: list[str] = []
        self._tools: Counter[str] = Counter()

    def add(self, item: Item) -> None:
        if item.type == "tool_use":
            self._tools[item.tool or "tool"] += 1
            failed = " <em>failed</em>" if item.failed else ""
            said = markup.text(_cut(" ".join(item.summary.split()), _MOST_OF_A_CALL))
            self._calls.append(f"<li>{markup.text(item.tool or 'tool')} {said}{failed}")
        elif item.type in ("user", "assistant"):
            self._close_calls()
            text = markup.text(_cut(item.text.strip(), _MOST_CHARACTERS))
            head = "<h3>Prompt</h3>" if item.type == "user" else ""
            self._blocks.append(f'{head}<p id="{markup.attr(item.key)}">{text}\n')

    def html(self) -> Iterator[str]:
        self._close_calls()
        if self._blocks:
            yield '<noscript><p class="plain-note">From here on: prompts and answers as plain text'
            yield " and one line for each tool call. The rest needs JavaScript, or an export"
            yield " with <code>--static</code>.</p>\n"
            yield '<div class="plain">\n'
            yield from self._blocks
            yield "</div></noscript>\n"

    def _close_calls(self) -> None:
        if self._calls:
            counts = self._tools.items()
            tools = ", ".join(f"{count:,} {markup.text(tool)}" for tool, count in counts)
            self._blocks.append(
                f"<details><summary>{tools}</summary><ul>{''.join(self._calls)}</ul></details>\n"
            )
            self._calls = []
            self._tools.clear()


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[:most]}… ({len(text) - most:,} more characters)"
