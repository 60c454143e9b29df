# ruff: noqa: INP001
"""Check that a tag, the version and the changelog agree; print the changes of that version.

python scripts/check_release.py v0.2.0
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_HEADING = re.compile(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", re.MULTILINE)


def problem(tag: str, version: str, changelog: str) -> str | None:
    """The reason not to release this, if there is one."""
    if tag != f"v{version}":
        return f"the tag is {tag}, but the version in pyproject.toml is {version}"
    headings = {found[1]: found for found in _HEADING.finditer(changelog)}
    if version not in headings or not headings[version][2]:
        return f"the changelog has no dated section for {version}"
    if next((name for name in headings if name != "Unreleased"), None) != version:
        return f"{version} is not the newest section of the changelog"
    if "Unreleased" in headings and notes(changelog, "Unreleased"):
        return "the changelog still has entries under Unreleased"
    return None


def notes(changelog: str, version: str) -> str:
    """The text of one section."""
    for found in _HEADING.finditer(changelog):
        if found[1] == version:
            after = _HEADING.search(changelog, found.end())
            return changelog[found.end() : after.start() if after else None].strip()
    return ""


def main() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    if wrong := problem(sys.argv[1], version, changelog):
        sys.exit(f"not released: {wrong}")
    print(notes(changelog, version))


if __name__ == "__main__":
    main()
