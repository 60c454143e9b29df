"""What masks secrets in an export: the built-in rules, those in config.toml, those of options."""

from __future__ import annotations

from collections.abc import Iterable

from sess_common import paths
from sess_redaction import Redactor, rules


def usual(patterns: Iterable[str] = (), home: str | None = "~") -> Redactor:
    own = rules.rules(patterns)
    return Redactor(home, [*rules.configured(paths.home().config_file), *own])
