"""Errors: the same one elsewhere, what ended it, and what fails again and again."""
