"""What import-linter has no contract for."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

PACKAGES = ("sess_common", "sess_redaction", "sess_schema", "sessiond", "sess_cli")


def test_no_imports_go_in_circles() -> None:
    """Nor those for type checkers: two modules that name each other's types are one."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}

    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))
