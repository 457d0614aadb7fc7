"""The page for site owners: who crawls, how politely, how to opt out. Made of a crawl's own settings, so that it is true.

Place in the flow: `gossamer about` asks here. Put the page where the crawl's contact leads.
"""

from html import escape
from typing import Any

from gossamer.engine.graph import Graph
from gossamer.engine.sheet import show_bytes
from gossamer.fetcher.http_options import HttpSheet
from gossamer.frontier.politeness.rules import PolitenessSheet
from gossamer.frontier.robots.provider import RobotsSheet

#: Letters of the user agent and the contact that are shown: no name is longer.
_LONGEST = 500


def about_page(graph: Graph, contact: str) -> str:
    """The page as HTML.

    Args:
        graph: the crawl.
        contact: URL or mail address for site owners; empty where none is known.
    """
    http, politeness, robots = (_sheet(graph, kind) for kind in (HttpSheet, PolitenessSheet, RobotsSheet))
    agent = (http.user_agent if http is not None else "")[:_LONGEST]
    token = robots.agent if robots is not None else agent.partition("/")[0]
    rows = [("Name in robots.txt", token), ("User-Agent", agent), ("Contact", contact[:_LONGEST] or "not given")]
    rows += _pace(politeness) if politeness is not None else []
    if http is not None:
        rows.append(("Largest body", show_bytes(http.max_body)))
        rows.append(("Cookies", "kept while the crawl runs" if http.cookies != "off" else "not kept"))
    table = "\n".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
    return _PAGE.format(
        token=escape(token),
        table=table,
        contact=_contact(contact[:_LONGEST]),
        obeys=_OBEYS if robots is not None else _DOES_NOT,
    )


def _sheet(graph: Graph, kind: type) -> Any:
    return next((node.sheet for node in graph.providers.values() if isinstance(node.sheet, kind)), None)


def _pace(sheet: PolitenessSheet) -> list[tuple[str, str]]:
    delay = (
        f"{sheet.factor:g} times the time that the server takes, between {_seconds(sheet.floor)} and {_seconds(sheet.cap)}"
        if sheet.delay == "auto"
        else _seconds(sheet.delay)
    )
    rows = [
        ("Wait between two requests to a host", delay),
        ("Requests to a host at once", str(sheet.per_host)),
        ("Requests to a registered domain at once", str(max(sheet.domain_live, sheet.per_host))),
    ]
    rows += [(f"Wait for {host}", one if isinstance(one, str) else _seconds(one)) for host, one in sheet.delays.items()]
    rows += [(f"Requests to {host} at once", str(count)) for host, count in sheet.lives.items()]
    if sheet.rate is not None:
        rows.append(("Pages a second in all", f"{sheet.rate:g}"))
    return rows


def _seconds(seconds: float) -> str:
    return f"{seconds:g} s"


def _contact(contact: str) -> str:
    if not contact:
        return "the person who runs it"
    is_page = contact.startswith(("http://", "https://"))
    link = contact if is_page or contact.startswith("mailto:") else f"mailto:{contact}"
    return f'<a href="{escape(link)}">{escape(contact.removeprefix("mailto:"))}</a>'


_OBEYS = (
    "<p>The crawler reads <code>robots.txt</code> (RFC 9309) before anything else of a site, and obeys it, "
    "<code>Crawl-delay</code> too. When a server answers 429 or 503, or slows down, "
    "the crawler waits longer.</p>"
)

_DOES_NOT = (
    "<p>The hosts of this crawl belong to the person who runs it, so it does not ask for <code>robots.txt</code>.</p>"
)

_PAGE = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>About the crawler {token}</title>
<style>body{{font:16px/1.5 sans-serif;max-width:46em;margin:2em auto;padding:0 1em}}th{{text-align:left;padding-right:1em}}</style>
<h1>About the crawler {token}</h1>
<p>If you found <code>{token}</code> in the logs of your server, this page is for you. Questions and complaints reach {contact}.</p>
<table>
{table}
</table>
<h2>How it behaves</h2>
{obeys}
<h2>How to opt out</h2>
<p>Put this into the <code>robots.txt</code> of your site.
It holds from the next time that the crawler reads the file, within a day:</p>
<pre>User-agent: {token}
Disallow: /</pre>
<p>To slow it down instead: <code>Crawl-delay: 10</code> under the same <code>User-agent</code> line.
To keep single pages out of copies:
<code>&lt;meta name="robots" content="noarchive"&gt;</code>. If it is urgent, write to {contact}.</p>
</html>
"""
