"""Crawlers and their results on the disk of a runtime, so that a kill loses neither.

Place in the flow: :mod:`gossamer.mobile.runtime.journey` writes here whatever it has promised before it says so. ::

    crawlers/NAME/crawler       the bytes as they were sent
    crawlers/NAME/note.json     where it stands; replaced as a whole
    crawlers/NAME/000000.batch  a frame; written before the note tells of it

A name is a hash of sender and identity, so that neither becomes a path.

Beside them is what a runtime tells its owner: how it stands, in a file that :mod:`gossamer.mobile.runtime.serving` writes once a
second, and what happened, in a log of the host, its journeys and its web door. `gossamer runtime status` reads both. A line of the
log has no characters that a terminal would obey.

And there are two keys: each sender has one by which the runtime knows it, of which a hash is kept, and the runtime one by which
senders know it again. The web door speaks TLS with that, and asks here whose a request is.
"""

import base64
import contextlib
import hashlib
import hmac
import json
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from gossamer.engine.errors import refusing
from gossamer.engine.files import NotPrivate, private, replace_file, replace_private, sync_folder
from gossamer.engine.remote.addresses import new_certificate
from gossamer.mobile.contract import CrawlerState, FailureReason
from gossamer.values.errors import UsageError

if TYPE_CHECKING:
    from gossamer.mobile.runtime.host import RuntimeHost

_NOTE, _CRAWLER = "note.json", "crawler"
_BATCH = "{:06}.batch"


class JourneyNote(msgspec.Struct, omit_defaults=True):
    sender: str
    identity: str
    crawler: str
    """SHA-256 of the bytes that were sent, in hexadecimal."""
    state: CrawlerState = "waiting"
    reason: FailureReason | str = ""
    told: str = ""
    digests: list[str] = []
    """Of each batch that was made, before it was packed: a crawler that runs again makes the same ones."""
    cuts: list[int] = []
    """After how many answers each batch was made; 0 where an older version made it, by its size alone."""
    sizes: list[int] = []
    """Bytes of the frame of each batch."""
    acknowledged: int = 0
    """Batches before this one are forgotten."""
    starts: int = 0
    """How often it was started since it made a batch."""
    fetched: int = 0
    accepted: float = 0.0
    """Seconds since the epoch, as `ended`."""
    ended: float = 0.0
    cpu: float = 0.0
    """Seconds of processor time of its processes."""

    @property
    def has_ended(self) -> bool:
        return self.state in ("finished", "failed")

    @property
    def kept(self) -> int:
        return sum(self.sizes[self.acknowledged :])


class JourneyFolder:
    """The files of one crawler. Not for two threads at once."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self, note: JourneyNote, crawler: bytes) -> None:
        """Keep a crawler that was not kept yet. Raises OSError: there is no room, or no right."""
        fresh = self.path.with_name(f"{self.path.name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700, parents=True)
        try:
            replace_file(fresh / _CRAWLER, crawler, sync=True, mode=0o600)
            replace_file(fresh / _NOTE, msgspec.json.encode(note), sync=True, mode=0o600)
            fresh.rename(self.path)
            sync_folder(self.path.parent)
        except OSError:
            shutil.rmtree(fresh, ignore_errors=True)
            raise

    def write_note(self, note: JourneyNote) -> None:
        """Replace the note. Raises OSError: as `create`; the old note stands."""
        replace_file(self.path / _NOTE, msgspec.json.encode(note), sync=True, mode=0o600)

    def write_batch(self, sequence: int, frame: bytes) -> None:
        """Keep a frame, of which the note does not tell yet.
        Raises OSError: as `create`; the written bytes are taken away."""
        replace_file(self.path / _BATCH.format(sequence), frame, sync=True, mode=0o600)

    def crawler(self) -> bytes:
        """The bytes as they were sent. Raises OSError: they cannot be read."""
        return (self.path / _CRAWLER).read_bytes()

    def batch(self, sequence: int) -> bytes | None:
        try:
            return (self.path / _BATCH.format(sequence)).read_bytes()
        except FileNotFoundError:
            return None

    def forget(self, sequences: range) -> None:
        for sequence in sequences:
            (self.path / _BATCH.format(sequence)).unlink(missing_ok=True)

    def forget_crawler(self) -> None:
        """Delete the program, which is not wanted after the end."""
        (self.path / _CRAWLER).unlink(missing_ok=True)

    def remove(self) -> None:
        """Delete everything; a kill on the way leaves a folder without a note, which the next start deletes."""
        (self.path / _NOTE).unlink(missing_ok=True)
        shutil.rmtree(self.path, ignore_errors=True)


def folder_of(root: Path, sender: str, identity: str) -> JourneyFolder:
    name = hashlib.sha256(f"{sender}\0{identity}".encode()).hexdigest()[:32]
    return JourneyFolder(root / name)


def kept_journeys(root: Path) -> Iterator[tuple[JourneyFolder, JourneyNote]]:
    """Every crawler of a folder; one without a note that can be read is deleted, since its sender was promised nothing.
    Raises OSError: the folder cannot be read."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in sorted(root.iterdir()):
        folder = JourneyFolder(path)
        try:
            note = msgspec.json.decode((path / _NOTE).read_bytes(), type=JourneyNote)
        except (OSError, ValueError):
            folder.remove()
            continue
        # A frame that the note does not tell of was written just before a kill.
        told = {_BATCH.format(sequence) for sequence in range(note.acknowledged, len(note.sizes))}
        for batch in path.glob("*.batch*"):
            if batch.name not in told:
                batch.unlink()
        yield folder, note


