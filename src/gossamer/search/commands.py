"""Commands of full text: `gossamer search` and `gossamer index`."""

import shutil
import sys
from typing import TYPE_CHECKING, Literal

import click

from gossamer.cli.helping import as_json, crawl_to_read, instant, option
from gossamer.cli.saying import say_json, say_lines

if TYPE_CHECKING:
    from gossamer.search.asking import SearchHit

#: The style in which a terminal shows the words that were looked for, and its end.
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"

_FACETS = ("host", "language", "type", "mime")


@click.command()
@crawl_to_read
@click.argument("words", metavar="WORDS")
@option("-n --limit", "Show at most this many documents.", type=click.IntRange(1, 1_000), default=10, show_default=True)
@option("--start", "Skip this many documents first.", type=click.IntRange(0, 100_000), default=0)
@option("--host hosts HOST...", "Show only documents on this host or below it (repeatable).")
@option("--language languages L...", "Show only documents in this language, as `en` (repeatable).")
@option("--depth", "Show only documents at most this many links from the seeds.", type=click.IntRange(0))
@option(
    "--since DATE",
    "Show only documents fetched at this time or later, as 2026-03-01, 2026-03-01T12:00, or 7d for the last week.",
)
@option("--until DATE", "Show only documents fetched before this time.")
@option("--type types TYPE...", "Show only documents with a thing of this type, as `schema:Product` (repeatable).")
@option("--not-type without TYPE...", "Show only documents without any thing of this type (repeatable).")
@option(
    "--facet facets",
    "Also count the found documents by this field (repeatable).",
    type=click.Choice(_FACETS),
    multiple=True,
)
@as_json
def search(
    directory: str,
    words: str,
    limit: int,
    start: int,
    hosts: tuple[str, ...],
    languages: tuple[str, ...],
    depth: int | None,
    since: str | None,
    until: str | None,
    types: tuple[str, ...],
    without: tuple[str, ...],
    facets: tuple[str, ...],
    as_json: bool,
) -> None:
    """Search the documents of the crawl in DIR for WORDS; `gossamer index DIR` makes the index.

    A document has to contain every word. Put "phrases" in quotes; OR, NOT and parentheses work, and so do title:word,
    text:word and anchors:word. If WORDS is empty, only the filters choose.

    \b
    gossamer search mycrawl 'breadth "first search"' --host example.org --language en
    gossamer search mycrawl "" --type schema:Product --not-type schema:Review --facet host
    """
    from gossamer.search.asking import Search, SearchFilters
    from gossamer.storage.tables.places import crawl_directory

    filters = SearchFilters(
        hosts=hosts,
        languages=languages,
        types=types,
        without_types=without,
        since=instant("--since", since),
        until=instant("--until", until),
        depth=depth,
    )
    answer = Search(crawl_directory(directory)).ask(words, filters, most=limit, start=start, facets=facets)
    if as_json:
        say_json(answer)
        return
    from gossamer.query.printing import shown

    print(f"{answer.total:,} documents")
    width = max(40, min(100, shutil.get_terminal_size().columns))
    for number, hit in enumerate(answer.hits, start + 1):
        about = "  ".join(filter(None, (hit.language, hit.fetched_at[:10], f"depth {hit.depth}", f"{hit.score:.2f}")))
        print(f"\n{number}. {shown(hit.title or hit.url)[:width]}\n   {shown(hit.url)}\n   {about}")
        if hit.snippet:
            print(f"   {_marked(hit)}")
    for name, values in answer.facets.items():
        print(f"\n{name}")
        for value, count in values.items():
            print(f"   {count:>9,}  {shown(value)}")


def _marked(hit: "SearchHit") -> str:
    """The snippet in one line, with what was looked for in bold on a terminal and in brackets elsewhere."""
    from gossamer.query.printing import shown

    before, after = (_BOLD, _PLAIN) if sys.stdout.isatty() else ("[", "]")
    text, parts, last = hit.snippet.replace("\n", " "), [], 0
    for start, end in hit.marks:
        parts += [shown(text[last:start]), before, shown(text[start:end]), after]
        last = end
    return "".join([*parts, shown(text[last:])]).strip()


@click.command()
@crawl_to_read
@option("--overwrite", "Build the index anew from every document.")
@option(
    "--text",
    "Index the prose of pages, without menus and code (main), or every word (all); default: the crawl's choice.",
    type=click.Choice(["main", "all"]),
)
@option("--terms", "Also write the table `terms`, which tells how often each term occurs in each document.")
@as_json
def index(directory: str, overwrite: bool, text: Literal["main", "all"] | None, terms: bool, as_json: bool) -> int:
    """Bring the full-text index of the crawl in DIR up to date with documents that came, changed or are gone.

    Texts come from the archive. Texts of links to a page, types of things on it (crawl --rdf) and its rank
    (gossamer rank) come from the tables as they are now. With `crawl --index` the crawl keeps the index itself while it
    runs; call this command afterwards to add the facts from tables.

    \b
    gossamer index mycrawl
    gossamer search mycrawl "breadth first"
    """
    from gossamer.search.indexing import index_crawl
    from gossamer.storage.tables.places import crawl_directory

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
            line = f"{done.unread:,} texts could not be read out of the archive; `gossamer verify {directory} --deep` says why"
            say_lines([line])
    return 0
