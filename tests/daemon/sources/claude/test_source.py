from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sessiond.sourcekit.base import SessionSpec
from sessiond.sourcekit.folders import ProjectFolder
from sessiond.sources.claude import ClaudeSource

SESSION = "0f0e0d0c-1111-4222-8333-444455556666"


def roots(platform: str = "linux", **environ: str) -> list[str]:
    return ClaudeSource(environ={"HOME": "/h", **environ}, platform=platform).roots()


def test_default_roots() -> None:
    """Without settings both homes of Claude Code and the desktop app's are watched."""
    assert roots() == [
        "/h/.claude/projects",
        "/h/.config/claude/projects",
        "/h/.config/Claude/local-agent-mode-sessions",
    ]


def test_xdg_config_home_moves_roots() -> None:
    """XDG_CONFIG_HOME moves what is below it and nothing else."""
    assert roots(XDG_CONFIG_HOME="/x") == [
        "/h/.claude/projects",
        "/x/claude/projects",
        "/x/Claude/local-agent-mode-sessions",
    ]


def test_config_dir_replaces_the_default() -> None:
    """CLAUDE_CONFIG_DIR may list config directories and `projects` directories."""
    assert roots(CLAUDE_CONFIG_DIR="/a, ~/b/projects/,,") == [
        "/a/projects",
        "/h/b/projects",
        "/h/.config/Claude/local-agent-mode-sessions",
    ]


def test_desktop_roots_of_other_systems(tmp_path: Path) -> None:
    """The desktop app keeps its sessions where each system keeps application data."""
    assert roots("darwin")[-1] == (
        "/h/Library/Application Support/Claude/local-agent-mode-sessions"
    )
    store = tmp_path / "Packages" / "Claude_x1" / "LocalCache" / "Roaming"
    store.mkdir(parents=True)
    assert roots("win32", APPDATA="/roaming", LOCALAPPDATA=str(tmp_path))[-2:] == [
        "/roaming/Claude/local-agent-mode-sessions",
        str(store / "Claude" / "local-agent-mode-sessions"),
    ]


def test_extra_roots_come_last_and_once() -> None:
    """Roots of the configuration are added; one that is known already is not repeated."""
    source = ClaudeSource(["/more", "~/.claude/projects"], {"HOME": "/h"}, "linux")
    assert source.roots()[-1] == "/more"
    assert len(source.roots()) == 4


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (f"/r/projects/-w/{SESSION}.jsonl", "transcript"),
        ("/r/projects/-w/Chat.JSONL", "transcript"),
        (f"/r/projects/-w/{SESSION}/subagents/agent-a1.jsonl", "transcript"),
        (f"/r/projects/-w/{SESSION}/subagents/agent-a1.meta.json", "sidecar"),
        (f"/r/projects/-w/{SESSION}/tool-results/b1.txt", "attachment"),
        (f"/r/projects/-w/{SESSION}/tool-results/b1.jsonl", "attachment"),
        (f"/r/projects/-w/{SESSION}/tool-results/deep/b1.txt", None),
        ("/r/projects/-w/sessions-index.json", None),
        ("/r/projects/-w/notes.jsonl.bak", None),
        ("/c/local-agent-mode-sessions/a/b/local_1/audit.jsonl", None),
        ("/projects/local-agent-mode-sessions/a/local_1/audit.jsonl", None),
        (
            "/c/local-agent-mode-sessions/a/local_1/.claude/projects/-w/x.jsonl",
            "transcript",
        ),
    ],
)
def test_classify(path: str, kind: str | None) -> None:
    """A file's place and name tell what it is; the desktop app's own logs are not ours."""
    assert ClaudeSource().classify(path) == kind


FOLDER = ProjectFolder("/r/-w", "-w")


def test_main_sessions() -> None:
    """A UUID names a session anywhere; any other name only in its folder."""
    source = ClaudeSource()
    assert source.identify(f"/r/-w/{SESSION}.jsonl", b"") == SessionSpec(
        SESSION,
        folder=FOLDER,
        attachments=f"/r/-w/{SESSION}/tool-results",
        resume=("claude", "--resume", SESSION),
    )
    assert source.identify("/r/-w/one/chat.jsonl", b"") == SessionSpec(
        "chat",
        home="/r/-w/one",
        attachments="/r/-w/one/chat/tool-results",
        resume=("claude", "--resume", "chat"),
    )


