"""Options of `gossamer crawl` for a crawl that outlives its machine, and the provider that they add."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from gossamer.crawls.options import part_of
from gossamer.engine.sheet import Sheet, setting
from gossamer.values.errors import UsageError

if TYPE_CHECKING:
    from gossamer.crawls.builder import Builder

#: The provider that ships and publishes, in the wiring.
PUBLISHER = "store"

#: Joins the folders of copies in the name of their store.
JOINED = "|folder:"

#: The agent that a crawl begins with, and whose place in the store names the others; it stays there after the agent has left.
AGENT = "agent-00"

#: Providers that keep state in files that no checkpoint of a ledger covers.
_UNCOVERED = ("sieve", "url-trie", "bloom-seen", "trie-queues")


# Settings of the publisher, too (:mod:`gossamer.backup.publisher`).

CheckpointEvery = Annotated[float, setting("With --store, publish a checkpoint this often.", unit="s", ge=1)]

CheckpointBytes = Annotated[
    int,
    setting(
        "With --store, also publish a checkpoint as soon as an agent has written this much since the last one; if "
        "four times as much is not in the store, ask no host until it is.",
        unit="bytes",
        ge=1 << 20,
    ),
]

KeepLocal = (
    Annotated[
        int,
        setting(
            "With --store, keep at most this much of the archive on the disk; files that are in the store go, the oldest "
            "first, and are read from there.",
            unit="bytes",
            ge=0,
        ),
    ]
    | None
)

Lease = Annotated[
    float,
    setting(
        "With --store or --cluster, count an owner or an agent as gone that has not been heard of for this long; one that "
        "cannot reach the store, or its supervisor, for as long asks no host.",
        unit="s",
        ge=3,
    ),
]


class StoreOptions(Sheet, frozen=True):
    """Where a copy of the crawl is kept."""

    store: Annotated[
        str,
        setting(
            "Keep a copy of the crawl there, from which it can go on elsewhere: s3://, gs:// or az:// with a place, "
            "or a folder on another disk.",
            names="a folder",
        ),
    ] = ""
    copies: Annotated[
        int,
        setting(
            "Keep so many copies of the crawl: beside its directory, the last folders of --archive hold one each, as a "
            "store does. The crawl goes on while they are away.",
            ge=1,
            le=8,
        ),
    ] = 1
    checkpoint_every: CheckpointEvery = 300.0
    checkpoint_bytes: CheckpointBytes = 256_000_000
    keep_local: KeepLocal = None
    lease: Lease = 30.0
    take_over: Annotated[bool, setting("Take the crawl of a store even if its owner may be alive.")] = False


def wire(builder: "Builder") -> None:
    """Have a crawl publish into its store. Raises UsageError: the options do not fit together, or the crawl."""
    given, usual = part_of(builder.options, StoreOptions), StoreOptions()
    if given.copies > 1:
        given = _with_copies(builder, given)
    known = builder.wiring.providers.get(PUBLISHER)
    if not given.store and known is None:
        if given != (msgspec.structs.replace(usual, lease=given.lease) if builder.options.cluster else usual):
            raise UsageError(
                "--checkpoint-every, --checkpoint-bytes, --keep-local, --lease and --take-over need a store; also give --store"
            )
        return
    settings = dict(known.settings) if known is not None else {}
    if given.store:
        asked = f"--copies {given.copies}" if given.copies > 1 else f"--store {given.store}"
        settings["url"] = _url_of_store(builder, given.store, str(settings.get("url", "")), asked)
        if given.copies > 1:
            settings["goes_on"] = True
    for name, value, kept in (
        ("every", given.checkpoint_every, usual.checkpoint_every),
        ("bytes", given.checkpoint_bytes, usual.checkpoint_bytes),
        ("keep_local", given.keep_local, usual.keep_local),
        ("lease", given.lease, usual.lease),
    ):
        if value != kept:
            settings[name] = value
    _refuse_dividing(builder, is_new=known is None)
    if found := next((plan.use for plan in builder.wiring.providers.values() if plan.use in _UNCOVERED), None):
        raise UsageError(f"--store cannot keep what the unit {found!r} has in files of its own; leave one of them out")
    builder.add_provider(PUBLISHER, "store-publisher", settings, {"ledger": "ledger"})
    archive = builder.wiring.providers.get("archive")
    if archive is not None and archive.use == "warc":
        builder.bind_also(PUBLISHER, "archives", "archive", "archive")
    builder.bind_also("politeness", "rules", "hosts", PUBLISHER)
    if builder.has("fetch"):
        builder.bind_also("fetch", "guards", "guards", PUBLISHER)


def _url_of_store(builder: "Builder", given: str, known: str, asked: str) -> str:
    """The name of the store of a crawl, which has the one that is `known` already, if it has any; `asked` are the words by which it
    was given. Raises UsageError."""
    from gossamer.backup.head import owned
    from gossamer.backup.opening import store_name
    from gossamer.storage.tables.places import CRAWL_FILE

    name, directory = store_name(given), Path(builder.options.output)
    for one in name.split(JOINED) if "://" not in name else ():
        folder = Path(one).resolve()
        if directory.resolve() in (folder, *folder.parents):
            raise UsageError(
                f"--store {one}: lies in the directory of the crawl, and is lost with it; name another place"
            )
        if (folder / CRAWL_FILE).exists():
            raise UsageError(f"--store {one}: is the directory of a crawl; name an empty folder on another disk")
    is_reborn = builder.options.resume and (note := owned(directory, AGENT)) and note.url == name
    if is_reborn and name in known.split(JOINED):
        return known  # it was brought back from one of its copies, and keeps the others
    if known and known != name and not is_reborn:
        raise UsageError(
            f"{asked}: the crawl has the store {known}, and keeps it; leave {asked.split(maxsplit=1)[0]} out"
        )
    return name


def _with_copies(builder: "Builder", given: StoreOptions) -> StoreOptions:
    """The options of a crawl whose store is in folders for its archive; the others take archive files. Raises UsageError."""
    folders = [str(Path(one).absolute()) for one in builder.options.archive]
    if given.store:
        raise UsageError(f"--copies {given.copies}: --store {given.store} is a copy; leave one of the two out")
    if len({Path(one).resolve() for one in folders}) < len(folders):
        raise UsageError(f"--copies {given.copies}: --archive names a folder twice; give each copy another disk")
    if len(folders) < given.copies - 1:
        raise UsageError(
            f"--copies {given.copies}: give --archive a folder on another disk for each copy but the first"
        )
    builder.set("archive", "archive", {"disks": folders[: 1 - given.copies]})
    return msgspec.structs.replace(given, store=JOINED.join(folders[1 - given.copies :]))


def _refuse_dividing(builder: "Builder", *, is_new: bool) -> None:
    """Refuse what keeps state that no checkpoint of an agent has."""
    from gossamer.storage.members import members_of
    from gossamer.values.agents import member

    options, ledger = builder.options, builder.wiring.providers.get("ledger")
    found = ["--crawlers"] if (options.crawlers or 1) > 1 else []
    if options.exchange == "files" or (ledger is not None and ledger.settings.get("agent", AGENT) != AGENT):
        found.append("--exchange files")
    if found:
        raise UsageError(f"--store cannot keep what {found[0]} needs; leave out {found[0]} or --store")
    members = map(member, members_of(Path(options.output))) if options.resume and is_new else ()
    if gone := [one.agent for one in members if not one.capacity]:
        raise UsageError(
            f"--store begins with agents that are at work, and {gone[0]} has left the crawl; leave --store out"
        )
