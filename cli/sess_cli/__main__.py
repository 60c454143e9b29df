"""`python -m sess_cli` is `sess`."""

from sess_cli.start import run

run()
