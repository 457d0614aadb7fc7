"""Content codings, undone with stops: what a server packs small must not unpack into the machine's memory. Pure.

The body is archived as it came (design question 10), so it is decoded here and not by libcurl: a small one in one call when it is
complete, a large one piece by piece while it comes. Four stops (faults, chapter A): the output's cap, a ratio no honest page
reaches, the members of one body, and the number of codings one inside the other. Every decoder is asked for a bounded piece at
a time. As in browsers, a document is whole once its last block has come: bytes behind it, or a check sum that is missing, cost
nothing of it and are noted. A wrong check sum says that something in it is damaged, and takes nothing of it either.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from gossamer.documents.decoders import DECODERS, Broken, Decoder
from gossamer.values.body import MAX_READ, THRESHOLD, Body, BodyWriter, StoredBody, pieces

# -- limits of a body, as the sheet of a protocol module sets them


class Keeping(msgspec.Struct, frozen=True):
    """The bounds of one body."""

    room: int
    """Bytes at most, as sent and decoded."""
    memory: int
    """Bytes above which it goes to disk."""
    directory: str = ""
    """Where on disk; empty: the system's directory for temporary files."""


NOTHING = Keeping(0, 0)

#: The codings that are asked for, in the words and the order of browsers.
ACCEPTED = "gzip, deflate, br, zstd"

#: Codings one inside the other (design question 12): gzip of gzip reached 247,000:1.
MAX_CODINGS = 2

#: Output to input above which a body is a bomb, once it is larger than :data:`RATIO_FROM` (docs/design/faults.md). Deflate
#: can reach 1032:1, the others a million; a page that large and that empty is no page.
MAX_RATIO = 200
RATIO_FROM = 1 << 20

#: Output to input of most pages, at the least: a page in a coding that is longer than this share of what memory may hold is taken
#: piece by piece at once.
LEAST_RATIO = 4

#: gzip members or Zstandard frames in one body (fault 6): a million empty ones fit in 20 MB, log files joined by the
#: day stay below this.
MAX_MEMBERS = 1000

#: How the reason of a coding begins that is not what the server says.
BROKEN = "the content coding is broken"

#: Bytes taken at a time: what a decoder leaves unused is copied, so it must stay small for the whole to stay linear.
_SLICE = 1 << 16

#: Bytes fed at a time: the ratio is judged by what was fed, so that a bomb comes to 200 times as much before it is seen.
#: These are 0.8 MB, less than :data:`RATIO_FROM`, in 1 ms; slices of 64 KiB were 13 MB in 9 ms.
_FED = 1 << 12


class Decoded(msgspec.Struct, frozen=True):
    """The decoded bytes. If they are not all, one of `cut` and `error` says why."""

    data: Body
    """All of it, or what came before the stop or the fault."""
    cut: str = ""
    """The stop that ended it; empty where none did."""
    error: str = ""
    """Why the bytes are not what the server says; empty where they are."""
    well: int = 0
    """Bytes as they came that were undone before the fault was met."""
    is_odd: bool = False
    """All came out, but the end of a coding is not as it should be: a check sum is missing, or bytes follow."""
    is_damaged: bool = False
    """All came out, and a check sum says that some of it is not what was packed."""
    has_rest: bool = False
    """Bytes that belong to no coding follow: they are left out, with whatever is behind them."""

    @property
    def is_readable(self) -> bool:
        """Something came out, or there was nothing to come."""
        return not self.error or len(self.data) > 0


def codings(value: str) -> list[str]:
    """The codings of a `Content-Encoding` value that can be undone, in the order of application (RFC 9110, 8.4).

    Words that name none (`UTF-8`, `none`, `aws-chunked`) are left out, as `identity` is: nearly always the body is plain, or
    has the other codings alone. :func:`has_unknown` tells of them.
    """
    return [word for word in _words(value) if word in DECODERS]


def has_unknown(value: str) -> bool:
    """Whether a `Content-Encoding` value names an unknown coding."""
    return any(word not in DECODERS for word in _words(value))


def _words(value: str) -> list[str]:
    words = [word.strip().lower() for word in value.split(",")]
    return [word.removeprefix("x-") for word in words if word not in ("", "identity")]


def refusal(applied: Sequence[str]) -> str:
    """Why these codings are not undone, known before the body is read; empty where they are."""
    if len(applied) > MAX_CODINGS:
        return f"{len(applied)} content codings; at most {MAX_CODINGS} are undone"
    return ""


