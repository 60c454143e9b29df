"""The frame around the commands: help, versions, errors, freshness."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pyte
import pytest
from tests.cli.finder.screen import Terminal
from tests.conftest import opened
from tests.must import must
from tests.waiting import LIMIT, computed, wait_until

from sess_cli import fresh, main
from sess_cli.start import plain_search
from sess_common import lock, program
from sess_common.errors import SessError
from sess_schema import __version__
from sessiond import main as sessiond_main
from sessiond.service import notify

BIN = Path(sys.executable).parent


def test_help_has_every_verb_and_exit_code(world):
    """The table of exit codes is part of the help."""
    text = world.run("sess", "--help", check=0).stdout
    for verb in ("search", "list", "show", "restore", "sql", "doctor", "demo"):
        assert f"\n  {verb} " in text
    for line in ("0  ok", "1  nothing found", "4  index unusable", "130  interrupted"):
        assert f" {line}\n" in text
    assert "..." not in text.partition("Commands:")[2]


@pytest.mark.parametrize("verb", main.VERBS)
def test_every_verb_has_help(world, verb):
    """Each command explains itself."""
    assert world.run("sess", verb, "--help", check=0).stdout.startswith(f"Usage: sess {verb}")


def test_help_imports_nothing_heavy(world):
    """Starting up stays fast: no database, no JSON decoder, no tables before they are needed."""
    script = (
        "import sys; sys.argv = ['sess', '--help']\n"
        "from sess_cli.main import run\n"
        "try: run()\n"
        "except SystemExit: pass\n"
        "heavy = {'orjson', 'rich', 'platformdirs', 'zstandard'} & set(sys.modules)\n"
        "sys.exit(','.join(heavy) or None)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_version_is_the_packages(world):
    """Both programs tell the same version."""
    assert world.run("sess", "--version", check=0).stdout == f"sess {__version__}\n"


def test_usage_errors_are_one_line_and_a_hint(world):
    """Exit code 2, no traceback, and where to read on."""
    done = world.run("sess", "list", "--limit", "many", check=2)
    assert done.stderr == (
        'sess: invalid value for --limit: "many" is not a whole number\nhint: `sess list --help`\n'
    )
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("sess --nonsense", "no such option: --nonsense", "`sess --help`"),
        ("sess list -x", "no such option: -x", "`sess list --help`"),
        (
            "sess list --limt 3",
            "no such option: --limt",
            "did you mean --limit? `sess list --help`",
        ),
        (
            "sess show --pager",
            "no such option: --pager",
            "did you mean --no-pager? `sess show --help`",
        ),
        ("sess stats --open", "no such option: --open", "`sess stats --help`"),
        ("sess list --limit", "--limit needs a value", "`sess list --help`"),
        ("sess list --json=3", "--json takes no value", "`sess list --help`"),
        ("sess list -n -1", "invalid value for --limit: -1 is less than 0", "`sess list --help`"),
        (
            "sess export gif --width 4 last",
            "invalid value for --width: 4 is not between 64 and 7680",
            "`sess export gif --help`",
        ),
        (
            "sess export gif --speed fast last",
            'invalid value for --speed: "fast" is not a number',
            "`sess export gif --help`",
        ),
        ("sess show", "missing argument: ID", "`sess show --help`"),
        ("sess truncate last", "missing option: --before-user", "`sess truncate --help`"),
        ("sess show one two", "unexpected argument: two", "`sess show --help`"),
        ("sess export", "missing command", "`sess export --help`"),
        ("sess export film", "no such command: film", "`sess export --help`"),
        (
            "sess export htlm last",
            "no such command: htlm",
            "did you mean `sess export html`? `sess export --help`",
        ),
        (
            "sessiond strat",
            "no such command: strat",
            "did you mean `sessiond start`? `sessiond --help`",
        ),
    ],
)
def test_what_is_wrong_with_a_command_line_is_said_in_the_same_words(line, message, hint):
    """By both programs: the object, what may have been meant, and where to read on."""
    name, *given = line.split()
    app = {"sess": main.app, "sessiond": sessiond_main.app}[name]
    with pytest.raises(SessError) as told:
        program.follow(app, name, given)
    assert (told.value.message, told.value.hint, told.value.code) == (message, hint, 2)


def test_sessiond_alone_shows_its_help(world):
    """With a description of each command, none of which is cut."""
    done = world.run("sessiond", check=0)
    assert done.stdout == world.run("sessiond", "--help", check=0).stdout
    assert "..." not in done.stdout.partition("Commands:")[2]


def test_without_any_transcript_it_says_where_it_looked(world):
    """An empty home is exit code 1 with the number of places and an offer."""
    done = world.run("sess", "list", check=1)
    first, hint = done.stderr.splitlines()
    assert re.fullmatch(r"sess: no transcripts found; looked in \d+ places", first)
    assert hint == (
        "hint: `sess demo` runs on a built-in sample; `sessiond agents --all` lists the places"
    )
    assert "~/.claude/projects" in world.run("sessiond", "agents", "--all", check=0).stdout


def test_the_index_is_brought_up_to_date_first(world):
    """With no daemon, what was written a moment ago is found; --no-sync does not look."""
    t = world.transcript()
    t.append(t.prompt("first words"))
    world.run("sess", "search", "words", check=0)
    t.append(t.prompt("second words"))
    assert len(world.run("sess", "search", "words", "--no-sync", "--json").stdout.splitlines()) == 1
    assert len(world.run("sess", "search", "words", "--json").stdout.splitlines()) == 2


def test_a_living_daemon_is_left_to_its_work(world):
    """While somebody holds the writer's lock, no sync is run."""
    t = world.transcript()
    t.append(t.prompt("first words"))
    world.ingest()
    t.append(t.prompt("second words"))
    held = must(lock.acquire(world.state / "sessiond.lock"))
    try:
        found = world.run("sess", "search", "words", "--json", check=0)
    finally:
        held.release()
    assert len(found.stdout.splitlines()) == 1


