# ruff: noqa: INP001
"""Makes `words.txt`, the word table of plain questions, from documentation packages of Debian.

    python3 -m venv venv && venv/bin/pip install gensim numpy apsw
    mkdir packages && cd packages && apt-get download $(python scripts/distill_words.py --packages)
    venv/bin/python scripts/distill_words.py packages

Each line has the stem of a word, in how many of 100,000 paragraphs it occurs, its usual forms, and
the stems that are used like it, each with a weight in percent. These are counts and weights: the
file has no text of any package. The sources are named in NOTICE beside it.
"""

from __future__ import annotations

import argparse
import gzip
import html
import io
import re
import subprocess
import sys
import tarfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parents[1] / "schema" / "sess_schema" / "queries" / "recall" / "words.txt"
PACKAGES = """
    apache2-doc bind9-doc clang-14-doc cmake-doc debian-policy developers-reference docker-doc
    docutils-doc erlang-doc fish-common ghc-doc git-doc golang-1.19-doc libboost1.74-doc
    libcurl4-doc libssl-doc linux-doc-6.1 llvm-14-doc manpages manpages-dev mercurial-common
    nginx-doc nodejs-doc perl-doc postfix-doc postgresql-doc-15 python-aiohttp-doc
    python-celery-doc python-cryptography-doc python-django-doc python-flask-doc
    python-jinja2-doc python-kombu-doc python-lxml-doc python-pandas-doc python-pil-doc
    python-pytest-doc python-requests-doc python-scipy-doc python-setuptools-doc
    python-sqlalchemy-doc python-tornado-doc python-werkzeug-doc python3.11-doc rabbitmq-server
    rust-doc sphinx-doc sqlite3-doc subversion twisted-doc varnish-doc vim-doc webpack
    wordnet-base xen-doc zsh-doc
""".split()  # noqa: SIM905 - to be read
_READ = re.compile(r"\.(?:html?|txt|rst|md|pod|xml|[1-8](?:[a-z]+)?|adoc)(?:\.gz)?$")
_TAG = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_ROFF = re.compile(r"^[.'][A-Za-z]{1,3}\b|\\f[A-Z]|\\[&(-][a-z]{0,2}", re.MULTILINE)
_PARAGRAPH = re.compile(r"\n\s*\n|</p>|</li>|</h\d>|<p>|<li>|\n\.(?:PP|TP|SH|IP|LP)\b")
_WORD = re.compile(r"[A-Z]?[a-z]+(?:'[a-z]+)?|[A-Z]{2,}(?![a-z])")
_LONGEST = 20
_LEAST = 60  # occurrences
_NEAREST = 10
_NEAR = 0.42  # cosine
_SYNONYM = 0.15  # cosine of two words that WordNet calls synonyms


def texts(packages: Iterable[Path]) -> Iterator[str]:
    """The documentation in packages, one file at a time."""
    for package in packages:
        unpacked = subprocess.run(
            ["dpkg-deb", "--fsys-tarfile", package], capture_output=True, check=True
        ).stdout
        with tarfile.open(fileobj=io.BytesIO(unpacked)) as archive:
            for member in archive:
                file = archive.extractfile(member) if member.isfile() else None
                if file is None or not _READ.search(member.name):
                    continue
                data = file.read()
                if member.name.endswith(".gz"):
                    data = gzip.decompress(data)
                yield data.decode("utf-8", "replace")


def paragraphs(text: str) -> Iterator[list[str]]:
    """Their words in small letters, parts of identifiers apart."""
    for part in _PARAGRAPH.split(text):
        plain = _ROFF.sub(" ", html.unescape(_TAG.sub(" ", part)))
        words = [word.lower().removesuffix("'s") for word in _WORD.findall(plain)]
        words = [word for word in words if 1 < len(word) <= _LONGEST and word.isascii()]
        if len(words) > 3:
            yield words


