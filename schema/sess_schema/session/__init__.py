"""The one reader of a session: `shown` defines which events belong to it, `reader` reads them."""
