"""The daemon: watch, wake, pass, rest; and how it is started, installed and watched over."""
