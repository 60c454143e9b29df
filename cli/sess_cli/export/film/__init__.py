"""A session as a film: storyboard, pacing, frames, and encoders."""
