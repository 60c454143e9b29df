"""Reading values that agents wrote."""

from __future__ import annotations

import pytest

from sessiond.sourcekit.values import as_time

NOON = 1_767_268_800_000  # 2026-01-01T12:00:00Z


@pytest.mark.parametrize(
    "written",
    [
        "2026-01-01T12:00:00Z",
        "2026-01-01T12:00:00",
        "2026-01-01T13:00:00.000+01:00",
        str(NOON),
        NOON // 1000,
        NOON / 1000,
        NOON,
        NOON * 1000,
        NOON * 1_000_000,
    ],
)
def test_a_time_may_be_written_in_many_ways(written):
    """ISO 8601, or a number whose size says whether it counts seconds or parts of them."""
    assert as_time(written) == NOON


@pytest.mark.parametrize(
    "written",
    [
        *(0, 1, 5000, 86_400_000, 123_456_789, -1, -NOON, 1e30, float("nan"), True, None, [], ""),
        "1970-01-01T00:00:00Z",
        "0001-01-01T00:00:00Z",  # how Go writes no time
        "1999-12-31T23:59:59.999Z",
        "1899-12-30T00:00:00Z",
        "yesterday",
        "0000000000",
    ],
)
def test_what_is_before_2000_is_no_time(written):
    """A missing time is often written as zero; nothing that we read is that old."""
    assert as_time(written) is None


def test_the_first_moment_of_2000_is_a_time():
    """The limit itself."""
    assert as_time("2000-01-01T00:00:00Z") == 946_684_800_000
