"""Without Playwright every file here is skipped, and the report says so."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

if find_spec("playwright") is None:

    class Skipped(pytest.Module):
        def collect(self):
            pytest.skip("playwright is not installed: NO BROWSER TEST RAN", allow_module_level=True)

    def pytest_pycollect_makemodule(module_path, parent):
        return Skipped.from_parent(parent, path=module_path)

else:
    from tests.browser.attacks import chromium
    from tests.browser.reader import Reader, long_session
    from tests.conftest import World

    @pytest.fixture(scope="module")
    def browser():
        """Skips, with a message, if there is no Chromium."""
        with chromium() as browser:
            yield browser

    @pytest.fixture(scope="module")
    def long_world(tmp_path_factory):
        world = World(tmp_path_factory.mktemp("long"))
        long_session(world)
        return world

    @pytest.fixture
    def long(long_world, browser):
        reader = Reader(long_world, browser)
        yield reader
        reader.close()
