"""Long outputs: the start and the end stay in the transcript, all of it goes into a file."""

from __future__ import annotations

import os

from sess_cli.recording import private_files

MOST_BYTES = 50 * 1024
MOST_LINES = 2000
HEAD_LINES, TAIL_LINES = 200, 500
# Where 700 lines are still too long. The end of an output usually says how it went.
_HEAD_BYTES, _TAIL_BYTES = MOST_BYTES * 2 // 7, MOST_BYTES * 5 // 7


def shortened(output: str, folder: str, call_id: str) -> str:
    """The output, or its start and end with a notice between; never fails."""
    size = len(output.encode("utf-8", "replace"))
    if size <= MOST_BYTES and lines_in(output) <= MOST_LINES:
        return output
    head, tail = _ends(output)
    lines = max(0, lines_in(output) - lines_in(head) - lines_in(tail))
    removed = size - len((head + tail).encode("utf-8", "replace"))
    notice = f"... [{lines} lines / {removed} bytes truncated] ..."
    path = _save(output, folder, call_id)
    if path is not None:
        notice += f"\nFull output saved to: {path}\nUse the read tool to view the complete output."
    return f"{head}\n\n{notice}\n{tail}"


def lines_in(text: str) -> int:
    return text.count("\n") + 1 if text else 0


def _ends(output: str) -> tuple[str, str]:
    lines = output.split("\n")
    if len(lines) > HEAD_LINES + TAIL_LINES:
        head, tail = "\n".join(lines[:HEAD_LINES]), "\n".join(lines[-TAIL_LINES:])
    else:
        half = len(lines) * 2 // 7
        head, tail = "\n".join(lines[:half]), "\n".join(lines[half:])
    return _first(head, _HEAD_BYTES), _last(tail, _TAIL_BYTES)


def _first(text: str, most: int) -> str:
    return text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


def _last(text: str, most: int) -> str:
    return text.encode("utf-8", "replace")[-most:].decode("utf-8", "ignore")


def _save(output: str, folder: str, call_id: str) -> str | None:
    """The path of the whole output; None if it cannot be written."""
    name = call_id.replace("/", "_").replace("\\", "_").replace("..", "_").replace("\0", "_")
    try:
        private_files.make_folder(folder)
        path = _free(folder, name[:200] or "unknown")
        private_files.replace(path, output.encode("utf-8", "replace"))
    except OSError:
        return None
    return path


def _free(folder: str, name: str) -> str:
    """Calls without an id must not overwrite each other's output."""
    number, path = 1, os.path.join(folder, f"{name}.txt")
    while os.path.lexists(path):
        number += 1
        path = os.path.join(folder, f"{name}-{number}.txt")
    return path
