"""The pieces that views are made of: programs, classes of errors, lines, streaks, budgets."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from sess_common.errors import SessError
from sess_schema.queries.views import error_rules, tools, windows
from sess_schema.queries.views.error_rules import API_RULES, RULES, Classifier, Rule
from sess_schema.queries.views.overview import streaks
from sess_schema.queries.views.windows import context_window


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("ls -la", "ls"),
        ("cd /code/demo && pytest -q", "pytest"),
        ("cd 'a b; c' ; make", "make"),
        ("FOO=1 BAR='a b' sudo /usr/bin/grep x", "grep"),
        ("env A=1 time node x.js | tee log", "node"),
        ('"./my tool" --flag', "my tool"),
        ("cd /code", "cd"),
        ("export A=1 && cargo test", "cargo"),
        ("(git status)", "git"),
        ("", "unknown"),
        (None, "unknown"),
        ("&& ;", "unknown"),
    ],
)
def test_the_first_program_of_a_command(command, wanted):
    """Not the `cd` before it, nor assignments or `sudo`."""
    assert tools.program_of(command) == wanted


def test_searches_are_tools_and_programs():
    """Grep, Glob and LS, and search programs in a shell."""
    assert tools.is_search("search", None)
    assert tools.is_search("shell", "cd x && rg needle")
    assert not tools.is_search("shell", "git grep needle")
    assert not tools.is_search("read", "grep")
    assert not tools.is_search(None, None)


def test_mcp_tools_are_of_a_server():
    """`mcp__server__tool`, and only that."""
    assert tools.mcp_names("mcp__files__read_text") == ("files", "read_text")
    assert tools.mcp_names("mcp__a_b__c__d") == ("a_b", "c__d")
    assert tools.mcp_names("mcp__files") is None


# One real text for each class, and which tool said it.
SAMPLES = {
    "file not read yet": (
        "Edit",
        "<tool_use_error>File has not been read yet. Read it first before writing to it.",
    ),
    "file changed since read": (
        "Edit",
        "File has been modified since read, either by the user or by a linter.",
    ),
    "text not unique": (
        "Edit",
        "Found 2 matches of the string to replace, but replace_all is false.",
    ),
    "text not found": (
        "Edit",
        "<tool_use_error>String to replace not found in file.\nString: assert timeout",
    ),
    "nothing to change": (
        "Edit",
        "No changes to make: old_string and new_string are exactly the same.",
    ),
    "no such tool": ("Skill", "<tool_use_error>Unknown skill: commit</tool_use_error>"),
    "no such task": ("TaskOutput", "<tool_use_error>No task found with ID: ac27727"),
    "bad arguments": (
        "Read",
        "InputValidationError: Read failed due to the following issue: no such file is given",
    ),
    "output too large": (
        "Read",
        "File content (30000 tokens) exceeds maximum allowed tokens (25000).",
    ),
    "blocked by a hook": (
        "Write",
        "PreToolUse:Write hook error: [./check.sh]: No such file",
    ),
    "tests failed": (
        "Bash",
        "Exit code 1\n===== test session starts =====\ncollected 3 items\nE   TimeoutError",
    ),
    "sandbox": ("Bash", "Exit code 1\nmkdir: /etc/x: Operation not permitted"),
    "not a directory or file": (
        "Read",
        "EISDIR: illegal operation on a directory, read",
    ),
    "timeout": ("Bash", "Command timed out after 2m 0.0s"),
    "cancelled": ("Bash", "<tool_use_error>Sibling tool call errored</tool_use_error>"),
    "command not found": (
        "Bash",
        "Exit code 127\n/bin/bash: line 1: pytest: command not found",
    ),
    "permission denied": (
        "Bash",
        "PermissionError: [Errno 13] Permission denied: '/var/lib/x'",
    ),
    "module missing": ("Bash", "ModuleNotFoundError: No module named 'interval'"),
    "web status": ("WebFetch", "Request failed with status code 404"),
    "network": (
        "Bash",
        "curl: (7) Failed to connect to localhost port 80: Connection refused",
    ),
    "git": (
        "Bash",
        "Exit code 128\nfatal: not a git repository (or any of the parent directories)",
    ),
    "no such file": ("Read", "File does not exist."),
    "syntax error": (
        "Bash",
        '  File "<string>", line 1\nSyntaxError: invalid syntax',
    ),
    "type check": (
        "Bash",
        "src/a.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'.",
    ),
    "lint": (
        "Bash",
        "Exit code 1\nSIM115 Use a context manager for opening files",
    ),
    "build failed": ("Bash", "error[E0308]: mismatched types: expected `A`, found `&str`"),
    "exception": (
        "Bash",
        "Traceback (most recent call last):\n  File x, line 1\nKeyError: 'a'",
    ),
    "assertion": ("Bash", "AssertionError: 1 != 2"),
    "out of memory or disk": (
        "Bash",
        "cp: error writing 'x': No space left on device",
    ),
    "exit code": ("Bash", "Exit code 1\nError: Session info not available."),
    "other": ("Bash", "please add transformer.js too first"),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_each_class_is_found_by_what_tools_really_said(name):
    """The first rule that matches wins, so each sample proves its place in the order."""
    tool, text = SAMPLES[name]
    assert Classifier(RULES).of(tool, "shell" if tool == "Bash" else None, text) == name


def test_every_class_has_a_sample():
    """A rule that no sample reaches would be a guess."""
    assert {rule.name for rule in RULES} == set(SAMPLES) - {"other"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("API Error: 429 rate_limit_error", "rate limit (429)"),
        ("Claude AI usage limit reached|1760000000", "rate limit (429)"),
        ('API Error: 529 {"type":"overloaded_error"}', "overloaded (529)"),
        ("API Error: Request was aborted.", "aborted"),
        ("Prompt is too long", "prompt too long"),
        ("API Error: 401 Invalid authentication credentials", "not allowed (401, 403)"),
        ("Credit balance is too low", "credit"),
        ("Request timed out", "timeout"),
        ("API Error: 500 Internal server error", "server error (5xx)"),
        ("ConnectionRefused\nhttps://api.example.org\nretry 1 of 10", "connection"),
        ("API Error: 400 invalid_request_error", "bad request (400)"),
        ("hm", "other"),
    ],
)
def test_errors_of_the_service_have_classes_of_their_own(text, wanted):
    """429, 529, 5xx, aborted and the rest."""
    assert Classifier(API_RULES).of("unknown", None, text) == wanted


def test_rules_of_ones_own_come_first_and_may_look_ahead(tmp_path):
    """Also expressions that RE2 does not know; `tools` narrows them."""
    (tmp_path / "errors.toml").write_text(
        "[[rule]]\nname = 'ours'\npattern = 'exit code (?!0)'\ntools = ['Bash']\n"
    )
    rules = error_rules.own_rules(tmp_path)
    assert rules == [Rule("ours", "exit code (?!0)", tools=("Bash",))]
    classes = Classifier([*rules, *RULES])
    assert classes.of("Bash", "shell", "Exit code 1\nfatal: no") == "ours"
    assert classes.of("Other", None, "Exit code 1\nbad") == "exit code"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[rule]]\nname = 'x'\n", "a rule needs a name and a pattern"),
        ("[[rule]]\nname = 'x'\npattern = '('\n", 'rule "x": missing ), unterminated'),
        ("[[rule]]\nname = 'x'\npattern = 'a'\ntools = 'Bash'\n", "tools must be a list"),
        ("[rule]\nname = 'x'\n", "[[rule]] needs two brackets"),
        ("[[rules]]\n", 'unknown key "rules"'),
        ("[[rule]]\ncolour = 1\n", "a rule has only name, pattern and tools"),
        ("[[", "error classes"),
    ],
)
def test_a_bad_file_of_rules_is_explained(tmp_path, text, message):
    """One line that names the file, and an example."""
    (tmp_path / "errors.toml").write_text(text)
    with pytest.raises(SessError) as caught:
        error_rules.own_rules(tmp_path)
    assert message in caught.value.message
    assert "errors.toml" in caught.value.message
    assert "[[rule]]" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("50", (50 * 10**9, True, "month")),
        ("$12.5/week", (12_500_000_000, True, "week")),
        ("0.1/day", (100_000_000, True, "day")),
        ("5M/day", (5_000_000, False, "day")),
        ("1.5k", (1500, False, "month")),
    ],
)
def test_budgets_are_read_exactly(text, wanted):
    """Dollars unless a unit of tokens is given."""
    assert windows.parse_budget(text) == wanted


@pytest.mark.parametrize("text", ["", "-5", "5/year", "$5M", "much", "5M/", "1e9"])
def test_what_is_no_budget_is_refused(text):
    """With an example of one."""
    with pytest.raises(SessError, match="invalid budget"):
        windows.parse_budget(text)


def test_periods_follow_the_clocks_of_a_zone():
    """The first of November 2026 has 25 hours in New York; weeks begin on Monday."""
    zone = ZoneInfo("America/New_York")
    now = int(datetime(2026, 11, 1, 12, tzinfo=zone).timestamp() * 1000)
    start, end = windows.period_bounds("day", now, zone)
    assert end - start == 25 * 3_600_000
    start, end = windows.period_bounds("week", now, zone)
    assert datetime.fromtimestamp(start / 1000, zone).isoformat() == "2026-10-26T00:00:00-04:00"
    start, end = windows.period_bounds("month", now, UTC)
    assert datetime.fromtimestamp(end / 1000, UTC).isoformat() == "2026-12-01T00:00:00+00:00"


def test_streaks_end_yesterday_at_the_earliest():
    """Today counts when it comes; a gap of a day ends a streak."""
    today = date(2026, 11, 10)
    days = [today - timedelta(days=n) for n in (1, 2, 3, 5, 6, 7, 8, 20)]
    assert streaks(days, today) == (3, 4)
    assert streaks([*days, today], today) == (4, 4)
    assert streaks(days[1:], today) == (0, 4)
    assert streaks([], today) == (0, 0)


def test_windows_of_models():
    """200,000 unless the name or a prompt says more."""
    assert context_window("claude-opus-4-5") == 200_000
    assert context_window("claude-sonnet-4-5[1m]") == 1_000_000
    assert context_window("claude-sonnet-4-5", 250_000) == 1_000_000
    assert context_window("gpt-5.1-codex") == 400_000
