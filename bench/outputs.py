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


# What prints a line or two, whatever size is asked for. Only terse corpora have these.


def revision(p: Project, size: int) -> str:
    return f"{p.rng.getrandbits(160):040x}"


def tag(p: Project, size: int) -> str:
    rng = p.rng
    version = f"v{rng.randrange(9)}.{rng.randrange(30)}.{rng.randrange(12)}"
    return f"{version}-{rng.randrange(90)}-g{rng.getrandbits(28):07x}"


def digest(p: Project, size: int) -> str:
    return f"{p.rng.getrandbits(256):064x}  {p.path()}"


def definitions(p: Project, size: int) -> str:
    """Of Python and TypeScript, whose names are written in two ways."""
    rng = p.rng

    def line() -> str:
        number = 1 + int(rng.random() * 900)
        if rng.random() < 0.6:
            return f"{number}:    def {p.identifier()}{rng.choice(ROLES)}(self, {p.noun.one()}):"
        verb = rng.choice(("get", "on", "handle", "use", "is"))
        return f"{number}:  {verb}{p.some_type.one()}({p.noun.one()}: {p.some_type.one()}) {{"

    return until(min(size, 300), line)


def refusal(p: Project, size: int) -> str:
    """One of the errors that everybody has seen."""
    port = 1024 + p.rng.randrange(9000)
    text = p.rng.choice(REFUSALS)
    words = {"noun": p.noun.one(), "name": p.identifier(), "path": p.path(), "port": port}
    return text.format(**words, type=p.some_type.one(), phrase=p.phrase())


def go_tests(p: Project, size: int) -> str:
    rng = p.rng

    def line() -> str:
        took = f"{rng.randrange(1, 9000) / 1000:.3f}s"
        if rng.random() < 0.85:
            return f"ok  \texample.org/{p.name}/internal/{p.noun.one()}\t{took}"
        return f"--- FAIL: Test{p.some_type.one()} ({took})"

    return until(min(size, 250), line)


def committed(p: Project, size: int) -> str:
    rng = p.rng
    head = f"[main {rng.getrandbits(28):07x}] {p.noun.one()}: {p.phrase()}"
    return f"{head}\n {rng.randrange(2, 9)} files changed, {rng.randrange(2, 99)} insertions(+)"


def hosts(p: Project, size: int) -> str:
    rng = p.rng
    return f"127.0.0.1 localhost\n10.0.{rng.randrange(9)}.{rng.randrange(250)} {p.noun.one()}"


ROLES = ("", "", "_test", "_handler", "_for_update", "_or_none")
REFUSALS = (
    "curl: (28) Operation timed out after 5001 milliseconds with 0 bytes received",
    "Error: connect ECONNREFUSED 127.0.0.1:{port}",
    "Error: {noun} request timeout after {port} ms",
    "Error: {phrase}, timeout in {type}.{name}",
    "psycopg.OperationalError: connection timeout expired",
    "ModuleNotFoundError: No module named '{noun}'",
    "AttributeError: '{type}' object has no attribute '{name}'",
    "TypeError: Cannot read properties of undefined (reading '{name}')",
    "{path}:{port}:9: error: expected ';' before '{name}' (C++20)",
    "fatal: not a git repository (or any of the parent directories): .git",
    "bash: {noun}: command not found",
    "PermissionError: [Errno 13] Permission denied: '/var/lib/{noun}'",
    "FAILED {path}::test_{name} - assert None is not None",
    "error[E0308]: mismatched types: expected `{type}`, found `&str`",
)
SHORT_COMMANDS: tuple[tuple[int, str, Callable[[Project, int], str]], ...] = (
    (6, "git rev-parse HEAD", revision),
    (4, "git describe --tags --always", tag),
    (3, "sha256sum {path}", digest),
    (12, "rg -n 'def |\\) {{' {path}", definitions),
    (16, "curl -sS --max-time 5 localhost:8080/{noun}/{name}", refusal),
    (9, "make {noun} CXXFLAGS=-std=c++20", refusal),
    (10, "go test ./...", go_tests),
    (8, 'git commit -am "{noun}: {phrase}"', committed),
    (2, 'git commit --no-verify -m "{noun}: {phrase}"', committed),
    (1, "cat /etc/hosts", hosts),
)
