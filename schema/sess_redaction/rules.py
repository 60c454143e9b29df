"""The user's own rules: `[redact]` in config.toml, and `--redact`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sess_common.errors import Exit, SessError
from sess_redaction.redactor import Rule

KIND = "own rule"


def rules(patterns: Iterable[str]) -> list[Rule]:
    return [Rule(KIND, _compiled(pattern)) for pattern in patterns]


def configured(path: Path) -> list[Rule]:
    """The rules in config.toml; none if there is no such file or section."""
    import tomllib  # 3 ms

    try:
        section = tomllib.loads(path.read_text("utf-8")).get("redact", {})
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise _wrong(path, str(error)) from error
    return rules(checked(path, section))


def checked(path: Path, section: Any) -> list[str]:
    """The patterns of the section `[redact]`."""
    if not isinstance(section, dict) or set(section) - {"patterns", "at_ingest"}:
        raise _wrong(path, "[redact] allows only patterns, at_ingest")
    if not isinstance(section.get("at_ingest", False), bool):
        raise _wrong(path, "redact.at_ingest must be true or false")
    patterns = section.get("patterns", [])
    if not isinstance(patterns, list) or not all(isinstance(one, str) for one in patterns):
        raise _wrong(path, "redact.patterns must be a list of regular expressions")
    for one in patterns:
        _compiled(one)
    return patterns


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern, re.MULTILINE)
    except re.error as error:
        raise SessError(
            f'invalid regular expression "{pattern}": {error}',
            hint="put a backslash before ( ) [ ] { } . * + ? | ^ $ to match them literally",
        ) from error
    if compiled.fullmatch("") is not None:
        raise SessError(
            f'the regular expression "{pattern}" matches nothing at all',
            hint="it must match at least one character",
        )
    return compiled


def _wrong(path: Path, why: str) -> SessError:
    return SessError(
        f'configuration "{path}": {why}',
        hint="for example: [redact] with patterns = ['ACME-[0-9]{6}']",
        code=Exit.USAGE,
    )
