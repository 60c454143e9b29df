"""The web address of a session's repository, found in the output of git."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sess_common.errors import SessError
from sess_schema import shown

if TYPE_CHECKING:
    from sess_cli.export.story import Story


_COMMIT = {
    "gitlab": "-/commit", "bitbucket": "commits", "github": "commit", "gitea": "commit",
    "sourcehut": "commit", "azure": "commit",
}  # fmt: skip
_PULL = {
    "gitlab": "-/merge_requests", "bitbucket": "pull-requests", "github": "pull", "gitea": "pulls",
    "azure": "pullrequest",
}  # fmt: skip
_KNOWN = {
    "github.com": "github", "bitbucket.org": "bitbucket", "codeberg.org": "gitea",
    "git.sr.ht": "sourcehut", "dev.azure.com": "azure",
}  # fmt: skip
_SSH_HOSTS = {
    "ssh.github.com": "github.com", "altssh.bitbucket.org": "bitbucket.org",
    "altssh.gitlab.com": "gitlab.com", "ssh.dev.azure.com": "dev.azure.com",
}  # fmt: skip

_PAGES = frozenset({
    "pull", "pulls", "commit", "commits", "tree", "blob", "src", "issues", "compare", "branch",
    "branches", "merge_requests", "releases", "wiki", "actions",
})  # fmt: skip

_SHA = re.compile(r"[0-9a-fA-F]{4,64}")
_HOST = re.compile(
    r"(?=.{4,253}\Z)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+(?:[a-z]{2,63}|\d{1,3})",
    re.IGNORECASE,
)
_NAME = re.compile(r"~?[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}|\.[A-Za-z0-9_-][A-Za-z0-9_.-]{0,98}")
_OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_URL = re.compile(
    r"(?P<scheme>https?|ssh|git|git\+ssh)://(?:[^\s/@]*(?:\[redacted[^\]\n]{0,40}\])?[^\s/@]*@)?"
    r"(?P<host>[A-Za-z0-9.-]+)(?P<port>:\d{1,5})?/(?P<path>[^\s?#'\"<>]+)"
)
_SCP = re.compile(r"(?:[A-Za-z0-9_.-]{1,64}@)?(?P<host>[A-Za-z0-9.-]+):(?P<path>[^\s:'\"<>]+)")

# What git prints around an address. How well it identifies the session's own repository:
# pushes and the links that answer them best, links to pull requests least.
_SAID = re.compile(
    r"^(?:remote:[ \t]+)?(?P<new>https://[^\s/]+/[^\s]{1,400}?)"
    r"(?:/pull/new/|/-/merge_requests/new|/merge_requests/new|/pull-requests/new|/compare/)"
    r"|^(?:To|From)[ \t](?P<push>[^\n]{1,500})$"
    r"|^[\w.-]{1,60}[ \t]+(?P<listed>[^\n]{1,500}?)[ \t]\((?:fetch|push)\)"
    r"|^remote\.[\w.-]{1,60}\.(?:push)?url[= \t]+(?P<set>[^\n]{1,500})$"
    r"|\bremote[ \t]+(?:add|set-url)[ \t]+[\w.-]{1,60}[ \t]+(?P<added>[^\n]{1,500})"
    r"|^[ \t]*\"?(?P<made>https://[^\s/]+/[^\s]{1,400}?)"
    r"/(?:pull|pulls|-/merge_requests|pull-requests)/\d{1,9}\"?[ \t]*$",
    re.MULTILINE,
)
_SIGNS = (
    "To ", "(push)", "(fetch)", "remote.", "/pull", "/merge_requests", "/compare/", "remote add",
    "remote set-url", "From ",
)  # fmt: skip
_WEIGHT = {"new": 3, "push": 3, "listed": 2, "set": 2, "added": 2, "made": 1}
_CERTAIN = 2
_READ = 8_192  # characters at each end of an output: git prints little
_CONFIG = 262_144  # bytes
_COMMITTED = (
    "SELECT 1 FROM commits c JOIN events e ON e.id = c.event_id JOIN sessions s"
    " ON s.id = e.session_id WHERE s.id = ?1 OR s.parent_id = ?1 LIMIT 1"
)
# Git prints remotes with a scheme or a user; most output has neither.
_OUTPUTS = (
    f"SELECT x.output FROM {shown.EVENTS}"
    f" JOIN event_texts x ON x.id = e.id WHERE t.session_id = ? AND {shown.CURRENT}"
    " AND e.type = 'tool_use' AND (x.output LIKE '%://%' OR x.output LIKE '%git@%')"
)


@dataclass(slots=True, frozen=True)
class Repository:
    """`base_url` is validated: https, a host name, a path of plain names."""

    base_url: str
    forge: str = "github"

    @property
    def name(self) -> str:
        """`owner/name`."""
        return self.base_url.split("/", 3)[3].replace("/_git/", "/")

    def commit(self, sha: str) -> str | None:
        return f"{self.base_url}/{_COMMIT[self.forge]}/{sha}" if _SHA.fullmatch(sha) else None

    def pull(self, number: int) -> str | None:
        kind = _PULL.get(self.forge)
        return f"{self.base_url}/{kind}/{number}" if kind and number > 0 else None


def parse(given: str) -> Repository:
    """`owner/name` (on GitHub), a clone URL, or a page of the repository."""
    text = given.strip()
    names = text.removesuffix(".git").split("/")
    if len(names) == 2 and _OWNER.fullmatch(names[0]) and ":" not in text:
        text = "https://github.com/" + text
    elif len(names) > 2 and "." in names[0] and _HOST.fullmatch(names[0]):
        text = "https://" + text
    repository = _address(text)
    if repository is None:
        raise SessError(
            f'invalid repository: "{given}"',
            hint="use owner/name, https://host/owner/name or git@host:owner/name",
        )
    return repository


def detect(outputs: Iterable[str], project: str | None = None) -> Repository | None:
    """The repository that git named most often, else the origin of the project directory."""
    votes: Counter[str] = Counter()
    certain: Counter[str] = Counter()
    repositories: dict[str, Repository] = {}
    for output in outputs:
        for repository, weight in _named(output):
            address = repository.base_url
            votes[address] += weight
            if weight >= _CERTAIN:
                certain[address] += weight
            # An unknown host counts as GitHub until one of its links shows otherwise.
            if address not in repositories or repository.forge != "github":
                repositories[address] = repository
    if not certain and project and (own := _origin(project)) is not None:
        return own
    ranked = (certain or votes).most_common(1)
    return repositories[ranked[0][0]] if ranked else None


def _named(output: str) -> Iterator[tuple[Repository, int]]:
    if len(output) > 2 * _READ:
        output = f"{output[:_READ]}\n{output[-_READ:]}"
    if not any(sign in output for sign in _SIGNS):
        return
    for said in _SAID.finditer(output.replace("\r", "")):
        kind = said.lastgroup or ""
        repository = _address(said[kind].strip(), _hint(said[0], kind))
        if repository is not None:
            yield repository, _WEIGHT[kind]


def _hint(said: str, kind: str) -> str:
    """The software that an unknown host runs, judged by the form of its links."""
    if "/merge_requests" in said:
        return "gitlab"
    if "/pull-requests/" in said:
        return "bitbucket"
    return "gitea" if kind in ("new", "made") and ("/compare/" in said or "/pulls/" in said) else ""


def _address(text: str, hint: str = "") -> Repository | None:
    parts = _URL.match(text)
    if parts is not None:
        host, port = parts["host"].lower(), parts["port"] or ""
        if parts["scheme"] != "https":
            if parts["scheme"] == "http" and port:
                return None
            port = ""
    else:
        parts = _SCP.match(text)
        if parts is None or "//" in text.partition(":")[2][:2]:
            return None
        host, port = parts["host"].lower(), ""
    host = _SSH_HOSTS.get(host, host)
    if not _HOST.fullmatch(host):
        return None
    forge = _forge(host)
    path = _path(parts["path"], forge)
    if not path:
        return None
    # Only GitLab has groups within groups.
    guess = "gitlab" if path.count("/") > 1 else hint or "github"
    return Repository(f"https://{host}{port}/{path}", forge or guess)


def _forge(host: str) -> str:
    if host in _KNOWN:
        return _KNOWN[host]
    for word in ("gitlab", "bitbucket", "github"):
        if word in host:
            return word
    return "gitea" if "gitea" in host or "forgejo" in host else ""


def _path(given: str, forge: str) -> str | None:
    """`owner/name`, for any page of the repository."""
    names = given.partition("/-/")[0].strip("/").split("/")
    if forge == "azure":
        # git@ssh.dev.azure.com:v3/organisation/project/repository
        names = [name for name in names if name != "_git"]
        names = names[1:] if names[0] == "v3" else names
        names = [*names[:2], "_git", names[2]] if len(names) > 2 else []
    elif forge in ("", "gitlab"):
        page = next((n for n, name in enumerate(names) if n > 1 and name in _PAGES), len(names))
        names = names[:page]
    else:
        names = names[:2]
    if not 2 <= len(names) <= 8:
        return None
    names[-1] = names[-1].removesuffix(".git")
    return "/".join(names) if all(_NAME.fullmatch(name) for name in names) else None


# -- the project directory, if it exists on this machine


def _origin(project: str) -> Repository | None:
    """The URL of `origin`, else of any remote, from git's configuration."""
    folder = os.path.expanduser(project)
    # The path of a network share would make Windows contact another machine.
    if not os.path.isabs(folder) or folder.startswith(("\\\\", "//")):
        return None
    config = _config(folder)
    while config is None and (above := os.path.dirname(folder)) != folder:
        folder = above
        config = _config(folder)
    remotes: dict[str, str] = {}
    section = ""
    for line in (config or "").splitlines():
        text = line.strip()
        if text.startswith("["):
            named = re.fullmatch(r'\[remote "([^"]{1,200})"\]', text)
            section = named[1] if named else ""
        elif section and (value := re.fullmatch(r"url\s*=\s*(\S+)", text)):
            remotes.setdefault(section, value[1])
    for name in ("origin", "upstream", *remotes):
        if name in remotes and (repository := _address(remotes[name])) is not None:
            return repository
    return None


def _config(folder: str) -> str | None:
    """The configuration of the repository in this directory; a worktree shares the main one's."""
    git = os.path.join(folder, ".git")
    pointer = _small_file(git)
    if pointer is not None:
        git = os.path.join(folder, pointer.strip().removeprefix("gitdir:").strip())
        shared = _small_file(os.path.join(git, "commondir"))
        if shared is not None:
            git = os.path.join(git, shared.strip())
    return _small_file(os.path.join(git, "config"))


def _small_file(path: str) -> str | None:
    """The text of a regular file; anything else (a pipe, a device) is not opened."""
    try:
        about = os.stat(path)
        if not stat.S_ISREG(about.st_mode) or about.st_size > _CONFIG:
            return None
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_CONFIG)
    except (OSError, ValueError):
        return None


# -- the repository of a session


def repository_of(story: Story, given: str | None = None) -> Repository | None:
    """`given`, else what the output shows; not searched if there is no commit to link."""
    if given:
        return parse(given)
    if story.db.execute(_COMMITTED, (story.row.key,)).get is None:
        return None
    outputs = (output for (output,) in story.db.execute(_OUTPUTS, (story.row.key,)))
    return detect(outputs, story.row.directory)
