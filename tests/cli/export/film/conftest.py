"""Films look the same in all tests, whatever fonts the machine has."""

from __future__ import annotations

import pytest

from sess_cli.export.film import fonts

folders = fonts.folders  # as films look for them


@pytest.fixture(autouse=True)
def _packaged_fonts_only(monkeypatch):
    monkeypatch.setattr(fonts, "folders", tuple)
