"""The settings of a ledger."""

from typing import Annotated, Literal

from gossamer.flow.sheet import Sheet, setting
from gossamer.model.domains import Division

_MADE = "it is fixed when the crawl is made"

_OPEN = "it is part of the store that is open"


class LedgerSheet(Sheet, frozen=True):
    """Settings of :class:`Ledger`."""

    directory: Annotated[
        str, setting("The crawl directory; the ledger lies in `state/AGENT/` below it.", restart=_OPEN)
    ] = "."
    agent: Annotated[str, setting("Whose ledger it is.", restart=_OPEN, pattern=r"^[a-z0-9-]+$")] = "agent-00"
    existing: Annotated[bool, setting("Refuse to begin a new ledger: the crawl is to go on.", restart=_OPEN)] = False
    private: Annotated[
        bool, setting("Close the ledger and its checkpoints to other users of the machine.", restart=_OPEN)
    ] = False
    durability: Annotated[
        Literal["kill", "power"],
        setting("What a commit survives: the death of the process, or a power cut too (the disk is waited for)."),
    ] = "kill"
    cache: Annotated[
        int, setting("Blocks of the store that are kept unpacked.", unit="bytes", restart=_OPEN, ge=1 << 20)
    ] = 48 << 20
    buffers: Annotated[
        int, setting("Write buffers of the store, all together.", unit="bytes", restart=_OPEN, ge=1 << 20)
    ] = 24 << 20
    log: Annotated[
        int, setting("Write-ahead log: an opening reads so much at most.", unit="bytes", restart=_OPEN, ge=1 << 20)
    ] = 32 << 20
    recent: Annotated[
        int,
        setting("Recent and popular URLs in front of the seen set; 172 bytes each.", unit="URLs", restart=_OPEN, ge=1),
    ] = 131_072
    held: Annotated[
        int,
        setting(
            "Hosts that take turns; others wait on the disk. About 500 bytes each.", unit="hosts", restart=_OPEN, ge=1
        ),
    ] = 32_768
    turn: Annotated[
        int, setting("Tasks of a host before it makes room for one that waits.", unit="tasks", restart=_OPEN, ge=1)
    ] = 256
    buffered: Annotated[
        int, setting("Tasks in all dequeue buffers; about 400 bytes each.", unit="tasks", restart=_OPEN, ge=0)
    ] = 32_768
    refill: Annotated[
        int, setting("Tasks that a host's dequeue buffer is filled up to.", unit="tasks", restart=_OPEN, ge=1)
    ] = 32

    depth: (
        Annotated[
            int,
            setting(
                "Follow links so far from the nearest seed. The ledger then keeps the links of pages, so that a nearer way counts. "
                "A crawl that began without a limit cannot get one.",
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
