"""Options that belong together: a command takes a dataclass of them as one parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """The command with every dataclass among its parameters replaced by its fields."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}

    @wraps(command)
    def run(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{one.name: given.pop(one.name) for one in fields(kind)})
        command(**given)

    parameters = [*_parameters(command, hints)]
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    del run.__wrapped__  # it has another signature
    return run


def _parameters(command: Callable[..., None], hints: dict[str, Any]) -> Iterator[Parameter]:
    for one in signature(command).parameters.values():
        kind = hints[one.name]
        if not is_dataclass(kind):
            yield Parameter(one.name, Parameter.KEYWORD_ONLY, default=one.default, annotation=kind)
            continue
        inside = get_type_hints(kind, include_extras=True)
        for field in fields(kind):
            default = Parameter.empty if field.default is MISSING else field.default
            yield Parameter(
                field.name,
                Parameter.KEYWORD_ONLY,
                default=default,
                annotation=inside[field.name],
            )
