"""Processors that crawlers may name: other packages offer them, and the owner of a runtime allows them by name.

Place in the flow: a runtime asks here once, before the first crawler; :mod:`gossamer.mobile.judging` looks a crawler's
processors up in the answer. Nothing that a crawler says is imported: names come from the owner, versions are compared.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gossamer.flow.installed import offered
from gossamer.flow.sheet import nearest
from gossamer.mobile.crawler import NamedProcessor
from gossamer.mobile.judging import Installed, InstalledProcessor
from gossamer.model.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: The group of entry points. Each leads to a class with a method `process` (`contracts.processing.Processor`) and the media types
#: that it reads, in `types`; the version is that of its distribution.
GROUP = "gossamer.mobile_processors"


def allowed_processors(names: Sequence[str]) -> Installed:
    """The processors of these names, each made once.

    Raises:
        UsageError: none of that name is installed, or it cannot be used; says what to do.
    """
    return processors_of(offered(GROUP), names) if names else {}


def processors_of(entries: "Iterable[EntryPoint]", names: Sequence[str]) -> Installed:
    """The same, out of these entry points.

    Raises:
        UsageError: as :func:`allowed_processors`.
    """
    by_name = {entry.name: entry for entry in entries}
    found: dict[NamedProcessor, InstalledProcessor] = {}
    for name in names:
        if name not in by_name:
            raise UsageError(f"no processor {name!r} is installed{nearest(name, by_name)}")
        entry = by_name[name]
        try:
            made = entry.load()()
        except Exception as error:  # it is code of others, and may do anything
            raise UsageError(f"processor {name!r} cannot be made: {type(error).__name__}: {error}") from None
        types = getattr(made, "types", ())
        if not callable(getattr(made, "process", None)) or not types or isinstance(types, str):
            raise UsageError(
                f"processor {name!r} has to have a method `process` and media types in `types`: {entry.value}"
            )
        version = entry.dist.version if entry.dist is not None else "0"
        found[NamedProcessor(name, version)] = InstalledProcessor(tuple(types), made)
    return found
