"""The repository of a session, and links into it that are safe to click."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.at_length import amount
from tests.must import must

from sess_cli.export.forge import Repository, detect, parse
from sess_common.errors import SessError


@pytest.mark.parametrize(
    ("given", "base", "commit", "pull"),
    [
        ("o/r", "https://github.com/o/r", "commit", "pull"),
        ("o/r.js.git", "https://github.com/o/r.js", "commit", "pull"),
        ("https://github.com/o/r/pull/12/files", "https://github.com/o/r", "commit", "pull"),
        (
            "https://x:[redacted: password]@github.com/o/r",
            "https://github.com/o/r",
            "commit",
            "pull",
        ),
        ("ssh://git@ssh.github.com:443/o/r.git", "https://github.com/o/r", "commit", "pull"),
        ("git@gitlab.com:g/s/r.git", "https://gitlab.com/g/s/r", "-/commit", "-/merge_requests"),
        (
            "ssh://git@h.example:22/a/b/c.git",
            "https://h.example/a/b/c",
            "-/commit",
            "-/merge_requests",
        ),
        ("git@bitbucket.org:o/r.git", "https://bitbucket.org/o/r", "commits", "pull-requests"),
        ("codeberg.org/o/r", "https://codeberg.org/o/r", "commit", "pulls"),
        ("https://forgejo.example:84/o/r", "https://forgejo.example:84/o/r", "commit", "pulls"),
        ("git@git.sr.ht:~me/r", "https://git.sr.ht/~me/r", "commit", None),
        (
            "git@ssh.dev.azure.com:v3/org/p/r",
            "https://dev.azure.com/org/p/_git/r",
            "commit",
            "pullrequest",
        ),
    ],
)
def test_every_way_to_name_a_repository(given, base, commit, pull):
    repository = parse(given)
    assert repository.commit("abc1234") == f"{base}/{commit}/abc1234"
    assert repository.pull(7) == (f"{base}/{pull}/7" if pull else None)


@pytest.mark.parametrize(
    "given",
    [
        "", "r", "javascript:alert(1)//x/y", "https://github.com/o", "https://github.com/../r",
        "https://evil.example/<b>/x", 'https://github.com/o"onclick=/r', "/code/demo.git", "C:/x/y",
        "git@localhost:o/r", "http://h.example.org:3000/o/r", "file:///o/r", "data:text/html,o/r",
        "o/r/../..", "https://github.com/o/..", "https://-bad-.example/o/r", "o /r", "..:o/r",
    ],
)  # fmt: skip
def test_what_is_not_a_repository_is_refused(given):
    with pytest.raises(SessError) as refused:
        parse(given)
    assert "owner/name" in must(refused.value.hint)


def test_only_hashes_and_numbers_become_links():
    repository = Repository("https://github.com/o/r")
    for sha in ("", "abc", "HEAD", "abc1234/../..", "abc1234\n", 'abc"', "a" * 65):
        assert repository.commit(sha) is None
    assert repository.pull(0) is None
    assert repository.name == "o/r"


@pytest.mark.parametrize(
    ("output", "address"),
    [
        ("To github.com:o/r.git\n   1a2b3c4..5d6e7f8  main -> main\n", "https://github.com/o/r"),
        ("To https://github.com/o/r.js.git\n * [new branch]", "https://github.com/o/r.js"),
        ("From git.example.org:o/r\n * branch main -> FETCH_HEAD", "https://git.example.org/o/r"),
        ("remote: \nremote:      https://github.com/o/r/pull/new/x\n", "https://github.com/o/r"),
        ("remote:   https://gl.example.org/g/s/r/-/merge_requests/new?a=b\n", "https://gl.example.org/g/s/r"),
        ("remote:   https://bitbucket.org/o/r/pull-requests/new?source=x\n", "https://bitbucket.org/o/r"),
        ("remote:   https://tea.example.org/o/r/compare/main...x\n", "https://tea.example.org/o/r"),
        ("origin\tgit@codeberg.org:o/r.git (fetch)\n", "https://codeberg.org/o/r"),
        ("remote.origin.url=https://gitlab.com/o/r.git\n", "https://gitlab.com/o/r"),
        ("$ git remote add origin git@github.com:o/r.git\n", "https://github.com/o/r"),
        ("https://github.com/o/r/pull/12\n", "https://github.com/o/r"),
        ("To github.com:o/r.git\r\n", "https://github.com/o/r"),
    ],
)  # fmt: skip
def test_the_repository_is_found_in_gits_output(output, address):
    assert must(detect([output])).base_url == address


def test_links_show_which_software_an_unknown_host_runs():
    push = "To git.example.org:o/r.git\n"
    assert must(detect([push])).forge == "github"
    assert (
        must(detect([push, "remote: https://git.example.org/o/r/-/merge_requests/new?x"])).forge
        == "gitlab"
    )
    assert (
        must(detect(["remote: https://git.example.org/o/r/compare/main...x", push])).forge
        == "gitea"
    )


def test_the_repository_named_most_often_wins_and_pushes_count_more_than_links():
    push, other = "To github.com:o/r.git\n", "To github.com:fork/r.git\n"
    link = "https://github.com/other/project/pull/1\n"
    assert must(detect([other, push, push])).name == "o/r"
    assert must(detect([link] * 20 + [push])).name == "o/r"
    assert must(detect([link])).name == "other/project"


def test_other_output_names_no_repository():
    assert (
        detect(
            ["", "To whom it may concern", "see https://github.com/o/r for more", "To /tmp/x.git"]
        )
        is None
    )
    assert detect([]) is None


def test_the_ends_of_a_long_output_are_read():
    assert must(detect(["x\n" * 100_000 + "To github.com:o/r.git\n"])).name == "o/r"


def git(folder, *arguments):
    subprocess.run(
        ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", *arguments],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip


def test_the_origin_of_a_folder_on_this_machine_counts_when_nothing_was_pushed(tmp_path):
    main = tmp_path / "main"
    (main / "deep").mkdir(parents=True)
    git(main, "init", "-q")
    git(main, "remote", "add", "fork", "git@github.com:fork/r.git")
    assert must(detect([], str(main))).name == "fork/r"
    git(main, "remote", "add", "origin", "git@github.com:o/r.git")
    git(main, "commit", "-q", "--allow-empty", "-m", "first")
    git(main, "worktree", "add", "-q", str(tmp_path / "tree"))
    for folder in (main, main / "deep", tmp_path / "tree"):
        assert must(detect(["https://github.com/other/r/pull/1\n"], str(folder))).name == "o/r"
    assert must(detect(["To github.com:pushed/r.git\n"], str(main))).name == "pushed/r"


def test_a_missing_relative_or_hostile_folder_names_no_repository(tmp_path):
    os.mkfifo(tmp_path / ".git")
    for project in (str(tmp_path), str(tmp_path / "gone"), "relative", "", "//host/share", "a\0b"):
        assert detect([], project) is None


BEGINNINGS = st.sampled_from(
    [
        "",
        "To github.com:",
        "To git@evil.example:",
        "origin\thttps://",
        "remote: https://github.com/",
    ]
)
PIECES = st.lists(
    st.sampled_from([
        "To ", "github.com", ":", "/", "o", "r.git", "o/r", "https://", "\n", "..", "<script>",
        '"', " ",
        "remote: ", "/pull/new/", "@", "javascript:", "(push)",
        "origin\t", "evil.example", "#", "?",
    ]),
    max_size=14,
).map("".join)  # fmt: skip


def test_whatever_is_printed_links_are_plain_https():
    bases = set()

    @settings(max_examples=amount(333, 3000), deadline=None, derandomize=True)
    @given(BEGINNINGS, st.sampled_from(["", "o/r"]), PIECES)
    def printed(beginning, name, text):
        found = detect([f"{beginning}{name}{text}\n"])
        if found is not None:
            base = found.base_url
            assert re.fullmatch(r"https://[a-z0-9.-]+(:\d+)?(/[~A-Za-z0-9_.-]+){2,8}", base)
            assert ".." not in base.split("/")
            bases.add(base)

    printed()
    assert len(bases) > 5
