"""Why calls fail: an ordered table of classes; the first match wins.

The table has a version, so that counts of different days can be compared. `errors.toml` in the
configuration directory holds the user's own rules, which come first:

    [[rule]]
    name = "database is away"
    pattern = "could not connect to server"
    tools = ["query"]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sess_common.errors import SessError
from sess_schema import kinds

VERSION = 2
OTHER = "other"
FILE = "errors.toml"


class Rule(NamedTuple):
    """A class of failures: an expression to find in the output, ignoring case."""

    name: str
    pattern: str
    kind: str | None = None  # None for any call
    tools: tuple[str, ...] = ()  # empty for any tool


# Messages of the agent come before those of programs, exact patterns before vague ones.
RULES = (
    Rule("file not read yet", r"file has not been read yet|must (use|call) your? ?`?read"),
    Rule("file changed since read", r"has been (modified|changed) since|unexpectedly modified"),
    Rule("text not unique", r"found \d+ matches of the string|is not unique in the file"),
    Rule(
        "text not found",
        r"string to replace not found|string not found in file|no match(es)? found for old_"
        r"|failed to find (the )?(expected|context)|patch (does not apply|failed)",
    ),
    Rule("nothing to change", r"no changes to make|old_string and new_string are (exactly )?the"),
    Rule("no such tool", r"no such tool|unknown (tool|skill)|tool .{1,80} not found"),
    Rule("no such task", r"no (task|shell|agent) found with id|no background (shell|task)"),
    Rule("bad arguments", r"inputvalidationerror|invalid (tool )?(arguments|parameters)"),
    Rule("output too large", r"exceeds maximum allowed|content .{1,40}too large|file is too large"),
    Rule("blocked by a hook", r"hook (blocking )?error|blocked by .{0,40}hook|prevented by hook"),
    Rule(
        "tests failed",
        r"={3,} (test session starts|failures|errors|short test summary)|^tests?: +\d+ failed"
        r"|\b\d+ (tests? )?failed\b|^--- fail: |^fail\t|^not ok \d|test result: failed"
        r"|npm err! test|\b(test|spec)_?\w* failed\b",
        kinds.SHELL,
    ),
    Rule("sandbox", r"sandbox.{0,40}(denied|violation|blocked)|operation not permitted"),
    Rule("not a directory or file", r"\beisdir\b|\benotdir\b|is a directory|not a directory"),
    Rule("timeout", r"\btimed? ?out\b|timeout|deadline exceeded"),
    Rule("cancelled", r"\bcancelled\b|canceled by|was aborted|sibling tool call errored"),
    Rule("command not found", r"command not found|: not found$|exit code 127\b", kinds.SHELL),
    Rule("permission denied", r"permission ?denied|\beacces|\bsudo: "),
    Rule("module missing", r"modulenotfounderror|importerror|cannot find module|no module named"),
    Rule("web status", r"status code [45]\d\d|\bhttp[ /]?(1\.1 |2 )?[45]\d\d\b|\b[45]\d\d client"),
    Rule(
        "network",
        r"connection (refused|reset|error)|could not resolve|\beconn|\benotfound|no route to host"
        r"|network is unreachable|\bssl|certificate verify|curl: \(",
    ),
    Rule(
        "git",
        r"^fatal: |merge conflict|^conflict \(|not a git repository|\[rejected\]",
        kinds.SHELL,
    ),
    Rule(
        "no such file",
        r"no such file|\benoent|does not exist|file not found|filenotfounderror|cannot access"
        r"|file or directory not found",
    ),
    Rule(
        "syntax error",
        r"syntaxerror|syntax error|unexpected token|parse error|unterminated|unexpected eof",
    ),
    Rule(
        "type check", r"\berror ts\d+|error: .{1,200}\[[a-z-]+\]$|\bpyright\b|\bmypy\b", kinds.SHELL
    ),
    Rule(
        "lint",
        r"\beslint\b|\bruff\b|\bprettier\b|^[a-z]{1,4}\d{3,4}\b|:\d+:\d+: [a-z]{1,4}\d{3,4}\b"
        r"|would reformat",
        kinds.SHELL,
    ),
    Rule(
        "build failed",
        r"error\[e\d{4}\]|compilation failed|build failed|cannot compile|^make: \*|undefined ref",
    ),
    Rule(
        "exception", r"traceback \(most recent|exception in thread|panicked at|uncaught|\bpanic: "
    ),
    Rule("assertion", r"assertionerror|assertion failed"),
    Rule("out of memory or disk", r"out of memory|no space left|^killed$|exit code 137\b"),
    Rule("exit code", r"^(error: )?(command failed with )?exit(ed with)? (code|status) \d+"),
)

API_RULES = (
    Rule("rate limit (429)", r"\b429\b|rate.?limit|usage limit|limit reached|too many requests"),
    Rule("overloaded (529)", r"\b529\b|overloaded"),
    Rule("aborted", r"abort|cancell?ed"),
    Rule("prompt too long", r"prompt is too long|context.{0,20}(length|window|limit)|too large"),
    Rule("not allowed (401, 403)", r"\b40[13]\b|authenticat|unauthori[sz]ed|api key|oauth|/login"),
    Rule("credit", r"credit balance|billing|\b402\b"),
    Rule("timeout", r"timed? ?out|timeout|etimedout"),
    Rule("server error (5xx)", r"\b5\d\d\b|internal server|bad gateway|service unavailable"),
    Rule("connection", r"connect|socket|econn|enotfound|network|fetch failed|epipe|dns"),
    Rule("bad request (400)", r"\b4\d\d\b|invalid.?request"),
)


class Classifier:
    """Finds the class of a failure."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = [*rules]
        self._all_at_once, self._alone = _all_at_once(self._rules)

    def of(self, tool: str, kind: str | None, text: str) -> str:
        matched = set(self._all_at_once(text))
        for number in sorted(matched | self._alone.keys()):
            rule = self._rules[number]
            if (rule.tools and tool not in rule.tools) or rule.kind not in (None, kind):
                continue
            if number in matched or self._alone[number].search(text):
                return rule.name
        return OTHER


