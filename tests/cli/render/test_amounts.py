"""Times, durations and counts as people read them."""

from __future__ import annotations

import pytest

from sess_cli.render import amounts, tallies

NOON = 1_767_268_800_000  # 2026-01-01T12:00:00Z
MINUTE, DAY = 60_000, 86_400_000


@pytest.mark.parametrize(
    ("first", "last", "shown"),
    [
        (NOON, NOON + 8000, "2026-01-01 12:00"),
        (NOON, NOON + 5 * MINUTE, "2026-01-01 12:00 to 12:05"),
        (NOON, NOON + DAY, "2026-01-01 12:00 to 2026-01-02 12:00"),
        (NOON, None, "2026-01-01 12:00"),
        (None, None, "no date"),
    ],
)
def test_a_period_repeats_nothing(first, last, shown):
    """Neither the day nor the minute."""
    assert amounts.period(first, last, utc=True) == shown


@pytest.mark.parametrize(
    ("whole", "active", "shown"),
    [(0, 0, ""), (9000, 9000, "9.0s"), (3_900_000, 61_000, "1h5m, 1m1s active")],
)
def test_idle_time_is_told_where_there_was_any(whole, active, shown):
    """Otherwise the duration says it all."""
    assert amounts.spans(whole, active) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 tokens"),
        (1, "1 token"),
        (1150, "1,150 tokens"),
        (9999, "9,999 tokens"),
        (12_345, "12.3k tokens"),
        (4_500_000, "4.5M tokens"),
    ],
)
def test_tokens_are_short_but_never_bare(count, shown):
    """Below ten thousand they are exact, with a comma."""
    assert tallies.tokens(count) == shown


@pytest.mark.parametrize(("count", "shown"), [(0, "0 files"), (1, "1 file"), (1150, "1,150 files")])
def test_counts_agree_with_their_noun(count, shown):
    """And have a comma in thousands."""
    assert amounts.plural(count, "file") == shown
