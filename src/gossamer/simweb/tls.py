"""HTTPS for made-up names: a certificate authority of our own that lives as long as the server.

Place in the flow: `server` makes an `Authority` when HTTPS is asked for and offers its certificate
as a file for the crawler to trust; on each handshake the host's certificate is made at need and kept.
Needs the package `cryptography` (the extra `simweb`).
"""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

CONTEXTS: Final = 4096
"""Host certificates kept; the memory starts again when it is full."""

LIFETIME: Final = datetime.timedelta(days=30)
"""How long certificates hold: longer than any run, too short to be trusted for good by mistake."""

_DAY: Final = datetime.timedelta(days=1)
"""How old a certificate says it is: clocks that are a little behind believe it, too."""


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


class Authority:
    """A certificate authority; `pem` holds its certificate and key, to be shared by processes."""

    def __init__(self, pem: bytes | None = None) -> None:
        self.pem = pem or _new_authority()
        self._certificate = x509.load_pem_x509_certificate(self.pem)
        key = serialization.load_pem_private_key(self.pem, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TypeError("the authority's key must be an elliptic curve key")
        self._key = key
        # One key serves all hosts: making one is most of the work, and nothing here is secret.
        self._host_key = ec.generate_private_key(ec.SECP256R1())
        self._contexts: dict[str, ssl.SSLContext] = {}

    @property
    def certificate(self) -> bytes:
        """The authority's certificate alone, in PEM: what crawlers are told to trust."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def server_context(self) -> ssl.SSLContext:
        """Return the context to listen with; each handshake gets the certificate of its host."""
        context = self._context("localhost")

        def choose(socket: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
            if name is not None:
                socket.context = self._context(name)

        context.sni_callback = choose
        return context

    def _context(self, name: str) -> ssl.SSLContext:
        known = self._contexts.get(name)
        if known is None:
            if len(self._contexts) >= CONTEXTS:
                self._contexts.clear()
            known = self._contexts[name] = self.fixed_context(name)
        return known

    def fixed_context(
        self, name: str, age: datetime.timedelta = _DAY, addresses: Collection[str] = ("127.0.0.1",)
    ) -> ssl.SSLContext:
        """Return a context whose certificate is for `name`, whoever is asked for, and was made `age` ago; one for `localhost`, and
        one for several addresses, is for these too."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # The ssl module loads certificates from files only.
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "host.pem"
            path.write_bytes(self._host_pem(name, age, addresses))
            context.load_cert_chain(path)
        return context

    def _host_pem(self, name: str, age: datetime.timedelta, addresses: Collection[str]) -> bytes:
        """Return certificate and key for a host name or an address."""
        alternatives: list[x509.GeneralName] = [x509.DNSName(name)]
        if name == "localhost" or len(addresses) > 1:
            alternatives += (x509.IPAddress(ipaddress.ip_address(address)) for address in addresses)
        builder = _builder(name, self._certificate.subject, age).public_key(self._host_key.public_key())
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(issuer, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return _pem(certificate, self._host_key)


def _builder(common: str, issuer: x509.Name, age: datetime.timedelta = _DAY) -> x509.CertificateBuilder:
    made = datetime.datetime.now(datetime.UTC) - age
    return (
        x509.CertificateBuilder()
        .subject_name(_name(common[:64]))
        .issuer_name(issuer)
        .serial_number(x509.random_serial_number())
        .not_valid_before(made)
        .not_valid_after(made + LIFETIME)
    )


def _new_authority() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder("Gossamer simulated web", _name("Gossamer simulated web"))
    builder = builder.public_key(key.public_key())
    constraints = x509.BasicConstraints(ca=True, path_length=0)
    builder = builder.add_extension(constraints, critical=True)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    builder = builder.add_extension(identifier, critical=False)
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = builder.add_extension(usage, critical=True)
    return _pem(builder.sign(key, hashes.SHA256()), key)


def _pem(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> bytes:
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return certificate.public_bytes(serialization.Encoding.PEM) + private