@pytest.mark.parametrize("below", ["", "workflows/wf_1"])
def test_subagents_below_their_session(below: str) -> None:
    """The directory above `subagents` is the parent; its tool results are there too."""
    path = os.path.join("/r/-w", SESSION, "subagents", below, "agent-a1.jsonl")
    assert ClaudeSource().identify(path, b'{"sessionId":"other"}\n') == SessionSpec(
        "agent-a1",
        home=SESSION,
        kind="subagent",
        parent=SESSION,
        folder=FOLDER,
        attachments=f"/r/-w/{SESSION}/tool-results",
    )


@pytest.mark.parametrize(
    "head",
    [
        b'{"type":"summary"}\nbroken\n{"forkedFrom":{"sessionId":"x"},"sessionId":"%s"}\n',
        b'{"isSidechain":true,"sessionId" : "%s","message":{"content":"cut off her',
    ],
)
def test_flat_subagents(head: bytes) -> None:
    """Beside the sessions, the parent is named in the first records, even in a cut one."""
    spec = ClaudeSource().identify("/r/-w/agent-a1.jsonl", head % SESSION.encode())
    assert (spec.kind, spec.parent, spec.home) == ("subagent", SESSION, SESSION)
    assert spec.attachments == f"/r/-w/{SESSION}/tool-results"


def test_flat_subagent_without_a_parent() -> None:
    """An empty file of a subagent belongs to its folder until more is known."""
    assert ClaudeSource().identify("/r/-w/agent-a1.jsonl", b"") == SessionSpec(
        "agent-a1", home="/r/-w", kind="subagent", folder=FOLDER
    )


def test_logs() -> None:
    """The journal of a workflow and the prompt history are logs, no conversations."""
    source = ClaudeSource()
    folder = f"/r/-w/{SESSION}/subagents/workflows/wf_1"
    assert source.identify(f"{folder}/journal.jsonl", b"") == SessionSpec(
        "journal", home=folder, kind="log", parent=SESSION
    )
    assert source.identify("/h/.claude/history.jsonl", b"") == SessionSpec(
        "history", home="/h/.claude", kind="log"
    )
    assert source.identify("/r/-w/journal.jsonl", b"").kind == "main"


def identify_with_sidecar(folder: Path, sidecar: bytes) -> SessionSpec:
    (folder / "agent-a1.meta.json").write_bytes(sidecar)
    return ClaudeSource().identify(str(folder / "agent-a1.jsonl"), b"")


def test_sidecar(tmp_path: Path) -> None:
    """The sidecar gives the type, the title and the call that started the subagent."""
    facts = {"agentType": "Explore", "description": "Count knots", "toolUseId": "c1", "name": "n"}
    spec = identify_with_sidecar(tmp_path, json.dumps(facts).encode())
    assert (spec.agent_type, spec.title, spec.call_id) == ("Explore", "Count knots", "c1")
    spec = identify_with_sidecar(tmp_path, b'{"agentType":7,"name":"ann"}')
    assert (spec.agent_type, spec.title, spec.call_id) == (None, "ann", None)


@pytest.mark.parametrize("sidecar", [b"", b"{", b"[1]", b'{"name":"' + b"x" * 70_000 + b'"}'])
def test_bad_sidecars(tmp_path: Path, sidecar: bytes) -> None:
    """A sidecar that is broken, no object or too large is as good as none."""
    assert identify_with_sidecar(tmp_path, sidecar).title is None


def test_hostile_sidecars(tmp_path: Path) -> None:
    """No link is followed, and a pipe in place of the sidecar does not block."""
    secret = tmp_path / "secret.json"
    secret.write_text('{"name":"secret"}')
    sidecar = tmp_path / "agent-a1.meta.json"
    transcript = str(tmp_path / "agent-a1.jsonl")
    sidecar.symlink_to(secret)
    assert ClaudeSource().identify(transcript, b"").title is None
    sidecar.unlink()
    os.mkfifo(sidecar)
    assert ClaudeSource().identify(transcript, b"").title is None
    sidecar.unlink()
    sidecar.mkdir()
    assert ClaudeSource().identify(transcript, b"").title is None


def test_a_saved_output_is_no_conversation():
    """Wherever it lies, nor for a person who says that it is Claude Code's."""
    path = "/elsewhere/22222222-aaaa-4bbb-8ccc-000000000002/tool-results/b1.txt"
    assert ClaudeSource().kind_if_ours(path, b"1\n2\n") is None
