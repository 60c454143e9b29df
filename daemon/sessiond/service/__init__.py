"""The daemon's loop, and how it is started, installed and monitored."""
