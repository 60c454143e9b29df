"""The verbs of `sessiond`, one file each."""
