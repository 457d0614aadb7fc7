"""`gossamer delete DIR URL|HOST|DOMAIN`: take everything of a site or page out of a crawl."""

import time

import click

from gossamer.cli.saying import say_json
from gossamer.cli.telling import tell
from gossamer.flow.quantities import show_count


@click.command(epilog="Exit status: 0 it is deleted, 2 wrong usage, 5 the crawl runs, is damaged, or is being read.")
@click.argument("directory", metavar="DIR")
@click.argument("name", metavar="[URL|HOST|DOMAIN]", required=False)
@click.option(
    "--forget", is_flag=True, help="Let a later run fetch the URL again when it finds it; otherwise no run ever does."
)
@click.option(
    "--accept-loss", is_flag=True, help="Go on without files that are lost or damaged, and print a line for each."
)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON for each deletion.")
def delete(directory: str, name: str | None, forget: bool, accept_loss: bool, as_json: bool) -> int:
    """Delete everything that the crawl in DIR keeps of a URL, or of a host or domain and everything below it.

    It overwrites records of the archive, and removes rows, lines of the log, tasks and index lines.
    `gossamer resume DIR` fetches copies of a deleted document under other URLs again. The crawl must not run. If the
    command is killed, call it again; without a name it finishes the deletion that was begun.
    """
    from gossamer.operations.deleting import delete as delete_from_crawl
    from gossamer.operations.deleting import target_of
    from gossamer.query.places import crawl_directory

    place = crawl_directory(directory)
    target = target_of(name) if name else None
    done = delete_from_crawl(place, target, time.time(), forget=forget, accept=accept_loss, remark=tell)
    for one in done:
        if as_json:
            say_json(one)
            continue
        if not (one.records or one.documents or one.tasks or one.rows or one.lines):
            print("nothing of it was in the crawl; `gossamer why` shows the form in which a crawl keeps a URL")
            continue
        counts = ", ".join(
            (
                show_count(one.records, "record"),
                show_count(one.documents, "document"),
                show_count(one.tasks, "task"),
                show_count(one.rows, "row"),
                show_count(one.lines, "log line"),
            )
        )
        print(f"deleted: {counts}")
        if one.again:
            print(f"{show_count(one.again, 'URL')} had the same document: gossamer resume {directory} fetches it again")
    return 0