def decode(body: Body, applied: Sequence[str], keeping: Keeping, *, whole: bool = True) -> Decoded:
    """Undo `applied`, last one first.

    Args:
        body: as received, of either kind.
        applied: from :func:`codings`, accepted by :func:`refusal`.
        keeping: most bytes that may come out, of each coding, and where they go when they are many.
        whole: the body is complete; of a cut one, what can be read is the answer.
    """
    most = min(keeping.room, keeping.memory, RATIO_FROM)
    if type(body) is not StoredBody and len(applied) == 1 and len(body) <= most // LEAST_RATIO:
        # Nearly every page: one call, nothing joined. One that is broken, or larger than it looks, goes the slow way.
        decoder = DECODERS[applied[0]]()
        decoder.start(body)
        with suppress(Broken):
            out, rest = decoder.take(body, most + 1)
            if decoder.ended and not decoder.is_damaged and not rest and len(out) <= most:
                return Decoded(out)
    undone = _undone(body, Undoing(applied, keeping), whole=whole)
    return to_the_fault(body, applied, keeping, undone) if undone.error else undone


def undone(headers: Iterable[tuple[str, str]], body: Body, most: int = MAX_READ, *, whole: bool = False) -> Decoded:
    """A body of the archive without the content codings that its header fields name; itself where they name none.

    Args:
        headers: names in lower case.
        body: as it came.
        most: bytes that may come out.
        whole: the body is complete.

    Returns:
        What came out; it is not readable where the codings cannot be undone, and `error` says why.
    """
    applied = codings(", ".join(value for name, value in headers if name == "content-encoding"))
    if not applied:
        return Decoded(body)
    if refused := refusal(applied):
        return Decoded(b"", error=refused)
    return decode(body, applied, Keeping(most, THRESHOLD), whole=whole)


def to_the_fault(body: Body, applied: Sequence[str], keeping: Keeping, undone: Decoded) -> Decoded:
    """All that can be had of a body whose coding is broken, once `undone` says where.

    A decoder that meets a fault gives nothing of the piece that it was fed, so the last piece is fed again byte by byte: a
    fault at its end would otherwise cost a small page whole. In linear time: one piece alone is fed so.
    """
    return _undone(body, Undoing(applied, keeping, slowly_from=undone.well), whole=True)


def _undone(body: Body, undoing: "Undoing", *, whole: bool) -> Decoded:
    for piece in pieces(body):
        undoing.feed(piece)
        if undoing.cut or undoing.error:
            break
    return undoing.end(whole=whole)


class Undoing:
    """The codings of one body, undone while it comes."""

    __slots__ = ("_out", "_room", "_slowly_from", "_stages", "_well", "cut", "error")

    def __init__(self, applied: Sequence[str], keeping: Keeping, slowly_from: int | None = None) -> None:
        """Begin.

        Args:
            applied: accepted by :func:`refusal`.
            keeping: how much is kept.
            slowly_from: bytes after which one is fed at a time.
        """
        self.cut = ""
        """The stop that it has run into, if it has: nothing more need come."""
        self.error = ""
        """Why the bytes are not what the server says, if they are not."""
        self._stages = [_Stage(DECODERS[coding]) for coding in reversed(applied)]
        self._out = BodyWriter(keeping.memory, keeping.directory)
        self._room = keeping.room
        self._slowly_from = slowly_from
        self._well = 0

    def feed(self, data: bytes) -> None:
        """The next bytes as they came (OSError where the disk is full)."""
        start = 0
        while start < len(data) and not (self.cut or self.error):
            step = _FED
            if self._slowly_from is not None:
                before = self._slowly_from - self._well
                step = min(_FED, before) if before > 0 else 1
            piece = data[start : start + step]
            self._guarded(self._push, 0, piece)
            start += step
            if not self.error:
                self._well += len(piece)

    def end(self, *, whole: bool) -> Decoded:
        """The decoded bytes; `whole`: no more bytes were to come."""
        if whole:
            self._guarded(self._finish)
        flags = [any(getattr(stage, flag) for stage in self._stages) for flag in ("is_odd", "is_damaged", "has_rest")]
        return Decoded(self._out.take(), self.cut, self.error, self._well, *flags)

    def _guarded(self, act: Callable[..., None], *arguments: Any) -> None:
        if self.cut or self.error:
            return
        try:
            act(*arguments)
        except _Stopped as stop:
            self.cut = str(stop)
        except Broken as broken:
            self.error = f"{BROKEN}: {broken}"

    def _push(self, level: int, data: bytes) -> None:
        if level < len(self._stages):
            for piece in self._stages[level].feed(data):
                self._push(level + 1, piece)
            return
        room = self._room - self._out.size
        self._out.write(data if len(data) <= room else data[:room])
        if len(data) > room:
            raise _Stopped(f"more than {self._room} bytes")

    def _finish(self) -> None:
        for level, stage in enumerate(self._stages):
            for piece in stage.finish():
                self._push(level + 1, piece)


