"""Parses search queries. Any text is a valid query.

All words must occur; "several words" must be adjacent; `word*` is a prefix; `-word` must not
occur, nor the one after NOT; `a OR b`; parentheses; `field:value` filters. Anything else is a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sess_common.classes import TYPE_CHECKING, dataclass, later
from sess_common.errors import SessError
from sess_schema.queries.search.terms import Matching, Term

if TYPE_CHECKING:
    from collections.abc import Callable

    from sess_schema.queries.search.terms import Leaf

    Tokenize = Callable[[str], list[str]]

_LEXEMES = later(
    r"""
    (?P<open> -?\( )
  | (?P<close> \) )
  | (?P<minus> - )? (?: (?P<field> [A-Za-z]+ ) : )? "(?P<quoted> [^"]* ) (?: " | $ ) (?P<star> \* )?
  | (?P<word> [^\s"]+ )
    """,
    re.VERBOSE,
)
_QUOTED = later(r'-?"[^"]*(?:"|$)')
_FIELD = later(r"(-?)([A-Za-z]+):(.+)", re.DOTALL)
_SENTENCE_END = ".,;:!?"
# A pasted command: its `-x` is a flag, not an exclusion.
_COMMAND = later(r"(?:^|\s)(?:\||&&|;|\d?>{1,2}|--[a-z]|\.{1,2}/|\$)")
# NOT is an operator unless it is part of a message: NOT NULL, COULD NOT CONNECT.
_OPERAND = later(r"\s+(?![-)\s]|[A-Z]{2,}\b)(?=.)")
_FLAG = later(r"-(?:[A-Za-z]{1,2}|\d+)")
_HASH = later(r"(?=.*\d)(?=[0-9]{7}|.*[a-f])[0-9a-f]{6,64}(?:-[0-9a-f]{1,12})*", re.IGNORECASE)
_MOST_TERMS = 500
_DEEPEST = 12  # FTS5 allows about a hundred parentheses, and each group may need several


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on where or what an event is."""

    field: str
    value: str


@dataclass(frozen=True, slots=True)
class Not:
    node: Node


@dataclass(frozen=True, slots=True)
class And:
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or:
    nodes: tuple[Node, ...]


if TYPE_CHECKING:
    Node = Leaf | Filter | Not | And | Or
    Check = Callable[[Filter], str | None]


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query."""

    tree: Node
    notes: tuple[str, ...] = ()

    def narrowed(self, node: Node) -> Query:
        """The same query, also limited by a node."""
        inside = self.tree.nodes if isinstance(self.tree, And) else (self.tree,)
        more = node.nodes if isinstance(node, And) else (node,)
        return Query(And((*inside, *more)), self.notes)

    def wanted(self) -> list[Leaf]:
        """The terms that a hit may highlight."""
        return [*_wanted(self.tree)]

    def filters(self) -> list[Filter]:
        """The filters that a hit may satisfy, without those that exclude."""
        nodes, filters = [self.tree], list[Filter]()
        while nodes:
            node = nodes.pop()
            if isinstance(node, And | Or):
                nodes += node.nodes
            elif isinstance(node, Filter):
                filters.append(node)
        return filters

    def phrase(self) -> str | None:
        """All plain words as a phrase: adjacent matches rank higher."""
        nodes = self.tree.nodes if isinstance(self.tree, And) else ()
        words = [n.text for n in nodes if isinstance(n, Term) and n.exact and not n.prefix]
        return f'"{" ".join(words)}"' if len(words) > 1 else None


def parse(
    text: str, tokenize: Tokenize, matching: Matching, check: Check, *, alone: bool = True
) -> Query:
    """Parse a query; `tokenize` is the index's, `check` returns why a filter is invalid.

    A query of exclusions only is valid with filters, not `alone`.
    """
    # SQLite reads a query up to a NUL; a lone surrogate cannot be bound.
    text = text.replace("\0", " ").encode("utf-8", "replace").decode()
    tree: Node | None
    notes: list[str] = []
    if matching.mode == "regex":
        from sess_schema.queries.search.regex import regex  # rarely needed

        tree = regex(text, matching) if text else None
    elif matching.mode == "tools":
        tree = Term(text, matching=matching) if text.strip() else None
    else:
        parser = _Parser(text, tokenize, matching, check)
        tree, notes = parser.tree(alone=alone), parser.notes
    if tree is None:
        raise SessError(
            "nothing to search for", hint="give at least one word to find: `sess search flaky test`"
        )
    return Query(tree, tuple(notes))


def without_filters(text: str, check: Check) -> str:
    """The words of a query that has filters among them."""
    kept, at = "", 0
    for lexeme in _LEXEMES.finditer(text):
        value, field = lexeme["quoted"], lexeme["field"]
        if lexeme["word"] and (written := _FIELD.fullmatch(lexeme["word"].rstrip(")"))):
            _, field, value = written.groups()
        if field and value and check(Filter(field.lower(), value)) is None:
            kept += text[at : lexeme.start()]
            at = lexeme.end() - (lexeme["word"] or "").endswith(")")
    return " ".join((kept + text[at:]).split())


def only_filters(node: Node) -> bool:
    """Whether there is no word in it."""
    if isinstance(node, Not):
        return only_filters(node.node)
    if isinstance(node, And | Or):
        return all(map(only_filters, node.nodes))
    return isinstance(node, Filter)


def plain_words(query: Query) -> list[Term]:
    """The words of a query that is nothing but words and filters; none if it has an operator."""
    tree = query.tree
    nodes = tree.nodes if isinstance(tree, And) else (tree,)
    words = [node for node in nodes if not only_filters(node)]
    plain = [node for node in words if isinstance(node, Term) and _plain(node)]
    return plain if len(plain) == len(words) and not query.notes else []


def _plain(word: Term) -> bool:
    """Neither a flag or a bar of a pasted command, nor quoted, nor a beginning."""
    return not (word.quoted or word.prefix or word.text[0] in "-|")


class _Parser:
    """One pass over the lexemes, with a stack of open groups instead of recursion."""

    def __init__(self, text: str, tokenize: Tokenize, matching: Matching, check: Check) -> None:
        self._text = text
        self._tokenize = tokenize
        self._matching = matching
        self._check = check
        self._command = _COMMAND.search(text) is not None
        self._terms = 0
        self.notes: list[str] = []

    def tree(self, *, alone: bool) -> Node | None:
        stack = [_Group(negated=False)]
        for lexeme in self._lexemes():
            if lexeme in ("(", "-("):
                stack.append(_Group(negated=lexeme == "-("))
            elif lexeme == ")":
                done = stack.pop()
                stack[-1].add(done.node())
            elif lexeme == "OR":
                stack[-1].alternative()
            elif not isinstance(lexeme, str):
                stack[-1].add(lexeme)
        while len(stack) > 1:
            done = stack.pop()
            stack[-1].add(done.node())
        whole = stack[0].node()
        return (_meaningful(whole) if alone else whole) or self._literally()

    def _literally(self) -> Node | None:
        """`OR` or `()` alone are searched for literally."""
        return self._made(_QUOTED.sub(" ", self._text), prefix=False)

    def _lexemes(self) -> Iterator[Node | str]:
        depth = 0
        end = len(self._text)
        at = 0
        negated = False
        while at < end:
            if self._terms == _MOST_TERMS:
                self.notes.append(f"only the first {_MOST_TERMS} terms are used")
                return
            lexeme = _LEXEMES.match(self._text, at)
            if lexeme is None:  # white space
                at += 1
                continue
            at = lexeme.end()
            if lexeme["word"] == "NOT" and not negated and _OPERAND.match(self._text, at):
                negated = True
                continue
            if lexeme["open"]:
                if depth < _DEEPEST:
                    depth += 1
                    yield "-(" if negated else lexeme["open"]
            elif lexeme["close"]:
                if depth:
                    depth -= 1
                    yield ")"
            elif lexeme["quoted"] is not None:
                yield from self._quoted(lexeme, negated=negated)
            else:
                word, closing = lexeme["word"], 0
                while depth > closing and word.endswith(")") and word.count(")") > word.count("("):
                    word, closing = word[:-1], closing + 1
                yield from self._word(word, negated=negated)
                depth -= closing
                yield from ")" * closing
            negated = False

    def _quoted(self, lexeme: re.Match[str], *, negated: bool) -> Iterator[Node | str]:
        text = lexeme["quoted"]
        negated = negated or lexeme["minus"] is not None
        if field := lexeme["field"]:
            if node := self._filter(field, text):
                yield Not(node) if negated else node
                return
            yield from self._term(f"{field}:", negated=False)
        term = self._made(text, prefix=lexeme["star"] is not None)
        if term is not None:
            yield Not(term) if negated else term

    def _word(self, word: str, *, negated: bool) -> Iterator[Node | str]:
        if word in ("OR", "AND"):
            yield word
            return
        if field := _FIELD.fullmatch(word):
            minus, name, value = field.groups()
            if node := self._filter(name, value):
                yield Not(node) if minus or negated else node
                return
        minus = word.startswith("-") and len(word) > 1 and not word.startswith("--")
        if minus and (self._command or _FLAG.fullmatch(word)):
            minus = False
            self.notes.append(f'{word} is searched for as a flag; -"{word[1:]}" excludes the word')
        yield from self._term(word[1:] if minus else word, negated=negated or minus)

    def _term(self, word: str, *, negated: bool) -> Iterator[Node]:
        prefix = False
        words = self._matching.mode == "words"
        if words and word.endswith("*") and word.strip("*"):
            word, prefix = word.rstrip("*"), True
        node = self._made(word, prefix=prefix, bare=True)
        if node is not None:
            yield Not(node) if negated else node

    def _made(self, text: str, *, prefix: bool, bare: bool = False) -> Term | None:
        words = self._matching.mode == "words"
        text = text.strip() if words else text
        if not text.strip():
            return None
        tokens = tuple(self._tokenize(text))
        if bare and words and tokens:
            text = text.rstrip(_SENTENCE_END) or text
        hashed = bare and words and not prefix and not self._matching.whole
        hashed = hashed and _HASH.fullmatch(text) is not None
        self._terms += 1
        prefix = words and (prefix or hashed) and bool(tokens)
        return Term(text, tokens, prefix, hashed, self._matching, quoted=not bare)

    def _filter(self, field: str, value: str) -> Filter | None:
        self._terms += 1
        node = Filter(field.lower(), value)
        why = self._check(node)
        if why is None:
            return node
        if why:
            self.notes.append(f"{field}:{value} is searched for as words: {why}")
        return None


class _Group:
    """The contents of parentheses: alternatives, each of terms that must all hold."""

    def __init__(self, *, negated: bool) -> None:
        self._negated = negated
        self._alternatives: list[list[Node]] = [[]]

    def add(self, node: Node | None) -> None:
        if node is not None:
            self._alternatives[-1].append(node)

    def alternative(self) -> None:
        self._alternatives.append([])

    def node(self) -> Node | None:
        options = [together(nodes) for nodes in self._alternatives if nodes]
        if not options:
            return None
        whole = options[0] if len(options) == 1 else Or(tuple(dict.fromkeys(options)))
        return Not(whole) if self._negated else whole


# An event usually has one value for each of these, so two filters on a field mean either.
_SINGLE = (
    "agent", "project", "tool", "kind", "type", "model", "branch", "session", "role", "file"
)  # fmt: skip


def together(nodes: Sequence[Node]) -> Node:
    """All nodes must hold; filters on the same single-valued field are alternatives."""
    merged: dict[object, Node] = {}
    for node in nodes:
        single = isinstance(node, Filter) and (
            node.field in _SINGLE or (node.field == "is" and node.value.lower() != "subagent")
        )
        key = (node.field,) if isinstance(node, Filter) and single else node
        before = merged.get(key)
        if before is None:
            merged[key] = node
        elif single:
            options = before.nodes if isinstance(before, Or) else (before,)
            merged[key] = Or(tuple(dict.fromkeys((*options, node))))
    flat: list[Node] = []
    for node in merged.values():
        flat += node.nodes if isinstance(node, And) else (node,)
    kept = [n for n in flat if not _noise(n)] or flat
    return kept[0] if len(kept) == 1 else And(tuple(kept))


def _noise(node: Node) -> bool:
    """A dash or a bar between words is punctuation, unless it is the whole query."""
    inner = node.node if isinstance(node, Not) else node
    if not isinstance(inner, Term) or inner.quoted or inner.matching.mode != "words":
        return False
    return not inner.tokens and len(inner.text) == 1


def _meaningful(node: Node | None) -> Node | None:
    """In a query of exclusions only, `-rf` is searched for, not excluded."""
    nodes = node.nodes if isinstance(node, And) else (node,)
    if node is not None and all(isinstance(n, Not) for n in nodes):
        wanted = [n.node for n in nodes if isinstance(n, Not)]
        if not any(isinstance(n, Filter) for n in wanted):
            return together(wanted)
    return node


def _wanted(node: Node) -> Iterator[Leaf]:
    if isinstance(node, And | Or):
        for child in node.nodes:
            yield from _wanted(child)
    elif not isinstance(node, Not | Filter):
        yield node
