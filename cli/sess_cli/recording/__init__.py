"""Records a conversation as a transcript that sessiond reads. docs/record.md shows how.

Only the standard library is imported: an agent can record itself without paying for the rest.
"""

from sess_cli.recording.recorder import InvalidId, Recorder, check_id

__all__ = ["InvalidId", "Recorder", "check_id"]
