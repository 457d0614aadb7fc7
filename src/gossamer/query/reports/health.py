"""Reports of how the crawl went: hosts, errors, and what was slow."""

from gossamer.model.outcome import DOCUMENTS
from gossamer.query.reports.values import BarPlot, ReportSection, ReportSpec
from gossamer.query.schema import words
from gossamer.query.views import BROKEN

HOSTS = ReportSpec(
    "hosts",
    "hosts with pages, errors, bytes and the pace that they were asked at",
    (
        ReportSection(
            "Hosts",
            """
            SELECT h.host, h.pages, h.errors, p.urls, p.bytes, p.mean_ms, h.delay AS delay_s, h.delay_reason, h.robots_state, h.ip,
                   h.first_seen, h.last_seen
            FROM hosts h LEFT JOIN (
                SELECT host, count(*) AS urls, sum(bytes) AS bytes, round(avg(elapsed_ms)) AS mean_ms FROM pages GROUP BY 1
            ) p USING (host)
            ORDER BY h.pages DESC, h.errors DESC, h.host
            """,
            BarPlot("host", "pages"),
        ),
        ReportSection(
            "Registered domains",
            """
            SELECT domain, count(DISTINCT host) AS hosts, count(*) AS urls, sum(bytes) AS bytes FROM pages
            GROUP BY 1 ORDER BY 3 DESC, 1
            """,
            BarPlot("domain", "urls"),
        ),
        ReportSection(
            "Depths",
            "SELECT depth, count(*) AS urls, sum(new) AS urls_found FROM pages GROUP BY 1 ORDER BY 1",
            BarPlot("depth", "urls"),
        ),
    ),
)

ERRORS = ReportSpec(
    "errors",
    "URLs that brought an error, by what happened and where",
    (
        ReportSection(
            "Errors",
            """
            SELECT url, outcome, status, error, attempt, discovered_from, fetched_at FROM failed ORDER BY host, url
            """,
        ),
        ReportSection(
            "What happened",
            """
            SELECT outcome, status, count(*) AS urls, count(DISTINCT host) AS hosts, any_value(error) AS for_example
            FROM failed GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2
            """,
            BarPlot("outcome", "urls"),
        ),
        ReportSection(
            "Where",
            "SELECT host, count(*) AS urls, mode(outcome) AS most_often FROM failed GROUP BY 1 ORDER BY 2 DESC, 1",
            BarPlot("host", "urls"),
        ),
    ),
    parts=(("failed", f"SELECT * FROM pages WHERE outcome IN ({words(BROKEN)})"),),
    is_trouble=True,
)

SLOW = ReportSpec(
    "slow",
    "pages and hosts that took the longest to answer",
    (
        ReportSection(
            "Slowest URLs",
            "SELECT url, elapsed_ms, bytes, status, outcome, fetched_at FROM answered ORDER BY elapsed_ms DESC, url",
        ),
        ReportSection(
            "Slowest hosts",
            """
            SELECT host, count(*) AS urls, round(median(elapsed_ms)) AS median_ms, round(quantile_cont(elapsed_ms, 0.95)) AS p95_ms,
                   round(max(elapsed_ms)) AS longest_ms
            FROM answered GROUP BY 1 ORDER BY median_ms DESC, 1
            """,
            BarPlot("host", "median_ms"),
        ),
        ReportSection(
            "Times",
            """
            SELECT CASE WHEN elapsed_ms < 100 THEN 'below 0.1 s' WHEN elapsed_ms < 300 THEN '0.1 to 0.3 s'
                        WHEN elapsed_ms < 1000 THEN '0.3 to 1 s' WHEN elapsed_ms < 3000 THEN '1 to 3 s'
                        WHEN elapsed_ms < 10000 THEN '3 to 10 s' ELSE '10 s and more' END AS "time", count(*) AS urls
            FROM answered GROUP BY 1 ORDER BY min(elapsed_ms)
            """,
            BarPlot("time", "urls"),
        ),
    ),
    parts=(
        (
            "answered",
            f"SELECT url, host, elapsed_ms, bytes, status, outcome, fetched_at FROM pages WHERE outcome IN ({words(DOCUMENTS)})",
        ),
    ),
)
