"""Where a dashboard may listen: on this machine, or elsewhere where somebody says how that is safe, or that it is meant.

Place in the flow: commands read what a person wrote here, before the libraries of the server are loaded; :mod:`serving` listens.
"""

import importlib.util
import ipaddress

import msgspec

from gossamer.model.errors import UsageError


def check_installed() -> None:
    """Refuse where the libraries of the server are missing.

    Raises:
        UsageError: they are; says how to install them.
    """
    if any(importlib.util.find_spec(name) is None for name in ("starlette", "uvicorn")):
        raise UsageError("the dashboard needs Starlette and uvicorn; install them: pip install 'gossamer[dashboard]'")


class Listening(msgspec.Struct, frozen=True):
    """Where a dashboard listens."""

    name: str = "127.0.0.1"
    port: int = 0
    """0: a free one."""
    certificate: str = ""
    """A file with the chain of certificates, as PEM; with `key` the dashboard speaks TLS."""
    key: str = ""

    @property
    def scheme(self) -> str:
        """`https` with a certificate."""
        return "https" if self.certificate else "http"


def read_address(text: str, certificate: str = "", key: str = "", *, is_open: bool = False) -> Listening:
    """Where to listen, as a person wrote it: empty, `PORT`, `HOST` or `HOST:PORT`.

    Raises:
        UsageError: it is no address, or one that others can reach, and neither TLS nor a word says that this is meant.
    """
    name, colon, port = text.rpartition(":") if not text.endswith("]") else (text, "", "")
    if not colon and text.isdigit():
        name, port = "", text
    elif not colon:
        name, port = text, ""
    if port and not (port.isascii() and port.isdigit() and int(port) < 65_536):
        raise UsageError(f"{text!r} is not an address to listen at; write HOST:PORT, as 127.0.0.1:8080")
    if bool(certificate) != bool(key):
        raise UsageError("a certificate and its key belong together; give both")
    found = Listening(name.strip("[]") or "127.0.0.1", int(port or 0), certificate, key)
    if not (_is_loopback(found.name) or certificate or is_open):
        raise UsageError(
            f"{found.name} can be reached from other machines, and tokens would travel in the clear; "
            "give --certificate and --key, or use --without-tls"
        )
    return found


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"
