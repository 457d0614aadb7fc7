"""`gossamer verify DIR`: whether a crawl directory holds what was committed to it."""

import click
import msgspec

from gossamer.cli.saying import say_json, say_lines
from gossamer.cli.telling import tell
from gossamer.model.errors import CrawlDirectoryError


@click.command(epilog="Exit status: 0 the crawl is whole, 2 DIR holds no crawl, 5 the crawl is damaged.")
@click.argument("directory", metavar="DIR")
@click.option("--deep", is_flag=True, help="Read every record, row, index line and table, not only names and lengths.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON.")
def verify(directory: str, deep: bool, as_json: bool) -> int:
    """Compare the files of the crawl in DIR with the list of committed files in its ledger. Nothing is changed.

    It prints a line for each file that is missing, too short or changed. `gossamer resume DIR --accept-loss` goes on
    with a damaged crawl, and fetches lost documents again.
    """
    from gossamer.operations.verifying import verify as verify_crawl
    from gossamer.query.places import crawl_directory

    told = verify_crawl(crawl_directory(directory), deep=deep)
    status = 0 if told.is_whole else CrawlDirectoryError.exit_code
    if as_json:
        say_json({"whole": told.is_whole, **msgspec.structs.asdict(told)})
        return status
    if told.notes:
        say_lines(f"note: {note}" for note in told.notes)
    for finding in told.findings:
        tell(finding)
    if told.more:
        tell(f"and {told.more} more")
    read = f", {told.records} records and {told.rows} documents were read" if deep else ""
    print(f"{told.crawl}: {'whole' if told.is_whole else 'damaged'}: {told.files} files{read}")
    return status
