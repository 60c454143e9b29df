"""`sess`: the views over the index. It only ever reads."""
