"""Ready-made reports of a crawl, declared as SQL over its tables, and answers to questions about these.

Place in the flow: `gossamer report` asks :func:`report_of`, while the crawl runs and after, and :mod:`gossamer.query.printing`
shows what it made. The tables answer most reports; what was set aside as likely traps, the ledger knows. The dashboard
(:mod:`gossamer.dashboard.questions`) has a worker answer each question of its console (:func:`answer_tables`).
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gossamer.crawls.trap_review import suspicions_of
from gossamer.engine.sheet import nearest
from gossamer.engine.worker import Caller
from gossamer.query.database import Database
from gossamer.query.engine import BROKEN
from gossamer.query.printing import json_line
from gossamer.query.schema import IS_PAGE, mark_of, titled, words
from gossamer.values.errors import UsageError
from gossamer.values.outcome import DOCUMENTS


class BarPlot(msgspec.Struct, frozen=True):
    """Draw the first rows of a section as horizontal bars."""

    label: str
    """Column of the texts beside the bars."""
    value: str
    """Column of the numbers that the bars are as long as."""


class ReportSection(msgspec.Struct, frozen=True):
    """One table of a report, before it is asked."""

    title: str
    sql: str
    plot: BarPlot | None = None


class ReportSpec(msgspec.Struct, frozen=True):
    """A report, before it is asked."""

    name: str
    doc: str
    """One line: what it lists."""
    sections: tuple[ReportSection, ...]
    """The first is what CSV and JSON lines hold, and what `--fail-on` counts."""
    parts: tuple[tuple[str, str], ...] = ()
    """Names and SQL of answers that several sections ask: each is found once."""
    is_trouble: bool = False
    """Rows of the first section are something to mend."""


class MadeSection(msgspec.Struct, frozen=True):
    """One table of a report, with its rows."""

    title: str
    columns: list[str]
    rows: list[tuple[Any, ...]]
    total: int
    """Rows that there are; `rows` may be the first of them only."""
    types: list[str] = []
    """DuckDB's names of the columns' types."""
    plot: BarPlot | None = None


class MadeReport(msgspec.Struct, frozen=True):
    name: str
    doc: str
    sections: list[MadeSection]


def _report(name: str, doc: str, sections: str, *, parts: str = "", is_trouble: bool = False) -> ReportSpec:
    """A report as it is written below: each section is `-- TITLE`, perhaps `| VALUE by LABEL` for its bars, and SQL; each part is
    `-- NAME` and SQL."""
    made = []
    for head, sql in titled(sections).items():
        title, _, plot = head.partition(" | ")
        value, _, label = plot.partition(" by ")
        made.append(ReportSection(title, sql, BarPlot(label, value) if plot else None))
    return ReportSpec(name, doc, tuple(made), tuple(titled(parts).items()), is_trouble)


# Reports of what pages hold: the same again, languages, structured data.

#: The predicate by which structured data says what a thing is.
_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"

DUPLICATES = _report(
    "duplicates",
    "pages with the same bytes or nearly the same text as another one",
    """
-- Documents that stand under several URLs
SELECT original, kind, count(*) AS copies, sum(bytes) AS bytes, min(url) AS for_example
FROM copies GROUP BY ALL ORDER BY copies DESC, original

-- Hosts with copies | copies by host
SELECT host, count(*) AS copies, sum(bytes) AS bytes FROM copies GROUP BY 1 ORDER BY 2 DESC, 1
""",
    parts="""
-- copies
SELECT url, host, bytes, coalesce(duplicate_of, near_duplicate_of) AS original,
       CASE WHEN duplicate_of IS NULL THEN 'near' ELSE 'exact' END AS kind
FROM pages WHERE duplicate_of IS NOT NULL OR near_duplicate_of IS NOT NULL
""",
    is_trouble=True,
)

LANGUAGES = _report(
    "languages",
    "languages and character encodings of pages",
    f"""
-- Languages | pages by language
SELECT coalesce(language, 'unknown') AS language, count(*) AS pages, count(DISTINCT host) AS hosts, sum(bytes) AS bytes,
       min(url) AS for_example
FROM pages WHERE {IS_PAGE} GROUP BY 1 ORDER BY 2 DESC, 1

-- Character encodings | pages by charset
SELECT coalesce(charset, 'unknown') AS charset, count(*) AS pages, count(DISTINCT host) AS hosts,
       min(url) AS for_example
