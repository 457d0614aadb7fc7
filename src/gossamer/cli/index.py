"""`gossamer index`: the full text of a crawl, made searchable at any time."""

from typing import Literal

import click

from gossamer.cli.saying import say_json


@click.command()
@click.argument("directory", metavar="DIR")
@click.option("--overwrite", is_flag=True, help="Build the index anew from every document.")
@click.option(
    "--text",
    type=click.Choice(["main", "all"]),
    help="Index the prose of pages, without menus and code (main), or every word (all); default: the crawl's choice.",
)
@click.option(
    "--terms",
    is_flag=True,
    help="Also write the table `terms`, which tells how often each term occurs in each document.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON.")
def index(directory: str, overwrite: bool, text: Literal["main", "all"] | None, terms: bool, as_json: bool) -> int:
    """Bring the full-text index of the crawl in DIR up to date with documents that came, changed or are gone.

    Texts come from the archive. Texts of links to a page, types of things on it (crawl --rdf) and its rank
    (gossamer rank) come from the tables as they are now. With `crawl --index` the crawl keeps the index itself while it
    runs; call this command afterwards to add the facts from tables.

    \b
    gossamer index mycrawl
    gossamer search mycrawl "breadth first"
    """
    from gossamer.operations.indexing import index_crawl
    from gossamer.query.places import crawl_directory

    done = index_crawl(crawl_directory(directory), anew=overwrite, text=text, terms=terms)
    if as_json:
        say_json(done)
    else:
        print(f"{done.documents:,} documents in the index")
        print(f"{done.visits:,} visits read, {done.extras:,} documents with new texts of links, types or ranks")
        if done.terms is not None:
            print(f"{done.terms:,} rows in the table terms")
        for remark in done.remarks:
            print(remark)
        if done.unread:
            print(
                f"{done.unread:,} texts could not be read out of the archive; `gossamer verify {directory} --deep` says why"
            )
    return 0
