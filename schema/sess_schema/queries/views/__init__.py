"""What `sess stats` tells beyond sums: one module per view, each with a `read(db, asked)`."""