FROM pages WHERE {IS_PAGE} GROUP BY 1 ORDER BY 2 DESC, 1
""",
)

STRUCTURED_DATA = _report(
    "structured-data",
    "types and properties that pages name in RDFa, JSON-LD and microdata (a crawl with --rdf)",
    f"""
-- Types | pages by type
SELECT object AS type, count(*) AS things, count(DISTINCT graph) AS pages, count(DISTINCT host(graph)) AS hosts,
       min(graph) AS for_example
FROM triples WHERE predicate = '{_TYPE}' GROUP BY 1 ORDER BY pages DESC, 1

-- Properties | pages by property
SELECT predicate AS property, count(*) AS triples, count(DISTINCT graph) AS pages, count(DISTINCT host(graph)) AS hosts
FROM triples WHERE predicate <> '{_TYPE}' GROUP BY 1 ORDER BY pages DESC, 1

-- Hosts | pages by host
SELECT host(graph) AS host, count(DISTINCT graph) AS pages, count(*) AS triples
FROM triples GROUP BY 1 ORDER BY 2 DESC, 1
""",
)

#: URLs that the report of links lists at most.
MOST_LINKED = 1_000

LINKS = _report(
    "links",
    "the most linked pages and hosts, and the kinds of links",
    """
-- Most linked URLs
SELECT l.target, l.links, l.from_other_hosts, p.status, p.outcome, p.title
FROM most_linked l LEFT JOIN pages p ON p.url = l.target ORDER BY l.links DESC, l.target

-- Hosts that links lead to | links by host
SELECT target_host AS host, count(*) AS links, count(*) FILTER (source_host <> target_host) AS from_other_hosts,
       count(*) FILTER (nofollow) AS nofollow
FROM links GROUP BY 1 ORDER BY 2 DESC, 1

-- Kinds of links | links by relation
SELECT relation, count(*) AS links, count(*) FILTER (nofollow) AS nofollow,
       count(*) FILTER (source_host = target_host) AS within_the_host
FROM links GROUP BY 1 ORDER BY 2 DESC, 1
""",
    parts=f"""
-- much_linked
SELECT {mark_of("target")} AS h FROM links GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT {MOST_LINKED}

-- most_linked
SELECT target, count(*) AS links, count(*) FILTER (source_host <> target_host) AS from_other_hosts
FROM links WHERE {mark_of("target")} IN (SELECT h FROM much_linked) GROUP BY 1
""",
)

BROKEN_LINKS = _report(
    "broken",
    "links that lead to nothing, by way of redirects too, and where they stand",
    """
-- Broken links
SELECT source, anchor, target, status, outcome, "end" AS redirected_to, error
FROM broken_links ORDER BY source, target, anchor

-- Broken targets
SELECT target, any_value(status) AS status, any_value(outcome) AS outcome,
       count(DISTINCT source) AS pages, count(*) AS links, min(source) AS for_example_on
FROM broken_links GROUP BY 1 ORDER BY pages DESC, 1

-- Hosts with broken links | links by host
SELECT source_host AS host, count(*) AS links, count(DISTINCT target) AS targets
FROM broken_links GROUP BY 1 ORDER BY 2 DESC, 1

-- Why they are broken | links by outcome
SELECT outcome, status, count(*) AS links, count(DISTINCT target) AS targets FROM broken_links
GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2
""",
    is_trouble=True,
)

REDIRECTS = _report(
    "redirects",
    "URLs that redirect, where they end, and how many links should name the end instead",
    """
-- Redirects
SELECT r.url, r.status, r.hops, r."end", r.end_outcome, r.is_loop, coalesce(l.links, 0) AS links, l.for_example_on
FROM redirect_ends r LEFT JOIN (
    SELECT target, count(*) AS links, min(source) AS for_example_on FROM links
    WHERE relation NOT LIKE '%redirect%' AND target IN (SELECT url FROM redirect_ends) GROUP BY 1
) l ON l.target = r.url
ORDER BY r.is_loop DESC, links DESC, r.hops DESC, r.url

-- Chains by length | urls by hops
SELECT hops, count(*) AS urls, count(*) FILTER (is_loop) AS loops FROM redirect_ends GROUP BY 1 ORDER BY 1

