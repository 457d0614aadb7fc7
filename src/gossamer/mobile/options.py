"""Options of `gossamer crawl` for crawls that send mobile crawlers; :mod:`gossamer.mobile.wiring` reads them."""

from typing import Annotated, Literal

from gossamer.crawls.basic_options import CHANGES_GRAPH
from gossamer.engine.sheet import Sheet, setting


class MobileOptions(Sheet, frozen=True):
    """Where mobile crawlers go, and what they bring."""

    mobile: Annotated[
        bool,
        setting(
            "Send mobile crawlers to the hosts of --runtime, and bring home the relevant pages (--filter 'store: ...'); see "
            "docs/mobile.md.",
            restart=CHANGES_GRAPH,
        ),
    ] = False
    runtime: Annotated[
        tuple[str, ...],
        setting(
            "Send crawlers for HOST to its runtime, as example.org=https://example.org:8443, or read HOST from a folder of this "
            "machine, as example.org=/var/www/html; *.example.org stands for all hosts below example.org.",
            restart=CHANGES_GRAPH,
            names="a folder",
        ),
    ] = ()
    runtime_keys: Annotated[
        str,
        setting(
            'Read keys and pins of runtimes from this TOML file: a table ["https://ADDRESS"] with `key` and `pin`. Without '
            "it, GOSSAMER_RUNTIME_KEY and GOSSAMER_RUNTIME_PIN are the key and pin of the only runtime.",
            restart=CHANGES_GRAPH,
            names="a file",
        ),
    ] = ""
    mobile_content: Annotated[
        tuple[Literal["whole", "text", "links", "fingerprint"], ...],
        setting(
            "Let crawlers bring these parts of a relevant page: whole (default), text, links, fingerprint.",
            restart=CHANGES_GRAPH,
            was="bring",
        ),
    ] = ()
    mobile_elements: Annotated[
        tuple[str, ...],
        setting(
            "Let crawlers bring the elements that this CSS selector finds.",
            was="bring_elements",
            restart=CHANGES_GRAPH,
        ),
    ] = ()
    irrelevant: Annotated[
        Literal["counts", "rows"],
        setting(
            "Only count irrelevant pages of mobile crawls (counts), or keep a row for each (rows).",
            restart=CHANGES_GRAPH,
        ),
    ] = "counts"
