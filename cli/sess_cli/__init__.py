"""`sess`: the views over the index. It only ever reads."""

import gc

# A command lives for a moment: collecting while the modules load takes a twentieth of its time.
gc.set_threshold(50_000)
