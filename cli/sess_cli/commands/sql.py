"""`sess sql`: read-only SQL over the index."""

from __future__ import annotations

import base64
import sys
import time
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Annotated, Any

import apsw
import typer

from sess_cli import fresh
from sess_cli.options import AsJson, NoSync
from sess_cli.render import layout
from sess_cli.terminal import Terminal, csv_text, json_line
from sess_common.errors import Exit, SessError
from sess_common.program import counted

# Those that only read; with an argument most others change the connection.
_READ_ONLY = frozenset(
    {
        "application_id", "compile_options", "data_version", "database_list",
        "foreign_key_check", "foreign_key_list", "freelist_count", "function_list", "index_info",
        "index_list", "index_xinfo", "integrity_check", "module_list", "page_count", "page_size",
        "pragma_list", "quick_check", "table_info", "table_list", "table_xinfo", "user_version",
    }
)  # fmt: skip
_STEPS_BETWEEN_SIGNALS = 200_000
_MEASURED_ROWS = 200
_NARROWEST = 8


def sql(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="One read-only SQL statement.")],
    *,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV with a header.")] = False,
    timeout: Annotated[
        float,
        typer.Option("--timeout", min=0.1, metavar="SECONDS", help="Stop a query after this long."),
    ] = 60,
    memory: Annotated[
        int, typer.Option("--memory", min=16, metavar="MB", help="Memory that a query may use.")
    ] = 256,
    no_sync: NoSync = False,
) -> None:
    """Run a read-only SQL query.

    Views: v_sessions, v_events, v_calls, v_usage, v_files, v_edits, v_commits. They leave out
    copies and replaced records, and agree with `sess stats`; see docs/schema.md.

    \b
    sess sql "SELECT tool, count(*) FROM v_calls WHERE status = 'error' GROUP BY 1"
    """
    if as_json and as_csv:
        raise SessError("--json and --csv cannot be combined")
    with fresh.open_index(sync=not no_sync) as db:
        _only_reading(db)
        over = _limited(db, timeout, memory)
        try:
            columns, rows = _ask(db, query)
            if as_json:
                _write_json(columns, rows)
            elif as_csv:
                _write_csv(columns, rows)
            else:
                _write_table(columns, rows)
        except (apsw.CorruptError, apsw.NotADBError):
            raise
        except apsw.AuthError:
            raise SessError(
                "statement not allowed: the index is read-only",
                hint="use SELECT, or change a copy of the index",
            ) from None
        except apsw.InterruptError:
            if not over():
                raise
            raise SessError(
                f"the query took longer than {timeout:g} s", hint="`--timeout SECONDS` allows more"
            ) from None
        except (apsw.NoMemError, MemoryError):
            raise SessError(
                f"the query needs more than {memory} MB", hint="`--memory MB` allows more"
            ) from None
        except apsw.Error as error:
            raise SessError(
                f"SQL: {error}",
                hint="`sess sql 'SELECT name, sql FROM sqlite_schema'` lists views and tables",
                code=Exit.USAGE,
            ) from error


def _limited(db: apsw.Connection, seconds: float, megabytes: int) -> Callable[[], bool]:
    """Bound the time and the memory of a query; the answer tells whether the time is over."""
    until = time.monotonic() + seconds

    def over() -> bool:
        return not time.monotonic() < until

    # Called between steps of the query, so that Ctrl-C is noticed, too.
    db.set_progress_handler(over, _STEPS_BETWEEN_SIGNALS)
    apsw.hard_heap_limit(megabytes << 20)
    return over


def _only_reading(db: apsw.Connection) -> None:
    """On top of the read-only file and query_only: also forbid opening other files."""

    def allow(action: int, first: Any, second: Any, *_: Any) -> int:
        if action in (apsw.SQLITE_ATTACH, apsw.SQLITE_DETACH):
            return apsw.SQLITE_DENY
        if action == apsw.SQLITE_PRAGMA and str(first).lower() not in _READ_ONLY:
            return apsw.SQLITE_DENY
        return apsw.SQLITE_OK

    db.authorizer = allow


def _ask(db: apsw.Connection, query: str) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
    columns: list[str] | None = None

    def on_statement(cursor: apsw.Cursor, _sql: str, _bindings: Any) -> bool:
        nonlocal columns
        if columns is not None:
            raise SessError("only one statement is allowed")
        columns = _distinct([name for name, _ in cursor.get_description()])
        return True

    cursor = db.cursor()
    cursor.exec_trace = on_statement
    cursor.execute(query.encode("utf-8", "replace").decode())
    return columns or [], cursor


def _distinct(names: list[str]) -> list[str]:
    """Column names that can be keys: a second `id` becomes `id_2`."""
    distinct: list[str] = []
    for name in names:
        free, number = name, 2
        while free in distinct or (free != name and free in names):
            free, number = f"{name}_{number}", number + 1
        distinct.append(free)
    return distinct


def _write_json(columns: list[str], rows: Iterator[tuple[Any, ...]]) -> None:
    for row in rows:
        values = [base64.b64encode(v).decode() if isinstance(v, bytes) else v for v in row]
        json_line(dict(zip(columns, values, strict=True)))


def _write_csv(columns: list[str], rows: Iterator[tuple[Any, ...]]) -> None:
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    for row in chain([columns], rows):
        values = [v.hex() if isinstance(v, bytes) else v for v in row]
        writer.writerow([csv_text(v) if isinstance(v, str) else v for v in values])


def _write_table(columns: list[str], rows: Iterator[tuple[Any, ...]]) -> None:
    """Aligned by the first rows; a later one may be wider, so that none waits for the last."""
    if not columns:
        return
    terminal = Terminal()
    columns = [terminal.line(name) for name in columns]
    first = [[_cell(terminal, value) for value in row] for row in islice(rows, _MEASURED_ROWS)]
    cells = chain(first, ([_cell(terminal, value) for value in row] for row in rows))
    if terminal.width is not None and len(columns) * (_NARROWEST + 2) - 2 > terminal.width:
        _write_records(terminal, columns, cells)
        return
    widths = [max(map(layout.cells, column)) for column in zip(columns, *first, strict=True)]
    if terminal.width is not None:
        widths = _narrowed(widths, terminal.width)
    for number, row in enumerate(chain([columns], cells)):
        shown = row if terminal.width is None else map(layout.cut, row, widths)
        line = "  ".join(map(layout.pad, shown, widths)).rstrip()
        terminal.write(line if number else terminal.style(line, "bold"))


def _write_records(terminal: Any, columns: list[str], rows: Iterator[list[str]]) -> None:
    """One line per value, if a row has too many for the width."""
    widest = max(map(layout.cells, columns))
    for number, row in enumerate(rows):
        if number:
            terminal.write("")
        for name, value in zip(columns, row, strict=True):
            shown = layout.cut(value, max(_NARROWEST, terminal.width - widest - 2))
            terminal.write(f"{terminal.style(layout.pad(name, widest), 'bold')}  {shown}".rstrip())


def _cell(terminal: Any, value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"<{counted(len(value), 'byte')}>"
    return str(terminal.line(str(value)))


def _narrowed(widths: list[int], room: int) -> list[int]:
    """The widest columns shrink first."""
    spare = room - 2 * (len(widths) - 1)
    while sum(widths) > spare and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return widths
