"""`sess pick`: mark records of a transcript on the whole screen, and see what a cut would take."""