# The log: a JSON line for each event.

#: Bytes of the log, and of the one before it that is kept: some hundred thousand events.
MAX_BYTES = 16 << 20
#: Characters of a text in an event: strangers write some.
MAX_TEXT = 500


class Diary:
    """The log of a runtime. Any thread may tell."""

    def __init__(self, path: Path, now: Callable[[], float] = time.time, most: int = MAX_BYTES) -> None:
        self._path = path
        self._now = now
        self._most = most
        self._lock = threading.Lock()

    def tell(self, event: str, **facts: Any) -> None:
        """Write an event. A disk that is full loses it, since nothing else can wait for a log."""
        at = datetime.fromtimestamp(self._now(), UTC).isoformat(timespec="milliseconds")
        cut = {name: fact[:MAX_TEXT] if isinstance(fact, str) else fact for name, fact in facts.items()}
        # Everything beyond ASCII is escaped: among it are characters that turn a line round.
        line = json.dumps({"at": at, "event": event, **cut}, ensure_ascii=True) + "\n"
        with self._lock, contextlib.suppress(OSError):
            if self._path.exists() and self._path.stat().st_size + len(line) > self._most:
                self._path.replace(self._path.with_name(f"{self._path.name}.1"))
            with self._path.open("a", encoding="ascii") as file:
                file.write(line.replace("\x7f", "\\u007f"))


def last_events(path: Path, most: int) -> list[dict[str, Any]]:
    """The last events of a log, oldest first; lines that a kill has cut are passed over."""
    lines: list[str] = []
    for one in (path.with_name(f"{path.name}.1"), path):
        with contextlib.suppress(OSError), one.open(encoding="ascii", errors="replace") as file:
            lines = [*lines, *file][-most:] if most else []
    found: list[dict[str, Any]] = []
    for line in lines:
        with contextlib.suppress(ValueError):
            event = json.loads(line)
            if isinstance(event, dict):
                found.append(event)
    return found


_FILE = "standing.json"


class HostedCrawler(msgspec.Struct, frozen=True):
    """One crawler, as its owner sees it."""

    sender: str
    crawler: str
    state: str
    reason: str
    told: str
    fetched: int
    batches: int
    brought: int
    """Bytes of all batches, packed."""
    kept: int
    """Bytes of those that its sender has not acknowledged."""
    cpu: float
    """Seconds of processor time, of processes that have ended."""
    accepted: float
    """Seconds since the epoch, as `ended`."""
    ended: float


class HostStanding(msgspec.Struct, frozen=True):
    pid: int
    address: str
    pin: str
    """Of its key; empty without TLS."""
    hosts: dict[str, str]
    walls: str
    is_weak: bool
    """Crawlers are not shut in as they should be."""
    kept: int = 0
    """Bytes of results."""
    crawlers: tuple[HostedCrawler, ...] = ()


def write_standing(folder: Path, standing: HostStanding, host: "RuntimeHost") -> None:
    """Write it; on a disk that is full the old one stays."""
    crawlers = tuple(
        HostedCrawler(
            note.sender,
            note.identity,
            "running" if is_running and not note.has_ended else note.state,
            note.reason,
            note.told,
            note.fetched,
            len(note.sizes),
            sum(note.sizes),
            note.kept,
            round(note.cpu, 3),
            note.accepted,
            note.ended,
        )
        for note, is_running in host.notes()
    )
    whole = msgspec.structs.replace(standing, kept=host.shelf.kept, crawlers=crawlers)
    with contextlib.suppress(OSError):
        replace_file(folder / _FILE, msgspec.json.encode(whole))


def read_standing(folder: Path) -> HostStanding:
    """The last one. Raises UsageError: no runtime has run there, or its file is damaged."""
    try:
        return msgspec.json.decode((folder / _FILE).read_bytes(), type=HostStanding)
    except OSError:
        raise UsageError(f"{folder}: no runtime has run there; give the folder of its --state") from None
    except ValueError as error:
        raise UsageError(f"{folder / _FILE} cannot be read ({error}); start the runtime again") from None


