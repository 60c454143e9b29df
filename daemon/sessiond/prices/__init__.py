"""Computes what a response costs, by the prices of its day."""
