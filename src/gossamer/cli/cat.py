"""`gossamer cat`: the archived document of a URL."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from gossamer.cli.saying import say_bytes
from gossamer.cli.telling import tell
from gossamer.cli.times import digits_of
from gossamer.model.errors import UnreadableUrl, UsageError
from gossamer.model.url import canonical

if TYPE_CHECKING:
    from gossamer.stores.warc_reading import ArchivedRecord


@click.command()
@click.argument("directory", metavar="DIR")
@click.argument("url", metavar="URL")
@click.option(
    "--headers", is_flag=True, help="Write the answer's status line and header fields, instead of the document."
)
@click.option("--raw", is_flag=True, help="Write the record as it is in the archive, with the body as it came.")
@click.option(
    "--at", default="", metavar="TIME", help="Write the version that was current at this time, as 20260301 (UTC)."
)
def cat(directory: str, url: str, headers: bool, raw: bool, at: str) -> int:
    """Write the archived document of URL in the crawl in DIR to standard output, also while it runs.

    The content coding is undone. If a document was fetched again and had not changed, its first record in the archive
    is read.
    """
    from gossamer.query.archive import ArchiveReader
    from gossamer.query.noted import damaged_index, read_notes
    from gossamer.query.places import crawl_directory

    digits = digits_of("--at", at) if at else ""
    try:
        wanted = canonical(url)
    except UnreadableUrl as error:
        raise UsageError(f"{error}; write it in full, as https://example.org/") from None
    place = crawl_directory(directory)
    notes = read_notes(place)
    if notes is not None and damaged_index(place, notes) is not None:
        from gossamer.query.convert import (
            sound_index,  # DuckDB comes with it, and only who has lost the index waits for that
        )

        tell(sound_index(place))
    document = ArchiveReader(place).document(wanted, digits)
    if document.is_kept_out and not (raw or headers):
        from gossamer.operations.story.traces import visits_of

        rule = next((row.get("kept_out") for row in reversed(list(visits_of(place, wanted)))), None)
        raise UsageError(
            f"{wanted} was fetched, and its body was kept out of the archive{f': {rule}' if rule else ''}; "
            "--headers writes the header of the answer"
        )
    if raw:
        say_bytes(document.record.raw())
    else:
        say_bytes((document.record.head,) if headers else _decoded(wanted, document.source))
    return 0


def _decoded(url: str, record: "ArchivedRecord") -> Iterator[bytes]:
    """The document without content coding; as it came, with a word on standard error, where that cannot be undone."""
    from gossamer.model.body import pieces
    from gossamer.reading.coding import undone

    found = undone(record.headers, record.body, MOST)
    if not found.is_readable:
        tell(f"{url}: {found.error}; the body is written as it came")
        return pieces(record.body)
    if found.error:
        tell(f"{url}: {found.error}; only the part before the fault is written")
    return pieces(found.data)


#: Most bytes of a decoded document: no page is larger, and a bomb is.
MOST = 1 << 30
