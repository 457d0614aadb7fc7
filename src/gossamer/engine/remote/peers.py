"""Links between machines that come and go: where the other side is by now, and TLS without an authority, since the shared secret
says who is there.

Place in the flow: :mod:`.links` asks here. A `peer:PATH` is met by files: the side that listens reads from `PATH.listen` at which
host and port, and writes the address that it has into `PATH.address`; the side that dials reads that at each attempt, so that one
that comes back elsewhere is found. :mod:`gossamer.agents.joined` brings the files from one machine to another.

Such a connection is sealed. The side that listens has a certificate of its own,
made when it starts. Its digest goes into the proofs of the handshake (:mod:`.handshake`) as the dialer has seen it. A stranger in
between has another certificate, so that no proof fits, and needs no fingerprint that people would have to carry about. A runtime of
mobile crawlers makes its certificate here, too, whose key its senders know.
"""

import asyncio
import datetime
import hashlib
import ssl
from functools import cache
from pathlib import Path
from typing import Any

from gossamer.engine.errors import WiringError
from gossamer.engine.files import replace_file
from gossamer.engine.remote.addresses import Address, parse

#: The last line of a certificate in a file; the key follows.
_PEM_END = "-----END CERTIFICATE-----"


def new_certificate(name: str, days: int = 3_650) -> bytes:
    """A certificate that signs itself, then its key, as PEM.

    Args:
        name: who it is, for people who look at it.
        days: how long it holds. Those who know its key, or the secret, do not ask.
    """
    from cryptography import x509  # 40 ms, which no link of one machine needs
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    named = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(named)
        .issuer_name(named)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=days))
        .sign(key, hashes.SHA256())
    )
    own = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(serialization.Encoding.PEM) + own


def serving(certificate: str) -> tuple[ssl.SSLContext, bytes]:
    """TLS of a side that listens, and the digest of its certificate, which its file has before the key. Raises WiringError: the
    file cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_cert_chain(certificate)
        text = Path(certificate).read_text(encoding="ascii")
        own = ssl.PEM_cert_to_DER_cert(text[: text.index(_PEM_END)] + _PEM_END)
    except (OSError, ValueError) as error:
        raise WiringError(f"certificate {certificate!r} cannot be used: {error}") from None
    return context, hashlib.sha256(own).digest()


@cache
def dialing() -> ssl.SSLContext:
    """TLS of a side that dials: it takes any certificate, and proves which one it has seen."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def seen_certificate(transport: asyncio.BaseTransport) -> bytes:
    """The digest of the certificate that the other side of a sealed connection has shown."""
    sealed: Any = transport.get_extra_info("ssl_object")
    return hashlib.sha256(sealed.getpeercert(True) or b"").digest()


#: Names of the files of a `peer:` address, behind its path; and in the same folder the certificate of this process, and the secret.
LISTEN, ADDRESS, CERTIFICATE, SECRET = ".listen", ".address", "certificate.pem", "secret"


def own_place(address: Address) -> Address:
    """Where this process is to listen for `peer:PATH`. Raises WiringError: nothing says where, or it is malformed."""
    path = Path(address.path)
    try:
        found = parse(path.with_name(path.name + LISTEN).read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        raise WiringError(f"cannot listen at {address}: nothing says where ({error})") from None
    return Address("tcp", host=found.host, port=found.port, seal=str(path.with_name(CERTIFICATE)))


def tell_place(address: Address, at: Address) -> None:
    """Say where this process listens for `peer:PATH`."""
    path = Path(address.path)
    replace_file(path.with_name(path.name + ADDRESS), str(at).encode())


def peer_place(address: Address) -> Address | None:
    """Where the other side of `peer:PATH` listens by now; None where that is not known."""
    path = Path(address.path)
    try:
        found = parse(path.with_name(path.name + ADDRESS).read_text(encoding="ascii"))
    except (OSError, ValueError, WiringError):
        return None
    return Address("tcp", host=found.host, port=found.port, seal=CERTIFICATE)
