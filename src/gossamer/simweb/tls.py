"""HTTPS for made-up names: authorities of our own that live as long as the server, and what they sign.

Place in the flow: `server` makes an `Authority` when HTTPS is asked for and offers its certificate as a file for the crawler to
trust; on each handshake the host's certificate is made at need and kept. :mod:`hostile.server` signs what does not hold. Keys
are made for each server anew; nothing here is secret. Needs the package `cryptography` (the extra `simweb`).
"""

import ipaddress
import ssl
import tempfile
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from gossamer.values.hosts import Remembered

CONTEXTS: Final = 4096
"""Host certificates kept; the memory starts again when it is full."""

LIFETIME: Final = timedelta(days=30)
"""How long certificates hold: longer than any run, too short to be trusted for good by mistake."""

DAY: Final = timedelta(days=1)
"""How old a certificate says it is: clocks that are a little behind believe it, too."""

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

_USAGE: Final = dict.fromkeys(
    (
        *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
        *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
    ),
    False,
) | dict.fromkeys(("digital_signature", "key_cert_sign", "crl_sign"), True)


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


class Signer:
    """An authority, or a stranger who signs like one."""

    def __init__(self, name: str, by: "Signer | None" = None) -> None:
        self.key = new_key()
        self.name = _name(name)
        extensions: list[tuple[x509.ExtensionType, bool]] = [
            (x509.BasicConstraints(ca=True, path_length=None), True),
            (x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), False),
            (x509.KeyUsage(**_USAGE), True),
        ]
        self.signed_by = (by or self)._sign(self.name, self.key, DAY, extensions)
        """Its certificate."""

    @property
    def certificate(self) -> bytes:
        """Its certificate alone, in PEM: what crawlers are told to trust."""
        return self.signed_by.public_bytes(serialization.Encoding.PEM)

    def signed(
        self, key: Key, name: str, *alternatives: x509.GeneralName, age: timedelta = DAY, padding: int = 0
    ) -> x509.Certificate:
        """A certificate for a name and some alternatives, made `age` ago; `padding` bytes of it mean nothing."""
        extensions: list[tuple[x509.ExtensionType, bool]] = [
            (x509.SubjectAlternativeName([x509.DNSName(name), *alternatives]), False),
            (x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), False),
        ]
        if padding:
            nothing = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.3.6.1.4.1.32473.1"), bytes(padding))
            extensions.append((nothing, False))
        return self._sign(_name(name[:64]), key, age, extensions)

    def _sign(
        self, subject: x509.Name, key: Key, age: timedelta, extensions: Sequence[tuple[x509.ExtensionType, bool]]
    ) -> x509.Certificate:
        made = datetime.now(UTC) - age
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self.name).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(made).not_valid_after(made + LIFETIME)
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical=critical)
        return builder.sign(self.key, hashes.SHA256())


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def context_of(
    key: Key, certificate: x509.Certificate, chain: Sequence[x509.Certificate] = (), level: int | None = None
) -> ssl.SSLContext:
    """A server's context; `level` is OpenSSL's security level, where what is shown is too weak for its own."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if level is not None:
        context.set_ciphers(f"DEFAULT@SECLEVEL={level}")
    pem = serialization.Encoding.PEM
    # The ssl module loads certificates from files only.
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "host.pem"
        path.write_bytes(_private(key) + b"".join(one.public_bytes(pem) for one in (certificate, *chain)))
        context.load_cert_chain(path)
    return context


def _private(key: Key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


class Authority(Signer):
    """The authority of a server; `pem` holds its certificate and key, to be shared by processes."""

    def __init__(self, pem: bytes | None = None) -> None:
        if pem is None:
            super().__init__("Gossamer simulated web")
        else:
            key = serialization.load_pem_private_key(pem, None)
            if not isinstance(key, ec.EllipticCurvePrivateKey):
                raise TypeError("the authority's key must be an elliptic curve key")
            self.key, self.signed_by = key, x509.load_pem_x509_certificate(pem)
            self.name = self.signed_by.subject
        # One key serves all hosts: making one is most of the work.
        self._host_key = new_key()
        self._contexts = Remembered(self.fixed_context, CONTEXTS)

    @property
    def pem(self) -> bytes:
        return self.certificate + _private(self.key)

    def server_context(self) -> ssl.SSLContext:
        """Return the context to listen with; each handshake gets the certificate of its host."""
        context = self._contexts["localhost"]

        def choose(socket: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
            if name is not None:
                socket.context = self._contexts[name]

        context.sni_callback = choose
        return context

    def fixed_context(self, name: str, addresses: Collection[str] = ("127.0.0.1",)) -> ssl.SSLContext:
        """Return a context whose certificate is for `name`, whichever name is asked for; one for `localhost`, and one for several
        addresses, is for these too."""
        named = addresses if name == "localhost" or len(addresses) > 1 else ()
        alternatives = (x509.IPAddress(ipaddress.ip_address(address)) for address in named)
        return context_of(self._host_key, self.signed(self._host_key, name, *alternatives))
