"""SPARQL 1.1 Update over HTTP: one request after the other, each sent again with growing pauses until it is taken.

Place in the flow: the way from :mod:`endpoint` to a server. Decisions about an answer are :func:`verdict`, a table.
"""

import base64
import os
import time
from collections.abc import Callable
from typing import Literal
from urllib.parse import urlsplit

from gossamer.model.errors import GossamerError, UsageError
from gossamer.query.posting import PATIENCE, Posting

#: The variable that says who may write: `USER:PASSWORD`, or `Bearer TOKEN`.
AUTH_VARIABLE = "GOSSAMER_TRIPLE_STORE_AUTH"

#: Rests between two tries grow up to this many.
_LONGEST_PAUSE = 60

#: Tries that are left when the crawl has ended, and seconds between them.
_LAST_TRIES, _LAST_PAUSE = 5, 2.0

#: Characters of an answer that a person is told.
_MOST_TOLD = 200

#: What a status means, where it is no success: the reader has to mend something, or a later try may do.
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

Verdict = Literal["taken", "refused", "wrong", "later"]


class UnfedEndpoint(GossamerError):
    """A store elsewhere could not be fed."""

    exit_code = 4


class RefusedUpdate(UnfedEndpoint):
    """The server does not take this update, whenever it is sent."""


def check_endpoint(url: str) -> str:
    """The URL of an endpoint, if it is one that updates may be sent to.

    Raises:
        UsageError: it is not; says why.
    """
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


def verdict(status: int) -> Verdict:
    """What becomes of an update that was answered with a status."""
    if 200 <= status < 300:
        return "taken"
    if status in _FAULTS or 300 <= status < 400:
        return "wrong"
    return "refused" if status in (400, 413, 415, 422) else "later"


class Updates:
    """The way to one endpoint."""

    def __init__(
        self,
        url: str,
        rest: Callable[[], bool],
        sleep: Callable[[float], None] = time.sleep,
        patience: float = PATIENCE,
    ) -> None:
        """Name it.

        Args:
            url: of the endpoint.
            rest: waits a little; True when the crawl has ended, and without waiting from then on.
            sleep: waits for so many seconds.
            patience: seconds until a server that says nothing counts as gone.
        """
        self.url = check_endpoint(url)
        self.has_sent = False
        """One was taken."""
        self._posting = Posting(url, patience)
        self._rest = rest
        self._sleep = sleep

    def close(self) -> None:
        """Let go of the connection. Safe to call twice."""
        self._posting.close()

    def send(self, update: str) -> None:
        """Have an update done.

        Raises:
            RefusedUpdate: the server does not take this one.
            UnfedEndpoint: it takes none, or did not answer until the end.
        """
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

        Raises:
            RefusedUpdate: the server does not take this one.
            UnfedEndpoint: it takes none.
        """
        fields = {"Content-Type": "application/sparql-update; charset=utf-8", **_authorization()}
        try:
            status, reason, body = self._posting.post(update.encode("utf-8", "replace"), fields)
        except OSError as error:
            return str(error)
        judged = verdict(status)
        if judged == "taken":
            return None
        what = _FAULTS.get(status) or _WORDS.get(status) or " ".join(body.split())[:_MOST_TOLD] or reason
        said = f"{what} (HTTP {status})"
        if judged == "refused":
            raise RefusedUpdate(f"{self.url}: {said}")
        if judged == "wrong":
            raise UnfedEndpoint(f"{self.url}: {said}")
        return said


def _authorization() -> dict[str, str]:
    secret = os.environ.get(AUTH_VARIABLE, "").strip()
    if not secret:
        return {}
    if secret.lower().startswith("bearer "):
        return {"Authorization": secret}
    return {"Authorization": f"Basic {base64.b64encode(secret.encode()).decode()}"}
