"""The settings of a ledger."""

from typing import Annotated, Literal

from gossamer.engine.sheet import Sheet, setting
from gossamer.values.hosts import Division

_MADE = "it is fixed when the crawl is made"

_OPEN = "it is part of the store that is open"


class LedgerSheet(Sheet, frozen=True):
    """Settings of :class:`~gossamer.storage.ledger.ledger.RocksLedger`."""

    directory: Annotated[
        str,
        setting(
            "Use this crawl directory; the ledger lies in `state/AGENT/` below it.", restart=_OPEN, names="a folder"
        ),
    ] = "."
    agent: Annotated[str, setting("Keep the ledger of this agent.", restart=_OPEN, pattern=r"^[a-z0-9-]+$")] = (
        "agent-00"
    )
    existing: Annotated[
        bool, setting("Refuse to begin a new ledger, because the crawl is being resumed.", restart=_OPEN)
    ] = False
    private: Annotated[
        bool, setting("Make the ledger and its checkpoints unreadable for other users of the machine.", restart=_OPEN)
    ] = False
    durability: Annotated[
        Literal["kill", "power"],
        setting(
            "Let a commit survive the death of the process (`kill`), or also a power cut (`power`), for which it waits for the "
            "disk."
        ),
    ] = "kill"
    cache: Annotated[
        int,
        setting(
            "Keep at most this many bytes of the store's blocks unpacked in memory.",
            unit="bytes",
            restart=_OPEN,
            ge=1 << 20,
        ),
    ] = 16 << 20
    buffers: Annotated[
        int,
        setting(
            "Use at most this much memory for the write buffers of the store.", unit="bytes", restart=_OPEN, ge=1 << 20
        ),
    ] = 24 << 20
    log: Annotated[
        int,
        setting(
            "Let the write-ahead log grow to this size; opening the ledger reads at most this much.",
            unit="bytes",
            restart=_OPEN,
            ge=1 << 20,
        ),
    ] = 32 << 20
    recent: Annotated[
        int,
        setting(
            "Cache at most this many recent and popular URLs in front of the seen set; each takes 172 bytes.",
            unit="URLs",
            restart=_OPEN,
            ge=1,
        ),
    ] = 131_072
    held: Annotated[
        int,
        setting(
            "Let at most this many hosts take turns; each takes about 500 bytes of memory, and the others wait on "
            "the disk.",
            unit="hosts",
            restart=_OPEN,
            ge=1,
        ),
    ] = 32_768
    turn: Annotated[
        int,
        setting(
            "Take this many tasks of a host, then let a waiting host have its place.", unit="tasks", restart=_OPEN, ge=1
        ),
    ] = 256
    buffered: Annotated[
        int,
        setting(
            "Hold at most this many tasks in all dequeue buffers together; each takes about 400 bytes.",
            unit="tasks",
            restart=_OPEN,
            ge=0,
        ),
    ] = 32_768
    refill: Annotated[
        int, setting("Fill the dequeue buffer of a host up to this many tasks.", unit="tasks", restart=_OPEN, ge=1)
    ] = 32

    depth: (
        Annotated[
            int,
            setting(
                "Follow at most this many links in a row from the nearest seed. The ledger then keeps the links of "
                "pages, so that a shorter way found later counts. A crawl that began without a limit cannot get one.",
                unit="links",
                ge=0,
            ),
        ]
        | None
    ) = None
    division: Annotated[
        Division,
        setting("Assign registered domains (domain) or single hosts (host) to agents as a whole.", restart=_MADE),
    ] = "domain"
    together: Annotated[
        tuple[str, ...],
        setting("Assign these registered domains to one agent, as `bbc.co.uk bbc.com` (repeatable).", restart=_MADE),
    ] = ()
