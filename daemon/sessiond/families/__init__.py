"""File formats that several agents share: each agent in `sources/` says where and what differs."""
