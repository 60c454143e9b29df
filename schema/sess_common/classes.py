"""`dataclass` without generated code, for what searches, the status line and totals load.

The one of the standard library compiles several functions for each class, and imports `inspect`:
together that took longer than a search. This one has what we use of it: defaults, `frozen`,
comparison and hashing by fields, `replace`, `asdict`. Type checkers see the real one; modules that
none of these loads use it.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, whose import takes as long as ten modules of ours
if TYPE_CHECKING:
    from dataclasses import asdict, dataclass, field, replace
    from re import compile as later
else:

    class _Made:
        """A default that is made anew for each object."""

        def __init__(self, default_factory):
            self.make = default_factory

    field = _Made

    class _Fields:
        """What the functions of `dataclasses` ask for: theirs work on these classes, too."""

        def __get__(self, one, cls):
            import dataclasses

            found = {}
            for name in cls._names:
                found[name] = made = dataclasses.field()
                made.name, made._field_type = name, dataclasses._FIELD
            return found

    def dataclass(cls=None, *, frozen=False, slots=True):
        if cls is None:
            return lambda made: dataclass(made, frozen=frozen)
        names, defaults, made = [], {}, {}
        for above in cls.__mro__[:0:-1]:
            names += getattr(above, "_names", ())
            defaults |= getattr(above, "_defaults", {})
            made |= getattr(above, "_made", {})
        for name in cls.__annotations__:
            if name not in names:
                names.append(name)
            if isinstance(default := cls.__dict__.get(name, _Made), _Made):
                made[name] = default.make
                delattr(cls, name)
            elif default is not _Made:
                defaults[name] = default
        cls._names, cls._defaults, cls._made = tuple(dict.fromkeys(names)), defaults, made
        cls.__init__, cls.__repr__ = _filled, _shown
        cls.__dataclass_fields__ = _Fields()
        if "__eq__" not in cls.__dict__:
            cls.__eq__ = _equal
            cls.__hash__ = _hashed if frozen else None
        if frozen:
            cls.__setattr__ = _refused
        return cls

    def _filled(self, *given, **named):
        cls = type(self)
        names, values = cls._names, self.__dict__
        if len(given) == len(names):
            values.update(zip(names, given, strict=True))
        else:
            if len(given) > len(names):
                raise TypeError(f"{cls.__name__} has {len(names)} fields, not {len(given)}")
            values.update(cls._defaults)
            values.update(zip(names, given, strict=False))
            for name, make in cls._made.items():
                if name not in values and name not in named:
                    values[name] = make()
        values.update(named)
        if len(values) != len(names) or (named and values.keys() != set(names)):
            wrong = values.keys() ^ set(names) or named
            raise TypeError(f"{cls.__name__}: not given, or unknown: {', '.join(sorted(wrong))}")
        if hasattr(cls, "__post_init__"):
            self.__post_init__()

    def _values(one):
        values = one.__dict__
        return [values[name] for name in one._names]

    def _shown(self):
        pairs = zip(self._names, _values(self), strict=True)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in pairs)})"

    def _equal(self, other):
        return _values(self) == _values(other) if type(self) is type(other) else NotImplemented

    def _hashed(self):
        return hash(tuple(_values(self)))

    def _refused(self, name, value):
        raise AttributeError(f"{type(self).__name__} cannot be changed: {name} = {value!r}")

    def replace(one, **changes):
        return type(one)(**{name: one.__dict__[name] for name in one._names} | changes)

    def asdict(one):
        return {name: one.__dict__[name] for name in one._names}

    class later:  # noqa: N801 - stands for a function
        """Like the pattern that `re.compile` makes, which it does when it is first used."""

        def __init__(self, pattern, flags=0):
            self.pattern, self.flags = pattern, flags

        def __getattr__(self, name):
            import re

            value = getattr(re.compile(self.pattern, self.flags), name)
            self.__dict__[name] = value
            return value


__all__ = ["TYPE_CHECKING", "asdict", "dataclass", "field", "later", "replace"]
