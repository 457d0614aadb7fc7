"""The key of a crawl whose agents exchange URLs by files: a small secret file that all of its agents have.

Place in the flow: the first agent makes it, a person takes it to the others, and each keeps a copy in its crawl directory. It names
the exchange and its agents, so that all of them divide the web alike; its secret seals the files (:mod:`sealed`).
"""

import os
import secrets
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import msgspec

from gossamer.model.agents import member
from gossamer.model.errors import UsageError

#: Where an agent keeps its copy, inside its crawl directory.
EXCHANGE_KEY = "state/exchange-key"

#: What the file says that it is, and the version of its form.
_FORMAT = "gossamer-exchange-key"
_VERSION = 1

#: Bytes of the secret: as many as the seals have that it makes.
_SECRET_BYTES = 32

#: Bytes that are read of a file which should be one: sixty-four agents with places take a tenth.
_MOST_BYTES = 64 << 10


class ExchangeKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What all agents of an exchange know."""

    format: str
    version: int
    exchange: str
    """Names the exchange; no secret."""
    secret: str
    """In hexadecimal digits."""
    members: tuple[str, ...]
    """All agents, as :func:`gossamer.model.agents.member` reads them."""

    def __repr__(self) -> str:
        return f"<ExchangeKey of {self.exchange}, {len(self.members)} agents>"

    @property
    def rule(self) -> str:
        """Differs where agents divide the web in another way."""
        return blake2b("\n".join(self.members).encode(), digest_size=8).hexdigest()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the agents."""
        return tuple(member(text).agent for text in self.members)


def new_key(members: Sequence[str]) -> ExchangeKey:
    """A key for these agents."""
    return ExchangeKey(_FORMAT, _VERSION, secrets.token_hex(8), secrets.token_hex(_SECRET_BYTES), tuple(members))


def read_key(path: Path) -> ExchangeKey:
    """The key in a file.

    Raises:
        UsageError: it cannot be read, or is none.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES)
    except OSError as error:
        raise UsageError(f"the exchange key {path} cannot be read: {error.strerror}") from None
    try:
        key = msgspec.json.decode(data, type=ExchangeKey)
        is_one = key.format == _FORMAT and len(bytes.fromhex(key.secret)) == _SECRET_BYTES and bool(key.names)
    except (msgspec.DecodeError, ValueError, UsageError):
        is_one = False
    if not is_one:
        raise UsageError(
            f"{path} is not an exchange key; the first agent's is {EXCHANGE_KEY} in its crawl directory: take a copy of that"
        )
    if key.version != _VERSION:
        raise UsageError(
            f"the exchange key {path} is of version {key.version}, and this program reads {_VERSION}; use the same "
            "version of Gossamer for all agents"
        )
    return key


def write_key(path: Path, key: ExchangeKey) -> None:
    """Write a key whole, so that only its owner can read it.

    Raises:
        OSError: it cannot be written.
    """
    beside = path.with_name(f"{path.name}.new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(msgspec.json.format(msgspec.json.encode(key)) + b"\n")
    beside.replace(path)