def test_a_daemon_that_has_read_nothing_yet_is_named(world):
    """In the first moments of a first load there are transcripts, only no sessions."""
    world.ingest()
    held = must(lock.acquire(world.state / "sessiond.lock"))
    try:
        done = world.run("sess", "list", check=1)
    finally:
        held.release()
    assert done.stderr.startswith("sess: no sessions indexed yet\nhint: sessiond is running; ")


def test_a_second_first_command_waits_for_the_index(world):
    """It answers from the whole index, not with "nothing found" from half of it."""
    t = world.transcript()
    t.append(t.prompt("some words"))
    world.state.mkdir(mode=0o700)
    held = must(lock.acquire(world.state / "sessiond.lock"))
    held.describe(mode="sync", version=__version__)
    with subprocess.Popen(
        [BIN / "sess", "search", "words"], env=world.env, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as second:  # fmt: skip
        said = must(second.stderr).readline()
        world.ingest()
        held.release()
        shown, _ = second.communicate(timeout=LIMIT)
    assert said == "sess: waiting for the index, which another command is making\n"
    assert second.returncode == 0
    assert "some words" in shown


def test_who_waits_at_a_terminal_sees_one_bar(world):
    """In the place of the words before it, also while another writer takes over; then it goes."""
    t = world.transcript()
    t.append(t.prompt("some words"))
    world.state.mkdir(mode=0o700)
    held = must(lock.acquire(world.state / "sessiond.lock"))
    held.describe(mode="sync", version=__version__)
    heart = notify.Heart(world.state / "status.json")
    screen = pyte.Screen(80, 24)

    def lines():
        screen.reset()
        pyte.ByteStream(screen).feed(terminal.received)
        return [line.rstrip() for line in screen.display if line.strip()]

    with Terminal(world, BIN / "sess", "search", "words") as terminal:
        terminal.until(lambda: lines() == ["waiting for another command ..."])
        heart.reading(32_000_000, 100_000_000)
        terminal.until(lambda: "32.0/100.0 MB" in terminal.text())
        heart.close()
        before = len(terminal.received)
        terminal.until(lambda: len(terminal.received) > before + 1000)
        terminal.until(lambda: [line[:10] for line in lines()] == ["indexing ━"])
        world.ingest()
        held.release()
        assert terminal.ended() == 0
        assert [line for line in lines() if "indexing" in line or "waiting" in line] == []


def test_a_daemon_that_makes_the_first_index_is_waited_for(world):
    """It holds its lock on: the answer comes when everything was read once, and from all of it."""
    t = world.transcript()
    t.append(t.prompt("some words"))
    world.state.mkdir(mode=0o700)
    held = must(lock.acquire(world.state / "sessiond.lock"))
    held.describe(mode="daemon", version=__version__)
    opened(world.state / "index.db").close()
    with subprocess.Popen(
        [BIN / "sess", "search", "words"], env=world.env, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as second:  # fmt: skip
        said = must(second.stderr).readline()
        world.ingest()
        shown, _ = second.communicate(timeout=LIMIT)
    held.release()
    assert said == "sess: waiting for the index, which sessiond is making\n"
    assert second.returncode == 0
    assert "some words" in shown


def test_a_first_index_is_taken_over_from_a_command_that_died(world):
    """The half that it left has one session; the answer of who waits has both."""
    for number in (1, 2):
        t = world.transcript(f"{number:08d}-1111-4111-8111-111111111111")
        t.append(t.prompt("some words"))
        if number == 1:
            world.state.mkdir(mode=0o700)
            world.run("sessiond", "sync", t.path, check=0)
    held = must(lock.acquire(world.state / "sessiond.lock"))
    held.describe(mode="sync", version=__version__)
    with subprocess.Popen(
        [BIN / "sess", "search", "words", "--json", "--wait"], env=world.env, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as second:  # fmt: skip
        must(second.stderr).readline()
        held.release()
        shown, _ = second.communicate(timeout=LIMIT)
    assert (second.returncode, len(shown.splitlines())) == (0, 2)


def test_a_first_index_that_cannot_go_on_is_not_waited_for(world):
    """Its writer is paused: what there is is searched, and said to be not all."""
    t = world.transcript()
    t.append(t.prompt("some words"))
    world.state.mkdir(mode=0o700)
    world.run("sessiond", "sync", t.path, check=0)
    held = must(lock.acquire(world.state / "sessiond.lock"))
    held.describe(mode="daemon", version=__version__)
    heart = notify.Heart(world.state / "status.json")
    heart.beat(error="the disk is full")
    try:
        done = world.run("sess", "search", "words", check=0)
    finally:
        heart.close()
        held.release()
    assert "some words" in done.stdout
    assert done.stderr == (
        "sess: the index is not complete; the rest cannot be read: the disk is full\n"
    )


def test_a_real_daemon_making_its_first_index_hides_no_session(world):
    """A command that waits finds what the daemon reads last."""
    for number in range(40):
        t = world.transcript(f"{number:08d}-1111-4111-8111-111111111111")
        t.append(*(t.prompt(f"some words {n} {'filling ' * 40}") for n in range(40)))
    daemon = world.start()
    try:
        wait_until(lambda: lock.is_held(world.state / "sessiond.lock"))
        done = world.run("sess", "list", "--wait", "--json", "--limit", "0", check=0)
    finally:
        daemon.terminate()
        daemon.wait(LIMIT)
    assert len(done.stdout.splitlines()) == 40


def test_the_current_directory_runs_no_code(world, tmp_path):
    """A repository with modules named like ours or like Python's is only a directory."""
    t = world.transcript()
    t.append(t.prompt("some words"))
    trap = tmp_path / "trap"
    for name in ("sessiond", "sess_schema", "sess_cli"):
        (trap / name).mkdir(parents=True)
        (trap / name / "__init__.py").write_text("raise SystemExit('trapped')")
    (trap / "json.py").write_text("raise SystemExit('trapped')")
    done = world.run("sess", "search", "words", cwd=trap, check=0)
    assert "trapped" not in done.stderr


@pytest.mark.parametrize("verb", [["list"], ["search", "x"], ["show", "1111"], ["sql", "SELECT 1"]])
def test_a_damaged_index_is_exit_code_4(world, verb):
    """A file that is no database is named, kept, and a way out is offered."""
    world.state.mkdir(mode=0o700)
    index = world.state / "index.db"
    index.write_bytes(b"garbage " * 1000)
    for extra in ([], ["--no-sync"]):
        done = world.run("sess", *verb, *extra, check=4)
        assert done.stdout == ""
        assert f'"{index}"' in done.stderr
        assert done.stderr.count("hint: ") == 1
        assert "Traceback" not in done.stderr
    assert index.read_bytes() == b"garbage " * 1000


@pytest.mark.parametrize("verb", [["list"], ["search", "words"], ["sql", "SELECT * FROM sources"]])
def test_damage_in_one_table_is_told_once(world, verb):
    """The sync and the query both meet it; the index opens all the same."""
    t = world.transcript()
    t.append(t.prompt("some words"))
    world.ingest()
    index = world.state / "index.db"
    ((page, size),) = world.sql(
        "SELECT rootpage, page_size FROM sqlite_schema, pragma_page_size WHERE name = 'sources'"
    )
    with index.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"garbage " * (size // 8))
    done = world.run("sess", *verb, check=4)
    assert done.stdout == ""
    assert done.stderr.count(f'"{index}" is damaged') == 1
    assert done.stderr.count("hint: ") == 1


def test_without_an_index_and_a_sync_it_says_so(world):
    """There are transcripts: nobody has read them yet."""
    t = world.transcript()
    t.append(t.prompt("some words"))
    done = world.run("sess", "list", "--no-sync", check=4)
    assert done.stderr.startswith(f'sess: no index at "{world.state}/index.db" yet\n')


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "code", "closing"),
    [
        ("list", 0, ">&-"),
        ("list", 0, "2>&-"),
        ("list --json", 0, ">&-"),
        ("search nowhere", 1, "2>&-"),
        ("search nowhere", 1, "<&- >&- 2>&-"),
        ("show nope", 1, "2>&-"),
        ("--version", 0, "<&- >&- 2>&-"),
    ],
)
def test_a_closed_stream_is_no_error(world, command, code, closing):
    """Nobody wants to read it; the exit code still tells."""
    t = world.transcript()
    t.append(t.prompt("some words"))
    world.ingest()
    done = subprocess.run(
        ["bash", "-c", f"{BIN}/sess {command} {closing}"],
        env=world.env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code
    assert "Traceback" not in done.stderr


def test_an_index_that_cannot_be_updated_is_still_read(world):
    """A copy in a read-only directory answers, after the complaint of the sync."""
    t = world.transcript()
    t.append(t.prompt("some words"))
    world.ingest()
    (world.state / "sessiond.lock").unlink(missing_ok=True)
    (world.state / "sessiond.lock").mkdir()
    done = world.run("sess", "search", "words", "--json", check=0)
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr


def test_a_traceback_comes_only_with_debug(monkeypatch, capsys):
    """What nobody foresaw is one line and a hint; --debug shows where it happened."""

    def surprise(**_):
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(fresh, "open_with_sessions", surprise)
    assert program.outcome("sess", lambda: program.follow(main.app, "sess", ["list"])) == 70
    assert capsys.readouterr().err == (
        "sess: RuntimeError: unforeseen\nhint: `sess --debug …` shows where; please report this\n"
    )
    with pytest.raises(RuntimeError, match="unforeseen"):
        program.outcome("sess", lambda: program.follow(main.app, "sess", ["list"]), debug=True)


@pytest.mark.slow
def test_ctrl_c_is_exit_code_130(world):
    """An interrupted query ends at once, without a traceback."""
    t = world.transcript()
    t.append(t.prompt("some words"))
    world.ingest()
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    process = subprocess.Popen(
        [BIN / "sess", "sql", "--no-sync", endless],
        env=world.env,
        stderr=subprocess.PIPE,
    )
    wait_until(lambda: computed(process.pid) > 1)  # many times what it takes to begin
    os.kill(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=LIMIT)
    assert (process.returncode, stderr) == (130, b"")


def test_a_search_for_words_loads_no_parser_of_options(world):
    """Half of what `sess search WORDS` would take is the parser that it does not need."""
    script = (
        "import sys; sys.argv = ['sess', 'search', 'words', '--no-sync']\n"
        "from sess_cli.start import run\n"
        "try: run()\n"
        "except SystemExit: pass\n"
        "sys.exit('typer' in sys.modules)"
    )
    t = world.transcript()
    t.append(t.prompt("some words"))
    world.ingest()
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, env=world.env
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "some words" in done.stdout


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["search", "a", "b"], ["a", "b"]),
        (["search", "--no-sync", "a"], ["a"]),
        (["search", "is:error", "a OR b"], ["is:error", "a OR b"]),
        (["search"], None),
        (["search", "--no-sync"], None),
        (["search", ""], None),
        (["search", "a", "-b"], None),
        (["search", "--json", "a"], ["a"]),
        (["search", "--json"], None),
        (["search", "--count", "a"], None),
        (["search", "@kept"], None),
        (["search", "--", "a"], None),
        (["list", "a"], None),
        ([], None),
    ],
)
def test_only_plain_search_take_the_short_way(given, words):
    """Whatever may be more than words is parsed."""
    found = plain_search(given)
    assert (found and found[1]) == words


def test_both_ways_to_a_search_say_the_same(world):
    """With and without the parser: output, messages, exit code."""
    t = world.transcript()
    t.append(t.prompt("some words here"), t.prompt("other words"))
    world.ingest()
    for words in (
        ["words"],
        ["nowhere"],
        ["wor"],
        ["some", "words"],
        ["is:nonsense"],
    ):
        short = world.run("sess", "search", *words, "--no-sync")
        parsed = world.run("sess", "search", "--no-sync", "--", *words)
        assert (short.returncode, short.stdout, short.stderr) == (
            parsed.returncode,
            parsed.stdout,
            parsed.stderr,
        )
