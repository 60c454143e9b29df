"""`sess search`, from the words typed to the hits printed."""
