"""Text like that of a developer's day: prose, code in several languages, phrases.

Everything is drawn from a random.Random, so a seed fixes every byte. Words follow Zipf's law, and
each project invents its own identifiers, so the vocabulary grows with the corpus as real ones do.
"""

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Generic, TypeVar


def word_lists() -> dict[str, list[str]]:
    text = Path(__file__).with_name("words.txt").read_text(encoding="utf-8")
    heads = (part.partition("]") for part in text.split("[")[1:])
    return {name: words.split() for name, _, words in heads}


WORDS = word_lists()
PLAIN, TECH, VERBS = WORDS["plain"], WORDS["tech"], WORDS["verbs"]
ONSETS, VOWELS = WORDS["onsets"], WORDS["vowels"]
CODAS = ["" if coda == "-" else coda for coda in WORDS["codas"]]
# Joined without spaces, as these scripts are: tokenizers work differently on them.
CJK = WORDS["cjk"]
EMOJI = WORDS["emoji"]

T = TypeVar("T")
RING = 1 << 14

SUFFIX = ("py", "py", "py", "ts", "ts", "tsx", "rs", "go", "sql", "yaml", "md", "css", "sh")
ENDINGS = (". ", ". ", ". ", ", ", ": ", ".\n\n", ".\n- ", "? ")
LEVELS = ("INFO", "INFO", "INFO", "INFO", "DEBUG", "DEBUG", "WARNING", "ERROR")

PYTHON = (
    "def {v}_{a}(self, {b}: {T}, *, {c}: int = {n}) -> {U} | None:",
    '    """{p}."""',
    "    if {b} is None or {b}.{c} < {n}:",
    '        raise ValueError(f"{p}: {{{b}!r}}")',
    "    {a} = self._{c}.{v}({b}, {d}={n})",
    "    for {x} in {a}.{d}_{b}():",
    "        {x}.{v}_{c}({a}[{n}], {b}.{d})",
    "        self.{d}.append(({x}.{a}, {c}))",
    "    return {U}({a}={x}, {c}=self.{b})",
    "    with self._{a}_lock:",
    "        # {p}",
    "    assert {v}_{a}({b}) == {n}",
    "from {a}.{b} import {T}, {v}_{c}",
    "",
    "",
)
TYPESCRIPT = (
    "export async function {v}{T}({b}: {U}, {c}: number = {n}): Promise<{T}> {{",
    "  const {a} = await this.{d}.{v}({b}.{c});",
    "  if (!{a} || {a}.{d} === {n}) {{",
    "    throw new {U}Error(`{p}: ${{{b}.{a}}}`);",
    "  }}",
    "  // {p}",
    "  return {a}.map(({x}) => ({{ ...{x}, {b}: {c}, {d}: {n} }}));",
    "}}",
    "import {{ {T}, {v}{U} }} from '../{a}/{b}';",
    '  <{T} {a}={{{b}}} onChange={{({x}) => {v}{U}({x}.{c})}} className="{d}-{b}" />',
    "  const [{a}, set{T}] = useState<{U} | null>(null);",
    "",
)
RUST = (
    "pub fn {v}_{a}(&mut self, {b}: &{T}) -> Result<{U}, Error> {{",
    "    let {c} = self.{d}.{v}({b})?;",
    "    match {c}.{a}() {{",
    "        Some({x}) if {x}.len() > {n} => Ok({U}::new({x}, {b})),",
    '        _ => Err(Error::{T}("{p}".into())),',
    "    }}",
    "}}",
    "    /// {p}.",
    "    #[derive(Debug, Clone, PartialEq)]",
    "    pub {a}: Vec<{T}>,",
    "use crate::{a}::{{{T}, {U}}};",
    "",
)
GO = (
    "func (s *{T}) {U}(ctx context.Context, {b} *{T}) (*{U}, error) {{",
    "\t{a}, err := s.{d}.{U}(ctx, {b}.{T}, {n})",
    "\tif err != nil {{",
    '\t\treturn nil, fmt.Errorf("{v} {a} %q: %w", {b}, err)',
    "\t}}",
    "\tfor _, {x} := range {a}.{T} {{",
    "\t\t// {p}",
    "\t\ts.{c}[{x}.{U}] = {n}",
    "\treturn &{U}{{{T}: {a}}}, nil",
    "}}",
    "",
)
SQL = (
    "CREATE TABLE {a}_{b} (id INTEGER PRIMARY KEY, {c} TEXT NOT NULL, {d} INTEGER DEFAULT {n});",
    "SELECT {x}.{a}, count(*) AS {b} FROM {c} {x} JOIN {d} USING ({a}) WHERE {x}.{b} > {n}",
    "  GROUP BY {x}.{a} HAVING {b} < {n} ORDER BY {d} DESC;",
    "CREATE INDEX {a}_by_{b} ON {a} ({b}, {c});",
    "-- {p}",
)
CONFIG = (
    "{a}:",
    "  {b}: {n}",
    "  {c}_{d}: true",
    '  {v}: "{p}"',
    "  - {a}-{b}",
    "  # {p}",
)
MARKUP = (
    "## {p}",
    "",
    "{p}. {p}, {p}.",
    "- `{v}_{a}`: {p}",
    "| {a} | {n} | {p} |",
    ".{a}-{b} {{ margin: {n}px; color: var(--{c}-{d}); }}",
)
LANGUAGES = {
    "py": PYTHON,
    "ts": TYPESCRIPT,
    "tsx": TYPESCRIPT,
    "rs": RUST,
    "go": GO,
    "sql": SQL,
    "yaml": CONFIG,
    "md": MARKUP,
    "css": MARKUP,
    "sh": CONFIG,
}


