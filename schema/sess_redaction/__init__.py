"""Finds secrets in text: by shape, by name, by context and by the user's rules."""

from sess_redaction.redactor import HOME, Redactor, Rule

__all__ = ["HOME", "Redactor", "Rule"]
