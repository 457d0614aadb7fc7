"""A store in S3 and what is compatible with it, in Google's or in Azure's, by the package `obstore`.

Place in the flow: :mod:`opening` makes one of the name of a store. Its address and keys come from the usual variables of the
environment (`AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`, `GOOGLE_APPLICATION_CREDENTIALS`, `AZURE_STORAGE_ACCOUNT_NAME` and so on), or
from the machine's role.
"""

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from gossamer.backup.contract import ABSENT, ObjectChanged, ObjectMissing, Stat, StoreFailed, StoreRefused
from gossamer.engine.errors import install_command
from gossamer.values.errors import UsageError

try:
    import obstore
    from obstore.exceptions import (
        AlreadyExistsError,
        BaseError,
        NotFoundError,
        PermissionDeniedError,
        PreconditionError,
        UnauthenticatedError,
    )
    from obstore.store import from_url
except ImportError:
    raise UsageError(f"--store with S3, GCS or Azure needs the package obstore: {install_command('store')}") from None

#: How long one request may take, and how long it is repeated where a server is busy: an owner that cannot reach its store rests
#: after the lease anyway.
_CLIENT: Any = {"timeout": "30s", "connect_timeout": "5s"}
_RETRIES: Any = {"max_retries": 3, "retry_timeout": timedelta(seconds=20)}

#: Where the environment names a server other than Amazon's.
_ENDPOINTS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT")

#: Characters of an error that are told, and where a server tells its own.
_TOLD = 160
_OF_SERVER = re.compile(r"<Code>(.*?)</Code>.*?<Message>(.*?)</Message>", re.DOTALL)

#: Errors by which a server refuses keys.
_DENIED = (
    "AccessDenied",
    "AuthenticationFailed",
    "AuthorizationFailure",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
)

#: The same where more rights would not do.
_REFUSED = ("ExpiredToken", "RequestTimeTooSkewed", "NoSuchBucket", "ContainerNotFound")

#: The package's words on a request that got no answer: the server, and in its notes for programmers the reason.
_ASKED, _FAILED = re.compile(r"Error performing [A-Z]+ (\w+://[^/\s]+)"), re.compile(r"kind: (?:Connect|Timeout)")
_WHY = re.compile(r'(?:message|error): "(.*?)"')

#: Where a machine in a cloud asks for the keys of its role; and the variables that hold keys, by the kind of store.
_ROLES = ("169.254.169.254", "metadata.google.internal")
_KEYS = {"s3": "AWS_ACCESS_KEY_ID", "gs": "GOOGLE_APPLICATION_CREDENTIALS", "az": "AZURE_STORAGE_ACCOUNT_KEY"}


class CloudStore:
    def __init__(self, url: str, patience: float | None = None) -> None:
        """With `patience`, a request fails after so many seconds, and is not repeated."""
        self.name, self._kind = url, url.partition(":")[0]
        limits, retries = _CLIENT, _RETRIES
        if patience is not None:
            limits = {"timeout": f"{patience:g}s", "connect_timeout": f"{patience:g}s"}
            retries = {"max_retries": 0, "retry_timeout": timedelta(seconds=patience)}
        # A server of one's own may speak http: its address says so.
        endpoint = next(filter(None, map(os.environ.get, _ENDPOINTS)), "")
        client: Any = {**limits, "allow_http": endpoint.startswith("http://")}
        with self._told():
            self._store = from_url(url, client_options=client, retry_config=retries)

    def put(self, key: str, data: bytes | memoryview, expect: str | None = None) -> str:
        mode: Any = "overwrite" if expect is None else "create" if expect == ABSENT else {"e_tag": expect}
        try:
            with self._told(key):
                return obstore.put(self._store, key, data, mode=mode, use_multipart=False)["e_tag"] or ""
        except ObjectMissing:
            raise ObjectChanged(key) from None

    def get(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        with self._told(key):
            if start or length is not None:
                size = self.stat(key).size
                end = size if length is None else min(size, start + length)
                return bytes(obstore.get_range(self._store, key, start=start, end=end)) if start < end else b""
            return bytes(obstore.get(self._store, key).bytes())

    def read(self, key: str) -> tuple[bytes, Stat]:
        with self._told(key):
            found = obstore.get(self._store, key)
            return bytes(found.bytes()), _stat_of(found.meta)

    def stat(self, key: str) -> Stat:
        with self._told(key):
            return _stat_of(obstore.head(self._store, key))

    def list(self, prefix: str) -> Iterator[str]:
        with self._told():
            for batch in obstore.list(self._store, prefix.rstrip("/")):
                yield from (found["path"] for found in batch)

    def delete(self, keys: Sequence[str]) -> None:
        with self._told(), contextlib.suppress(NotFoundError, FileNotFoundError):
            if keys:
                obstore.delete(self._store, list(keys))

    @contextlib.contextmanager
    def _told(self, key: str = "") -> Iterator[None]:
        """Say errors of the package in the words of the contract."""
        try:
            yield
        except (AlreadyExistsError, PreconditionError):
            raise ObjectChanged(key) from None
        except (NotFoundError, FileNotFoundError) as error:
            if key and "NoSuchBucket" not in str(error):
                raise ObjectMissing(key) from None
            raise self._failed(error) from None
        except (BaseError, OSError, ValueError) as error:
            raise self._failed(error) from None

    def _failed(self, error: Exception) -> StoreFailed:
        """An error in one line: as the server tells it, else as the package does. Neither has a key in it."""
        kind = StoreRefused if isinstance(error, PermissionDeniedError | UnauthenticatedError) else StoreFailed
        text, _, notes = str(error).partition("\n\nDebug source")
        asked = _ASKED.search(text)
        if told := _OF_SERVER.search(str(error)):
            kind = StoreRefused if told[1] in (*_DENIED, *_REFUSED) else kind
            cause = " ".join(": ".join(told.groups()).split()).rstrip(".")[:_TOLD]
            if told[1] in _DENIED:
                cause += "; give keys that may read, write and delete there"
        elif asked and asked[1].endswith(_ROLES):
            kind, keys = StoreRefused, _KEYS[self._kind]
            cause = f"the environment has no keys for it, and this machine has no role; set {keys} and those beside it"
        elif asked and _FAILED.search(notes):
            why = _WHY.search(notes)
            cause = f"{asked[1]} cannot be reached: {why[1] if why else 'it does not answer'}"
        else:
            cause = " ".join(text.split())[:_TOLD]
        return kind(f"the store {self.name}: {cause}")


def _stat_of(seen: Any) -> Stat:
    return Stat(seen["size"], seen["e_tag"] or "", seen["last_modified"].timestamp())
