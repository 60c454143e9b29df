"""Finds secrets in text: by shape, by name, by context and by the user's rules.

Three functions say what is one; `Redactor` masks what they find, and `Occurrences` finds it again.
"""

from sess_redaction.engine import find
from sess_redaction.names import means_secret
from sess_redaction.occurrences import Occurrences
from sess_redaction.redactor import HOME, Redactor, Rule, is_secret_member

__all__ = ["HOME", "Occurrences", "Redactor", "Rule", "find", "is_secret_member", "means_secret"]
