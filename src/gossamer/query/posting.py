"""One POST after the other to a server of the user's, over one connection that is opened again when it is lost.

Place in the flow: stores elsewhere (:mod:`gossamer.rdf.store.endpoint`) and webhooks (:mod:`gossamer.sinks.sink`)
send by it. They say what an answer means. Redirects are answers like any other: nothing is sent where the user did not say.
"""

import http.client
import ssl
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

from gossamer._version import __version__

#: Seconds until a server that says nothing counts as gone. A large update may take long.
PATIENCE = 120.0

#: Bytes of an answer that are read.
_MOST_BYTES = 2_000


class Posting:
    def __init__(self, url: str, patience: float = PATIENCE) -> None:
        """Name an http or https URL without credentials. Nothing is opened yet."""
        self._parts: SplitResult = urlsplit(url)
        self._patience = patience
        self._connection: http.client.HTTPConnection | None = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def post(self, body: bytes, fields: Mapping[str, str]) -> tuple[int, str, str]:
        """Send once: status, its words, and the beginning of what the server says, printable.
        Raises OSError: it cannot be reached, does not answer, or answers what is no HTTP; the message says which."""
        try:
            return self._posted(body, fields)
        except TimeoutError:
            self.close()
            raise OSError(f"it did not answer within {self._patience:g} s") from None
        except (OSError, http.client.HTTPException) as error:
            self.close()
            said = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise OSError(f"it cannot be reached ({said})") from None

    def _posted(self, body: bytes, fields: Mapping[str, str]) -> tuple[int, str, str]:
        connection = self._connection = self._connection or self._open()
        path = self._parts.path or "/"
        if self._parts.query:
            path = f"{path}?{self._parts.query}"
        connection.request("POST", path, body, {"User-Agent": f"gossamer/{__version__}", **fields})
        answer = connection.getresponse()
        said = answer.read(_MOST_BYTES).decode("utf-8", "replace")
        if not answer.isclosed():
            self.close()  # it says more than is wanted
        return answer.status, answer.reason, "".join(c for c in said if c.isprintable() or c == " ")

    def _open(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=self._patience, context=ssl.create_default_context())
        return http.client.HTTPConnection(host, port, timeout=self._patience)
