"""Changes that a browser asks for: nothing that names files, code or secrets of this machine, whatever its owner may do.

Place in the flow: messages that say `by_form` are judged here before anything else, in the crawl's process, which knows the sheet
of every unit. A setting says of itself what its values can name (`names` of :func:`gossamer.flow.sheet.setting`).
"""

from collections.abc import Mapping
from typing import Any

from gossamer.assembly.catalog import catalog
from gossamer.assembly.live import option_of
from gossamer.assembly.options import CrawlOptions
from gossamer.flow.errors import FlowError
from gossamer.flow.graph import Graph
from gossamer.flow.sheet import Sheet, properties
from gossamer.flow.wiring import Wiring
from gossamer.model.errors import UsageError


def check_values_of_form(graph: Graph, values: Mapping[str, str]) -> None:
    """Refuse settings that a form may not change. Those that do not exist are left to be refused as such.

    Raises:
        UsageError: one names what a browser may not name; says how a person can change it.
    """
    for key in values:
        unit, dot, setting = key.rpartition(".")
        if not dot:
            _refuse_named(CrawlOptions, option_of(key), key)
        elif unit in graph.components or unit in graph.providers:
            _refuse_named(type(graph.sheet(unit)), setting, key)


def check_wiring_of_form(graph: Graph, before: Wiring, then: Wiring) -> None:
    """Refuse a change of the graph that gives a unit a setting which a form may not give.

    Raises:
        UsageError: as :func:`check_values_of_form`.
    """
    for table in ("components", "providers"):
        old: Mapping[str, Any] = getattr(before, table)
        for name, plan in getattr(then, table).items():
            is_same = name in old and old[name].use == plan.use
            known: Mapping[str, Any] = old[name].settings if is_same else {}
            given = [key for key, value in plan.settings.items() if key not in known or known[key] != value]
            if given:
                sheet = type(graph.sheet(name)) if is_same else _sheet_of(table, plan.use)
                for setting in given:
                    _refuse_named(sheet, setting, f"{name}.{setting}")


def _sheet_of(table: str, use: str) -> type[Sheet]:
    """The sheet of a unit of the catalog; one without settings where there is none of this name, which the planner refuses."""
    known = catalog()
    try:
        unit = known.component(use) if table == "components" else known.provider(use)
    except FlowError:
        return Sheet
    found: type[Sheet] = unit.sheet_type
    return found


def _refuse_named(sheet: type[Sheet], setting: str, key: str) -> None:
    for one in properties(sheet):
        if one.name == setting and one.names:
            raise UsageError(
                f"{key}: a browser may not name {one.names}; use the command line: gossamer set, or rewire"
            )
