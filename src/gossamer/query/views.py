"""Views that join tables, and words that SQL lacks: what questions about a crawl need again and again.

Place in the flow: :class:`gossamer.query.database.Database` makes them beside the tables, for `gossamer query` and for reports.
"""

from gossamer.model.outcome import ERRORS, Outcome
from gossamer.query.schema import host_of, words

#: What a link leads to when it is broken: a dead link is an answer of the server, everything else a failure.
BROKEN = ERRORS | {Outcome.CLIENT_ERROR}

#: Redirects that are followed to say where a link ends: more than a crawl's own limit.
MOST_HOPS = 20

#: Macros: name and arguments -> what it stands for.
MACROS = {"host(url)": host_of("url")}

#: View -> what it shows, for people, and its SQL. Later ones may name earlier ones.
VIEWS: dict[str, tuple[str, str]] = {
    "page_links": (
        "Links with what is known of both ends; `target_outcome` is NULL where the target was not fetched.",
        """
        SELECT l.source, l.target, l.relation, l.anchor, l.nofollow, l.source_host, l.target_host,
               l.source_host = l.target_host AS is_internal,
               s.title AS source_title, s.depth AS source_depth, s.domain AS source_domain,
               t.outcome AS target_outcome, t.status AS target_status, t.error AS target_error, t.title AS target_title,
               t.domain AS target_domain, coalesce(t.media_type, t.mime) AS target_mime, l.visit
        FROM links l LEFT JOIN pages s ON s.url = l.source LEFT JOIN pages t ON t.url = l.target
        """,
    ),
    "page_items": (
        "Items with the page that they were found on.",
        """
        SELECT i.kind, i.url, i.data, p.title, p.host, p.domain, p.language, p.depth, p.fetched_at, i.visit
        FROM items i LEFT JOIN pages p ON p.url = i.url
        """,
    ),
    "page_triples": (
        "Triples with the page that says them.",
        """
        SELECT t.graph, t.subject, t.predicate, t.object, t.datatype, t.language, p.title, p.host, p.domain,
               p.language AS page_language, p.depth, p.fetched_at, t.visit
        FROM triples t LEFT JOIN pages p ON p.url = t.graph
        """,
    ),
    "host_links": (
        "How many links lead from a host to a host, and from how many pages.",
        """
        SELECT source_host, target_host, count(*) AS links, count(DISTINCT hash(source)) AS pages
        FROM links GROUP BY ALL
        """,
    ),
    "redirect_ends": (
        "Each URL that redirects, where its chain ends and how; `is_loop` where it comes back.",
        f"""
        WITH RECURSIVE steps AS (
            SELECT l.source AS url, l.target AS target FROM links l
            WHERE l.relation LIKE '%redirect%' AND l.source IN (SELECT url FROM pages WHERE outcome = 'redirect')
        ), chain(url, target, hops) AS (
            SELECT url, target, 1 FROM steps
            UNION ALL
            SELECT c.url, s.target, c.hops + 1 FROM chain c JOIN steps s ON s.url = c.target
            WHERE c.hops < {MOST_HOPS} AND c.target <> c.url
        )
        SELECT c.url, c.target AS "end", c.hops, c.hops >= {MOST_HOPS} OR c.target = c.url AS is_loop,
               p.outcome AS end_outcome, p.status AS end_status
        FROM (SELECT url, arg_max(target, hops) AS target, max(hops) AS hops FROM chain GROUP BY url) c
        LEFT JOIN pages p ON p.url = c.target
        """,
    ),
    "broken_links": (
        "Links that lead to nothing, by way of redirects too: dead links, names without an address, servers that fail.",
        f"""
        SELECT l.source, l.target, l.relation, l.anchor, b.outcome, b.status, b.error, b."end", l.source_host, l.target_host,
               l.visit
        FROM links l JOIN (
            SELECT url AS target, outcome, status, error, NULL AS "end" FROM pages WHERE outcome IN ({words(BROKEN)})
            UNION ALL
            SELECT r.url, CASE WHEN r.is_loop THEN 'redirect' ELSE p.outcome END,
                   coalesce(p.status, 0), CASE WHEN r.is_loop THEN 'redirects in a loop' ELSE p.error END, r."end"
            FROM redirect_ends r LEFT JOIN pages p ON p.url = r."end"
            WHERE r.is_loop OR p.outcome IN ({words(BROKEN)})
        ) b ON b.target = l.target
        WHERE l.relation NOT LIKE '%redirect%'
        """,
    ),
}
