"""`python -m sessiond` is `sessiond`."""

from sessiond.main import run

run()
