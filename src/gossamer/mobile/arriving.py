"""A crawler that somebody sends, from bytes to a value that may run, or a refusal by the names of `contracts.runtimes`.

Place in the flow: every runtime asks here before it takes a crawler.
"""

import re
from io import BytesIO

from gossamer.contracts.runtimes import IDENTITY_PATTERN, MAX_CRAWLER, RefusalReason, RuntimeRefused
from gossamer.mobile.crawler import MobileCrawler
from gossamer.mobile.judging import Installed
from gossamer.mobile.wire import BytesRefused, read_from

_IDENTITY = re.compile(IDENTITY_PATTERN)

#: What the reader of bytes refuses by other names is invalid to a sender.
_NAMED: dict[str, RefusalReason] = {"version": "version", "too_large": "too_large"}


def checked_identity(identity: str) -> str:
    """The identity of a journey.

    Raises:
        RuntimeRefused: it is none.
    """
    if _IDENTITY.match(identity) is None:
        raise RuntimeRefused("invalid", f"{identity[:80]!r} is not the identity of a crawler")
    return identity


def received(data: bytes, installed: Installed) -> MobileCrawler:
    """The crawler that bytes hold, checked; it has no results.

    Args:
        data: as somebody sent it.
        installed: processors that programs may name.

    Raises:
        RuntimeRefused: it cannot run here.
    """
    if len(data) > MAX_CRAWLER:
        raise RuntimeRefused("too_large", f"a crawler of {len(data)} bytes; {MAX_CRAWLER} are the most")
    stream = BytesIO(data)
    try:
        crawler, _ = read_from(stream)
    except BytesRefused as refused:
        raise RuntimeRefused(_NAMED.get(refused.reason, "invalid"), str(refused)) from None
    if stream.read(1):
        raise RuntimeRefused("invalid", "results follow the crawler; send it without them")
    for one in crawler.program.processors:
        if one not in installed:
            raise RuntimeRefused("processors", f"processor {one.name!r} {one.version} is not installed here")
    return crawler
