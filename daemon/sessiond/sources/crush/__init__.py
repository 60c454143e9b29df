"""Crush: where its databases are. Each project has its own; a registry lists them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sessiond.families.in_tables import InTables
from sessiond.sourcekit import disk
from sessiond.sourcekit.base import SOURCE_CODE
from sessiond.sourcekit.files import small_json
from sessiond.sourcekit.folders import absolute
from sessiond.sourcekit.values import as_dict

if TYPE_CHECKING:
    from sessiond.engines.tables import Layout
    from sessiond.sourcekit.foreign import Foreign

__all__ = ["SOURCE", "CrushSource"]

_FOLDER, _REGISTRY = ".crush", "projects.json"
_LARGEST_REGISTRY = 4 << 20


class CrushSource(InTables):
    agent = "crush"
    title = "Crush"
    database = "crush.db"
    variables = ("CRUSH_GLOBAL_DATA", "XDG_DATA_HOME")
    reads = (
        "Sessions with their messages in the database of each project that Crush has registered."
        " Crush keeps the tokens of the last response of a session only, and the cost of them all."
    )
    leaves = (
        ("the tables files and read_files", "copies of edited files"),
        ("projects of versions without a registry", "name their folders in config.toml"),
    )
    known_from = SOURCE_CODE

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._registered: tuple[int, dict[str, str]] = (0, {})

    def places(self) -> list[str]:
        return list(self.projects())

    def projects(self) -> Mapping[str, str]:
        """The folder of each project by the folder of its data, as registered."""
        path = os.path.join(self._global_data(), _REGISTRY)
        try:
            changed = disk.stat(path).st_mtime_ns
        except OSError:
            return {}
        if changed != self._registered[0]:
            self._registered = changed, dict(_listed(small_json(path, _LARGEST_REGISTRY)))
        return self._registered[1]

    def layout(self, foreign: Foreign) -> Layout:
        from sessiond.sources.crush.tables import CrushTables  # when something changed

        folder = os.path.dirname(foreign.path)
        real = {disk.real(data): path for data, path in self.projects().items()}
        above, name = os.path.split(folder)
        return CrushTables(real.get(folder) or (above if name == _FOLDER else None))

    def _global_data(self) -> str:
        moved = self.environ.get("CRUSH_GLOBAL_DATA", "").strip()
        if moved:
            return self.folders.expand(moved)
        windows = self.platform == "win32"
        return os.path.join(self.folders.local() if windows else self.folders.data_home(), "crush")


def _listed(registry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    projects = registry.get("projects")
    for project in map(as_dict, projects if isinstance(projects, list) else ()):
        folder, data = absolute(project.get("path")), absolute(project.get("data_dir"))
        if folder:
            yield data or os.path.join(folder, _FOLDER), folder


SOURCE = CrushSource
