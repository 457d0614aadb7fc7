"""The two keys of a runtime: each sender has one by which the runtime knows it, and the runtime one by which senders know it again.

Place in the flow: `gossamer runtime admit` makes a sender's key and shows it once; the web door
(:mod:`gossamer.mobile.runtime.serving`) asks here for each request. The file holds hashes, so that it opens nothing to its reader.
The web door speaks TLS with the runtime's own key, which is made at its first start with a certificate that it signs itself. The
owner tells senders its fingerprint, and they take no other (decision 85); names and dates in the certificate say nothing.
"""

import base64
import contextlib
import hashlib
import hmac
import os
import re
import secrets
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from gossamer.engine.errors import refusing
from gossamer.engine.files import NotPrivate, private, replace_private
from gossamer.engine.remote.addresses import new_certificate
from gossamer.values.errors import UsageError

_CERTIFICATE_FILE = "runtime.pem"
_YEARS = 30


class OwnCertificate(msgspec.Struct, frozen=True):
    """A file with key and certificate, as PEM."""

    path: Path
    pin: str
    """Of the key: `sha256//` and the SHA-256 of its public part (SubjectPublicKeyInfo) in base64, as curl has it."""


def own_certificate(folder: Path) -> OwnCertificate:
    """The certificate in a folder; made, where there is none.
    Raises UsageError: it cannot be read or made, or others can read it."""
    path = folder / _CERTIFICATE_FILE
    try:
        if not path.exists():
            replace_private(path, new_certificate("gossamer runtime", 365 * _YEARS))
        with private(path) as file:
            certificate = x509.load_pem_x509_certificate(file.read(1 << 20))
    except NotPrivate:
        told = "holds the runtime's key, and others can read it; remove it, and tell senders the new one"
        raise UsageError(f"{path} {told}") from None
    except OSError as error:
        raise UsageError(f"the key of the runtime cannot be kept in {path}: {error.strerror or error}") from None
    except ValueError:
        raise UsageError(f"{path} holds no certificate; remove it, and tell senders the new key") from None
    public = certificate.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return OwnCertificate(path, f"sha256//{base64.b64encode(hashlib.sha256(public).digest()).decode()}")


#: Random bytes of a key: it is no password, so that a plain hash of it cannot be turned back.
LENGTH = 32

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SENDERS_FILE = "senders.json"
#: Bytes of the largest file: ten thousand senders.
_MOST = 2 << 20


class SendersFile(msgspec.Struct, forbid_unknown_fields=True):
    senders: dict[str, str] = {}
    """Name -> SHA-256 of the key, in hexadecimal."""


class Senders:
    """Those who may send, read anew whenever the file changes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _SENDERS_FILE
        self._read: tuple[int, int, int] = (0, 0, 0)
        self._known = SendersFile()

    def sender(self, key: str) -> str:
        """The sender whose key this is; empty for none. Takes as long for one as for another."""
        with contextlib.suppress(UsageError):  # a file that is being mended opens nothing new
            self._refresh()
        given = _hashed(key)
        found = ""
        for name, known in self._known.senders.items():
            if hmac.compare_digest(given, known):
                found = name
        return found

    @property
    def names(self) -> list[str]:
        """All of them. Raises UsageError: the file cannot be read."""
        self._refresh()
        return list(self._known.senders)

    def admit(self, name: str) -> str:
        """Give a sender a new key; the old one does not open any more.
        Raises UsageError: the name is none, or the file cannot be written."""
        if _NAME.fullmatch(name) is None:
            raise UsageError(f"{name!r} cannot be the name of a sender; write letters, digits, `.`, `_` and `-`")
        self._refresh()
        key = secrets.token_urlsafe(LENGTH)
        self._write({**self._known.senders, name: _hashed(key)})
        return key

    def dismiss(self, name: str) -> None:
        """Let a sender's key open nothing any more.
        Raises UsageError: there is no such sender, or the file cannot be written."""
        self._refresh()
        if name not in self._known.senders:
            known = ", ".join(self._known.senders) or "none"
            raise UsageError(f"no sender is called {name!r}; known: {known}")
        self._write({one: key for one, key in self._known.senders.items() if one != name})

    def _refresh(self) -> None:
        try:
            with private(self._path) as file:
                seen = os.fstat(file.fileno())
                if (now := (seen.st_mtime_ns, seen.st_size, seen.st_ino)) != self._read:
                    self._known, self._read = msgspec.json.decode(file.read(_MOST), type=SendersFile), now
        except FileNotFoundError:
            self._known, self._read = SendersFile(), (0, 0, 0)
        except NotPrivate:
            told = "says who may send, and others can change or read it; chmod 600 it"
            raise UsageError(f"{self._path} {told}") from None
        except OSError as error:
            raise UsageError(f"{self._path} cannot be read: {error.strerror or error}") from None
        except ValueError as error:
            raise UsageError(f"{self._path} cannot be read: {error}; remove it, and admit senders again") from None

    def _write(self, senders: dict[str, str]) -> None:
        with refusing(UsageError, f"{self._path} cannot be written"):
            replace_private(self._path, msgspec.json.format(msgspec.json.encode(SendersFile(senders))))


def _hashed(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()