class _Stopped(Exception):
    """A stop was reached."""


class _Stage:
    """One coding of a body, with the stops that each has for itself."""

    __slots__ = ("_came", "_decoder", "_left", "_make", "_members", "_waiting", "has_rest", "is_damaged", "is_odd")

    def __init__(self, make: type[Decoder]) -> None:
        self._make = make
        self._decoder: Decoder | None = None
        self._members = self._came = self._left = 0
        self._waiting = b""
        self.has_rest = self.is_odd = self.is_damaged = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Pieces of output for some input."""
        self._came += len(data)
        data, self._waiting = self._waiting + data, b""
        while data and not self.has_rest:
            decoder = self._decoder
            if decoder is None or decoder.ended:
                if decoder is not None and decoder.is_lost:
                    raise Broken("its check sum is wrong")
                if decoder is not None and self._make.padding and data.startswith(self._make.padding):
                    data, self.is_odd = data.lstrip(self._make.padding), True
                    continue
                if len(data) < self._make.shown and (decoder is None or self._make.member):
                    self._waiting = data
                    return
                decoder = self._started(data)
                if decoder is None:
                    return
            piece, data = decoder.take(data, _SLICE)
            yield from self._counted(piece)
            while decoder.has_more:
                piece, data = decoder.take(data, _SLICE)
                yield from self._counted(piece)
            self.is_damaged = self.is_damaged or decoder.is_damaged

    def finish(self) -> Iterator[bytes]:
        """The bytes that a decoder held back. Raises :class:`Broken` where the end was not seen."""
        # A single byte may wait, as Brotli has for nothing at all; behind a member it is the beginning of none.
        if self._waiting and (decoder := self._started(self._waiting)) is not None:
            piece, _ = decoder.take(self._waiting, _SLICE)
            yield from self._counted(piece)
        while self._decoder is not None and not self._decoder.ended:
            piece, _ = self._decoder.take(b"", _SLICE)
            if not piece and not self._decoder.ended:
                if not self._decoder.is_whole:
                    raise Broken("it ends too early")
                self.is_odd = True
                return
            yield from self._counted(piece)

    def _started(self, data: bytes) -> Decoder | None:
        """A decoder for the member that begins with `data`; None where none does, and what follows is nothing."""
        if self._decoder is not None and not data.startswith(self._make.member):
            self.has_rest = self.is_odd = True
            return None
        if self._members == MAX_MEMBERS:
            raise _Stopped(f"more than {MAX_MEMBERS} members")
        self._members += 1
        self._decoder = self._make()
        self._decoder.start(data)
        return self._decoder

    def _counted(self, piece: bytes) -> Iterator[bytes]:
        self._left += len(piece)
        if piece:
            yield piece
        if self._left > max(RATIO_FROM, MAX_RATIO * self._came):
            raise _Stopped(f"more than {MAX_RATIO} times its size")


class BodyStore:
    """A body beyond what is simply collected: as it came and without its content coding, each on disk if it is large."""

    __slots__ = ("_raw", "_undoing")

    def __init__(self, keeping: Keeping, content_coding: str) -> None:
        self._raw = BodyWriter(keeping.memory, keeping.directory, digest=True)
        applied = codings(content_coding)
        self._undoing: Undoing | None = None
        if applied and not refusal(applied):
            self._undoing = Undoing(applied, keeping)

    def write(self, piece: bytes) -> None:
        """Take a piece as it came (OSError where the disk is full)."""
        self._raw.write(piece)
        if self._undoing is not None:
            self._undoing.feed(piece)

    @property
    def cut(self) -> str:
        """The stop that the decoded body has run into, if it has: nothing more need come."""
        return self._undoing.cut if self._undoing is not None else ""

    def take(self, *, whole: bool) -> tuple[Body, Decoded | None]:
        """The body as it came, and what its content coding came to where that could be undone."""
        return self._raw.take(), self._undoing.end(whole=whole) if self._undoing is not None else None
