"""`pages`: one row for each visit. A new column is one field here; log, Parquet, `query` and the reference follow."""

from collections.abc import Iterable
from typing import Annotated

import msgspec

from gossamer.documents.statements import keeps_copy
from gossamer.storage.tables.contract import RowSource, Table, column
from gossamer.values import body as bodies
from gossamer.values.hosts import registered_domain
from gossamer.values.instants import utc_text
from gossamer.values.outcome import Outcome
from gossamer.values.request import unpacked
from gossamer.values.task import ROBOTS

#: Characters of ETag and Last-Modified that are kept (fault 78).
MAX_VALIDATOR = 512


def _sha256(told: RowSource) -> str:
    body = told.response.body
    return bodies.sha256(body) if told.hashes and body else ""


class PageRow(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag_field="event", tag="page"
):  # fmt: skip
    """One visit. A column at its default (empty, or 0 where that is the default) is left out of the line."""

    url: Annotated[str, column("The canonical URL that was fetched.", lambda t: t.task.url)]
    canonical_url: Annotated[
        str,
        column(
            "The URL that the page gives as its own (`rel=canonical`), resolved.",
            lambda t: t.visit.canonical,
            is_made=True,
        ),
    ] = ""
    host: Annotated[str, column("Host name, without port.", lambda t: t.task.host)]
    domain: Annotated[
        str,
        column(
            "Registered domain of the host; the host itself where it has none.",
            lambda t: registered_domain(t.task.host),
        ),
    ]
    ip: Annotated[str, column("Address that answered.", lambda t: t.response.address)] = ""
    status: Annotated[
        int, column("Status code of the answer; 0 where there was none.", lambda t: t.response.status, type="INTEGER")
    ]
    outcome: Annotated[
        Outcome, column("How the fetch ended: one of the closed list in `outcomes.md`.", lambda t: t.response.outcome)
    ]
    mime: Annotated[
        str, column("Media type that the server claims, without parameters.", lambda t: t.response.mime)
    ] = ""
    media_type: Annotated[
        str,
        column(
            "Media type that the document's bytes show; `mime` where they were not looked at.",
            lambda t: t.visit.mime if t.visit.mime and t.visit.mime != t.response.mime else "",
            same_as="mime",
            is_made=True,
        ),
    ] = ""
    charset: Annotated[
        str, column("Character encoding that the document was read in.", lambda t: t.visit.charset, is_made=True)
    ] = ""
    language: Annotated[
        str,
        column(
            "Language as an ISO 639-1 code: of the text with `--analysis full`, otherwise as the page declares it.",
            lambda t: t.visit.language,
            is_made=True,
        ),
    ] = ""
    title: Annotated[str, column("Text of the first `title` element.", lambda t: t.visit.title, is_made=True)] = ""
    depth: Annotated[int, column("Links from the nearest seed.", lambda t: t.task.depth, type="INTEGER")]
    discovered_from: Annotated[str, column("The URL that it was found on.", lambda t: t.task.source)] = ""
    relation: Annotated[
        str,
        column(
            "How it was found: `seed`, `redirect`, tag and attribute, as `a href`; `revisit` of a page that was known, "
            "as `revisit sitemap` of a sitemap.",
            lambda t: t.task.relation,
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
        str,
        column("SHA-1 of the body as archived, base32: the payload digest of the archive.", lambda t: t.visit.digest),
    ] = ""
    sha256: Annotated[str, column("SHA-256 of the same bytes, hexadecimal.", _sha256)] = ""
    simhash: Annotated[
        int | None,
        column(
            "Fingerprint of the text: near-duplicates differ in few bits.",
            lambda t: t.visit.simhash or None,
            type="UBIGINT",
            is_made=True,
        ),
    ] = None
    duplicate_of: Annotated[
        str,
        column(
            "URL of the first document with the same bytes; a question gets none for a page that needs a browser.",
            lambda t: t.visit.duplicate_of,
        ),
    ] = ""
    near_duplicate_of: Annotated[
        str,
        column(
            "URL of an earlier page whose fingerprint differs in at most three bits.",
            lambda t: t.visit.near_duplicate_of,
            is_made=True,
        ),
    ] = ""
    discarded: Annotated[
        str,
        column(
            "Why the crawl discarded the page: `language:de`, `near-duplicate`. Its body is not kept.",
            lambda t: t.visit.discarded,
            is_made=True,
        ),
    ] = ""
    warc_file: Annotated[
        str,
        column(
            "File that holds the response or revisit record, inside the crawl directory.",
            lambda t: t.location.file if t.location else "",
        ),
    ] = ""
    warc_offset: Annotated[
        int | None,
        column("Byte of this file at which the record begins.", lambda t: t.location.offset if t.location else None),
    ] = None
    warc_length: Annotated[
        int | None,
        column("Length of the record as stored.", lambda t: t.location.length if t.location else None, unit="bytes"),
    ] = None
    noarchive: Annotated[
        bool,
        column(
            "The page asks that no copy be kept: the record has no body.",
            lambda t: not keeps_copy(t.visit.directives, t.response.headers),
        ),
    ] = False
    kept_out: Annotated[
        str,
        column(
            "The rule that kept the body out of the archive, as a filter at gate `store`: the record has no body.",
            lambda t: t.visit.barred.get("store", ""),
        ),
    ] = ""
    etag: Annotated[str, column("The field `ETag`.", lambda t: t.response.header("etag")[:MAX_VALIDATOR])] = ""
    last_modified: Annotated[
        str,
        column("The field `Last-Modified`, as sent.", lambda t: t.response.header("last-modified")[:MAX_VALIDATOR]),
    ] = ""
    change: Annotated[
        str,
        column(
            "Result of this visit to a known page: `unchanged`, `changed`, `redirected`, `missing`, `gone` or `back`.",
            lambda t: t.visit.compared.change.value if t.visit.compared else "",
        ),
    ] = ""
    judged_by: Annotated[
        str,
        column(
            "Evidence for `change`: the server's answer (`304`), the digest of the bytes, the fingerprint of the "
            "text, or the status.",
            lambda t: t.visit.compared.judged_by.value if t.visit.compared else "",
        ),
    ] = ""
    changed_bits: Annotated[
        int | None,
        column(
            "Number of bits, of 64, in which the fingerprint of the text differs from that of the visit before.",
            lambda t: t.visit.compared.bits if t.visit.compared else None,
            type="INTEGER",
        ),
    ] = None
    attempt: Annotated[int, column("1 for the first try.", lambda t: t.task.attempt, type="INTEGER")]
    truncated: Annotated[
        str, column("Why the body is not whole: `length`, `time`, `disconnect`.", lambda t: t.response.cut)
    ] = ""
    error: Annotated[str, column("The failure, in the words of the library or system.", lambda t: t.response.error)] = (
        ""
    )
    request: Annotated[
        str,
        column(
            "The request, where it was no plain GET: method, digest of the body, key.",
            lambda t: "" if t.task.request is None else t.task.request.mark,
        ),
    ] = ""
    label: Annotated[
        str,
        column(
            "The label of the request: which handler of a spider it was meant for.",
            lambda t: "" if t.task.request is None else t.task.request.label,
        ),
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
    session: Annotated[str, column("The session of a spider that asked.", lambda t: t.response.session)] = ""
    brought: Annotated[
        str,
        column(
            "How it came, if a mobile crawler brought it: `whole`, `text`, `elements`, or `row` if it is irrelevant or an error.",
            lambda t: "" if t.response.brought is None else t.response.brought.form,
        ),
    ] = ""
    crawler: Annotated[
        str,
        column(
            "The mobile crawler that brought it.",
            lambda t: "" if t.response.brought is None else t.response.brought.crawler,
        ),
    ] = ""
    runtime: Annotated[
        str,
        column(
            "Address of the runtime where that crawler ran.",
            lambda t: "" if t.response.brought is None else t.response.brought.runtime,
        ),
    ] = ""
    notes: Annotated[
        str,
        column(
            "Faults of the answer that did not keep it from being read: words of `outcomes.md`, separated by spaces.",
            lambda t: " ".join(t.response.notes),
        ),
    ] = ""
    needs_browser: Annotated[
        bool,
        column(
            "Whether the page seems to need a browser: it holds scripts, few words and hardly a link.",
            lambda t: t.visit.needs_browser,
            is_made=True,
        ),
    ] = False
    trouble: Annotated[
        str, column("The trouble that the page gave while it was processed.", lambda t: t.visit.trouble, is_made=True)
    ] = ""
    links: Annotated[
        int, column("Links that passed the filters.", lambda t: len(t.visit.links), type="INTEGER", is_made=True)
    ] = 0
    new: Annotated[
        int, column("Links of these whose URL had not been seen before.", lambda t: len(t.visit.new), type="INTEGER")
    ] = 0
    rejected: Annotated[
        dict[str, int], column("How many links each rule refused.", lambda t: t.visit.rejected, is_made=True)
    ] = {}
    visit: Annotated[str, column("Identity of the visit, unique among all crawls.", lambda t: t.visit.id)] = ""


class RobotsRow(PageRow, frozen=True, kw_only=True, omit_defaults=True, gc=False, tag_field="event", tag="robots"):
    """A request for robots.txt: indexed like a page, and none."""


def _rows(told: RowSource) -> Iterable[msgspec.Struct]:
    return (PAGES.row_of(told, RobotsRow if told.visit.is_robots else PageRow),)


PAGES = Table(
    "pages",
    PageRow,
    "Every fetch that ended, one row for each visit. `NULL` where there is nothing to say.",
    rows=_rows,
    is_logged=True,
    # They are written too, since the index of the archive is made of these rows.
    without=("relation", ROBOTS),
)
