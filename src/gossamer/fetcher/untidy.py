"""Answers that browsers read and libcurl refuses: a line of the head without a colon (a second status line, a word of a script), an
untidy status line or length.

Place in the flow: where libcurl has refused an answer by one of the words in :data:`~gossamer.fetcher.answer.UNTIDY`, the protocol
module for http (:mod:`~gossamer.fetcher.http`) asks the server by this from then on, on a connection for each request. The head is
read and judged as any other, the body ends where it says, and the handle of libcurl keeps what comes.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import pycurl

from gossamer.fetcher.response_head import Head
from gossamer.fetcher.transfer import Cut, Transfer
from gossamer.values.outcome import Outcome
from gossamer.values.url import endpoint_of, scheme_of

#: Bytes of a line and of a piece of a body at most: a head has no more in all.
_LONGEST = 64 * 1024

#: Lines of a head after which it is judged although it has not ended: it may be too long.
_JUDGED_AFTER = 64

#: Statuses that have no body, whatever their fields say (RFC 9112, section 6.3).
_BODILESS = (204, 304)

_TOO_LONG = Cut(Outcome.PROTOCOL_FAILED, f"the answer has a line of more than {_LONGEST} bytes")
_NO_CHUNK = Cut(Outcome.PROTOCOL_FAILED, "the body is not chunked as its head says")

#: Waits until so many bytes may be taken in.
Metered = Callable[[int], Awaitable[None]]


class Bare(Transfer):
    """A transfer that libcurl does not carry, so that it is told here how far it has come."""

    sent_after: float = 0.0
    is_sent: bool = False
    is_connected: bool = False
    """TLS included, where the URL has it."""
    is_new: bool = True

    def keep_waiting(self, seconds: float) -> None:
        """The bandwidth of the crawl is about to."""
        self._held += seconds


class _Early(Exception):
    """The connection ended before the answer did."""


def context_of(ca_file: str, *, verify: bool) -> ssl.SSLContext:
    """The trust over TLS, as libcurl is told."""
    context = ssl.create_default_context(cafile=ca_file or None)
    if not verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def ask_untidy(
    transfer: Bare,
    url: str,
    request: bytes,
    place: tuple[str, int],
    tls: ssl.SSLContext,
    metered: Metered,
    now: Callable[[], float],
) -> tuple[int, str]:
    """Send a request, and have the handle keep what comes. Returns how it ended, as libcurl would say: an error, 0 for none.

    Args:
        transfer: has begun, and is not driven by libcurl.
        url: that is asked for.
        request: the whole head.
        place: address and port.
        tls: used where the URL is so.
        metered: waits for the bandwidth of the crawl.
        now: monotonic seconds, by which the transfer has begun.
    """
    is_tls = scheme_of(url) == "https"
    try:
        reader, writer = await asyncio.open_connection(
            *place, limit=_LONGEST, ssl=tls if is_tls else None, server_hostname=endpoint_of(url)[0] if is_tls else None
        )
    except ssl.SSLError as error:
        transfer.verdict = Cut(Outcome.TLS_FAILED, str(error))
        return 0, ""
    except OSError as error:
        return pycurl.E_COULDNT_CONNECT, str(error)
    try:
        writer.write(request)
        transfer.is_sent = transfer.is_connected = True
        transfer.sent_after = now() - transfer.began
        await writer.drain()
        if (head := await _head(transfer, reader)) is not None:
            async for piece in _body(head, reader):
                await metered(len(piece))
                if transfer.receive(piece) is not None:
                    break
    except (asyncio.IncompleteReadError, _Early, OSError) as error:
        return (pycurl.E_PARTIAL_FILE if transfer.head else pycurl.E_GOT_NOTHING), str(error)
    except ValueError:  # a line beyond the limit, or a chunk without a size
        transfer.verdict = _TOO_LONG if transfer.head is None else _NO_CHUNK
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
    return 0, ""


async def _head(transfer: Transfer, reader: asyncio.StreamReader) -> Head | None:
    """The head, once it is whole; None where the handle has a verdict on it."""
    while transfer.head is None and transfer.verdict is None:
        line = await reader.readline()
        if not line.endswith(b"\n"):
            raise _Early("the server closed the connection before the end of the head")
        transfer.lines.append(line)
        is_end = not line.strip(b"\r\n") and any(map(bytes.strip, transfer.lines))
        if is_end or len(transfer.lines) % _JUDGED_AFTER == 0:
            transfer.judge_head()
    return transfer.head


async def _body(head: Head, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Pieces of the body, up to where the head says that it ends."""
    fields = dict(head.fields)
    if head.status in _BODILESS:
        return
    if "chunked" in fields.get("transfer-encoding", "").lower():
        while size := await _size_of_chunk(reader):
            async for piece in _exactly(size, reader):
                yield piece
            if (await reader.readline()).strip(b"\r\n"):
                raise ValueError
    elif fields.get("content-length"):
        async for piece in _exactly(int(fields["content-length"].partition(",")[0]), reader):
            yield piece
    else:
        while piece := await reader.read(_LONGEST):
            yield piece


async def _size_of_chunk(reader: asyncio.StreamReader) -> int:
    line = await reader.readline()
    if not line.endswith(b"\n"):
        raise _Early("the last chunk of the body is missing")
    digits = line.partition(b";")[0].strip()
    if not digits.isalnum():
        raise ValueError("no size of a chunk")  # int() would take signs and underscores
    return int(digits, 16)


async def _exactly(size: int, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size > 0:
        piece = await reader.read(min(size, _LONGEST))
        if not piece:
            raise _Early(f"{size} bytes of the body are missing")
        size -= len(piece)
        yield piece
