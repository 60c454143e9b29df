"""Coding agents that leave something on disk and that sessiond does not read (yet), by folder."""

from __future__ import annotations

STRANGERS: dict[str, tuple[str, ...]] = {
    "Augment": ("~/.augment/sessions",),
    "Codebuff": ("~/.config/manicode/projects",),
    "Cody": ("~/.config/Code/User/globalStorage/sourcegraph.cody-ai",),
    "JetBrains Junie": ("~/.junie",),
    "Mistral Vibe": ("~/.vibe/logs",),
    "Plandex": ("~/.plandex-home-v2", "~/.plandex-home"),
    "Qoder": ("~/.qoder",),
    "Rovo Dev": ("~/.rovodev/sessions",),
    "Tabnine": ("~/.tabnine",),
    "Void": ("~/.config/Void/User/globalStorage",),
    "Zencoder": ("~/.zencoder",),
}
