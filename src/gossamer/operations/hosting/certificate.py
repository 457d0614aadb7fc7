"""The key by which senders know a runtime again: made at its first start, with a certificate that it signs itself.

Place in the flow: the web door speaks TLS with it; the owner tells senders its fingerprint, and they take no other (decision
85). Nobody else vouches for it, so that names and dates in the certificate say nothing.
"""

import base64
import datetime
import hashlib
import os
import stat
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from gossamer.model.errors import UsageError

_FILE = "runtime.pem"
_YEARS = 30


class OwnCertificate(msgspec.Struct, frozen=True):
    """A file with key and certificate, as PEM."""

    path: Path
    pin: str
    """Of the key: `sha256//` and the SHA-256 of its public part (SubjectPublicKeyInfo) in base64, as curl has it."""


def own_certificate(folder: Path) -> OwnCertificate:
    """The certificate in a folder; made, where there is none.

    Raises:
        UsageError: it cannot be read or made, or others can read it.
    """
    path = folder / _FILE
    try:
        if not path.exists():
            _make(path)
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(number, "rb") as file:
            seen = os.fstat(number)
            if seen.st_uid != os.getuid() or stat.S_IMODE(seen.st_mode) & 0o077:
                raise UsageError(
                    f"{path} holds the runtime's key, and others can read it; remove it, and tell senders the new one"
                )
            certificate = x509.load_pem_x509_certificate(file.read(1 << 20))
    except OSError as error:
        raise UsageError(f"the key of the runtime cannot be kept in {path}: {error.strerror}") from None
    except ValueError:
        raise UsageError(f"{path} holds no certificate; remove it, and tell senders the new key") from None
    return OwnCertificate(path, pin_of(certificate))


def pin_of(certificate: x509.Certificate) -> str:
    """The fingerprint of a certificate's key."""
    public = certificate.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return f"sha256//{base64.b64encode(hashlib.sha256(public).digest()).decode()}"


def _make(path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "gossamer runtime")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=365 * _YEARS))
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    number = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(number, "wb") as file:
        file.write(certificate.public_bytes(serialization.Encoding.PEM) + private)
    fresh.replace(path)
