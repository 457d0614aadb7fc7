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


#: The file in a crawl's state that has the secret of all its ledgers, where agents share one.
_SHARED = "secret"

_SECRET_BYTES = 8


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


def share_secret(state: Path, secret: bytes | None = None) -> None:
    """Let all ledgers that are made in a crawl's state from now on have one secret, so that one can take from another.

    Call it before the first of several agents starts; it does nothing where it was called before. Raises OSError.

    Args:
        state: of the crawl.
        secret: of a ledger that is there already; a new one is drawn where there is none.
    """
    path = state / _SHARED
    if path.exists():
        return
    state.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{_SHARED}.new")
    fresh.touch(mode=0o600)
    fresh.write_bytes(os.urandom(_SECRET_BYTES) if secret is None else secret)
    fresh.replace(path)


def _secret_of(state: Path) -> bytes:
    """The secret of a new ledger: the one that all share, where they share one."""
    try:
        shared = (state / _SHARED).read_bytes()
    except FileNotFoundError:
        return os.urandom(_SECRET_BYTES)
    if len(shared) != _SECRET_BYTES:
        raise CrawlDirectoryError(f"{state / _SHARED} is damaged; bring it back from a copy")
    return shared


def make_empty(create: Callable[[Path], RocksStore], path: Path, sheet: LedgerSheet) -> None:
    """An empty ledger of this version, with a secret; `create` makes its store in `path`, inside an agent's state."""
    secret = _secret_of(path.parents[1])
    store = create(path)
    try:
        batch = store.batch()
        batch.put("meta", SECRET_KEY, secret)
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
