"""Reports of links: which there are, which are broken, and which redirect."""

from gossamer.query.reports.values import BarPlot, ReportSection, ReportSpec
from gossamer.query.schema import mark_of

#: URLs that the report of links lists at most.
MOST_LINKED = 1_000

LINKS = ReportSpec(
    "links",
    "the most linked pages and hosts, and the kinds of links",
    (
        ReportSection(
            "Most linked URLs",
            """
            SELECT l.target, l.links, l.from_other_hosts, p.status, p.outcome, p.title
            FROM most_linked l LEFT JOIN pages p ON p.url = l.target ORDER BY l.links DESC, l.target
            """,
        ),
        ReportSection(
            "Hosts that links lead to",
            """
            SELECT target_host AS host, count(*) AS links, count(*) FILTER (source_host <> target_host) AS from_other_hosts,
                   count(*) FILTER (nofollow) AS nofollow
            FROM links GROUP BY 1 ORDER BY 2 DESC, 1
            """,
            BarPlot("host", "links"),
        ),
        ReportSection(
            "Kinds of links",
            """
            SELECT relation, count(*) AS links, count(*) FILTER (nofollow) AS nofollow,
                   count(*) FILTER (source_host = target_host) AS within_the_host
            FROM links GROUP BY 1 ORDER BY 2 DESC, 1
            """,
            BarPlot("relation", "links"),
        ),
    ),
    parts=(
        # By hashes first: the texts of ten million URLs do not fit into the memory that a question may take.
        (
            "much_linked",
            f"SELECT {mark_of('target')} AS h FROM links GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT {MOST_LINKED}",
        ),
        (
            "most_linked",
            f"""
            SELECT target, count(*) AS links, count(*) FILTER (source_host <> target_host) AS from_other_hosts
            FROM links WHERE {mark_of("target")} IN (SELECT h FROM much_linked) GROUP BY 1
            """,
        ),
    ),
)

BROKEN = ReportSpec(
    "broken",
    "links that lead to nothing, by way of redirects too, and where they stand",
    (
        ReportSection(
            "Broken links",
            """
            SELECT source, anchor, target, status, outcome, "end" AS redirected_to, error
            FROM broken_links ORDER BY source, target, anchor
            """,
        ),
        ReportSection(
            "Broken targets",
            """
            SELECT target, any_value(status) AS status, any_value(outcome) AS outcome,
                   count(DISTINCT source) AS pages, count(*) AS links, min(source) AS for_example_on
            FROM broken_links GROUP BY 1 ORDER BY pages DESC, 1
            """,
        ),
        ReportSection(
            "Hosts with broken links",
            """
            SELECT source_host AS host, count(*) AS links, count(DISTINCT target) AS targets
            FROM broken_links GROUP BY 1 ORDER BY 2 DESC, 1
            """,
            BarPlot("host", "links"),
        ),
        ReportSection(
            "Why they are broken",
            """
            SELECT outcome, status, count(*) AS links, count(DISTINCT target) AS targets FROM broken_links
            GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2
            """,
            BarPlot("outcome", "links"),
        ),
    ),
    is_trouble=True,
)

REDIRECTS = ReportSpec(
    "redirects",
    "URLs that redirect, where they end, and how many links should name the end instead",
    (
        ReportSection(
            "Redirects",
            """
            SELECT r.url, r.status, r.hops, r."end", r.end_outcome, r.is_loop, coalesce(l.links, 0) AS links, l.for_example_on
            FROM redirect_ends r LEFT JOIN (
                SELECT target, count(*) AS links, min(source) AS for_example_on FROM links
                WHERE relation NOT LIKE '%redirect%' AND target IN (SELECT url FROM redirect_ends) GROUP BY 1
            ) l ON l.target = r.url
            ORDER BY r.is_loop DESC, links DESC, r.hops DESC, r.url
            """,
        ),
        ReportSection(
            "Chains by length",
            "SELECT hops, count(*) AS urls, count(*) FILTER (is_loop) AS loops FROM redirect_ends GROUP BY 1 ORDER BY 1",
            BarPlot("hops", "urls"),
        ),
        ReportSection(
            "Status codes",
            "SELECT status, count(*) AS urls FROM redirect_ends GROUP BY 1 ORDER BY 2 DESC",
            BarPlot("status", "urls"),
        ),
    ),
    is_trouble=True,
)
