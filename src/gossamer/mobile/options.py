"""Options of `gossamer crawl` for crawls that send mobile crawlers; :mod:`gossamer.mobile.wiring` reads them."""

from typing import Annotated, Literal

from gossamer.engine.sheet import Sheet, setting

# Settings of the units, too (:mod:`gossamer.mobile.manager.making`, :mod:`gossamer.mobile.manager.links`).

RuntimeKeys = Annotated[
    str,
    setting(
        'Read keys and pins of runtimes from this TOML file: a table ["https://ADDRESS"] with `key` and `pin`. Only its owner '
        "may read it. Without it, GOSSAMER_RUNTIME_KEY and GOSSAMER_RUNTIME_PIN are the key and pin of the only runtime.",
        names="a file",
    ),
]

BroughtElements = Annotated[tuple[str, ...], setting("Let crawlers bring the elements that this CSS selector finds.")]

Irrelevant = Annotated[
    Literal["counts", "rows"],
    setting("Only count irrelevant pages of mobile crawls (counts), or keep a row for each (rows)."),
]


class MobileOptions(Sheet, frozen=True):
    """Where mobile crawlers go, and what they bring."""

    mobile: Annotated[
        bool,
        setting(
            "Send mobile crawlers to the hosts of --runtime, and bring home the relevant pages (--filter 'store: ...'); see "
            "docs/mobile.md."
        ),
    ] = False
    runtime: Annotated[
        tuple[str, ...],
        setting(
            "Send crawlers for HOST to its runtime, as example.org=https://example.org:8443, or read HOST from a folder of this "
            "machine, as example.org=/var/www/html; *.example.org stands for all hosts below example.org.",
            names="a folder",
        ),
    ] = ()
    runtime_keys: RuntimeKeys = ""
    mobile_content: Annotated[
        tuple[Literal["whole", "text", "links", "fingerprint"], ...],
        setting(
            "Let crawlers bring these parts of a relevant page: whole (default), text, links, fingerprint.", was="bring"
        ),
    ] = ()
    mobile_elements: Annotated[BroughtElements, setting(was="bring_elements")] = ()
    irrelevant: Irrelevant = "counts"
