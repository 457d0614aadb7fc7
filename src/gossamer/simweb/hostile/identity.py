"""Chapter G, TLS and identity: certificates that do not hold, handshakes without an end, and servers that ask for
credentials.

Place in the flow: a part of `server.CASES`. Each way in which TLS goes wrong has a port of its own; :func:`contexts` makes what is
shown there when cases of TLS are played, and `server` plays the handshakes that no TLS library would.
"""

import ssl
import warnings
from datetime import timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa

from gossamer.simweb.hostile.case import PAGE, HostileAct, always, answer, redirect, table
from gossamer.simweb.tls import DAY, Key, Signer, context_of, new_key

NAME: Final = "hostile.sim"
"""The name that certificates are for, with every name one level below it, where they are for the right one."""

EXPIRED: Final = timedelta(days=400)
"""How long ago the expired certificate was made: longer than any holds."""

LINKS: Final = 100
"""Authorities in the long chain."""

MEGABYTE: Final = 1 << 20

TICKETS: Final = 10_000


def contexts(known: Signer) -> dict[str, ssl.SSLContext]:
    """The contexts of all cases that need one, by the way in which TLS goes wrong; `known` is trusted by crawlers."""

    def signed(signer: Signer, key: Key, name: str = NAME, age: timedelta = DAY, padding: int = 0) -> x509.Certificate:
        return signer.signed(key, name, x509.DNSName(f"*.{name}"), age=age, padding=padding)

    key, itself, chain = new_key(), Signer(NAME), [known]
    for number in range(LINKS):
        chain.append(Signer(f"link {number}", chain[-1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a key so weak, and so old a version, are deprecated, and meant
        weak = rsa.generate_private_key(65537, 1024)  # noqa: S505  # as weak as the case says
        old = context_of(key, signed(known, key), level=0)
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1
    made = {
        "sound": context_of(key, signed(known, key)),
        "unknown": context_of(key, signed(Signer("nobody knows me"), key)),
        "expired": context_of(key, signed(known, key, age=EXPIRED)),
        "name": context_of(key, signed(known, key, "elsewhere.sim")),
        "self": context_of(itself.key, signed(itself, itself.key)),
        "weak": context_of(weak, signed(known, weak), level=0),
        "megabyte": context_of(key, signed(known, key), [signed(known, key, padding=MEGABYTE)]),
        "hundred": context_of(key, signed(chain[-1], key), [one.signed_by for one in reversed(chain[1:])]),
        "old": old,
        "tickets": context_of(key, signed(known, key)),
    }
    made["tickets"].num_tickets = TICKETS
    return made


_WELL: Final = answer(PAGE)

#: How TLS goes wrong, where no request is ever sent.
_REFUSED: Final = dict(
    zip(
        ("G98a", "G98b", "G98c", "G98d", "G98e", "G98f", "G99a", "G99b", "G99c", "G99d", "G99e"),
        ("unknown", "expired", "name", "self", "weak", "megabyte", "stalled", "plain", "old", "drip", "endless"),
        strict=True,
    )
)

CASES: Final = table(
    """
    G98a | unknown authority | tls_failed | A certificate by an unknown authority. | no request is sent
    G98b | expired | tls_failed | A certificate that has expired. | no request is sent
    G98c | wrong name | tls_failed | A certificate for another name. | no request is sent
    G98d | self-signed | tls_failed | A certificate that vouches for itself. | no request is sent
    G98e | weak key | tls_failed | A certificate of a known authority with an RSA key of 1,024 bits. | no \
        request is sent
    G98f | chain of a megabyte | tls_failed | A sound certificate, followed by 1 MiB of others. | no request is sent
    G99a | stalled handshake | tls_failed | Accepts the connection and never begins TLS. | no request is sent
    G99b | no TLS | tls_failed | Speaks plain HTTP on the port for HTTPS. | no request is sent
    G99c | TLS 1.0 | tls_failed | Knows TLS 1.0 and nothing later. | no request is sent
    G99d | dripping handshake | tls_failed | A byte of its handshake each second. | no request is sent
    G99e | endless handshake | tls_failed | A handshake message of 16 MiB. | no request is sent
    G98g | chain of a hundred | ok | A hundred authorities, each vouching for the next, from a known one. | it \
        holds: OpenSSL follows a hundred authorities at most, and reads 100 KB of certificates
    G99f | ten thousand tickets | ok | A sound handshake and 10,000 session tickets after it. | read past, one \
        at most kept
    G100 | downgrade | redirect | HTTPS that redirects to plain HTTP at the same host. | credentials and \
        cookies of the secure site stay there
    G103 | asks for credentials | client_error | A server that is no proxy and asks for a proxy's credentials \
        (407), whatever it is told. | asked once; credentials go to the proxy that they were given for alone
    """,
    {
        **dict.fromkeys(_REFUSED, always(HostileAct.STAY)),
        "G98g": _WELL,
        "G99f": _WELL,
        "G100": redirect(b"http://hostile.sim/G100/plain"),
        "G103": answer(
            b"no", b"Proxy-Authenticate: Basic realm=x\r\n", b"HTTP/1.1 407 Proxy Authentication Required\r\n"
        ),
    },
    {**_REFUSED, "G98g": "hundred", "G99f": "tickets", "G100": "sound"},
)
