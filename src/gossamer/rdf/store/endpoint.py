"""A triple store elsewhere, fed by SPARQL 1.1 Update over HTTP: each page's graph is dropped and put anew, in one request.

Place in the flow: it is fed beside a crawl (:class:`EndpointFollower`), with the rows that the crawl's own store gets
(:mod:`graphs`). Graphs of others in the same store are never touched, so several crawls and agents can feed one. Which store it
is lies in the crawl directory, beside the notes of its feeding; the environment alone holds the credentials to write to it.
"""

import base64
import hashlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pyoxigraph as oxigraph

from gossamer.engine.sheet import show_count
from gossamer.query.following import PATIENCE, Follower, Posting
from gossamer.rdf.store.graphs import NOTES, GraphNotes, PageGraph, graph_consumers, quads
from gossamer.rdf.terms import clean_iri
from gossamer.storage.tables.contract import FeedConsumer, FollowerNote
from gossamer.storage.tables.places import ENDPOINTS
from gossamer.values.errors import CrawlDirectoryError, GossamerError, UsageError

#: The variable that says who may write: `USER:PASSWORD`, or `Bearer TOKEN`.
AUTH_VARIABLE = "GOSSAMER_TRIPLE_STORE_AUTH"

#: Rests between two tries grow up to this many.
_LONGEST_PAUSE = 60

#: Tries that are left when the crawl has ended, and seconds between them.
_LAST_TRIES, _LAST_PAUSE = 5, 2.0

#: Characters of an answer that a person is told.
_MOST_TOLD = 200

#: The meaning of a status that is no success: the reader has to mend something, or a later try may do.
_FAULTS = {
    401: "it does not accept these credentials",
    403: "it forbids updates",
    404: "there is no such endpoint",
    405: "it takes no updates",
}
_WORDS = {
    413: "an update is too large for it",
    429: "it has too much to do",
    507: "it is full",
    503: "it has too much to do",
}

#: The same of an update that the server does not take, whenever it is sent.
_REFUSED = (400, 413, 415, 422)


class UnfedEndpoint(GossamerError):
    """A store elsewhere could not be fed."""

    exit_code = 4


class RefusedUpdate(UnfedEndpoint):
    """The server does not take this update, whenever it is sent."""


