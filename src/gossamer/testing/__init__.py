"""Public fakes and conformance checks: prove a component, connector or store of your own with the suites that ours pass.

Each name is imported from its module when it is first used, so that a test loads only what it needs.
"""

import importlib
from typing import Any

#: Where each public name lives.
_HOMES = {
    "FakeClock": "clock",
    "FakePage": "fakeweb",
    "FakeWeb": "fakeweb",
    "SimulatedLoop": "simulated",
    "Stand": "components",
    "check_archive": "storing",
    "check_asynchronous": "components",
    "check_connector": "connectors",
    "check_consumer": "components",
    "check_content_index": "seen",
    "check_depths": "ledger",
    "check_designation": "designating",
    "check_designation_policy": "marshaling",
    "check_designation_table": "marshaling",
    "check_entered": "handling",
    "check_feed_consumer": "feeding",
    "check_filter": "components",
    "check_fingerprint_index": "seen",
    "check_flights": "flights",
    "check_gate_filter": "judging",
    "check_host_names": "marshaling",
    "check_keeper": "keeping",
    "check_learner": "trapping",
    "check_ledger": "ledger",
    "check_lending": "lending",
    "check_log_ins": "handling",
    "check_sessions": "handling",
    "check_mail": "mailing",
    "check_outbox": "exchanging",
    "check_page_handlers": "handling",
    "check_page_source": "sourcing",
    "check_politeness": "asking",
    "check_prioritizer": "ordering",
    "check_processor": "judging",
    "check_producer": "components",
    "check_protocol_module": "fetching",
    "check_resolver": "fetching",
    "check_robots": "gating",
    "check_robots_answers": "answering",
    "check_runtime_link": "runtimes",
    "check_recent_urls": "marshaling",
    "check_row_log": "storing",
    "check_relevance": "relevance",
    "check_revisit_policy": "revisiting",
    "check_seen_set": "seen",
    "check_shared_state": "sharing",
    "check_semi_synchronous": "components",
    "check_spaces": "spaces",
    "check_synchronous": "components",
    "check_table": "feeding",
    "check_task_queues": "ledger",
    "check_task_sieve": "sieving",
    "check_template": "trapping",
    "check_traps": "trapping",
    "handled": "pages",
    "check_traversal": "ordering",
    "check_url_filter": "judging",
    "check_watcher": "trapping",
    "stored_document": "pages",
}

__all__ = list(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
