"""A session as HTML: what a stranger wrote is text here, never markup."""
