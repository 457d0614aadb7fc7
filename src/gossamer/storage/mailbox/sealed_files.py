"""Exchange files: URLs that one agent found and another one has to fetch, on their way by any medium.

    header, one line of JSON | URLs, one task a line of JSON, compressed as one gzip member

Place in the flow: :mod:`exchange_files` writes them out of the ledger, and :mod:`gossamer.agents.merging` reads them into
another one. A file is written whole or not at all. The header has the length and SHA-256 of what follows, and a seal
(HMAC-SHA-256 under the secret of the exchange) over itself, so that a file is proved before anything of it is unpacked: cut,
damaged and forged files have different words. `tail -n +2 FILE | zcat` shows the URLs.

The key of an exchange is a small secret file that all of its agents have: the first agent makes it, a person takes it to the
others, and each keeps a copy in its crawl directory. It names the exchange and its agents, so that all of them divide the web
alike.
"""

import hmac
import os
import secrets
import stat
import zlib
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b, file_digest, sha256
from io import BufferedReader
from pathlib import Path
from typing import Annotated, BinaryIO

import msgspec
from isal import isal_zlib
from isal.igzip_lib import IsalError

from gossamer.engine.errors import refusing
from gossamer.engine.files import replace_file
from gossamer.values.agents import fault_of, member, named
from gossamer.values.errors import UsageError
from gossamer.values.task import Task

#: Where an agent keeps its copy, inside its crawl directory.
EXCHANGE_KEY = "state/exchange-key"

#: The name of the file's form, and the version of that.
_KEY_FORMAT = "gossamer-exchange-key"
_VERSION = 1

#: Bytes of the secret: as many as the seals have that it makes.
_SECRET_BYTES = 32

#: Bytes that are read of a file which should be one: sixty-four agents with places take a tenth.
_MOST_BYTES = 64 << 10


class ExchangeKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The key that all agents of an exchange have."""

    format: str
    version: int
    exchange: str
    """Names the exchange; no secret."""
    secret: str
    """In hexadecimal digits."""
    members: tuple[str, ...]
    """All agents, as :func:`gossamer.values.agents.member` reads them."""

    def __repr__(self) -> str:
        return f"<ExchangeKey of {self.exchange}, {len(self.members)} agents>"

    @property
    def rule(self) -> str:
        """Differs where agents divide the web in another way."""
        return blake2b("\n".join(self.members).encode(), digest_size=8).hexdigest()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(member(text).agent for text in self.members)


def new_key(members: Sequence[str]) -> ExchangeKey:
    return ExchangeKey(_KEY_FORMAT, _VERSION, secrets.token_hex(8), secrets.token_hex(_SECRET_BYTES), tuple(members))


def read_key(path: Path) -> ExchangeKey:
    """The key in a file. Raises UsageError: it cannot be read, or is none."""
    with refusing(UsageError, f"the exchange key {path} cannot be read"):
        if path.exists() and not path.is_file():
            raise UsageError(
                f"the exchange key {path} is no file; take a copy of {EXCHANGE_KEY} of the first agent's crawl"
            )
        with path.open("rb") as file:  # a pipe would hang where it has no writer
            data = file.read(_MOST_BYTES)
    try:
        key = msgspec.json.decode(data, type=ExchangeKey)
        is_one = key.format == _KEY_FORMAT and len(bytes.fromhex(key.secret)) == _SECRET_BYTES and bool(key.names)
    except (ValueError, UsageError):
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
    """Write a key whole, so that only its owner can read it. Raises OSError: it cannot be written."""
    replace_file(path, msgspec.json.format(msgspec.json.encode(key)) + b"\n", mode=0o600)


#: The end of the names of exchange files.
SUFFIX = ".urls"

_FILE_FORMAT = "gossamer-exchange"

#: Bytes of a header at most: a thousand receipts have a third.
_MOST_HEADER = 64 << 10

#: Bytes of a line at most: a task with the largest request that the outbox takes.
_MOST_LINE = 2 << 20

#: Bytes that are read, hashed and unpacked at once.
_CHUNK = 256 << 10

#: URLs that cannot be kept and are told one by one; behind them their number says enough.
_EXAMPLES = 3

#: Names gzip to zlib.
_GZIP = 31

#: Receipts in one file: the newest. One that is left out is given with none of them, which costs disk at the other agent alone.
MOST_RECEIPTS = 1_000

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Task).decode


class UrlFileHeader(msgspec.Struct, frozen=True):
    """The header of an exchange file."""

    format: str
    version: int
    exchange: str
    """The exchange that it belongs to."""
    rule: str
    """How its agents divide the web: see :attr:`ExchangeKey.rule`."""
    sender: str
    receiver: str
    id: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{16}\Z")]
    """Names the file; no other has the same. Names of files and keys of the ledger are made of it."""
    made_at: float
    """Seconds since the epoch."""
    urls: int
    merged: tuple[str, ...]
    """Files of the receiver that the sender has merged."""
    bytes: int
    """Of what follows the header."""
    sha256: str
    """Of these bytes."""
    seal: str = ""


class _Version(msgspec.Struct, frozen=True):
    """A header of any version, as far as all of them are alike."""

    format: str
    version: int


class UrlFileWriter:
    """An exchange file that is being made. URLs wait in memory compressed, some ten bytes for each URL."""

    def __init__(self) -> None:
        self.urls = 0
        self._parts: list[bytes] = []
        self._packer = isal_zlib.compressobj(2, isal_zlib.DEFLATED, _GZIP)

    def add(self, tasks: Iterable[Task]) -> None:
        lines = [_encode(task) + b"\n" for task in tasks]
        self.urls += len(lines)
        if part := self._packer.compress(b"".join(lines)):
            self._parts.append(part)

    def write(self, path: Path, key: ExchangeKey, header: UrlFileHeader) -> None:
        """Close the file and put it in its place, on the disk for good; length, digest and seal are filled into the header.
        Raises OSError: it cannot be written; nothing is left."""
        self._parts.append(self._packer.flush())
        digest = sha256()
        for part in self._parts:
            digest.update(part)
        whole = msgspec.structs.replace(
            header, urls=self.urls, bytes=sum(map(len, self._parts)), sha256=digest.hexdigest()
        )
        sealed = msgspec.structs.replace(whole, seal=_seal(whole, key))
        try:
            replace_file(path, msgspec.json.encode(sealed) + b"\n" + b"".join(self._parts), sync=True)
        except OSError:
            path.with_name(f"{path.name}.new").unlink(missing_ok=True)
            raise


def new_header(key: ExchangeKey, sender: str, receiver: str, made_at: float, merged: Iterable[str]) -> UrlFileHeader:
    """The header of a new file, but for what only its writer knows."""
    name = os.urandom(8).hex()
    receipts = tuple(merged)[-MOST_RECEIPTS:]
    return UrlFileHeader(
        _FILE_FORMAT, _VERSION, key.exchange, key.rule, sender, receiver, name, made_at, 0, receipts, 0, ""
    )


class UrlFile:
    """An exchange file that was proved: it is whole, of this exchange, and for this agent."""

    def __init__(self, path: Path, header: UrlFileHeader, start: int) -> None:
        """`start`: the byte at which the header has ended."""
        self.path = path
        self.header = header
        self.refused = 0
        """How many URLs the last reading left out, since they cannot be kept."""
        self.examples: list[str] = []
        """The first of them, each with its number and the reason."""
        self._start = start

    def tasks(self) -> Iterator[Task]:
        """Its URLs, one after the other, but for those that cannot be kept. Raises UsageError: they are not those that the
        header speaks of."""
        self.refused, self.examples, number = 0, [], 0
        try:
            for line in _lines(self.path, self._start):
                number += 1
                if number > self.header.urls:
                    raise UsageError(f"{self.path} has more URLs than its header says, {self.header.urls:,}")
                task = self._judged(line, number)
                if task is not None:
                    yield task
        except (OSError, zlib.error, IsalError) as error:  # type: ignore[misc]  # its stubs call it an instance
            raise UsageError(f"{self.path} cannot be read behind URL {number:,}: {error}") from None
        if number != self.header.urls:
            raise UsageError(f"{self.path} has {number:,} URLs, and its header says {self.header.urls:,}")

    def _judged(self, line: bytes, number: int) -> Task | None:
        """The task of a line, when it can be kept."""
        try:
            task = _decode(line)
        except (ValueError, RecursionError) as error:
            told = f"URL {number:,}: {error}"
        else:
            if not (fault := fault_of(task)):
                return task
            told = f"URL {number:,}, {named(task)}: {fault}"
        self.refused += 1
        if len(self.examples) < _EXAMPLES:
            self.examples.append(told)
        return None


class ForAnother(UsageError):
    """An exchange file is for another agent of its exchange."""


def proved(path: Path, key: ExchangeKey, agent: str) -> UrlFile:
    """The exchange file there, when it is proved to be whole, of this exchange, and for this agent. Raises ForAnother: another
    agent is to have it; UsageError: it is not for other reasons; says what is wrong, and what to do."""
    with refusing(UsageError, f"{path} cannot be read"), _opened(path) as file:
        header, start = _header(file, path)
        if header.exchange != key.exchange:
            raise UsageError(
                f"{path} belongs to another crawl, whose exchange is {header.exchange!r}; nothing of it is merged"
            )
        if header.receiver != agent:
            raise ForAnother(f"{path} is for {header.receiver}, and this is {agent}; merge it there")
        if header.sender == agent:
            raise UsageError(f"{path} says that {agent} sent it to itself; nothing of it is merged")
        if header.rule != key.rule or header.sender not in key.names:
            raise UsageError(
                f"{path} comes from an agent that divides the web in another way; give all agents the same key"
            )
        there = file.seek(0, os.SEEK_END) - start
        if there < header.bytes:
            raise UsageError(f"{path} is cut: {there:,} of {header.bytes:,} bytes are there; bring it again")
        if there > header.bytes:
            raise UsageError(f"{path} has {there - header.bytes:,} bytes behind its end; bring it again")
        file.seek(start)
        if file_digest(file, sha256).hexdigest() != header.sha256:
            raise UsageError(f"{path} is damaged: its bytes are not those that were written; bring it again")
    if not hmac.compare_digest(_seal(header, key).encode(), header.seal.encode("utf-8", "replace")):
        raise UsageError(
            f"{path} is forged, or its header was changed: its seal was not made with the key of this exchange"
        )
    return UrlFile(path, header, start)


def _opened(path: Path) -> BufferedReader:
    """Open a file whose name comes from outside; to open a pipe would otherwise wait for its writer."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UsageError(f"{path} is not an exchange file: it is not a regular file")
    return os.fdopen(descriptor, "rb")


