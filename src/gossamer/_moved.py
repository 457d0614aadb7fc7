"""Module names of version 0.2.0 and before that manuals and examples named: importing one still works for one version, and warns.

Place in the flow: `gossamer/__init__.py` asks :func:`specification` for a name of ours that Python itself has not found.
Stable names for packages of your own are `gossamer`, `gossamer.testing`, `gossamer.engine.subjects`
and the `contract` of each room.
"""

import importlib
import warnings
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType

#: Old name -> the module that has its contents today.
MOVED = {
    "gossamer.assembly.compiling": "gossamer.crawls.compiling",
    "gossamer.contracts.filtering": "gossamer.expressions.contract",
    "gossamer.contracts.prioritizing": "gossamer.frontier.contract",
    "gossamer.contracts.relevance": "gossamer.frontier.contract",
    "gossamer.contracts.revisiting": "gossamer.frontier.contract",
    "gossamer.contracts.spaces": "gossamer.storage.contract",
    "gossamer.contracts.storing": "gossamer.storage.archive.contract",
    "gossamer.contracts.tables": "gossamer.storage.tables.contract",
    "gossamer.flow.catalog": "gossamer.engine.planning",
    "gossamer.flow.component": "gossamer.engine.component",
    "gossamer.flow.connector": "gossamer.engine.connector",
    "gossamer.flow.difference": "gossamer.engine.wiring",
    "gossamer.flow.ends": "gossamer.engine.ends",
    "gossamer.flow.errors": "gossamer.engine.errors",
    "gossamer.flow.local": "gossamer.engine.local",
    "gossamer.flow.planning": "gossamer.engine.planning",
    "gossamer.flow.ports": "gossamer.engine.ends",
    "gossamer.flow.receipt": "gossamer.engine.gate",
    "gossamer.flow.remote.links": "gossamer.engine.remote.links",
    "gossamer.flow.running": "gossamer.engine.running",
    "gossamer.flow.sheet": "gossamer.engine.sheet",
    "gossamer.flow.transports": "gossamer.engine.transports",
    "gossamer.flow.unit": "gossamer.engine.component",
    "gossamer.flow.wiring": "gossamer.engine.wiring",
    "gossamer.model.body": "gossamer.values.body",
    "gossamer.model.outcome": "gossamer.values.outcome",
    "gossamer.model.task": "gossamer.values.task",
    "gossamer.model.url": "gossamer.values.url",
    "gossamer.model.visit": "gossamer.values.visit",
    "gossamer.reading.document": "gossamer.documents.document",
    "gossamer.reading.text": "gossamer.documents.text",
    "gossamer.services.designation.nearness": "gossamer.agents.ring",
    "gossamer.stages.seeds": "gossamer.frontier.frontier",
    "gossamer.stores.ledger.providers": "gossamer.storage.ledger.providers",
    "gossamer.stores.trie.queue": "gossamer.labs.trie.queues",
}

#: The packages that these lay in: they exist no more, and Python asks for them first.
_PACKAGES = frozenset(
    name[:end]
    for name in MOVED
    for end in (at for at, one in enumerate(name) if one == ".")
    if name[:end] != "gossamer"
)


def specification(name: str) -> ModuleSpec | None:
    """The specification of a module with an old name; None for any other name."""
    is_package = name in _PACKAGES
    return ModuleSpec(name, _Loader(), is_package=is_package) if is_package or name in MOVED else None


class _Loader(Loader):
    def exec_module(self, module: ModuleType) -> None:
        """Fill the module with everything that stands at the new name."""
        old = module.__name__
        if old not in MOVED:
            return
        warnings.warn(
            f"{old} is now {MOVED[old]}; the old name goes with the next version", DeprecationWarning, stacklevel=2
        )
        there = importlib.import_module(MOVED[old])
        vars(module).update({name: value for name, value in vars(there).items() if not name.startswith("__")})
