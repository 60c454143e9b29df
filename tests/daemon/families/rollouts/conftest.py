"""A home directory for rollouts."""

from __future__ import annotations

import pytest
from tests.daemon.families.rollouts.rollouts import CodexHome


@pytest.fixture
def home(tmp_path):
    return CodexHome(tmp_path)