def _header(file: BinaryIO, path: Path) -> tuple[UrlFileHeader, int]:
    line = file.readline(_MOST_HEADER)
    if not line:
        raise UsageError(f"{path} is empty; bring it again")
    try:
        told = msgspec.json.decode(line, type=_Version)
    except (ValueError, RecursionError):
        told = None
    if told is None or told.format != _FILE_FORMAT:
        is_cut = line.startswith(b'{"format":"gossamer-exchange"') and not line.endswith(b"\n")
        raise UsageError(
            f"{path} is cut within its header; bring it again" if is_cut else f"{path} is not an exchange file"
        )
    if told.version != _VERSION:
        raise UsageError(
            f"{path} was written in version {told.version} of its form, and this program reads {_VERSION}; use the same "
            "version of Gossamer for all agents"
        )
    try:
        return msgspec.json.decode(line, type=UrlFileHeader), len(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} has a header that cannot be read: {error}") from None


def _seal(header: UrlFileHeader, key: ExchangeKey) -> str:
    """Covers what follows by its digest."""
    told = msgspec.json.encode(msgspec.structs.replace(header, seal=""))
    return hmac.new(bytes.fromhex(key.secret), told, sha256).hexdigest()


def _lines(path: Path, start: int) -> Iterator[bytes]:
    unpacker = isal_zlib.decompressobj(_GZIP)
    rest = b""
    with path.open("rb") as file:
        file.seek(start)
        while not unpacker.eof:
            given = unpacker.unconsumed_tail or file.read(_CHUNK)
            data = unpacker.decompress(given, _MOST_LINE)
            if not given and not data:
                raise zlib.error("the compressed data end too early")
            *lines, rest = (rest + data).split(b"\n")
            yield from lines
            if len(rest) > _MOST_LINE:
                raise zlib.error("a line is too long")
    if rest:
        raise zlib.error("the last line is cut")
