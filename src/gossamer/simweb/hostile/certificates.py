"""What the servers of chapter G show: a TLS context for each way in which a certificate or a handshake goes wrong.

Place in the flow: `server` makes them when it plays cases of TLS. Keys are made for each server anew; nothing is secret.
Needs the package `cryptography` (the extra `simweb`).
"""

from __future__ import annotations

import datetime
import ssl
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

NAME: Final = "hostile.sim"
"""What certificates are for, with every name one level below it, where they are for the right one."""

EXPIRED: Final = datetime.timedelta(days=400)
"""How long ago the expired certificate was made: longer than any holds."""

HOLDS: Final = datetime.timedelta(days=30)
"""As long as one holds."""

LINKS: Final = 100
"""Authorities in the long chain."""

MEGABYTE: Final = 1 << 20

TICKETS: Final = 10_000

_Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


class Signer:
    """An authority, or anybody who signs like one."""

    def __init__(self, name: str, by: Signer | None = None) -> None:
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.key = ec.generate_private_key(ec.SECP256R1())
        made = _begun(self.name, (by or self).name).public_key(self.key.public_key())
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.certificate = made.sign((by or self).key, hashes.SHA256())

    @property
    def pem(self) -> bytes:
        """Its certificate, in PEM."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def signed(
        self, key: _Key, name: str = NAME, age: datetime.timedelta = datetime.timedelta(days=1), padding: int = 0
    ) -> x509.Certificate:
        """A certificate for a name and what is one level below it; `padding` bytes of it mean nothing."""
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = _begun(subject, self.name, age).public_key(key.public_key())
        names = x509.SubjectAlternativeName([x509.DNSName(name), x509.DNSName(f"*.{name}")])
        made = made.add_extension(names, critical=False)
        if padding:
            nothing = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.3.6.1.4.1.32473.1"), bytes(padding))
            made = made.add_extension(nothing, critical=False)
        return made.sign(self.key, hashes.SHA256())


def contexts(known: Signer) -> dict[str, ssl.SSLContext]:
    """The contexts of all cases that need one, by the way in which TLS goes wrong; `known` is trusted by crawlers."""
    key = ec.generate_private_key(ec.SECP256R1())
    itself = Signer(NAME)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a key so weak is deprecated, and meant
        weak = rsa.generate_private_key(65537, 1024)  # noqa: S505  # crawlers are to refuse it
    made = {
        "sound": _context(key, known.signed(key)),
        "unknown": _context(key, Signer("nobody knows me").signed(key)),
        "expired": _context(key, known.signed(key, age=EXPIRED)),
        "name": _context(key, known.signed(key, "elsewhere.sim")),
        "self": _context(itself.key, itself.signed(itself.key)),
        "weak": _context(weak, known.signed(weak), level=0),
        "megabyte": _context(key, known.signed(key), [known.signed(key, padding=MEGABYTE)]),
        "hundred": _hundred(known, key),
        "old": _context(key, known.signed(key), level=0),
        "tickets": _context(key, known.signed(key)),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so old a version is deprecated, and meant
        made["old"].minimum_version = made["old"].maximum_version = ssl.TLSVersion.TLSv1
    made["tickets"].num_tickets = TICKETS
    return made


def _hundred(known: Signer, key: _Key) -> ssl.SSLContext:
    chain = [known]
    for number in range(LINKS):
        chain.append(Signer(f"link {number}", chain[-1]))
    return _context(key, chain[-1].signed(key), [signer.certificate for signer in reversed(chain[1:])])


def _begun(
    subject: x509.Name, issuer: x509.Name, age: datetime.timedelta = datetime.timedelta(days=1)
) -> x509.CertificateBuilder:
    made = datetime.datetime.now(datetime.UTC) - age
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .serial_number(x509.random_serial_number())
        .not_valid_before(made)
        .not_valid_after(made + HOLDS)
    )


def _context(
    key: _Key, certificate: x509.Certificate, chain: Sequence[x509.Certificate] = (), level: int | None = None
) -> ssl.SSLContext:
    """A server's context; `level` is OpenSSL's security level, where what is shown is too weak for its own."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if level is not None:
        context.set_ciphers(f"DEFAULT@SECLEVEL={level}")
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    # The ssl module loads certificates from files only.
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "host.pem"
        path.write_bytes(private + b"".join(one.public_bytes(pem) for one in (certificate, *chain)))
        context.load_cert_chain(path)
    return context
