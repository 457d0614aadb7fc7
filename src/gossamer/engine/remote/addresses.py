"""Addresses of remote connectors, the sockets that listen at them, and the places of machines that come and go.

Place in the flow: :mod:`.links` asks here. A `unix:` socket is as private as its folder: that must be ours alone (mode 0700), and
the socket itself gets mode 0600 before anyone can see it. A socket that a killed process left behind is replaced; a living one's
is not, and nothing that is not a socket ever is.

A `peer:PATH` is met by files: the side that listens reads from `PATH.listen` at which host and port, and writes the address that it
has into `PATH.address`; the side that dials reads that at each attempt, so that one that comes back elsewhere is found.
:mod:`gossamer.agents.joined` brings the files from one machine to another.

Such a connection is sealed by TLS without an authority, since the shared secret says who is there. The side that listens has a
certificate of its own, made when it starts. Its digest goes into the proofs of the handshake (:mod:`.handshake`) as the dialer has
seen it. A stranger in between has another certificate, so that no proof fits, and needs no fingerprint that people would have to
carry about. A runtime of mobile crawlers makes its certificate here, too, whose key its senders know.
"""

import asyncio
import datetime
import hashlib
import os
import secrets
import socket
import ssl
import stat
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from gossamer.engine.errors import WiringError, refusing
from gossamer.engine.files import replace_file

#: Bytes of a socket's path that every system takes (104 on BSD and macOS), less the ending of its first name.
_PATH_BYTES = 90

#: Connections that wait to be accepted.
BACKLOG = 128


class Address(msgspec.Struct, frozen=True):
    """The place where a connector's two sides meet."""

    scheme: str
    path: str = ""
    host: str = ""
    port: int = 0
    seal: str = ""
    """The connection is sealed by TLS where this is not empty: for the side that listens, the file with its certificate and key."""

    def __str__(self) -> str:
        if self.scheme != "tcp":
            return f"{self.scheme}:{self.path}"
        return f"tcp:[{self.host}]:{self.port}" if ":" in self.host else f"tcp:{self.host}:{self.port}"


def parse(address: str) -> Address:
    """An address from the wiring. Raises WiringError: it is malformed; says what is right."""
    scheme, _, rest = address.partition(":")
    if scheme == "unix":
        if not rest or "\0" in rest:
            raise WiringError(f"address {address!r} names no socket; write unix:PATH, as unix:run/links.sock")
        if len(os.fsencode(rest)) > _PATH_BYTES:
            raise WiringError(
                f"address {address!r}: socket paths are limited to {_PATH_BYTES} bytes; choose a shorter one"
            )
        return Address("unix", path=rest)
    if scheme == "peer" and rest and "\0" not in rest:
        return Address("peer", path=rest)
    host, _, port = rest.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if scheme != "tcp" or not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise WiringError(
            f"address {address!r} is malformed; write tcp:HOST:PORT, as tcp:127.0.0.1:9100 or tcp:[::1]:9100"
        )
    return Address("tcp", host=host, port=int(port))


def listening_unix_socket(path: Path) -> tuple[socket.socket, int]:
    """A socket that listens at `path`, and the file's inode. Raises WiringError: the folder is open to others, another
    process listens there, or something else has that name."""
    folder = path.parent
    with refusing(WiringError, f"folder {str(folder)!r} for a socket cannot be made"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        seen = folder.lstat()
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.getuid() or stat.S_IMODE(seen.st_mode) & 0o077:
        raise WiringError(
            f"folder {str(folder)!r} must be a real folder of yours and closed to others; run: chmod 700 {folder}"
        )
    _check_free(path)
    hidden = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bound.bind(str(hidden))
        hidden.chmod(0o600)
        bound.listen(BACKLOG)
        inode = hidden.lstat().st_ino
        hidden.rename(path)
    except OSError as error:
        bound.close()
        hidden.unlink(missing_ok=True)
        raise WiringError(f"cannot listen at unix:{path}: {error.strerror or error}") from None
    bound.setblocking(False)
    return bound, inode


def _check_free(path: Path) -> None:
    """Nothing is there, or the socket of a process that is gone; the rename replaces that."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise WiringError(f"cannot listen at unix:{path}: this name belongs to something that is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return
        except OSError:
            pass
    raise WiringError(f"cannot listen at unix:{path}: another process listens there")


def remove_unix_socket(path: Path, inode: int) -> None:
    """Remove our socket, unless a successor has put its own there."""
    try:
        if path.lstat().st_ino == inode:
            path.unlink()
    except FileNotFoundError:
        pass


async def stop_listening(server: asyncio.Server) -> None:
    """Close a server after every connection that it accepted has begun.

    An `asyncio.Server` that is closed between accepting a connection and beginning it forgets the connection, and
    leaves its socket open until it is collected.
    """
    loop = server.get_loop()
    for listening in server.sockets:
        loop.remove_reader(listening.fileno())
    await asyncio.sleep(0)
    server.close()


def keep_alive(connected: socket.socket) -> None:
    """Notice within two minutes that the machine on the other side is gone, which no packet tells."""
    if connected.family == socket.AF_UNIX:
        return
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 6)):
        if hasattr(socket, option):
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


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