def _all_at_once(
    rules: Sequence[Rule],
) -> tuple[Callable[[str], Iterable[int]], dict[int, re.Pattern[str]]]:
    """A function that finds the numbers of all matching rules, and the rules it cannot handle.

    RE2 searches for all of them in one pass, in a twentieth of the time.
    """
    flags = re.IGNORECASE | re.MULTILINE | re.ASCII
    try:
        import re2  # optional
    except ImportError:
        return (lambda _: ()), {n: re.compile(rule.pattern, flags) for n, rule in enumerate(rules)}
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    together, numbers, alone = re2.Set.SearchSet(options), list[int](), dict[int, re.Pattern[str]]()
    for number, rule in enumerate(rules):
        try:
            together.Add(f"(?m){rule.pattern}")
            numbers.append(number)
        except re2.error:
            alone[number] = re.compile(rule.pattern, flags)
    together.Compile()
    return (lambda text: [numbers[at] for at in together.Match(text) or ()]), alone


def own_rules(config: Path) -> list[Rule]:
    """The rules of `errors.toml`; raises if the file is invalid."""
    path = config / FILE
    if not path.exists():
        return []
    import tomllib  # rarely needed

    try:
        content = tomllib.loads(path.read_text("utf-8"))
        return [_rule(values) for values in _listed(content)]
    except (OSError, ValueError) as error:
        raise SessError(f'error classes "{path}": {error}', hint=_EXAMPLE) from error


_EXAMPLE = (
    'it may hold, for example:\n\n[[rule]]\nname = "database is away"\n'
    'pattern = "could not connect to server"\ntools = ["query"]\n'
)


def _listed(content: dict[str, Any]) -> Sequence[Any]:
    unknown = set(content) - {"rule"}
    if unknown:
        raise ValueError(f'unknown key "{min(unknown)}"')
    rules = content.get("rule", [])
    if not isinstance(rules, list):
        raise ValueError("[[rule]] needs two brackets")  # noqa: TRY004
    return rules


def _rule(values: Any) -> Rule:
    if not isinstance(values, dict) or set(values) - {"name", "pattern", "tools"}:
        raise ValueError("a rule has only name, pattern and tools")
    name, pattern, tools = values.get("name"), values.get("pattern"), values.get("tools", [])
    if not isinstance(name, str) or not name or not isinstance(pattern, str):
        raise ValueError("a rule needs a name and a pattern")
    if not isinstance(tools, list) or not all(isinstance(tool, str) for tool in tools):
        raise ValueError(f'rule "{name}": tools must be a list of names')
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f'rule "{name}": {error}') from error
    return Rule(name, pattern, tools=tuple(tools))
