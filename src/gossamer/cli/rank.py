"""`gossamer rank`: PageRank of a crawl's links, as tables, and as a file by which another crawl knows what is important."""

import click

from gossamer.cli.output import opened

#: URLs that the file of `--importance` names at most: a crawl that reads it holds them in memory, 150 bytes each.
MOST_URLS = 100_000


@click.command()
@click.argument("directory", metavar="DIR")
@click.option(
    "--importance",
    metavar="FILE",
    help="Also write hosts and URLs with their importance from 0 to 1 to this file, for --set "
    "prioritizer.importance=FILE.",
)
@click.option(
    "--urls",
    type=click.IntRange(0, 1_000_000),
    default=MOST_URLS,
    show_default=True,
    help="Write at most this many URLs to that file, the highest first.",
)
@click.option(
    "--limit", type=click.IntRange(0), default=20, show_default=True, help="Show at most this many URLs and hosts."
)
def rank(directory: str, importance: str | None, urls: int, limit: int) -> None:
    """Rank the URLs and hosts of the crawl in DIR by the links that lead to them (PageRank).

    It adds the tables `ranks` (url, host, rank, importance, links_in, links_out) and `host_ranks` (host, rank,
    site_rank, importance, hosts_in, urls). A host's `rank` is the sum of its URLs' ranks; its `importance` follows from
    `site_rank`, which counts only links between hosts. Ranks add up to 1. Links marked nofollow, of a page to itself,
    and to pictures, scripts and styles do not count.

    \b
    gossamer rank mycrawl
    gossamer query mycrawl "SELECT url, rank FROM ranks WHERE host = 'example.org' ORDER BY rank DESC LIMIT 10"
    gossamer rank mycrawl --importance ranks.txt
    gossamer crawl https://example.org/ --set prioritizer.importance=ranks.txt
    """
    from gossamer.query.convert import convert
    from gossamer.query.database import Database
    from gossamer.query.places import crawl_directory
    from gossamer.query.printing import write_table
    from gossamer.query.ranking import importance_lines, rank_crawl

    place = crawl_directory(directory)
    convert(place)
    counted = rank_crawl(place)
    if importance is not None:
        with opened(importance) as out:
            out.writelines(importance_lines(place, urls))
    with Database(place) as database, opened(None) as out:
        out.write(f"{counted.urls:,} URLs, {counted.links:,} links, {counted.rounds} rounds\n\n")
        for table, name in (("ranks", "url"), ("host_ranks", "host")):
            answer = database.ask(
                f"SELECT {name}, rank, importance FROM {table} ORDER BY rank DESC, {name} LIMIT {limit}"
            )
            write_table(answer.columns, [(one, f"{rank:.3e}", f"{value:.3f}") for one, rank, value in answer], out)
            out.write("\n")