def synonyms(package: Path) -> dict[str, set[str]]:
    """What WordNet has in one set with a word."""
    near: defaultdict[str, set[str]] = defaultdict(set)
    unpacked = subprocess.run(
        ["dpkg-deb", "--fsys-tarfile", package], capture_output=True, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(unpacked)) as archive:
        for member in archive:
            if "/data." not in member.name:
                continue
            file = archive.extractfile(member)
            for line in (file or io.BytesIO()).read().decode().splitlines():
                if line.startswith(" "):
                    continue
                columns = line.split(" ")
                count = int(columns[3], 16)
                words = {columns[4 + 2 * at].lower() for at in range(count)}
                words = {word for word in words if word.isalpha()}
                for word in words:
                    near[word] |= words - {word}
    return near


class Stems:
    """The stems that the full-text index of SQLite makes: those that questions are asked by."""

    def __init__(self) -> None:
        import apsw

        db = apsw.Connection(":memory:")
        self._tokenize = db.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2"])
        self._reason = apsw.FTS5_TOKENIZE_QUERY
        self._known: dict[str, str] = {}

    def of(self, word: str) -> str:
        if word not in self._known:
            tokens = self._tokenize(word.encode(), self._reason, None)
            self._known[word] = str(tokens[0][-1]) if tokens else word
        return self._known[word]


def table(packages: list[Path], seed: int) -> Iterator[str]:
    """The lines of the table."""
    import numpy as np
    from gensim.models import Word2Vec

    stems = Stems()
    sentences: list[list[str]] = []
    seen: set[int] = set()
    for text in texts(p for p in packages if not p.name.startswith("wordnet")):
        for words in paragraphs(text):
            key = hash(tuple(words))
            if key not in seen:  # headers and footers of pages
                seen.add(key)
                sentences.append(words)
    count = Counter(word for words in sentences for word in words)
    held = Counter(stem for words in sentences for stem in {stems.of(word) for word in words})
    print(f"{sum(count.values()):,} words, {len(sentences):,} paragraphs", file=sys.stderr)
    model = Word2Vec(
        sentences, vector_size=150, window=5, min_count=_LEAST, sg=0, negative=8, epochs=5,
        sample=1e-4, workers=1, seed=seed,
    )  # fmt: skip
    forms: defaultdict[str, list[str]] = defaultdict(list)
    for word in model.wv.index_to_key:
        forms[stems.of(word)].append(word)
    names = sorted(forms)
    vectors: Any = np.stack(
        [sum(model.wv[word] * count[word] ** 0.5 for word in forms[stem]) for stem in names]
    )
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    place = {stem: at for at, stem in enumerate(names)}
    same: defaultdict[str, set[str]] = defaultdict(set)
    for package in packages:
        if package.name.startswith("wordnet"):
            for word, others in synonyms(package).items():
                same[stems.of(word)] |= {stems.of(other) for other in others}
    for at, stem in enumerate(names):
        near = vectors @ vectors[at]
        best = np.argsort(-near)[1 : _NEAREST + 1]
        chosen = {names[n]: float(near[n]) for n in best if near[n] >= _NEAR}
        for other in same[stem]:
            cosine = float(near[place[other]]) if other in place else 0
            if other != stem and cosine >= _SYNONYM:
                chosen[other] = max(chosen.get(other, 0), (1 + cosine) / 2)
        ranked = sorted(chosen.items(), key=lambda one: -one[1])[:_NEAREST]
        listed = " ".join(f"{other}:{100 * weight:.0f}" for other, weight in ranked)
        rate = round(100_000 * held[stem] / len(sentences))
        yield f"{stem}\t{max(1, rate)}\t{' '.join(forms[stem][:3])}\t{listed}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="where the packages are")
    parser.add_argument("--packages", action="store_true", help="list them for apt-get")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, default=TABLE)
    options = parser.parse_args()
    if options.packages:
        print(*PACKAGES)
        return
    packages = [
        package
        for package in sorted(options.folder.glob("*.deb"))
        if package.name.partition("_")[0] in PACKAGES
    ]
    lines = sorted(line.encode() for line in table(packages, options.seed))
    options.output.write_bytes(b"\n".join([*lines, b""]))


if __name__ == "__main__":
    main()
