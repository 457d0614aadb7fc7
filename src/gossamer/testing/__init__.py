"""Public fakes and conformance suites. Check a component, connector or store of your own with the suites that ours pass.

Each name is imported from its module when it is first used, so that a test loads only what it needs.
"""

import importlib
from typing import Any

#: Where each public name lives.
_HOMES = {
    "FakeClock": "clock",
    "FakePage": "fakeweb",
    "FakeWeb": "fakeweb",
    "SimulatedLoop": "clock",
    "Stand": "components",
    "check_archive": "storage",
    "check_asynchronous": "components",
    "check_connector": "connectors",
    "check_consumer": "components",
    "check_content_index": "seen",
    "check_depths": "ledger",
    "check_designation": "agents",
    "check_designation_policy": "agents",
    "check_designation_table": "agents",
    "check_entered": "parsing",
    "check_feed_consumer": "feeding",
    "check_filter": "components",
    "check_fingerprint_index": "seen",
    "check_flights": "frontier",
    "check_gate_filter": "parsing",
    "check_host_names": "agents",
    "check_keeper": "storage",
    "check_learner": "watching",
    "check_ledger": "ledger",
    "check_lending": "mobile",
    "check_log_ins": "parsing",
    "check_sessions": "parsing",
    "check_mailbox": "agents",
    "check_page_handlers": "parsing",
    "check_page_source": "mobile",
    "check_politeness": "frontier",
    "check_politeness_rule": "frontier",
    "check_prioritizer": "frontier",
    "check_processor": "parsing",
    "check_producer": "components",
    "check_protocol_module": "fetching",
    "check_resolver": "fetching",
    "check_robots": "frontier",
    "check_robots_answers": "frontier",
    "check_runtime_link": "mobile",
    "check_recent_urls": "agents",
    "check_row_log": "storage",
    "check_relevance": "watching",
    "check_revisit_policy": "frontier",
    "check_seen_set": "seen",
    "check_shared_state": "agents",
    "check_semi_synchronous": "components",
    "check_spaces": "ledger",
    "check_store": "storage",
    "check_synchronous": "components",
    "check_table": "feeding",
    "check_task_queues": "ledger",
    "check_task_sieve": "seen",
    "check_template": "watching",
    "check_traps": "watching",
    "handled": "parsing",
    "check_traversal": "frontier",
    "check_url_filter": "parsing",
    "check_watcher": "watching",
    "stored_document": "parsing",
}

__all__ = list(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
