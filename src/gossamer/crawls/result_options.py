"""The options of a crawl about its documents and its results.

Place in the flow: :class:`~gossamer.crawls.options.CrawlOptions` has them.
"""

from typing import Annotated, Literal

from gossamer.crawls.basic_options import CHANGES_GRAPH
from gossamer.crawls.network_options import NetworkOptions
from gossamer.engine.sheet import setting

_BEGINNING = "it says how a crawl begins"


class ResultOptions(NetworkOptions, frozen=True):
    """Options of results: what is kept of pages, and where."""

    page_requisites: Annotated[
        bool, setting("Also fetch the style sheets, images, scripts and media that pages show, from any host.")
    ] = False
    rdf: Annotated[
        bool,
        setting(
            "Read RDFa, JSON-LD and microdata into triples for `query` and `sparql`, and `meta` and `link` elements "
            "into `items`.",
            restart=CHANGES_GRAPH,
        ),
    ] = False
    language: Annotated[
        tuple[str, ...], setting("Keep only pages in this language, as de; discard others (repeatable).")
    ] = ()
    follow_nofollow: Annotated[bool, setting("Also follow links that pages mark as nofollow.")] = False
    analysis: Annotated[
        Literal["plain", "full"],
        setting(
            "With `full`, also find the language and the fingerprint of each text, and the texts of links; this "
            "takes about 1 ms more per page.",
            restart=CHANGES_GRAPH,
            was="details",
        ),
    ] = "plain"
    text: Annotated[
        Literal["main", "all"],
        setting(
            "Take as the text of a page its prose without menus and code (main), or every word that readers see "
            "(all). Language, fingerprints, processors and the index use this text.",
            restart=CHANGES_GRAPH,
            sets="process",
        ),
    ] = "main"
    near_duplicates: Annotated[
        Literal["auto", "off", "report", "skip"],
        setting(
            "Report or skip pages with nearly the same text; `auto` reports them with --analysis full.",
            restart=CHANGES_GRAPH,
        ),
    ] = "auto"
    sinks: Annotated[
        str,
        setting(
            "While the crawl runs, write rows to the databases that this TOML file names.",
            restart=_BEGINNING,
            names="a file",
        ),
    ] = ""
    index: Annotated[
        bool, setting("Keep a full-text index while the crawl runs, for `gossamer search`.", restart=_BEGINNING)
    ] = False
    items: Annotated[
        tuple[str, ...],
        setting(
            "Also write the items that processors find to this file: .jsonl and .csv grow while the crawl runs; .json, .parquet "
            "and .xlsx are written when it stops. KIND=FILE takes only items of one kind (repeatable).",
            restart=_BEGINNING,
            names="a file",
        ),
    ] = ()
    item_columns: Annotated[
        tuple[str, ...],
        setting(
            "Write only this field of items to the files of --items, in this order (repeatable).", restart=_BEGINNING
        ),
    ] = ()
    item_key: Annotated[
        tuple[str, ...],
        setting(
            "Leave an item out of the files of --items if an earlier one of its kind has the same value in this "
            "field (if repeated, in all of these fields).",
            restart=_BEGINNING,
        ),
    ] = ()
    item_formulas: Annotated[
        Literal["disarm", "keep"],
        setting(
            "Put an apostrophe before cells of .csv that a spreadsheet would run as a formula (disarm), or leave them (keep).",
            restart=_BEGINNING,
        ),
    ] = "disarm"
    mirror: Annotated[
        str,
        setting(
            "Write the site to this folder when the crawl stops, with links rewritten so that it can be browsed without a "
            "server; includes --page-requisites.",
            restart=_BEGINNING,
            names="a folder",
        ),
    ] = ""
    triple_store: Annotated[
        str,
        setting(
            "Also send triples to the store at this URL, by SPARQL updates; GOSSAMER_TRIPLE_STORE_AUTH is its USER:PASSWORD.",
            restart=_BEGINNING,
            names="a secret",
        ),
    ] = ""
    no_warc: Annotated[bool, setting("Keep no archive.", restart=CHANGES_GRAPH)] = False
