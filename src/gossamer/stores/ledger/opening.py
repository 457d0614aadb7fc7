"""What an opened ledger begins with: secret, rule by which hosts are assigned, state of the last commit, where files end.

Place in the flow: :mod:`ledger` reads it here when it opens a store, and has an empty one made where there is none.
"""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from gossamer.model.domains import DomainRule, domain_rule
from gossamer.model.errors import CrawlDirectoryError, LedgerDamaged, UsageError
from gossamer.stores.ledger import schema
from gossamer.stores.ledger.keys import END_PREFIX, RULE_KEY, SECRET_KEY, STATE_KEY, LedgerKeys, after
from gossamer.stores.ledger.logs import missing_between
from gossamer.stores.ledger.plan import Marks
from gossamer.stores.ledger.reading import LedgerState
from gossamer.stores.ledger.sheet import LedgerSheet
from gossamer.stores.ledger.store import RocksStore, damaged

#: So many times a ledger that is being written is opened to be looked at. Its writer replaces a file every few seconds at most,
#: and an opening takes milliseconds: the second try succeeds, and this only bounds the wait where something is very wrong.
_OPENINGS = 20


def open_beside(path: Path, open_it: Callable[[], RocksStore]) -> RocksStore:
    """Open a database to read it while its owner may be writing it.

    The library lists the files before it opens them, and the owner may replace one in between. A file that is missing is
    damage only where the directory stayed the same meanwhile.

    Args:
        path: the directory that the owner writes.
        open_it: opens it, or links to its files.

    Raises:
        CrawlDirectoryError: it is damaged, or cannot be read.
    """
    for _ in range(_OPENINGS - 1):
        before = set(path.iterdir())
        try:
            check_log(path)
            return open_it()
        except LedgerDamaged:
            if set(path.iterdir()) == before:
                raise
    check_log(path)
    return open_it()


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
