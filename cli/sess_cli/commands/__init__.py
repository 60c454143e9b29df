"""One file per verb; each registers itself on the app. Heavy imports wait until it is called."""
