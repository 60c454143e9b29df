"""Line diffs, for everything that draws or counts what an edit changed."""

from sess_common.differ.counts import Counts, count_between, count_hunks, count_patch
from sess_common.differ.lines import between, from_hunks, from_patch
from sess_common.differ.words import DiffLine

__all__ = [
    "Counts",
    "DiffLine",
    "between",
    "count_between",
    "count_hunks",
    "count_patch",
    "from_hunks",
    "from_patch",
]
