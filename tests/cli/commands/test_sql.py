"""`sess sql` as a program."""

from __future__ import annotations

import json

import pytest


def test_json_is_one_object_per_row(story, sess):
    """Numbers, text, NULL and blobs; a repeated column name gets a number."""
    query = "SELECT 1 AS id, 'ü' AS id, NULL AS none, x'00ff' AS raw, 1.5 AS half"
    done = sess("sql", "--json", query)
    assert json.loads(done.stdout) == {
        "id": 1,
        "id_2": "ü",
        "none": None,
        "raw": "AP8=",
        "half": 1.5,
    }


def test_no_column_is_lost_to_a_repeated_name(story, sess):
    """A number that a column has of its own is not given to another."""
    (row,) = sess.json("sql", "SELECT 1 AS id, 2 AS id, 3 AS id_2")
    assert row == {"id": 1, "id_3": 2, "id_2": 3}


def test_the_tables_of_the_model_can_be_asked(story, sess):
    """sources, sessions, records, events, usage and warnings are there."""
    for table in ("sources", "sessions", "records", "events", "usage", "warnings"):
        (row,) = sess.json("sql", f"SELECT count(*) AS n FROM {table}")
        assert row["n"] >= 0


def test_csv_has_a_header(story, sess):
    """Commas and quotes are escaped."""
    done = sess("sql", "--csv", "SELECT 1 AS a, 'x,\"y' AS b, x'0a' AS c")
    assert done.stdout == 'a,b,c\n1,"x,""y",0a\n'


def test_a_table_is_aligned(story, sess):
    """Columns are as wide as their widest value."""
    done = sess("sql", "SELECT 'a' AS one, 'bbbbbb' AS two, 3 AS three UNION SELECT 'cc', '', 4")
    assert done.stdout == "one  two     three\na    bbbbbb  3\ncc           4\n"


def test_a_table_fits_a_terminal(story, sess):
    """Wide values are cut; a row with too many columns is written downwards."""
    text, code = sess.on_terminal("sql", "--no-sync", "SELECT hex(zeroblob(100)) AS wide, 1 AS n")
    assert code == 0
    assert text.splitlines()[1] == "0" * 76 + "…  1"
    text, code = sess.on_terminal("sql", "--no-sync", "SELECT * FROM events LIMIT 2")
    assert text.splitlines()[0] == "id                1"
    assert max(map(len, text.splitlines())) <= 80


def test_no_rows_is_no_error(story, sess):
    """A query without rows is exit code 0; the header still tells the columns."""
    assert sess("sql", "SELECT 1 AS a WHERE 0").stdout == "a\n"
    assert sess("sql", "--json", "SELECT 1 AS a WHERE 0").stdout == ""


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM sessions",
        "UPDATE sessions SET title = 'x'",
        "CREATE TABLE t (x)",
        "CREATE TEMP TABLE t (x)",
        "INSERT INTO event_index (event_index) VALUES ('rebuild')",
        "PRAGMA query_only = 0",
        "PRAGMA user_version = 9",
        "PRAGMA journal_mode = delete",
        "ATTACH '/tmp/x.db' AS x",
        "ATTACH ':memory:' AS x",
        "VACUUM INTO '/tmp/x.db'",
        "SELECT load_extension('x')",
        "DROP TABLE events",
        "SELECT 1; SELECT 2",
        "SELEC 1",
        'SELECT "nothing"',
        "SELECT * FROM nothing",
    ],
)
def test_nothing_can_be_changed(story, sess, query):
    """Whatever is no reading query is one line and exit code 2, and the index stays as it was."""
    before = story.dump()
    done = sess("sql", query, code=2)
    assert done.stderr.startswith("sess: ")
    assert "Traceback" not in done.stderr
    assert story.dump() == before


@pytest.mark.parametrize(
    "query",
    ["PRAGMA table_info(events)", "PRAGMA user_version", "SELECT * FROM pragma_table_list"],
)
def test_the_schema_can_be_asked(story, sess, query):
    """Pragmas that only tell are allowed."""
    assert sess("sql", query).stdout


def test_hostile_values_are_harmless_on_a_terminal(story, sess):
    """Cells lose their control characters there."""
    text, _ = sess.on_terminal("sql", "--no-sync", "SELECT title, project FROM sessions")
    assert "\x1b" not in text


@pytest.mark.parametrize(
    "arguments", [["--csv", "SELECT title FROM sessions"], ["SELECT 1 AS 'X'"]]
)
def test_hostile_cells_and_names_are_harmless_on_a_terminal(story, sess, arguments):
    """CSV and the names of columns as well; in a pipe CSV is exact."""
    hostile = [word.replace("X", "\x1b]0;owned\x07name") for word in arguments]
    text, code = sess.on_terminal("sql", "--no-sync", *hostile)
    assert code == 0
    assert "\x1b" not in text
    assert "\x07" not in text
    if "--csv" in arguments:
        assert "\x1b]0;owned\x07" in sess("sql", *arguments).stdout


def test_a_query_that_never_ends_is_stopped(world):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n"
    t = world.transcript()
    t.append(t.prompt("go"), t.answer("ok"))
    world.ingest()
    done = world.run("sess", "sql", endless, "--timeout", "0.3", "--no-sync", check=2)
    assert "took longer than 0.3 s" in done.stderr
    assert "--timeout" in done.stderr


def test_a_query_that_needs_much_memory_is_stopped(world):
    t = world.transcript()
    t.append(t.prompt("go"), t.answer("ok"))
    world.ingest()
    huge = "SELECT length(hex(zeroblob(60000000)))"
    done = world.run("sess", "sql", huge, "--memory", "32", "--no-sync", check=2)
    assert "needs more than 32 MB" in done.stderr


def test_formulas_in_csv_are_text(world):
    t = world.transcript()
    t.append(t.prompt("go"), t.answer("ok"))
    world.ingest()
    query = "SELECT '=1+1' AS a, '@x' AS b, -5 AS c"
    done = world.run("sess", "sql", query, "--csv", "--no-sync", check=0)
    assert done.stdout == "a,b,c\n'=1+1,'@x,-5\n"
