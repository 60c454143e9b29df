"""Tool calls with their input, their output, and the structured copy that Claude Code adds."""

from base64 import b64encode
from dataclasses import dataclass
from typing import Any

from outputs import COMMANDS, SHORT_COMMANDS, grep, numbered, page
from textpool import Project


@dataclass
class Call:
    name: str
    input: dict[str, Any]
    output: str | list[dict[str, Any]]
    result: Any


def size_of_output(p: Project, room: int) -> int:
    """Most outputs are below 2 KB, some are 50 KB and more."""
    luck = p.rng.random()
    if p.terse:
        size = p.rng.randint(4_000, 40_000) if luck < 0.002 else p.rng.lognormvariate(4.9, 1.0)
        return int(size)
    if luck < 0.006:
        size = p.rng.randint(30_000, 150_000)
    else:
        size = int(min(30_000, p.rng.lognormvariate(5.9, 1.8)))
    return max(40, min(size, room // 3))


def bash(p: Project, room: int) -> Call:
    return command(p, size_of_output(p, room))


def command(p: Project, size: int) -> Call:
    rng = p.rng
    known = COMMANDS + SHORT_COMMANDS if p.terse else COMMANDS
    _, template, maker = rng.choices(known, [c[0] for c in known])[0]
    words = {"path": p.path(), "name": p.identifier(), "noun": p.noun.one()}
    line = template.format(**words, phrase=p.phrase())
    output = maker(p, size)
    result = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
    return Call("Bash", {"command": line, "description": p.phrase().title()}, output, result)


def read(p: Project, room: int) -> Call:
    path = p.path()
    lines = p.file(path)
    start = p.rng.randrange(len(lines)) if p.rng.random() < 0.5 else 0
    count = p.rng.choice((2, 3, 5, 8)) if p.terse else p.rng.choice((20, 50, 100, 400))
    part = lines[start : start + max(3, min(count, room // 120))]
    full = f"{p.cwd}/{path}"
    file = {"filePath": full, "content": "\n".join(part), "numLines": len(part)}
    file |= {"startLine": start + 1, "totalLines": len(lines)}
    given = {"file_path": full}
    if start:
        given |= {"offset": start + 1, "limit": len(part)}
    return Call("Read", given, numbered(part, start + 1), {"type": "text", "file": file})


def screenshot(p: Project, room: int) -> Call:
    path = f"{p.cwd}/shots/{p.noun.one()}.png"
    data = b64encode(p.rng.randbytes(max(300, min(p.rng.randint(8_000, 150_000), room // 5))))
    media = {"type": "base64", "media_type": "image/png", "data": data.decode()}
    file = {"base64": media["data"], "type": "image/png", "originalSize": len(data) * 3 // 4}
    output = [{"type": "image", "source": media}]
    return Call("Read", {"file_path": path}, output, {"type": "image", "file": file})


def edit(p: Project, room: int) -> Call:
    rng = p.rng
    path = p.path()
    lines = p.file(path)
    counts = (1, 1, 2, 3) if p.terse else (1, 2, 4, 8, 14)
    at, count = rng.randrange(len(lines)), rng.choice(counts)
    old = lines[at : at + count]
    new = p.code(path.rsplit(".", 1)[1], rng.choice(counts))
    whole = "\n".join(lines)
    lines[at : at + count] = new
    before, after = lines[max(0, at - 3) : at], lines[at + len(new) : at + len(new) + 3]
    context = len(before) + len(after)
    hunk = {
        "oldStart": max(0, at - 3) + 1,
        "oldLines": len(old) + context,
        "newStart": max(0, at - 3) + 1,
        "newLines": len(new) + context,
        "lines": [
            *(" " + x for x in before),
            *("-" + x for x in old),
            *("+" + x for x in new),
            *(" " + x for x in after),
        ],
    }
    full = f"{p.cwd}/{path}"
    given = {"file_path": full, "old_string": "\n".join(old), "new_string": "\n".join(new)}
    result = {
        "filePath": full,
        "oldString": given["old_string"],
        "newString": given["new_string"],
        "originalFile": whole if room > len(whole) * 3 else None,
        "structuredPatch": [hunk],
        "userModified": False,
        "replaceAll": False,
    }
    if p.terse:
        return Call("Edit", given, f"The file {full} has been updated successfully.", result)
    shown = numbered([*before, *new, *after], max(0, at - 3) + 1)
    text = f"The file {full} has been updated. Here's the result of running `cat -n`:\n{shown}"
    return Call("Edit", given, text, result)


def write(p: Project, room: int) -> Call:
    path = p.new_path()
    p.paths[p.rng.randrange(len(p.paths))] = path
    text = "\n".join(p.file(path)[: 8 if p.terse else max(3, room // 150)])
    full = f"{p.cwd}/{path}"
    result = {"type": "create", "filePath": full, "content": text, "structuredPatch": []}
    given = {"file_path": full, "content": text}
    return Call("Write", given, f"File created successfully at: {full}", result)


def search(p: Project, room: int) -> Call:
    name = p.identifier()
    text = grep(p, min(20_000, size_of_output(p, room)))
    result = {"mode": "content", "numFiles": 0, "filenames": [], "content": text}
    result["numLines"] = text.count("\n") + 1
    return Call("Grep", {"pattern": name, "output_mode": "content", "-n": True}, text, result)


def glob(p: Project, room: int) -> Call:
    count = 2 + room % (3 if p.terse else 30)
    names = [f"{p.cwd}/{path}" for path in p.rng.sample(p.paths, min(len(p.paths), count))]
    result = {"filenames": names, "durationMs": 12, "numFiles": len(names), "truncated": False}
    return Call("Glob", {"pattern": f"**/*{p.noun.one()}*"}, "\n".join(names), result)


def fetch(p: Project, room: int) -> Call:
    url = f"https://docs.example.org/{p.noun.one()}/{p.identifier()}"
    size = p.rng.randint(100, 600) if p.terse else p.rng.randint(500, 6000)
    text = page(p, max(100, min(size, room // 3)))
    result = {"bytes": len(text) * 9, "code": 200, "codeText": "OK", "result": text, "url": url}
    return Call("WebFetch", {"url": url, "prompt": p.prose(60)}, text, result)


def todos(p: Project, room: int) -> Call:
    states = ("completed", "in_progress", "pending", "pending")[: 2 if p.terse else 4]
    new = [{"content": p.phrase(), "status": s, "activeForm": p.phrase()} for s in states]
    old = [{**item, "status": "pending"} for item in new]
    text = "Todos have been modified successfully. Please proceed with the current tasks"
    return Call("TodoWrite", {"todos": new}, text, {"oldTodos": old, "newTodos": new})


def task(p: Project, agent: str, prompt: str, answer: str) -> Call:
    given = {"description": p.phrase(), "prompt": prompt, "subagent_type": "Explore"}
    result = {
        "status": "completed",
        "prompt": prompt,
        "agentId": agent,
        "content": [{"type": "text", "text": answer}],
        "totalDurationMs": p.rng.randrange(9_000, 200_000),
        "totalTokens": p.rng.randrange(9_000, 90_000),
        "totalToolUseCount": p.rng.randrange(2, 40),
    }
    return Call("Task", given, answer, result)


MAKERS = (bash, edit, read, todos, search, write, fetch, glob, screenshot)
WEIGHTS = (36, 19, 19, 9, 7, 4, 3, 3, 0.3)
TERSE_WEIGHTS = (50, 14, 14, 3, 10, 3, 2, 4, 0)


def call(p: Project, room: int) -> Call:
    return p.rng.choices(MAKERS, TERSE_WEIGHTS if p.terse else WEIGHTS)[0](p, room)
