"""What tools print: each maker takes a Project and a size, and returns about that much text."""

from collections.abc import Callable

from textpool import LEVELS, Project


def until(size: int, line: Callable[[], str]) -> str:
    out, total = [], 0
    while total < size:
        text = line()
        out.append(text)
        total += len(text) + 1
    return "\n".join(out)


def source(p: Project, size: int) -> str:
    """`cat` of several files, or the same ones again."""
    out, total = [], 0
    while total < size:
        lines = p.file(p.path())
        start = p.rng.randrange(len(lines))
        piece = "\n".join(lines[start : start + 1 + (size - total) // 40])
        out.append(piece)
        total += len(piece) + 1
    return "\n".join(out)


def numbered(lines: list[str], start: int) -> str:
    return "\n".join(f"{n:6}\t{text}" for n, text in enumerate(lines, start))


def log(p: Project, size: int) -> str:
    rng = p.rng
    second = rng.randrange(80_000)

    def line() -> str:
        nonlocal second
        luck = rng.getrandbits(30)
        second += luck % 3
        clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.{luck % 1000:03}"
        tail = f" {p.identifier()}={luck % 900}"
        if rng.random() < 0.05:
            tail += f" request={rng.getrandbits(48):012x}"
        return f"2026-01-17 {clock} {LEVELS[luck >> 27]:7} [{p.noun.one()}] {p.phrase()}{tail}"

    return until(size, line)


def tests(p: Project, size: int) -> str:
    rng = p.rng

    def line() -> str:
        luck = rng.random()
        verdict = "PASSED" if luck < 0.95 else "FAILED"
        return f"{p.path()}::test_{p.identifier()} {verdict} [{luck:4.0%}]"

    body = until(size, line)
    passed = body.count("PASSED")
    failed = body.count("FAILED")
    took = rng.randrange(100, 9000) / 100
    return f"{body}\n===== {failed} failed, {passed} passed in {took}s ====="


def trace(p: Project, size: int) -> str:
    rng = p.rng
    style = rng.randrange(3)

    def line() -> str:
        path, number, name = p.path(), 1 + int(rng.random() * 900), p.identifier()
        if style == 0:
            lines = p.file(path)
            code = lines[number % len(lines)].strip()
            return f'  File "{p.cwd}/{path}", line {number}, in {name}\n    {code}'
        if style == 1:
            return f"    at {p.some_type.one()}.{name} ({p.cwd}/{path}:{number}:{number % 80})"
        return f"  {number % 64:2}: {p.noun.one()}::{name}\n             at ./{path}:{number}"

    heads = ("Traceback (most recent call last):", "Error", "thread 'main' panicked at")
    kind = rng.choice(("ValueError", "KeyError", "TypeError", "TimeoutError", "AssertionError"))
    return f"{heads[style]}\n{until(size, line)}\n{kind}: {p.phrase()}"


def grep(p: Project, size: int) -> str:
    rng = p.rng

    def line() -> str:
        path = p.path()
        lines = p.file(path)
        number = int(rng.random() * len(lines))
        return f"{path}:{number + 1}:{lines[number]}"

    return until(size, line)


def listing(p: Project, size: int) -> str:
    rng = p.rng

    def line() -> str:
        date = f"Jan {rng.randint(1, 28):2} {rng.randrange(24):02}:{rng.randrange(60):02}"
        return (
            f"-rw-r--r--  1 dev dev {rng.randrange(60_000):7} {date} {p.path().rsplit('/', 1)[1]}"
        )

    return until(size, line)


def diff(p: Project, size: int) -> str:
    rng = p.rng
    out, total = [], 0
    while total < size:
        path = p.path()
        lines = p.file(path)
        at = rng.randrange(len(lines))
        old = lines[at : at + rng.randint(4, 14)]
        new = p.code(path.rsplit(".", 1)[1], rng.randint(1, 5))
        hashes = f"{rng.getrandbits(28):07x}..{rng.getrandbits(28):07x}"
        text = "\n".join(
            [
                f"diff --git a/{path} b/{path}\nindex {hashes} 100644\n--- a/{path}\n+++ b/{path}",
                f"@@ -{at + 1},{len(old)} +{at + 1},{len(old) + len(new) - 1} @@",
                *(" " + x for x in old[:3]),
                *("-" + x for x in old[3:4]),
                *("+" + x for x in new),
                *(" " + x for x in old[4:]),
            ]
        )
        out.append(text)
        total += len(text)
    return "\n".join(out)


def history(p: Project, size: int) -> str:
    rng = p.rng
    return until(size, lambda: f"{rng.getrandbits(28):07x} {p.noun.one()}: {p.phrase()}")


def objects(p: Project, size: int) -> str:
    rng = p.rng
    keys = rng.sample(p.names, 6)

    def line() -> str:
        fields = [f'    "{k}": "{p.phrase()}"' for k in keys[:3]]
        fields += [f'    "{k}": {int(rng.random() * 10_000)}' for k in keys[3:]]
        if rng.random() < 0.1:
            fields.append(f'    "id": "{rng.getrandbits(64):016x}"')
        return "  {\n" + ",\n".join(fields) + "\n  },"

    return "[\n" + until(size, line).rstrip(",") + "\n]"


def page(p: Project, size: int) -> str:
    return p.prose(size)


# (weight, command, what it prints); {} takes a path, an identifier or a phrase, whatever fits.
COMMANDS: tuple[tuple[int, str, Callable[[Project, int], str]], ...] = (
    (14, "pytest -x -q {path} 2>&1 | tail -40", tests),
    (6, "pytest {path} -k {name}", trace),
    (10, "grep -rn '{name}' src | head -50", grep),
    (6, "rg -n {name} --type-add 'src:*.ts' {path}", grep),
    (8, "ls -la $(dirname {path})", listing),
    (7, "git diff {path}", diff),
    (5, "git log --oneline -30 -- {path}", history),
    (7, "sed -n 1,80p {path}", source),
    (6, "cat {path} && wc -l {path}", source),
    (7, "tail -n 200 /var/log/{noun}.log", log),
    (5, "docker logs --since 10m {noun} 2>&1", log),
    (4, "curl -s localhost:8080/{noun}/{name} | jq .", objects),
    (5, "npm run build --workspace {noun} && node dist/{noun}.js", trace),
    (4, "cargo test {name} -- --nocapture", tests),
    (3, 'git add -A && git commit -m "{noun}: {phrase}"', history),
    (3, "python -m {noun} --{name} --format json", objects),
)