def made_up(rng: Random, parts: int) -> str:
    open_syllables = [rng.choice(ONSETS) + rng.choice(VOWELS) for _ in range(parts)]
    return "".join(open_syllables) + rng.choice(CODAS)


class Zipf(Generic[T]):
    """Draws items by Zipf's law from precomputed draws, because weighted choice is slow."""

    def __init__(self, rng: Random, items: Sequence[T], shift: float, power: float = 1.0) -> None:
        weights = accumulate(1 / (i + shift) ** power for i in range(len(items)))
        self.random = rng.random
        self.drawn = rng.choices(items, cum_weights=list(weights), k=RING)

    def one(self) -> T:
        return self.drawn[int(self.random() * RING)]

    def take(self, k: int) -> list[T]:
        # The stride keeps two draws that overlap from being the same sequence.
        stride = 1 + int(self.random() * min(9, RING // (k + 1)))
        at = int(self.random() * (RING - k * stride))
        return self.drawn[at : at + k * stride : stride]


class Project:
    """One code base: its words, identifiers, paths, and the files that sessions work on.

    In a terse one people and tools say little, so that more events make up the same size.
    """

    def __init__(self, rng: Random, number: int, *, terse: bool = False) -> None:
        self.rng = rng
        self.terse = terse
        self.name = f"{rng.choice(TECH)}-{made_up(rng, 1)}{number}"
        self.cwd = f"/home/dev/{rng.choice(('work', 'src', 'code'))}/{self.name}"
        invented = [made_up(rng, rng.choice((1, 2, 2, 3))) for _ in range(900)]
        self.nouns = rng.sample(TECH, 240) + invented[:160]
        rng.shuffle(self.nouns)
        self.noun = Zipf(rng, self.nouns, 2.7)
        self.names = [self.new_identifier() for _ in range(1500)]
        self.some_name = Zipf(rng, self.names, 4)
        self.some_type = Zipf(
            rng, ["".join(p.title() for p in rng.choices(self.nouns, k=2)) for _ in range(300)], 2.7
        )
        tail = TECH + VERBS + invented + self.names[:400]
        rng.shuffle(tail)
        words = Zipf(rng, PLAIN + tail, 4)
        # English repeats itself in phrases; single random words would compress far worse.
        self.some_phrase = Zipf(
            rng, [" ".join(words.take(rng.randint(2, 5))) for _ in range(6000)], 12, 0.9
        )
        self.paths = [self.new_path() for _ in range(160)]
        self.some_path = Zipf(rng, range(len(self.paths)), 6)
        self.files: dict[str, list[str]] = {}

    def new_identifier(self) -> str:
        rng = self.rng
        parts = self.noun.take(rng.choice((1, 1, 2, 2, 3)))
        match rng.randrange(5):
            case 0:
                return parts[0] + "".join(p.title() for p in parts[1:])
            case 1:
                return rng.choice(VERBS) + "".join(p.title() for p in parts)
            case _:
                return "_".join(parts)

    def new_path(self) -> str:
        rng = self.rng
        stem = "_".join(rng.choices(self.nouns, k=rng.choice((1, 2))))
        folders = self.noun.take(rng.randrange(3))
        return "/".join([rng.choice(WORDS["top"]), *folders, f"{stem}.{rng.choice(SUFFIX)}"])

    def path(self) -> str:
        return self.paths[self.some_path.one()]

    def identifier(self) -> str:
        luck = self.rng.random()
        if luck < 0.7:
            return self.some_name.one()
        return self.names[int((luck - 0.7) / 0.3 * len(self.names))]

    def phrase(self) -> str:
        return self.some_phrase.one()

    def prose(self, size: int) -> str:
        """Paragraphs of about `size` characters."""
        random = self.rng.random
        out, total = [], 0
        while total < size:
            text = " ".join(self.some_phrase.take(2 + int(random() * 5)))
            if random() < 0.25:
                text += f" `{self.identifier()}`"
            out.append(text[0].upper() + text[1:] + ENDINGS[int(random() * len(ENDINGS))])
            total += len(text) + 2
        if random() < 0.02:
            out.append("".join(self.rng.choices(CJK, k=self.rng.randint(3, 12))) + "。 ")
        if random() < 0.04:
            out.append(self.rng.choice(EMOJI))
        return "".join(out).rstrip(" ,:\n-")

    def code(self, suffix: str, count: int) -> list[str]:
        rng = self.rng
        names = self.some_name.take(count * 2 + 6)
        types = self.some_type.take(count + 2)
        verbs, xs = rng.choices(VERBS, k=count), self.noun.take(count)
        phrases = self.some_phrase.take(count)
        templates = rng.choices(LANGUAGES[suffix], k=count)
        return [
            template.format(
                a=names[i],
                b=names[i + 1],
                c=names[i + count],
                d=names[i + count + 3],
                T=types[i],
                U=types[i + 1],
                v=verbs[i],
                x=xs[i],
                p=phrases[i],
                n=(i * 7 + len(phrases[i])) % 4096,
            )
            for i, template in enumerate(templates)
        ]

    def file(self, path: str) -> list[str]:
        """The lines of a file. It stays the same between edits, so that re-reading repeats it."""
        lines = self.files.get(path)
        if lines is None:
            size = int(min(1500, 25 + self.rng.lognormvariate(4.4, 1.0)))
            lines = self.files[path] = self.code(path.rsplit(".", 1)[1], size)
        return lines

    def rewrite(self) -> None:
        """Time passes: new files appear and old ones change beyond recognition."""
        for _ in range(self.rng.randint(3, 9)):
            self.files.pop(self.path(), None)
        self.paths[self.rng.randrange(len(self.paths))] = self.new_path()