def check_endpoint(url: str) -> str:
    """The URL of an endpoint, if it is one that updates may be sent to. Raises UsageError: it is not; says why."""
    shown = "".join(character if character.isprintable() else "?" for character in url)
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  # one that is no number raises
    except ValueError as error:
        raise UsageError(f"--triple-store {shown}: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or shown != url or " " in url:
        raise UsageError(f"--triple-store {shown}: give the http or https URL that takes SPARQL updates")
    if parts.username is not None:
        raise UsageError(
            f"--triple-store: put USER:PASSWORD into {AUTH_VARIABLE}; the URL is kept in the crawl directory"
        )
    return url


class Updates:
    """SPARQL 1.1 Update over HTTP: one request after the other, each sent again with growing pauses until it is taken."""

    def __init__(
        self,
        url: str,
        rest: Callable[[], bool],
        sleep: Callable[[float], None] = time.sleep,
        patience: float = PATIENCE,
    ) -> None:
        """Name it. `rest` waits a little, and without waiting once the crawl has ended, which it says by True; a server that
        says nothing for `patience` seconds counts as gone."""
        self.url = check_endpoint(url)
        self.has_sent = False
        """One was taken."""
        self._posting = Posting(url, patience)
        self._rest = rest
        self._sleep = sleep

    def close(self) -> None:
        self._posting.close()

    def send(self, update: str) -> None:
        """Have an update done. Raises RefusedUpdate: the server does not take this one. Raises UnfedEndpoint: it takes none, or
        did not answer until the end."""
        pause, tries_left = 1, _LAST_TRIES
        while True:
            said = self._tried(update)
            if said is None:
                self.has_sent = True
                return
            if any(self._rest() for _ in range(pause)):
                tries_left -= 1
                if not tries_left:
                    raise UnfedEndpoint(f"{self.url}: {said}")
                self._sleep(_LAST_PAUSE)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _tried(self, update: str) -> str | None:
        """None where it was done; otherwise why not, where a later try may do.
        Raises RefusedUpdate: the server does not take this one. Raises UnfedEndpoint: it takes none."""
        fields = {"Content-Type": "application/sparql-update; charset=utf-8"}
        if secret := os.environ.get(AUTH_VARIABLE, "").strip():
            is_token = secret.lower().startswith("bearer ")
            fields["Authorization"] = secret if is_token else f"Basic {base64.b64encode(secret.encode()).decode()}"
        try:
            status, reason, body = self._posting.post(update.encode("utf-8", "replace"), fields)
        except OSError as error:
            return str(error)
        if 200 <= status < 300:
            return None
        what = _FAULTS.get(status) or _WORDS.get(status) or " ".join(body.split())[:_MOST_TOLD] or reason
        said = f"{what} (HTTP {status})"
        if status in _FAULTS or 300 <= status < 400:
            raise UnfedEndpoint(f"{self.url}: {said}")
        if status in _REFUSED:
            raise RefusedUpdate(f"{self.url}: {said}")
        return said


#: Characters of a request: servers take some megabytes at least.
_MOST_CHARACTERS = 1_000_000

#: Graphs that are dropped by one request.
_DROPPED_AT_ONCE = 1_000

#: Where an endpoint's URL stands in its folder.
_NOTE = "endpoint.json"


def register_endpoint(directory: Path, url: str) -> None:
    """Let a store elsewhere follow a crawl from now on; does nothing where it does.
    Raises OSError: it cannot be noted."""
    folder = directory / ENDPOINTS / hashlib.sha256(url.encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _NOTE).write_bytes(msgspec.json.encode({"url": url}))


def endpoints(directory: Path, rest: Callable[[], bool]) -> list["RemoteTripleStore"]:
    """The stores elsewhere that follow a crawl; `rest` is as of :class:`Updates`. Raises CrawlDirectoryError: what is noted of
    one cannot be read."""
    found = []
    for path in sorted((directory / ENDPOINTS).glob(f"*/{_NOTE}")):
        try:
            url = msgspec.json.decode(path.read_bytes(), type=dict[str, str])["url"]
        except (OSError, KeyError, ValueError) as error:
            raise CrawlDirectoryError(f"{path} cannot be read ({error}); delete its folder") from None
        found.append(RemoteTripleStore(path.parent, Updates(url, rest)))
    return found


class RemoteTripleStore:
    """One store elsewhere. Contract: `rdf.store.graphs.GraphStore`."""

    def __init__(self, folder: Path, updates: Updates) -> None:
        """Name it, and the folder of the notes of its feeding."""
        self._folder = folder
        self._updates = updates
        self._notes: GraphNotes | None = None
        self.left_out: Counter[str] = Counter()
        """Triples that have names which are no IRIs, and those of pages that the server refused."""

    @property
    def url(self) -> str:
        return self._updates.url

    def consumers(self) -> list[FeedConsumer]:
        return graph_consumers(self.notes, self)

    def notes(self) -> GraphNotes:
        """The notes of its feeding.
        Raises CrawlDirectoryError: another version of the program wrote them, or they are damaged."""
        if self._notes is None:
            self._notes = GraphNotes(self._folder / NOTES)
        return self._notes

    def close(self) -> None:
        self._updates.close()
        if self._notes is not None:
            self._notes.close()
            self._notes = None

    # -- what is done to it

    def put(self, graphs: Sequence[PageGraph], replaced: Iterable[str]) -> None:
        """See the contract. The old graph of a page goes in any case: another agent may have put it, or this one before a kill."""
        some: list[tuple[str, int]] = []
        size = 0
        for graph in graphs:
            rows = [quad.triple for quad in quads(graph.triples, "", self.left_out)]
            written = (oxigraph.serialize(rows, format=oxigraph.RdfFormat.N_TRIPLES) or b"").decode()
            text = f"DROP SILENT GRAPH <{graph.iri}>;\nINSERT DATA {{ GRAPH <{graph.iri}> {{\n{written}}} }};\n"
            if some and size + len(text) > _MOST_CHARACTERS:
                self._send(some)
                some, size = [], 0
            some.append((text, len(graph.triples)))
            size += len(text)
        self._send(some)

    def _send(self, some: Sequence[tuple[str, int]]) -> None:
        """Send updates together, or each by itself where the server refuses one of them."""
        if not some:
            return
        try:
            self._updates.send("".join(text for text, _ in some))
        except RefusedUpdate:
            if len(some) > 1:
                middle = len(some) // 2
                self._send(some[:middle])
                self._send(some[middle:])
            elif self._updates.has_sent:
                self.left_out["refused"] += some[0][1]
            else:
                raise  # it refuses everything: it is no store that takes updates

    def drop(self, urls: Sequence[str]) -> None:
        for start in range(0, len(urls), _DROPPED_AT_ONCE):
            some = urls[start : start + _DROPPED_AT_ONCE]
            self._updates.send("".join(f"DROP SILENT GRAPH <{clean_iri(url)}>;\n" for url in some))

    def empty(self, urls: Iterable[str]) -> None:
        self.drop(list(urls))


class EndpointFollower(Follower):
    def __init__(self, directory: Path, rest: Callable[[], bool]) -> None:
        self._endpoints = endpoints(directory, rest)
        self._consumers = [consumer for endpoint in self._endpoints for consumer in endpoint.consumers()]

    def told(self) -> list[FollowerNote]:
        return [
            FollowerNote(f"{endpoint.url} lacks {show_count(count, 'triple')}: {_REASONS[reason]}")
            for endpoint in self._endpoints
            for reason, count in endpoint.left_out.items()
        ]

    def close(self) -> None:
        for endpoint in self._endpoints:
            endpoint.close()


#: Why triples are not in a store elsewhere.
_REASONS = {"not_an_iri": "their names are not IRIs", "refused": "it refused them"}
