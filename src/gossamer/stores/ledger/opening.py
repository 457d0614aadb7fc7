"""What an opened ledger begins with: secret, rule by which hosts are assigned, state of the last commit, where files end.

Place in the flow: :mod:`ledger` reads it here when it opens a store, and has an empty one made where there is none.
"""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from gossamer.model.domains import DomainRule, domain_rule
from gossamer.model.errors import CrawlDirectoryError, UsageError
from gossamer.stores.ledger import schema
from gossamer.stores.ledger.keys import END_PREFIX, RULE_KEY, SECRET_KEY, STATE_KEY, LedgerKeys, after
from gossamer.stores.ledger.logs import missing_between
from gossamer.stores.ledger.plan import Marks
from gossamer.stores.ledger.reading import LedgerState
from gossamer.stores.ledger.sheet import LedgerSheet
from gossamer.stores.ledger.store import RocksStore, damaged


def check_log(path: Path) -> None:
    """Notice a log that is gone: the library would take the store for one in which that was never written.

    Raises:
        CrawlDirectoryError: that is so.
    """
    if (path / "CURRENT").exists() and not any(path.glob("*.log")):
        what = "its write-ahead log is missing"
    elif gap := missing_between(path):
        what = f"a write-ahead log is missing between {gap}"
    else:
        return
    raise damaged(path, what)


def make_empty(create: Callable[[Path], RocksStore], path: Path, sheet: LedgerSheet) -> None:
    """An empty ledger of this version, with a secret of its own; `create` makes its store."""
    store = create(path)
    try:
        batch = store.batch()
        batch.put("meta", SECRET_KEY, os.urandom(8))
        rule = domain_rule(sheet.division, sheet.together)
        if rule != DomainRule():
            batch.put("meta", RULE_KEY, msgspec.json.encode(rule))
        schema.stamp(batch)
        store.write(batch)
        store.sync()
    finally:
        store.close()


def read_keys(store: RocksStore, sheet: LedgerSheet) -> LedgerKeys:
    """The keys of a ledger, which go by its secret and its rule.

    Raises:
        CrawlDirectoryError: its secret is lost.
        UsageError: the settings ask for another rule than the one that was fixed when it was made.
    """
    secret = store.get("meta", SECRET_KEY)
    if secret is None:
        raise CrawlDirectoryError(f"the ledger in {store.path} lost its secret; go back to a checkpoint")
    return LedgerKeys(int.from_bytes(secret), _read_rule(store, sheet))


def _read_rule(store: RocksStore, sheet: LedgerSheet) -> DomainRule:
    text, asked = store.get("meta", RULE_KEY), domain_rule(sheet.division, sheet.together)
    kept = DomainRule() if text is None else msgspec.json.decode(text, type=DomainRule)
    if asked not in (kept, DomainRule()):
        raise UsageError(
            f"the crawl in {sheet.directory} assigns each {kept.division} as a whole, and that is fixed; leave "
            "the ledger's settings `division` and `together` as they were"
        )
    return kept


def read_state(store: RocksStore) -> LedgerState:
    """The state that the last commit wrote; an empty one where there was none.

    Raises:
        CrawlDirectoryError: it is damaged.
    """
    text = store.get("meta", STATE_KEY)
    try:
        return LedgerState(Marks(), {}) if text is None else msgspec.msgpack.decode(text, type=LedgerState)
    except msgspec.DecodeError as error:
        raise damaged(store.path, str(error)) from None


def read_ends(store: RocksStore) -> dict[str, int]:
    """File of the crawl directory -> its committed end.

    Raises:
        CrawlDirectoryError: one is damaged.
    """
    try:
        ends = store.scan("meta", END_PREFIX, after(END_PREFIX))
        return {key[len(END_PREFIX) :].decode(): int(value) for key, value in ends}
    except ValueError as error:
        raise damaged(store.path, str(error)) from None