# The two keys. That of the runtime is made at its first start, with a certificate that it signs itself. The owner tells senders its
# fingerprint, and they take no other (decision 85); names and dates in the certificate say nothing.

_CERTIFICATE_FILE = "runtime.pem"
_YEARS = 30


class OwnCertificate(msgspec.Struct, frozen=True):
    """A file with key and certificate, as PEM."""

    path: Path
    pin: str
    """Of the key: `sha256//` and the SHA-256 of its public part (SubjectPublicKeyInfo) in base64, as curl has it."""


def own_certificate(folder: Path) -> OwnCertificate:
    """The certificate in a folder; made, where there is none.
    Raises UsageError: it cannot be read or made, or others can read it."""
    from cryptography import x509  # 40 ms, which no other command needs
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    path = folder / _CERTIFICATE_FILE
    try:
        if not path.exists():
            replace_private(path, new_certificate("gossamer runtime", 365 * _YEARS))
        with private(path) as file:
            certificate = x509.load_pem_x509_certificate(file.read(1 << 20))
    except NotPrivate:
        told = "holds the runtime's key, and others can read it; remove it, and tell senders the new one"
        raise UsageError(f"{path} {told}") from None
    except OSError as error:
        raise UsageError(f"the key of the runtime cannot be kept in {path}: {error.strerror or error}") from None
    except ValueError:
        raise UsageError(f"{path} holds no certificate; remove it, and tell senders the new key") from None
    public = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return OwnCertificate(path, f"sha256//{base64.b64encode(hashlib.sha256(public).digest()).decode()}")


#: Random bytes of a key: it is no password, so that a plain hash of it cannot be turned back.
LENGTH = 32

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SENDERS_FILE = "senders.json"
#: Bytes of the largest file: ten thousand senders.
_MOST = 2 << 20


class SendersFile(msgspec.Struct, forbid_unknown_fields=True):
    senders: dict[str, str] = {}
    """Name -> SHA-256 of the key, in hexadecimal."""


class Senders:
    """Those who may send, read anew whenever the file changes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _SENDERS_FILE
        self._read: tuple[int, int, int] = (0, 0, 0)
        self._known = SendersFile()

    def sender(self, key: str) -> str:
        """The sender whose key this is; empty for none. Takes as long for one as for another."""
        with contextlib.suppress(UsageError):  # a file that is being mended opens nothing new
            self._refresh()
        given = _hashed(key)
        found = ""
        for name, known in self._known.senders.items():
            if hmac.compare_digest(given, known):
                found = name
        return found

    @property
    def names(self) -> list[str]:
        """All of them. Raises UsageError: the file cannot be read."""
        self._refresh()
        return list(self._known.senders)

    def admit(self, name: str) -> str:
        """Give a sender a new key; the old one does not open any more.
        Raises UsageError: the name is none, or the file cannot be written."""
        if _NAME.fullmatch(name) is None:
            raise UsageError(f"{name!r} cannot be the name of a sender; write letters, digits, `.`, `_` and `-`")
        self._refresh()
        key = secrets.token_urlsafe(LENGTH)
        self._write({**self._known.senders, name: _hashed(key)})
        return key

    def dismiss(self, name: str) -> None:
        """Let a sender's key open nothing any more.
        Raises UsageError: there is no such sender, or the file cannot be written."""
        self._refresh()
        if name not in self._known.senders:
            known = ", ".join(self._known.senders) or "none"
            raise UsageError(f"no sender is called {name!r}; known: {known}")
        self._write({one: key for one, key in self._known.senders.items() if one != name})

    def _refresh(self) -> None:
        try:
            with private(self._path) as file:
                seen = os.fstat(file.fileno())
                if (now := (seen.st_mtime_ns, seen.st_size, seen.st_ino)) != self._read:
                    self._known, self._read = msgspec.json.decode(file.read(_MOST), type=SendersFile), now
        except FileNotFoundError:
            self._known, self._read = SendersFile(), (0, 0, 0)
        except NotPrivate:
            told = "says who may send, and others can change or read it; chmod 600 it"
            raise UsageError(f"{self._path} {told}") from None
        except OSError as error:
            raise UsageError(f"{self._path} cannot be read: {error.strerror or error}") from None
        except ValueError as error:
            raise UsageError(f"{self._path} cannot be read: {error}; remove it, and admit senders again") from None

    def _write(self, senders: dict[str, str]) -> None:
        with refusing(UsageError, f"{self._path} cannot be written"):
            replace_private(self._path, msgspec.json.format(msgspec.json.encode(SendersFile(senders))))


def _hashed(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()
