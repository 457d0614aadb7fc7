"""What a unit declares on its class: the ends it reads and writes, and the providers it uses.

::

    class Links(Filter[LinksSheet]):
        inbox: In[Visit]                      # a typed input
        outbox: Out[Visit]                    # a typed output
        resolver: Uses[Resolver]              # a provider, by interface; the attribute's name is the role
        filters: UsesMany[UrlFilter]          # providers under keys: `filters = {follow = ["scope", "traps"]}`

The framework reads the annotations (:func:`declared`), and sets the attributes when the wiring is bound. A type checker
sees `Uses[Resolver]` as `Resolver` itself: a unit cannot tell which implementation, or how many wrapped ones, stand behind.
"""

import typing
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, TypeVar

import msgspec

from gossamer.flow.ends import In, Out
from gossamer.flow.errors import WiringError

T = TypeVar("T")

_ONE = "gossamer.flow: one provider"
_MANY = "gossamer.flow: providers by key"

Uses = Annotated[T, _ONE]
UsesMany = Annotated[Mapping[str, Sequence[T]], _MANY]


class Declared(msgspec.Struct, frozen=True):
    """What a unit's class declares, by attribute name (the role)."""

    inputs: dict[str, Any]
    """Item type of each input."""
    outputs: dict[str, Any]
    uses: dict[str, Any]
    """Interface of each single provider."""
    uses_many: dict[str, Any]
    """Interface of each keyed set of providers."""


def declared(unit: type) -> Declared:
    """Read the annotations of a unit's class, inherited ones included.

    Raises:
        WiringError: they name something that is not there at run time.
    """
    return _declared(unit)


@lru_cache(maxsize=256)  # a plan asks for each class some ten times, and evaluating its annotations takes 0.1 ms
def _declared(unit: type) -> Declared:
    found = Declared({}, {}, {}, {})
    try:
        hints = typing.get_type_hints(unit, include_extras=True)
    except NameError as error:
        raise WiringError(f"class {unit.__name__}: {error} in its annotations; import it at run time, too") from None
    for role, hint in hints.items():
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin is In:
            found.inputs[role] = arguments[0]
        elif origin is Out:
            found.outputs[role] = arguments[0]
        elif _ONE in getattr(hint, "__metadata__", ()):
            found.uses[role] = arguments[0]
        elif _MANY in getattr(hint, "__metadata__", ()):
            found.uses_many[role] = typing.get_args(typing.get_args(arguments[0])[1])[0]
    return found


__all__ = ["Declared", "In", "Out", "Uses", "UsesMany", "declared"]
