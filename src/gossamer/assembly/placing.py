"""What the stores of a wiring have to know of the crawl: where its directory is, what must survive, what is to be told.

Place in the flow: :mod:`crawl` calls these when options are compiled into the wiring, and before it is planned.
"""

from gossamer.flow import wiring as wirings
from gossamer.flow.wiring import Wiring

#: Stores that can wait for the disk, by what a wiring uses.
_SYNCING = frozenset({"warc", "tables", "json-log"})

#: Providers that have to do with files in the crawl directory, whatever they are called.
_FILED = frozenset({"http", "url-trie", "bloom-seen", "compared-texts", "file-outbox"})

#: Providers that keep large bodies on disk while they are used.
_SPOOLING = frozenset({"http", "ftp", "gopher", "file"})


def with_durability(wiring: Wiring) -> Wiring:
    """A copy whose archive and rows are on the disk before the ledger says so, where the ledger is to survive power cuts."""
    ledger = wiring.providers.get("ledger")
    if ledger is None or ledger.settings.get("durability") != "power":
        return wiring
    for unit in ("archive", "log"):
        if unit in wiring.providers and wiring.providers[unit].use in _SYNCING:
            wiring = wirings.with_settings(wiring, unit, {"sync": True})
    return wiring


def with_told_tls(wiring: Wiring) -> Wiring:
    """A copy whose archive tells where servers' certificates are not verified (fault 98)."""
    archive = wiring.providers.get("archive")
    if archive is None or archive.use != "warc":
        return wiring
    modules = [plan for plan in wiring.providers.values() if plan.use == "http"]
    from gossamer.stores.warc_files import UNVERIFIED  # once it is known that there is such an archive

    told = UNVERIFIED if any(plan.settings.get("verify") is False for plan in modules) else ""
    if archive.settings.get("tls", "") == told:
        return wiring
    return wirings.with_settings(wiring, "archive", {"tls": told})


def with_directory(wiring: Wiring, directory: str) -> Wiring:
    """A copy whose stores keep their files under `directory`."""
    for unit in ("ledger", "archive", "log", "frontier", "sieve", "process"):
        if (unit in wiring.providers or unit in wiring.components) and not (
            unit == "archive" and wiring.providers[unit].use == "no-archive"
        ):
            wiring = wirings.with_settings(wiring, unit, {"directory": directory})
    # Large bodies wait on the disk of the archive: the system's directory for temporary files may be memory.
    for unit, plan in wiring.providers.items():
        if plan.use in _SPOOLING:
            wiring = wirings.with_settings(wiring, unit, {"spool": directory})
        if plan.use in _FILED:
            wiring = wirings.with_settings(wiring, unit, {"directory": directory})
    return wiring