-- Status codes | urls by status
SELECT status, count(*) AS urls FROM redirect_ends GROUP BY 1 ORDER BY 2 DESC
""",
    is_trouble=True,
)

# Reports of how the crawl went: hosts, errors, and what was slow.

HOSTS = _report(
    "hosts",
    "hosts with pages, errors, bytes and the pace that they were asked at",
    """
-- Hosts | pages by host
SELECT h.host, h.pages, h.errors, p.urls, p.bytes, p.mean_ms, h.delay AS delay_s, h.delay_reason, h.robots_state, h.ip,
       h.first_seen, h.last_seen
FROM hosts h LEFT JOIN (
    SELECT host, count(*) AS urls, sum(bytes) AS bytes, round(avg(elapsed_ms)) AS mean_ms FROM pages GROUP BY 1
) p USING (host)
ORDER BY h.pages DESC, h.errors DESC, h.host

-- Registered domains | urls by domain
SELECT domain, count(DISTINCT host) AS hosts, count(*) AS urls, sum(bytes) AS bytes FROM pages
GROUP BY 1 ORDER BY 3 DESC, 1

-- Depths | urls by depth
SELECT depth, count(*) AS urls, sum(new) AS urls_found FROM pages GROUP BY 1 ORDER BY 1
""",
)

ERRORS = _report(
    "errors",
    "URLs that brought an error, by what happened and where",
    """
-- Errors
SELECT url, outcome, status, error, attempt, discovered_from, fetched_at FROM failed ORDER BY host, url

-- What happened | urls by outcome
SELECT outcome, status, count(*) AS urls, count(DISTINCT host) AS hosts, any_value(error) AS for_example
FROM failed GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2

-- Where | urls by host
SELECT host, count(*) AS urls, mode(outcome) AS most_often FROM failed GROUP BY 1 ORDER BY 2 DESC, 1
""",
    parts=f"""
-- failed
SELECT * FROM pages WHERE outcome IN ({words(BROKEN)})
""",
    is_trouble=True,
)

SLOW = _report(
    "slow",
    "pages and hosts that took the longest to answer",
    """
-- Slowest URLs
SELECT url, elapsed_ms, bytes, status, outcome, fetched_at FROM answered ORDER BY elapsed_ms DESC, url

-- Slowest hosts | median_ms by host
SELECT host, count(*) AS urls, round(median(elapsed_ms)) AS median_ms, round(quantile_cont(elapsed_ms, 0.95)) AS p95_ms,
       round(max(elapsed_ms)) AS longest_ms
FROM answered GROUP BY 1 ORDER BY median_ms DESC, 1

-- Times | urls by time
SELECT CASE WHEN elapsed_ms < 100 THEN 'below 0.1 s' WHEN elapsed_ms < 300 THEN '0.1 to 0.3 s'
            WHEN elapsed_ms < 1000 THEN '0.3 to 1 s' WHEN elapsed_ms < 3000 THEN '1 to 3 s'
            WHEN elapsed_ms < 10000 THEN '3 to 10 s' ELSE '10 s and more' END AS "time", count(*) AS urls
FROM answered GROUP BY 1 ORDER BY min(elapsed_ms)
""",
    parts=f"""
