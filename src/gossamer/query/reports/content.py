"""Reports of what pages hold: the same again, languages, structured data."""

from gossamer.query.reports.values import BarPlot, ReportSection, ReportSpec
from gossamer.query.schema import IS_PAGE

#: The predicate by which structured data says what a thing is.
_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"

DUPLICATES = ReportSpec(
    "duplicates",
    "pages with the same bytes or nearly the same text as another one",
    (
        ReportSection(
            "Documents that stand under several URLs",
            """
            SELECT original, kind, count(*) AS copies, sum(bytes) AS bytes, min(url) AS for_example
            FROM copies GROUP BY ALL ORDER BY copies DESC, original
            """,
        ),
        ReportSection(
            "Hosts with copies",
            "SELECT host, count(*) AS copies, sum(bytes) AS bytes FROM copies GROUP BY 1 ORDER BY 2 DESC, 1",
            BarPlot("host", "copies"),
        ),
    ),
    parts=(
        (
            "copies",
            """
            SELECT url, host, bytes, coalesce(duplicate_of, near_duplicate_of) AS original,
                   CASE WHEN duplicate_of IS NULL THEN 'near' ELSE 'exact' END AS kind
            FROM pages WHERE duplicate_of IS NOT NULL OR near_duplicate_of IS NOT NULL
            """,
        ),
    ),
    is_trouble=True,
)

LANGUAGES = ReportSpec(
    "languages",
    "languages and character encodings of pages",
    (
        ReportSection(
            "Languages",
            f"""
            SELECT coalesce(language, 'unknown') AS language, count(*) AS pages, count(DISTINCT host) AS hosts, sum(bytes) AS bytes,
                   min(url) AS for_example
            FROM pages WHERE {IS_PAGE} GROUP BY 1 ORDER BY 2 DESC, 1
            """,
            BarPlot("language", "pages"),
        ),
        ReportSection(
            "Character encodings",
            f"""
            SELECT coalesce(charset, 'unknown') AS charset, count(*) AS pages, count(DISTINCT host) AS hosts,
                   min(url) AS for_example
            FROM pages WHERE {IS_PAGE} GROUP BY 1 ORDER BY 2 DESC, 1
            """,
            BarPlot("charset", "pages"),
        ),
    ),
)

STRUCTURED_DATA = ReportSpec(
    "structured-data",
    "types and properties that pages name in RDFa, JSON-LD and microdata (a crawl with --rdf)",
    (
        ReportSection(
            "Types",
            f"""
            SELECT object AS type, count(*) AS things, count(DISTINCT graph) AS pages, count(DISTINCT host(graph)) AS hosts,
                   min(graph) AS for_example
            FROM triples WHERE predicate = '{_TYPE}' GROUP BY 1 ORDER BY pages DESC, 1
            """,
            BarPlot("type", "pages"),
        ),
        ReportSection(
            "Properties",
            f"""
            SELECT predicate AS property, count(*) AS triples, count(DISTINCT graph) AS pages, count(DISTINCT host(graph)) AS hosts
            FROM triples WHERE predicate <> '{_TYPE}' GROUP BY 1 ORDER BY pages DESC, 1
            """,
            BarPlot("property", "pages"),
        ),
        ReportSection(
            "Hosts",
            """
            SELECT host(graph) AS host, count(DISTINCT graph) AS pages, count(*) AS triples
            FROM triples GROUP BY 1 ORDER BY 2 DESC, 1
            """,
            BarPlot("host", "pages"),
        ),
    ),
)
