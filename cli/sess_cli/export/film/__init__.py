"""A session as a film: what happens when, then frames; encoders and files beside them."""
