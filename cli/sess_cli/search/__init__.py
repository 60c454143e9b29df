"""What `sess search` does, from the words typed to the hits printed."""
