"""The views of `sess stats` beyond sums: what each session adds to a view, and the whole of it."""
