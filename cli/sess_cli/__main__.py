"""`python -m sess_cli` is `sess`."""

from sess_cli.main import run

run()
