"""Each command loads only what it needs: most of the time of a short command is loading."""

from __future__ import annotations

import subprocess
import sys

import pytest

# What a module of the standard library costs, in searches: typer 4, platformdirs 2, dataclasses 1.
PARSER = {"typer", "click", "rich", "shellingham"}
HEAVY = {
    "argparse", "asyncio", "email", "http", "multiprocessing", "numpy", "platformdirs", "rich",
    "sqlite3", "sqlite_utils", "textual", "unittest", "watchdog", "zstandard", "sessiond",
}  # fmt: skip
SLOW_TO_LOAD = {
    "ast", "dataclasses", "inspect", "json", "locale", "logging", "orjson", "pathlib", "shutil",
    "socket", "subprocess", "tempfile", "threading", "typing", "urllib", "uuid",
}  # fmt: skip
LEAN = PARSER | HEAVY | SLOW_TO_LOAD
# Since 3.14 `traceback` loads it, and typer loads that.
DATACLASSES = {"dataclasses"} if sys.version_info < (3, 14) else set()
FORBIDDEN = {
    ("--version",): LEAN | {"apsw", "re", "enum"},
    ("--help",): LEAN | {"apsw", "re", "enum"},
    ("search", "words", "--no-sync"): LEAN,
    ("search", "nowhere", "--no-sync"): PARSER | HEAVY,
    ("search", "words", "--no-sync", "--json"): HEAVY,
    ("statusline",): PARSER | HEAVY | {"subprocess", "inspect", "dataclasses"},
    ("list", "--no-sync"): HEAVY | {"orjson"},
    ("stats", "--no-sync", "--since", "7d", "--json"): HEAVY | DATACLASSES | {"orjson"},
    ("show", "last", "--no-sync"): HEAVY - {"zstandard"},
    ("records", "last", "--no-sync"): HEAVY - {"zstandard"},
    ("resume", "last", "--no-sync"): HEAVY | {"orjson"},
    ("state", "last", "--no-sync"): HEAVY - {"zstandard"},
}
SCRIPT = """
import sys
sys.argv = ["sess", *{arguments!r}]
from sess_cli.start import run
try: run()
except SystemExit: pass
print("loaded", *sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize("arguments", FORBIDDEN, ids=" ".join)
def test_nothing_is_loaded_in_vain(world, arguments):
    """Not even by the modules that it does load."""
    t = world.transcript()
    t.append(t.prompt("some words"))
    world.ingest()
    code = SCRIPT.format(arguments=arguments)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=world.env,
        input="{}",
        capture_output=True,
        text=True,
        check=False,
    )
    loaded = {name.partition(".")[0] for name in done.stderr.partition("loaded ")[2].split()}
    assert sorted(loaded & FORBIDDEN[arguments]) == []
    assert "sess_cli" in loaded
