"""Finds the project of a chat from the folder that holds it: its records name none."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any

from sessiond.sourcekit.files import small_file, small_json
from sessiond.sourcekit.folders import absolute
from sessiond.sourcekit.values import as_dict, as_text

PROJECT_ROOT = ".project_root"
_REGISTRY, _HISTORY = "projects.json", "history"


def project_of(folder: str, facts: Mapping[str, Any]) -> str | None:
    """The project path of a folder in `tmp`, or None if it is not certain."""
    slug, home = os.path.basename(folder), os.path.dirname(os.path.dirname(folder))
    for noted in (folder, os.path.join(home, _HISTORY, slug)):
        root = small_file(os.path.join(noted, PROJECT_ROOT)).decode("utf-8", "replace").strip()
        if path := absolute(root):
            return path
    registry = small_json(os.path.join(home, _REGISTRY))
    known = as_dict(registry.get("projects"))
    for path, name in known.items():
        if name == slug and absolute(path):
            return absolute(path)
    digests = {slug, as_text(facts.get("projectHash")) or slug}
    return with_digest(digests, [*known, *_listed(facts)])


def with_digest(digests: set[str], paths: list[Any]) -> str | None:
    """The path whose SHA-256 is in `digests`: folder names and `projectHash` are such digests."""
    for path in paths:
        if isinstance(path, str) and absolute(path):
            digest = hashlib.sha256(path.encode("utf-8", "replace")).hexdigest()
            if digest in digests:
                return absolute(path)
    return None


def _listed(facts: Mapping[str, Any]) -> list[Any]:
    directories = facts.get("directories")
    return directories if isinstance(directories, list) else []