-- answered
SELECT url, host, elapsed_ms, bytes, status, outcome, fetched_at FROM pages WHERE outcome IN ({words(DOCUMENTS)})
""",
)

#: The reports that are SQL, by name.
SPECS = {
    spec.name: spec
    for spec in (LINKS, BROKEN_LINKS, HOSTS, ERRORS, DUPLICATES, LANGUAGES, REDIRECTS, STRUCTURED_DATA, SLOW)
}


def make_report(database: Database, spec: ReportSpec, most: int | None, sections: int | None = None) -> MadeReport:
    """Ask everything that a report wants to know: so many rows of a section at most, and so many of its first sections; None
    for all."""
    for name, sql in spec.parts:
        database.keep(name, sql)
    limit = "" if most is None else f" LIMIT {most + 1}"
    made = []
    for section in spec.sections[:sections]:
        answer = database.ask(f"SELECT * FROM ({section.sql}){limit}")
        rows = list(answer)
        total = len(rows)
        if most is not None and total > most:
            [(total,)] = database.ask(f"SELECT count(*) FROM ({section.sql})")
            rows = rows[:most]
        made.append(MadeSection(section.title, answer.columns, rows, total, answer.types, section.plot))
    return MadeReport(spec.name, spec.doc, made)


# Answers to questions about a crawl's tables: the reports, and, each in a process that can be killed, those of the dashboard's
# console. DuckDB sees the tables of this crawl and nothing else.

#: Characters of a text in a cell, and of a row as JSON, that are sent; a page may be a megabyte.
CELL, ROW = 2_000, 50_000

#: Characters of an answer: a browser shows some thousand rows.
ANSWER = 4_000_000

#: Rows of each section of a report.
SECTION = 200


class TableQuestion(msgspec.Struct, frozen=True):
    """A question: a statement, or a report."""

    directory: str
    """Of the crawl."""
    rows: int
    sql: str = ""
    report: str = ""


class TableAnswer(msgspec.Struct, frozen=True):
    """A table that is cut to the size that a browser shows."""

    title: str
    columns: list[str]
    types: list[str]
    """DuckDB's names of the columns' types."""
    rows: list[msgspec.Raw]
    """Each an array of cells; long texts are cut."""
    is_more: bool
    """There are rows behind these."""
    plot: BarPlot | None = None


def answer_tables(question: TableQuestion, caller: Caller) -> bytes:
    """A list of :class:`TableAnswer` as JSON. Raises GossamerError: it cannot be answered."""
    directory = Path(question.directory)
    with Database(directory, threads=1) as database:
        if question.report:
            if question.report not in REPORTS:
                raise UsageError(f"there is no report {question.report!r}{nearest(question.report, REPORTS)}")
            made = report_of(directory, database, question.report, SECTION)
            tables = [
                table_answer(one.title, one.columns, one.types, one.rows, SECTION, one.total > len(one.rows), one.plot)
                for one in made.sections
            ]
        else:
            found = database.ask(question.sql)
            tables = [table_answer("", found.columns, found.types, found, question.rows)]
    return msgspec.json.encode(tables)


def table_answer(
    title: str,
    columns: list[str],
    types: list[str],
    rows: Iterable[Sequence[Any]],
    most: int,
    is_more: bool = False,
    plot: BarPlot | None = None,
) -> TableAnswer:
    """At most so many rows of a table, with long cells cut; `is_more` says that others were left out before."""
    made: list[msgspec.Raw] = []
    size = 0
    for row in rows:
        text = json_line([cell[:CELL] if isinstance(cell, str) else cell for cell in row])
        size += len(text)
        if len(made) == most or size > ANSWER:
            is_more = True
            break
        made.append(msgspec.Raw(text if len(text) <= ROW else json_line([str(cell)[:CELL] for cell in row])))
    return TableAnswer(title, columns, types, made, is_more, plot)


TRAPS = ReportSpec(
    "traps", "families of URLs that were set aside as likely traps, and hosts with unusually many", (), (), True
)

#: Every report, by name, in the order in which they are told.
REPORTS = {**SPECS, TRAPS.name: TRAPS}

#: Reports whose first section lists troubles of the site.
TROUBLES = tuple(name for name, spec in REPORTS.items() if spec.is_trouble)

#: Every report at once.
ALL = "all"


def report_of(
    directory: Path, database: Database, name: str, most: int | None, sections: int | None = None
) -> MadeReport:
    """One report of :data:`REPORTS`; `most` and `sections` are as of :func:`~gossamer.query.reports.make_report`."""
    if name != TRAPS.name:
        return make_report(database, SPECS[name], most, sections)
    found = suspicions_of(directory)
    families = [
        (one.id, one.family, one.trap, one.state, one.set_aside, one.probes, one.evidence) for one in found.families
    ]
    hosts = [(one.host, one.urls, one.pages) for one in found.hosts]
    columns = ["id", "family", "trap", "state", "set_aside", "probes", "evidence"]
    made = [
        MadeSection("Likely traps", columns, families[:most], len(families), plot=BarPlot("family", "set_aside")),
        MadeSection("Hosts with unusually many URLs", ["host", "urls", "pages"], hosts[:most], len(hosts)),
    ]
    return MadeReport(TRAPS.name, TRAPS.doc, made)


def report_names(names: Sequence[str]) -> list[str]:
    """The reports that are meant, each once. Raises UsageError: there is none of that name."""
    for name in names:
        if name not in REPORTS and name != ALL:
            raise UsageError(f"there is no report {name!r}{nearest(name, [*REPORTS, ALL])}")
    return list(REPORTS) if ALL in names else list(dict.fromkeys(names))
