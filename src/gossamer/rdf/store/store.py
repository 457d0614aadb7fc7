"""The triple store of a crawl: pyoxigraph's, in `triples/` of its directory, with a graph for each page that says something.

It is a derived store: nothing in it is lost with it. When it was deleted, or the machine stopped while it was written, it is
made again from the tables. One process has it open at a time; others read copies.
"""

import contextlib
import functools
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pyoxigraph as oxigraph

from gossamer.engine.files import scratch
from gossamer.engine.sheet import show_count
from gossamer.query.following import Follower
from gossamer.rdf.store.graphs import NOTES, GraphNotes, PageGraph, Unwritable, graph_consumers, lines, quads
from gossamer.rdf.terms import clean_iri
from gossamer.storage.tables.contract import FeedConsumer, FollowerNote
from gossamer.storage.tables.places import TRIPLES, following
from gossamer.values.errors import CrawlDirectoryError

#: Folders in its directory beside the notes of its feeding: the store itself, and copies that are being read.
STORE = "store"
COPIES = "copies"

#: Triples from which on writing files of the store at once is cheaper than a transaction.
_BULK = 4_000

#: The note that says which start of the machine the store was last written in; empty where it was closed properly.
_OPEN_SINCE = "open since"

#: The notes of how many triples were ever added, and how many of them when its files were put in order last.
_ADDED, _ORDERED = "added", "ordered"

#: Triples from which on that is worth its 3 us a triple: questions to a smaller store take no time that anyone would notice.
_WORTH_ORDERING = 500_000

#: The additions have to be this part of the store at least, since all of it is written anew.
_PART = 4

