"""Public fakes and conformance suites. Check a component, connector or store of your own with the suites that ours pass.

Each `check_...` holds a part against the promises of its contract's docstring. A broken promise raises an AssertionError that names
it.

Each name is imported from its module when it is first used, so that a test loads only what it needs.
"""

import importlib
from typing import Any

#: The public names of each module.
_NAMES = {
    "clock": "FakeClock SimulatedLoop",
    "components": (
        "Stand check_asynchronous check_consumer check_filter check_producer check_semi_synchronous check_synchronous"
    ),
    "connectors": "check_connector",
    "fakeweb": "FakePage FakeWeb",
    "feeding": "check_feed_consumer check_table",
    "fetching": "check_page_source check_protocol_module check_resolver check_runtime_link",
    "frontier": (
        "check_cluster check_designation check_designation_policy check_politeness_rule check_prioritizer check_revisit_policy "
        "check_robots check_robots_answers check_traversal"
    ),
    "ledger": "check_depths check_ledger check_spaces check_task_queues",
    "parsing": (
        "check_gate_filter check_page_handlers check_processor check_url_filter handled stored_document "
        "check_learner check_relevance check_traps check_watcher"
    ),
    "storage": "check_archive check_keeper check_store check_content_index check_fingerprint_index check_seen_set",
}

#: Where each lives.
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = list(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
