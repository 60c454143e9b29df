from __future__ import annotations

import pytest
from tests.gemini_home import GeminiWorld


@pytest.fixture
def world(tmp_path):
    return GeminiWorld(tmp_path)
