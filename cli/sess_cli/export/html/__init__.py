"""A session as HTML: foreign content is text here, never markup."""
