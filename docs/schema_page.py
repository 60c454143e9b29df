"""Makes docs/schema.md: tables and views as they are, described by the migrations' comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import apsw

from sess_schema import migrate
from sess_schema.queries.references import REFERENCES

TARGET = Path(__file__).parent / "schema.md"
HEAD = """\
# The index in SQL

Made by `python docs/generate.py` from the comments in `schema/sess_schema/migrations/`; a test
fails when it is out of date.

`sess sql QUERY` runs one read-only query; any program that opens SQLite files can read the index,
too (`sessiond status` says where it is). **Use the views**: they show what is true now, each thing
once, and add up to what `sess stats` says. Tables hold everything that was ever read, and may
change with any version.

```sql
-- what each project cost this month
SELECT project, round(sum(cost_usd), 2) FROM v_usage
WHERE ts >= unixepoch('now', 'start of month') * 1000 GROUP BY project ORDER BY 2 DESC;

-- commands that failed most often
SELECT summary, count(*) FROM v_calls WHERE tool = 'Bash' AND status = 'error'
GROUP BY summary ORDER BY 2 DESC LIMIT 10;

-- who changed a file, newest first
SELECT time, session, action FROM v_files WHERE path LIKE '%/README.md' ORDER BY ts DESC;

-- full text
SELECT time, session, type, summary FROM v_events
WHERE event IN (SELECT rowid FROM event_index WHERE event_index MATCH 'timeout') ORDER BY ts DESC;
```

An event belongs to the session that it was first written in: a fork shows it, but does not have it
again. `ts` is UTC milliseconds since 1970, and indexed; `time` is the same moment as text. `event`
joins one view with another; it is a number of this index only.
"""
TABLES = """\
## Tables

`retired` is 0 for what is in its file now; else the row left it in that generation of the file.
`turns` are records as the agent wrote them; `copy_of` names the record that owns the events.

Foreign keys are enforced between `sources`, `chunks`, `sessions`, `session_sources`, `warnings` and
`database_rows`. The large tables have none: SQLite cannot add one to a table that exists without
copying it, and would look up the parent of every row that a load writes. One writer fills them, and
`sess doctor` looks for rows that belong to none. An arrow says whose id a column holds.
"""
_NOTE = re.compile(r"-- (\w+(?:\.\w+)?): (.+)")
_CREATE = re.compile(r"CREATE (?:VIRTUAL )?(?:TABLE|VIEW) (\w+)")
_ADD = re.compile(r"ALTER TABLE (\w+) ADD COLUMN (\w+)")
_COLUMN = re.compile(r" {4}(?:.* AS |\w\.)?(\w+)\b[^-]*?(?:-- (.+))?$")


def page() -> str:
    db = apsw.Connection(":memory:")
    migrate.upgrade(db)
    said = _comments()
    names = [
        (kind, name)
        for kind, name in db.execute(
            "SELECT type, name FROM sqlite_schema WHERE type IN ('table', 'view')"
            " AND name NOT GLOB 'event_index_*' AND name NOT GLOB 'sqlite_*' ORDER BY rowid"
        )
    ]
    keys = {(table, column): parent for table, column, parent in REFERENCES}
    keys |= {
        (name, column): parent
        for _, name in names
        for column, parent in db.execute(
            'SELECT "from", "table" FROM pragma_foreign_key_list(?)', (name,)
        )
    }
    parts = [HEAD, "## Views\n"]
    parts += [_section(db, name, said, keys) for kind, name in names if kind == "view"]
    parts.append(TABLES)
    parts += [_section(db, name, said, keys) for kind, name in names if kind == "table"]
    return "\n".join(parts)


def _section(
    db: apsw.Connection,
    name: str,
    said: dict[tuple[str, str], str],
    keys: dict[tuple[str, str], str],
) -> str:
    rows = ["| column | type | |", "|---|---|---|"]
    for column, type_ in db.execute(
        "SELECT name, type FROM pragma_table_xinfo(?) WHERE hidden <> 1", (name,)
    ):
        words = [said.get((name, column), "")]
        if (name, column) in keys and column != "id":
            words.append(f"→ `{keys[name, column]}`")
        about = " ".join(filter(None, words))
        rows.append(f"| `{column}` | {type_.lower()} | {about} |".replace("  ", " "))
    about = said.get((name, ""), "")
    return "\n".join(filter(None, [f"### {name}\n", about and f"{about}\n", *rows])) + "\n"


def _comments() -> dict[tuple[str, str], str]:
    """(table or view, column or nothing) → what is said about it."""
    return dict(said for _, _, sql in migrate.migrations() for said in _of_one(sql.splitlines()))


def _of_one(lines: list[str]) -> Iterator[tuple[tuple[str, str], str]]:
    above: list[str] = []  # the comment that ends on the line before
    inside = ""  # which table or view
    note: tuple[str, str] | None = None
    for line in lines:
        if line.startswith("-- "):
            if match := _NOTE.fullmatch(line):
                table, _, column = match[1].partition(".")
                note, words = (table, column), match[2]
                yield note, words
            elif note and line.startswith("--   "):
                words = f"{words} {line[5:].strip()}"
                yield note, words
            above.append(line[3:])
            continue
        note = None
        if match := _CREATE.match(line):
            inside = match[1]
            if above:
                yield (inside, ""), " ".join(above)
        elif match := _ADD.match(line):
            words = line.partition("; -- ")[2] if "; -- " in line else line.partition(";")[2]
            words = words.strip().removeprefix("-- ") or " ".join(above)
            if words:
                yield (match[1], match[2]), words
        elif inside and (match := _COLUMN.match(line)) and match[2]:
            yield (inside, match[1]), match[2]
        if line.endswith(";"):
            inside = ""
        above = []