#: Linux tells starts of the machine apart here. Elsewhere a store counts as closed properly.
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class TripleStore:
    """The store of one crawl directory, open for writing; a context manager. Contract: `rdf.store.graphs.GraphStore`."""

    def __init__(self, directory: Path) -> None:
        self._place = directory / TRIPLES
        self._opened: oxigraph.Store | None = None
        self._notes: GraphNotes | None = None
        self._is_doubtful = False
        """The last process was killed: what it had begun to put may be there, without a note."""
        self.left_out: Counter[str] = Counter()
        """Triples that no store can hold, by reason. They stay in the table."""

    def __enter__(self) -> "TripleStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write everything to the disk and let go. Safe to call twice."""
        if self._opened is not None:
            self._opened.flush()
            self._opened = None
            self.notes().put(_OPEN_SINCE, "")
        if self._notes is not None:
            self._notes.close()
            self._notes = None

    def consumers(self) -> list[FeedConsumer]:
        return graph_consumers(self.notes, self)

    def notes(self) -> GraphNotes:
        """The notes of its feeding, which say that nothing was taken where there is no store that they belong to.
        Raises CrawlDirectoryError: another version of the program wrote them, or they are damaged."""
        if self._notes is None:
            has_store = (self._place / STORE / "CURRENT").exists()
            if not has_store:
                self._forget()
            notes = GraphNotes(self._place / NOTES)
            since = notes.get(_OPEN_SINCE)
            self._is_doubtful = bool(since)
            if has_store and since and since != _boot():
                # The machine stopped: store and notes may each have lost another part of what was written last.
                notes.close()
                self._forget()
                notes = GraphNotes(self._place / NOTES)
            self._notes = notes
        return self._notes

    def _forget(self) -> None:
        for path in self._place.glob(f"{NOTES}*"):
            path.unlink(missing_ok=True)
        shutil.rmtree(self._place / STORE, ignore_errors=True)

    def open(self) -> oxigraph.Store:
        """The store itself.
        Raises CrawlDirectoryError: another program has it open, or it is damaged or of another version."""
        if self._opened is None:
            notes = self.notes()
            path = self._place / STORE
            try:
                with _sound(path):
                    opened = oxigraph.Store(str(path))
            except (OSError, ValueError, SyntaxError) as error:
                reason = str(error).splitlines()[0]
                if "lock" in reason.lower():
                    raise CrawlDirectoryError(f"{path} is in use by another program; wait until it ends") from None
                again = f"delete {path.parent}, and it is made again"
                raise CrawlDirectoryError(f"{path} cannot be opened ({reason}); {again}") from None
            notes.put(_OPEN_SINCE, _boot())
            self._opened = opened
        return self._opened

    # -- what is done to it

    def put(self, graphs: Sequence[PageGraph], replaced: Iterable[str]) -> None:
        # A graph that is added twice is there twice: the parser gives blank nodes new names each time.
        before = set(replaced)
        with _sound(self._place / STORE):
            if self._is_doubtful:
                has = self.open().contains_named_graph
                before.update(graph.url for graph in graphs if has(oxigraph.NamedNode(graph.iri)))
            self.drop([graph.url for graph in graphs if graph.url in before])
            if graphs:
                store = self.open()
                count = sum(len(graph.triples) for graph in graphs)
                try:
                    written = "".join(
                        line for graph in graphs for line in lines(graph.triples, f"<{graph.iri}> ")
                    ).encode()
                    add = store.load if count < _BULK else store.bulk_load
                    add(written, format=oxigraph.RdfFormat.N_QUADS)
                except (Unwritable, SyntaxError, UnicodeEncodeError):
                    # One of them has a name that is no IRI: each is judged by itself, and those that can be are kept.
                    found = (quad for graph in graphs for quad in quads(graph.triples, graph.url, self.left_out))
                    (store.extend if count < _BULK else store.bulk_extend)(found)
                notes = self.notes()
                notes.put(_ADDED, str(int(notes.get(_ADDED) or 0) + count))

    def put_in_order(self, least: int = _WORTH_ORDERING) -> bool:
        """Join the many files that batches leave, where so many triples were added since the last time; True where it was done.
        A question to 10 million triples takes a third of the time afterwards."""
        notes = self.notes()
        added, ordered = int(notes.get(_ADDED) or 0), int(notes.get(_ORDERED) or 0)
        if added - ordered < max(least, ordered // _PART):
            return False
        with _sound(self._place / STORE):
            self.open().optimize()
        notes.put(_ORDERED, str(added))
        return True

    def drop(self, urls: Sequence[str]) -> None:
        with _sound(self._place / STORE):
            for url in urls:
                self.open().remove_graph(oxigraph.NamedNode(clean_iri(url)))

    def empty(self, urls: Iterable[str]) -> None:
        """See the contract. Nothing of what was deleted stays on the disk."""
        self._opened = None
        shutil.rmtree(self._place / STORE, ignore_errors=True)
        for name in (_ADDED, _ORDERED):
            self.notes().put(name, "0")
        self.open()

    # -- copies of it

    def copy_to(self, target: Path) -> None:
        """Make a copy that others can read. In the same file system it costs links, not bytes.
        Raises CrawlDirectoryError: the store is damaged. Raises OSError: it cannot be made."""
        with _sound(self._place / STORE):
            self.open().backup(target)


@contextlib.contextmanager
def _sound(path: Path) -> Iterator[None]:
    """Say in one line that the files of a store are damaged. The library raises a bare RuntimeError for it, at any use.
    Raises CrawlDirectoryError: they are."""
    try:
        yield
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise CrawlDirectoryError(f"{path} is damaged ({reason}); delete {path.parent}, and it is made again") from None


@functools.cache
def _boot() -> str:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return "unknown"


# Copies that others read. Only the process that feeds a store can copy it. A reader that finds the store free is that process:
# it has the store take what it has not, and copies it. Otherwise it leaves a *wish* in a folder of its own, and the process
# that feeds the store puts the copy there when it has taken everything that was committed. A copy is made of links to files
# that never change.

#: The file that asks for a copy, and the one that says why there is none.
_WISH = "wish"
_REFUSAL = "refusal"

#: Seconds between two looks for the copy.
_INTERVAL = 0.05


def wishes(directory: Path) -> list[Path]:
    """The folders of those that wait for a copy."""
    return [path.parent for path in (directory / TRIPLES / COPIES).glob(f"*/{_WISH}")]


def grant(store: TripleStore, folders: Iterable[Path]) -> None:
    """Make copies for those that waited when :func:`wishes` looked. The store has taken what was committed by then."""
    for folder in folders:
        with contextlib.suppress(FileNotFoundError):  # the process that wished it has gone
            (folder / _WISH).unlink()
            try:
                store.copy_to(folder / "copy")
                (folder / "copy").rename(folder / STORE)
            except (OSError, CrawlDirectoryError) as error:
                (folder / _REFUSAL).write_text(str(error))


@contextlib.contextmanager
def snapshot(directory: Path, feed: Callable[[TripleStore], None], patience: float) -> Iterator[Path]:
    """A copy of the store that has everything committed by now; it is removed at the end. `feed` gives the store what it has
    not taken; another process that feeds it has so many seconds. Raises CrawlDirectoryError: the store is of another version or
    damaged, or its process does not answer. Raises OSError: a file could not be read or written."""
    place = directory / TRIPLES / COPIES
    place.mkdir(parents=True, exist_ok=True)
    with scratch(place=place) as name:
        folder = Path(name)
        wish = folder / _WISH
        deadline = time.monotonic() + patience
        while not (folder / STORE).exists():
            with following(directory, TRIPLES, wait=False) as held:
                if held:
                    with TripleStore(directory) as store:
                        feed(store)
                        wish.unlink(missing_ok=True)
                        if not (folder / STORE).exists():
                            store.copy_to(folder / STORE)
                    break
            if not wish.exists():
                wish.touch()
            if (folder / _REFUSAL).exists():
                raise CrawlDirectoryError(f"{directory / TRIPLES} cannot be copied: {(folder / _REFUSAL).read_text()}")
            if time.monotonic() > deadline:
                raise CrawlDirectoryError(
                    f"{directory / TRIPLES} is still taking triples after {patience:.0f} s; ask again, or give it more time"
                )
            time.sleep(_INTERVAL)
        yield folder / STORE


#: Rests between two looks at the feeds: triples are cheaper by the ten thousand. Questions do not wait for it.
_RESTS = 10


class TripleStoreFollower(Follower):
    rests = _RESTS

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._store = TripleStore(directory)
        self._consumers = self._store.consumers()
        self._waiting: list[Path] = []

    def is_awaited(self) -> bool:
        return bool(wishes(self._directory))

    def look(self) -> None:
        self._waiting = wishes(self._directory)

    def has_looked(self) -> None:
        grant(self._store, self._waiting)

    def finish(self) -> None:
        self._store.put_in_order()

    def told(self) -> list[FollowerNote]:
        left_out = self._store.left_out.total()
        if not left_out:
            return []
        return [
            FollowerNote(
                f"the triple store lacks {show_count(left_out, 'triple')} of the table, because their names are not IRIs"
            )
        ]

    def close(self) -> None:
        self._store.close()
