"""What people type to search, taken apart. Any text is a legal query.

Words must all occur; "several words" must follow each other; `word*` is a beginning; `-word` must
not occur. A word with other characters than letters and digits (`foo.bar()`, `./...`, `is_error`)
must occur as it was typed, which the full-text index cannot tell: such terms are verified.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from sess_schema.errors import SessError

Tokenize = Callable[[str], list[str]]

_TERMS = re.compile(r'(?P<minus>-)?(?:"(?P<phrase>[^"]*)(?:"|$)|(?P<word>[^\s"]+))(?P<star>\*)?')
_PLAIN = re.compile(r"[^\W_]+(?:\s+[^\W_]+)*")
_SENTENCE_END = ".,;:!?"
# Scripts written without spaces: a word inside a sentence is no token of its own.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)
_MOST_TERMS = 500


@dataclass(frozen=True, slots=True)
class Term:
    """One word or phrase of a query."""

    text: str
    tokens: tuple[str, ...]
    prefix: bool = False
    negated: bool = False
    verified: bool = False  # the index alone cannot decide it

    @property
    def indexed(self) -> bool:
        """Whether the index can narrow the search by this term."""
        return bool(self.tokens) and not _UNSPACED.search(self.text)

    def expression(self) -> str:
        quoted = self.text.replace('"', '""')
        return f'"{quoted}"{"*" if self.prefix else ""}'


@dataclass(frozen=True, slots=True)
class Query:
    """A query as it was understood."""

    terms: tuple[Term, ...]

    @property
    def wanted(self) -> list[Term]:
        return [term for term in self.terms if not term.negated]

    @property
    def verified(self) -> list[Term]:
        return [term for term in self.terms if term.verified]

    def expression(self) -> str | None:
        """The query for FTS5, or None when no word of it is in the index's alphabet.

        The exclusions stand under one NOT, for FTS5 limits how deep operators nest.
        """
        wanted = [term.expression() for term in self.wanted if term.indexed]
        if not wanted:
            return None
        expression = f"({' AND '.join(wanted)})"
        if unwanted := self.exclusion():
            expression += f" NOT ({unwanted})"
        return expression

    def exclusion(self) -> str | None:
        """What the index alone can exclude, as a query for FTS5."""
        unwanted = [t.expression() for t in self.terms if t.negated and not t.verified]
        return " OR ".join(unwanted) or None


def parse(text: str, tokenize: Tokenize) -> Query:
    """Understand a query; `tokenize` is the tokenizer of the index."""
    # SQLite reads a query up to a NUL; a lone surrogate cannot be bound at all.
    text = text.replace("\0", " ").encode("utf-8", "replace").decode()
    found: dict[Term, None] = {}
    for match in _TERMS.finditer(text):
        term = _term(match, tokenize)
        if term is not None:
            found.setdefault(term)
    # A dash or a bar between words is punctuation, unless it is all there is.
    terms = [term for term in found if term.tokens or len(term.text) > 1] or [*found]
    terms = terms[:_MOST_TERMS]
    if terms and all(term.negated for term in terms):  # `-rf` alone is looked for, not excluded
        terms = [Term(t.text, t.tokens, t.prefix, verified=t.verified) for t in terms]
    if not terms:
        raise SessError(
            "nothing to search for", hint="give words that must occur: `sess search flaky test`"
        )
    return Query(tuple(terms))


def _term(match: re.Match[str], tokenize: Tokenize) -> Term | None:
    text = match["phrase"] if match["phrase"] is not None else match["word"]
    prefix = match["star"] is not None
    negated = match["minus"] is not None
    if match["phrase"] is None:
        if negated and text.startswith("-"):  # `--no-verify` is a word, not an exclusion
            text, negated = f"-{text}", False
        if text.endswith("*") and text.strip("*"):
            text, prefix = text.rstrip("*"), True
    text = text.strip()
    if not text:
        return None
    tokens = tuple(tokenize(text))
    if match["phrase"] is None and tokens:
        text = text.rstrip(_SENTENCE_END) or text
    verified = not tokens or not _PLAIN.fullmatch(text) or _UNSPACED.search(text) is not None
    return Term(text, tokens, prefix=prefix and bool(tokens), negated=negated, verified=verified)
