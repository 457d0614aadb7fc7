"""Chapter G, TLS and identity: certificates that do not hold, handshakes without an end, and servers that ask for
credentials.
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

from gossamer.simweb.hostile.case import PAGE, HostileAct, HostileCase, Script, Step, answer, redirect
from gossamer.values.outcome import Outcome

# What the servers of chapter G show: a TLS context for each way in which a certificate or a handshake goes wrong. `server` makes
# them when it plays cases of TLS. Keys are made for each server anew; nothing is secret. Needs the package `cryptography` (the
# extra `simweb`).


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
    """An authority, or a stranger who signs like one."""

    def __init__(self, name: str, by: Signer | None = None) -> None:
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.key = ec.generate_private_key(ec.SECP256R1())
        made = _begun(self.name, (by or self).name).public_key(self.key.public_key())
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.certificate = made.sign((by or self).key, hashes.SHA256())

    @property
    def pem(self) -> bytes:
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
        weak = rsa.generate_private_key(65537, 1024)  # noqa: S505  # as weak as the case says
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


# Chapter G, TLS and identity: certificates that do not hold, handshakes without an end, and requests for credentials. A part of
# `server.CASES`. Each way in which TLS goes wrong has a port of its own; :func:`contexts` makes what is shown there, `server` plays
# the handshakes that no TLS library would.

#: Ways in which a server stalls: the crawler's deadline for the handshake has to end them.
STALLS: Final = frozenset({"stalled", "drip"})

#: TLS that does not go wrong, for what comes after it.
SOUND: Final = "sound"


_WELL: Final = answer(PAGE)


def _nothing(target: str) -> tuple[Step, ...]:
    return (HostileAct.STAY,)


def _met(number: str, name: str, does: str, tls: str, script: Script, outcome: Outcome, then: str) -> HostileCase:
    return HostileCase(number=number, name=name, does=does, outcome=outcome, script=script, tls=tls, then=then)


_REFUSED: Final = tuple(
    HostileCase(
        number=number,
        name=name,
        does=does,
        outcome=Outcome.TLS_FAILED,
        script=_nothing,
        tls=tls,
        stalls=tls in STALLS,
        then="no request is sent",
    )
    for number, name, does, tls in (
        ("G98a", "unknown authority", "A certificate by an unknown authority.", "unknown"),
        ("G98b", "expired", "A certificate that has expired.", "expired"),
        ("G98c", "wrong name", "A certificate for another name.", "name"),
        ("G98d", "self-signed", "A certificate that vouches for itself.", "self"),
        ("G98e", "weak key", "A certificate of a known authority with an RSA key of 1,024 bits.", "weak"),
        ("G98f", "chain of a megabyte", "A sound certificate, followed by 1 MiB of others.", "megabyte"),
        ("G99a", "stalled handshake", "Accepts the connection and never begins TLS.", "stalled"),
        ("G99b", "no TLS", "Speaks plain HTTP on the port for HTTPS.", "plain"),
        ("G99c", "TLS 1.0", "Knows TLS 1.0 and nothing later.", "old"),
        ("G99d", "dripping handshake", "A byte of its handshake each second.", "drip"),
        ("G99e", "endless handshake", "A handshake message of 16 MiB.", "endless"),
    )
)

CASES: Final = (
    *_REFUSED,
    _met(
        "G98g",
        "chain of a hundred",
        "A hundred authorities, each vouching for the next, from a known one.",
        "hundred",
        _WELL,
        Outcome.OK,
        "it holds: OpenSSL follows a hundred authorities at most, and reads 100 KB of certificates",
    ),
    _met(
        "G99f",
        "ten thousand tickets",
        "A sound handshake and 10,000 session tickets after it.",
        "tickets",
        _WELL,
        Outcome.OK,
        "read past, one at most kept",
    ),
    _met(
        "G100",
        "downgrade",
        "HTTPS that redirects to plain HTTP at the same host.",
        SOUND,
        redirect(b"http://hostile.sim/G100/plain"),
        Outcome.REDIRECT,
        "credentials and cookies of the secure site stay there",
    ),
    HostileCase(
        number="G103",
        name="asks for credentials",
        does="A server that is no proxy and asks for a proxy's credentials (407), whatever it is told.",
        outcome=Outcome.CLIENT_ERROR,
        script=answer(
            b"no", b"Proxy-Authenticate: Basic realm=x\r\n", b"HTTP/1.1 407 Proxy Authentication Required\r\n"
        ),
        then="asked once; credentials go to the proxy that they were given for alone",
    ),
)
