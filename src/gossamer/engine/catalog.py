"""The catalog: which class stands behind a name that a wiring uses.

The composition root says where what ships is; other packages say it by entry points (`gossamer.components`,
`gossamer.providers`). Both are imported only when a wiring names them, and listing names imports nothing.
"""

import operator
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gossamer.engine.component import Component
from gossamer.engine.errors import UnknownName, WiringError
from gossamer.engine.sheet import nearest
from gossamer.engine.subjects import found_at, installed, offered
from gossamer.engine.unit import Provider

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Catalog:
    """Names of component and provider classes."""

    def __init__(
        self,
        components: Mapping[str, type[Component[Any]] | str] = {},
        providers: Mapping[str, type[Provider[Any]] | str] = {},
    ) -> None:
        """A catalog.

        Args:
            components, providers: classes by name, or where they are, as `package.module:Class`.
        """
        self._shipped = frozenset(components)
        self._own: dict[str, set[str]] = {"components": set(), "providers": set()}
        self._known: dict[str, dict[str, type | str]] = {"components": dict(components), "providers": dict(providers)}

    def component(self, name: str) -> type[Component[Any]]:
        """The component class of this name.

        Raises:
            UnknownName: there is none; lists the known ones.
        """
        found: type[Component[Any]] = self._find("components", name, Component)
        return found

    def provider(self, name: str) -> type[Provider[Any]]:
        """The provider class of this name.

        Raises:
            UnknownName: there is none; lists the known ones.
        """
        found: type[Provider[Any]] = self._find("providers", name, Provider)
        return found

    def add(self, name: str, unit: Any) -> None:
        """Register a class of one's own, as a program does that makes its wiring itself.

        Raises:
            WiringError: it is neither a component nor a provider.
        """
        for table, base in (("components", Component), ("providers", Provider)):
            if isinstance(unit, type) and issubclass(unit, base):
                self._known[table][name] = unit
                self._shipped -= {name}
                self._own[table].add(name)
                return
        raise WiringError(f"{name!r}: {unit!r} is neither a component nor a provider class; derive it from one of them")

    def is_shipped(self, name: str) -> bool:
        """Whether a component's name is ours, and not that of a class of the person's own."""
        return name in self._shipped

    def places_of_own(self) -> dict[str, dict[str, str]]:
        """The places of classes that a program registered itself, by table and name; without those that cannot be imported."""
        return {
            table: {
                name: f"{unit.__module__}:{unit.__qualname__}"
                for name, unit in known.items()
                if name in self._own[table] and isinstance(unit, type) and not _why_not_importable(unit)
            }
            for table, known in self._known.items()
        }

    def why_not_elsewhere(self, table: str, name: str) -> str:
        """Why another process cannot import a class that a program registered itself; empty where it can."""
        unit = self._known[table].get(name)
        return _why_not_importable(unit) if name in self._own[table] and isinstance(unit, type) else ""

    def names(self, table: str) -> list[str]:
        """Every known name of `components` or `providers`, those of entry points included."""
        of_packages = {name for one in installed() for name in getattr(one, table)}
        return sorted({*self._known[table], *of_packages, *(entry.name for entry in offered(f"gossamer.{table}"))})

    def _find(self, table: str, name: str, base: type) -> Any:
        known = self._known[table]
        place = known.get(name)
        if place is None:
            place = next((there for one in installed() if (there := getattr(one, table).get(name))), None)
        if isinstance(place, str):
            known[name] = found_at(place)
        elif place is None:
            entries = offered(f"gossamer.{table}", name)
            if len({entry.value for entry in entries}) > 1:
                packages = ", ".join(sorted(_package(entry) for entry in entries))
                raise WiringError(
                    f"{table[:-1]} {name!r} is registered by several packages: {packages}; uninstall all but one"
                )
            for entry in entries[:1]:
                known[name] = _loaded(entry, base)
        if name not in known:
            raise UnknownName(f"unknown {table[:-1]} {name!r}{nearest(name, self.names(table))}")
        return known[name]


def _why_not_importable(unit: type) -> str:
    if unit.__module__ == "__main__":
        return "is a class of the program that was started"
    if "<locals>" in unit.__qualname__:
        return "is defined inside a function"
    try:
        found = operator.attrgetter(unit.__qualname__)(sys.modules.get(unit.__module__))
    except AttributeError:
        found = None
    return "" if found is unit else "was made while the program ran"


def _loaded(entry: "EntryPoint", base: type) -> type:
    try:
        found = entry.load()
    except (ImportError, AttributeError) as error:
        raise UnknownName(f"{entry.name!r} of package {_package(entry)} cannot be loaded: {error}") from error
    if not (isinstance(found, type) and issubclass(found, base)):
        raise UnknownName(
            f"{entry.name!r} of package {_package(entry)} is not a {base.__name__.lower()} class: {entry.value}"
        )
    return found


def _package(entry: "EntryPoint") -> str:
    return entry.dist.name if entry.dist else "unknown"
