"""`pages`: one row for each visit. A new column is one field here; log, Parquet, `query` and the reference follow."""

from functools import partial
from typing import Annotated

import msgspec

from gossamer.storage.archive.contract import forbids_copy
from gossamer.storage.tables.contract import Source, Table, column
from gossamer.values import body as bodies
from gossamer.values.hosts import registered_domain
from gossamer.values.instants import utc_text
from gossamer.values.outcome import Outcome
from gossamer.values.request import unpacked
from gossamer.values.task import ROBOTS

#: Characters of ETag and Last-Modified that are kept (fault 78).
MAX_VALIDATOR = 512

#: A column whose value processing finds.
found = partial(column, is_made=True)


def _validator(name: str) -> Source:
    return lambda told: told.response.header(name)[:MAX_VALIDATOR]


class PageRow(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag_field="event", tag="page"
):  # fmt: skip
    """One visit. A column at its default (empty, or 0 where that is the default) is left out of the line."""

    url: Annotated[str, column("The canonical URL that was fetched.", "task.url")]
    canonical_url: Annotated[
        str, found("The URL that the page gives as its own (`rel=canonical`), resolved.", "visit.canonical")
    ] = ""
    host: Annotated[str, column("Host name, without port.", "task.host")]
    domain: Annotated[
        str,
        column(
            "Registered domain of the host; the host itself where it has none.",
            lambda t: registered_domain(t.task.host),
        ),
    ]
    ip: Annotated[str, column("Address that answered.", "response.address")] = ""
    status: Annotated[
        int, column("Status code of the answer; 0 where there was none.", "response.status", type="INTEGER")
    ]
    outcome: Annotated[
        Outcome, column("How the fetch ended: one of the closed list in `outcomes.md`.", "response.outcome")
    ]
    mime: Annotated[str, column("Media type that the server claims, without parameters.", "response.mime")] = ""
    media_type: Annotated[
        str,
        found(
            "Media type that the document's bytes show; `mime` where they were not looked at.",
            lambda told: told.visit.mime if told.visit.mime != told.response.mime else "",
            same_as="mime",
        ),
    ] = ""
    charset: Annotated[str, found("Character encoding that the document was read in.", "visit.charset")] = ""
    language: Annotated[
        str,
        found(
            "Language as an ISO 639-1 code: of the text with `--analysis full`, otherwise as the page declares it.",
            "visit.language",
        ),
    ] = ""
    title: Annotated[str, found("Text of the first `title` element.", "visit.title")] = ""
    depth: Annotated[int, column("Links from the nearest seed.", "task.depth", type="INTEGER")]
    discovered_from: Annotated[str, column("The URL that it was found on.", "task.source")] = ""
    relation: Annotated[
        str,
        column(
            "How it was found: `seed`, `redirect`, tag and attribute, as `a href`; `revisit` of a page that was known, "
            "as `revisit sitemap` of a sitemap; `crawler` where a mobile crawler met it and tells a row alone.",
            "task.relation",
        ),
    ]
    fetched_at: Annotated[
        str, column("When the request was sent, UTC.", lambda t: utc_text(t.response.started), type="TIMESTAMP")
    ]
    elapsed_ms: Annotated[
        float,
        column("Time from `fetched_at` to the last byte.", lambda t: round(t.response.elapsed * 1000, 3), unit="ms"),
    ]
    bytes: Annotated[
        int,
        column(
            "Length of the body as archived, with its content coding.", lambda t: len(t.response.body), unit="bytes"
        ),
    ]
    digest: Annotated[
        str, column("SHA-1 of the body as archived, base32: the payload digest of the archive.", "visit.digest")
    ] = ""
    sha256: Annotated[
        str,
        column(
            "SHA-256 of the same bytes, hexadecimal.",
            lambda t: bodies.sha256(t.response.body) if t.hashes and t.response.body else "",
        ),
    ] = ""
    simhash: Annotated[
        int | None,
        found(
            "Fingerprint of the text: near-duplicates differ in few bits.",
            lambda t: t.visit.simhash or None,
            type="UBIGINT",
        ),
    ] = None
    duplicate_of: Annotated[
        str,
        column(
            "URL of the first document with the same bytes; a question gets none for a page that needs a browser.",
            "visit.duplicate_of",
        ),
    ] = ""
    near_duplicate_of: Annotated[
        str, found("URL of an earlier page whose fingerprint differs in at most three bits.", "visit.near_duplicate_of")
    ] = ""
    discarded: Annotated[
        str,
        found(
            "Why the crawl discarded the page: `language:de`, `near-duplicate`. Its body is not kept.",
            "visit.discarded",
        ),
    ] = ""
    warc_file: Annotated[
        str, column("File that holds the response or revisit record, inside the crawl directory.", "location?.file")
    ] = ""
    warc_offset: Annotated[int | None, column("Byte of this file at which the record begins.", "location?.offset")] = (
        None
    )
    warc_length: Annotated[int | None, column("Length of the record as stored.", "location?.length", unit="bytes")] = (
        None
    )
    noarchive: Annotated[
        bool, column("The page asks that no copy be kept: the record has no body.", lambda t: forbids_copy(t.visit))
    ] = False
    kept_out: Annotated[
        str,
        column(
            "The rule that kept the body out of the archive, as a filter at gate `store`: the record has no body.",
            lambda t: t.visit.barred.get("store", ""),
        ),
    ] = ""
    etag: Annotated[str, column("The field `ETag`.", _validator("etag"))] = ""
    last_modified: Annotated[str, column("The field `Last-Modified`, as sent.", _validator("last-modified"))] = ""
    change: Annotated[
        str,
        column(
            "Result of this visit to a known page: `unchanged`, `changed`, `redirected`, `missing`, `gone` or `back`.",
            "visit.compared?.change",
        ),
    ] = ""
    judged_by: Annotated[
        str,
        column(
            "Evidence for `change`: the server's answer (`304`), the digest of the bytes, the fingerprint of the "
            "text, or the status.",
            "visit.compared?.judged_by",
        ),
    ] = ""
    changed_bits: Annotated[
        int | None,
        column(
            "Number of bits, of 64, in which the fingerprint of the text differs from that of the visit before.",
            "visit.compared?.bits",
            type="INTEGER",
        ),
    ] = None
    attempt: Annotated[int, column("1 for the first try.", "task.attempt", type="INTEGER")]
    truncated: Annotated[str, column("Why the body is not whole: `length`, `time`, `disconnect`.", "response.cut")] = ""
    error: Annotated[str, column("The failure, in the words of the library or system.", "response.error")] = ""
    request: Annotated[
        str, column("The request, where it was no plain GET: method, digest of the body, key.", "task.request?.mark")
    ] = ""
    label: Annotated[
        str, column("The label of the request: which handler of a spider it was meant for.", "task.request?.label")
    ] = ""
    data: Annotated[
        object,
        column(
            "The `data` that the request carries for its handler: `data->>'$.name'` takes a field out of it.",
            lambda t: None if t.task.request is None else unpacked(t.task.request.data),
        ),
    ] = None
    redirects: Annotated[
        str,
        column(
            "`keep` where the request asked for the redirect itself, not for its target.",
            lambda t: "keep" if t.task.request is not None and t.task.request.redirects == "keep" else "",
        ),
    ] = ""
    actions: Annotated[
        object,
        column(
            "Actions of the browser that the request asked for.",
            lambda t: (
                [*map(msgspec.to_builtins, t.task.request.actions)] or None if t.task.request is not None else None
            ),
        ),
    ] = None
    session: Annotated[str, column("The session of a spider that asked.", "response.session")] = ""
    brought: Annotated[
        str,
        column(
            "How it came, if a mobile crawler brought it: `whole`, `text`, `elements`, or `row` if it is irrelevant or an error.",
            "response.brought?.form",
        ),
    ] = ""
    crawler: Annotated[str, column("The mobile crawler that brought it.", "response.brought?.crawler")] = ""
    runtime: Annotated[str, column("Address of the runtime where that crawler ran.", "response.brought?.runtime")] = ""
    notes: Annotated[
        str,
        column(
            "Faults of the answer that did not keep it from being read: words of `outcomes.md`, separated by spaces.",
            lambda t: " ".join(t.response.notes),
        ),
    ] = ""
    needs_browser: Annotated[
        bool,
        found(
            "Whether the page seems to need a browser: it holds scripts, few words and hardly a link, and none has rendered it.",
            "visit.needs_browser",
        ),
    ] = False
    render: Annotated[
        str,
        found(
            "How a browser rendered it: `done`, `limited`, `hung`, `crashed`, `no_browser`, `interrupted`.",
            "visit.rendered?.how",
        ),
    ] = ""
    render_seconds: Annotated[
        float,
        found(
            "Time that this took, with the answers that the page waited for.",
            lambda t: round(t.visit.rendered.seconds, 3) if t.visit.rendered else 0.0,
            unit="s",
        ),
    ] = 0.0
    wants: Annotated[
        dict[str, int],
        found(
            "Requests that the page made meanwhile (`asked`), and everything that was refused, by rule.",
            "visit.rendered?.counts",
        ),
    ] = {}
    gained_links: Annotated[
        int, found("Links that the rendered page has, and the answer of the server has not.", "visit.rendered?.gained")
    ] = 0
    answer_of: Annotated[
        str,
        column(
            "Of a rendered page: URL of the first document whose answer has the same bytes, while `duplicate_of` goes by "
            "the rendered page.",
            "visit.rendered?.answer_of",
        ),
    ] = ""
    dom_length: Annotated[
        int,
        column(
            "Length of the record `urn:dom:URL` as stored, which ends where `warc_offset` is: the rendered page.",
            "location?.dom",
            unit="bytes",
        ),
    ] = 0
    trouble: Annotated[str, found("The trouble that the page gave while it was processed.", "visit.trouble")] = ""
    links: Annotated[int, found("Links that passed the filters.", lambda t: len(t.visit.links), type="INTEGER")] = 0
    new: Annotated[
        int, column("Links of these whose URL had not been seen before.", lambda t: len(t.visit.new), type="INTEGER")
    ] = 0
    rejected: Annotated[dict[str, int], found("How many links each rule refused.", "visit.rejected")] = {}
    visit: Annotated[str, column("Identity of the visit, unique among all crawls.", "visit.id")] = ""


class RobotsRow(PageRow, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag_field="event", tag="robots"):
    """A request for robots.txt: indexed like a page, and none."""


PAGES: Table = Table(
    "pages",
    PageRow,
    "Every fetch that ended, one row for each visit. `NULL` where there is nothing to say.",
    rows=lambda told: (PAGES.row_of(told, RobotsRow if told.visit.is_robots else PageRow),),
    is_logged=True,
    # They are written too, since the index of the archive is made of these rows.
    without=("relation", ROBOTS),
)
