"""`sess`: the read-only client of the index."""

import gc

# Commands are short-lived: collecting garbage while modules load takes 5% of their time.
gc.set_threshold(50_000)
