"""A setting of a running crawl takes what the command line takes, and nothing else."""

import re
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from gossamer.crawls.catalog import catalog
from gossamer.crawls.compiling import compile_wiring
from gossamer.crawls.identity import HOST_SETTINGS, HostOptions
from gossamer.crawls.live import settings_of
from gossamer.crawls.options import CrawlOptions, all_options, settings_of_options
from gossamer.engine.errors import SettingError
from gossamer.engine.planning import plan
from gossamer.engine.sheet import Sheet, build, properties
from gossamer.values.errors import UsageError

#: Weights, which may be negative: they turn an order round.
OF_ANY_SIGN = {("WeightSheet", "depth"), ("WeightSheet", "site"), ("WeightSheet", "page"), ("RandomWalkSheet", "seed")}


def sheets() -> dict[str, type[Sheet]]:
    """The sheet of each class in the shipped catalog, by unit name."""
    known = catalog()
    units: list[tuple[str, Any]] = [(name, known.component(name)) for name in known.names("components")]
    units += [(name, known.provider(name)) for name in known.names("providers")]
    return {name: unit.sheet_type for name, unit in units}


def at_work() -> dict[str, type[Sheet]]:
    """The sheet of each unit of a crawl that has all that options can set."""
    wiring = compile_wiring(["http://localhost/"], build(all_options(), {"recrawl": "adaptive"}))
    graph = plan(wiring, catalog())
    return {name: type(graph.sheet(name)) for name in (*graph.components, *graph.providers)}


def limits(hint: Any) -> Iterator[tuple[str, Any]]:
    """The bounds in a type, those of its parts included."""
    for part in getattr(hint, "__metadata__", ()):
        if isinstance(part, msgspec.Meta):
            bounds = ((name, getattr(part, name)) for name in ("ge", "gt", "le", "lt"))
            yield from ((name, bound) for name, bound in bounds if bound is not None)
    for part in get_args(hint):
        yield from limits(part)


def bounds_of(sheet: type[Sheet], name: str) -> list[tuple[str, Any]]:
    return sorted(limits(get_type_hints(sheet, include_extras=True)[name]))


PAIRS = [
    (CrawlOptions, option, unit, name) for option, places in settings_of_options().items() for unit, name in places
]
PAIRS += [(HostOptions, option, unit, name) for option, (unit, name) in HOST_SETTINGS.items()]


@pytest.mark.parametrize(("options", "option", "unit", "name"), PAIRS)
def test_a_setting_has_the_bounds_of_its_option(options: type[Sheet], option: str, unit: str, name: str) -> None:
    assert bounds_of(at_work()[unit], name) == bounds_of(options, option)


@pytest.mark.parametrize("unit", sorted(sheets()))
def test_every_number_has_a_bound_or_a_reason_for_none(unit: str) -> None:
    sheet = sheets()[unit]
    numbers = [p for p in properties(sheet) if re.search(r"\b(int|float)\b", p.type)]
    unbound = {(sheet.__name__, p.name) for p in numbers if not bounds_of(sheet, p.name)}
    assert unbound <= OF_ANY_SIGN


@pytest.mark.parametrize("option", [p.name for p in properties(CrawlOptions) if p.live and p.bounds])
def test_no_option_of_a_running_crawl_leaves_its_bounds(option: str) -> None:
    graph = plan(compile_wiring(["http://localhost/"], CrawlOptions()), catalog())
    units = {**graph.components, **graph.providers}
    with pytest.raises((SettingError, UsageError)):
        settings_of(option, "-1", units)
    for bound, value in bounds_of(CrawlOptions, option):
        beyond = {"ge": value - 1, "gt": value, "le": value + 1, "lt": value}[bound]
        with pytest.raises((SettingError, UsageError)):
            settings_of(option, str(beyond), units)
