"""Regular expressions that are compiled when they are first used: most commands use few."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from re import compile as later
else:

    class later:  # noqa: N801 - stands for a function
        """Like the pattern that `re.compile` makes."""

        def __init__(self, pattern, flags=0):
            self.pattern, self.flags = pattern, flags

        def __getattr__(self, name):
            import re

            value = getattr(re.compile(self.pattern, self.flags), name)
            self.__dict__[name] = value
            return value


__all__ = ["later"]
