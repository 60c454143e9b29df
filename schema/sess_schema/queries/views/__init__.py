"""The views of `sess stats` beyond sums: one module each, with a `read(db, asked)`."""
