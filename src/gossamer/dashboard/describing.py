"""The description of the JSON interface, as OpenAPI 3.1 has it: made from the values that are sent, so that it cannot differ."""

import functools
from typing import Any

import msgspec

from gossamer._version import __version__
from gossamer.analysis.hosts import HostPicture
from gossamer.analysis.replaying import REPLAY, ReplayAsked
from gossamer.analysis.why import Story
from gossamer.crawls.control.instances import UnitInstances
from gossamer.crawls.control.picture import GraphPicture
from gossamer.crawls.control.standing import CrawlStanding
from gossamer.crawls.trap_review import Suspicions
from gossamer.dashboard.crawls import ListedHosts
from gossamer.dashboard.exporting import Exports, ExportWish, NamedExport
from gossamer.dashboard.jobs import JobDone, LogTail, NewCrawl, Restore, StartedCrawl, StartForm
from gossamer.dashboard.of_crawl import ORDERS, Offered, Rewired, Rewiring
from gossamer.dashboard.questions import KeptQuestions, PageName, ReportNames, ShownPage
from gossamer.dashboard.sites import KeptSites, Layout, ListedSites
from gossamer.query.archived import ArchivedView
from gossamer.query.contract import Answerable, TripleAnswer
from gossamer.query.host_list import COLUMNS, MOST
from gossamer.storage.tables.row_tables import SAMPLES

_REF = "#/components/schemas/{name}"


@functools.cache
def openapi() -> dict[str, Any]:
    kinds = (
        CrawlStanding,
        Story,
        ArchivedView,
        ListedHosts,
        HostPicture,
        GraphPicture,
        Layout,
        Answerable,
        TripleAnswer,
        UnitInstances,
        Suspicions,
    )
    of_changes = (
        Offered,
        Rewiring,
        Rewired,
        ReportNames,
        KeptQuestions,
        LogTail,
        Restore,
        JobDone,
        ListedSites,
        KeptSites,
        StartForm,
        NewCrawl,
        StartedCrawl,
        Exports,
        ExportWish,
        NamedExport,
        PageName,
        ShownPage,
    )
    schemas, parts = msgspec.json.schema_components([*kinds, *of_changes, *ORDERS.values()], ref_template=_REF)
    standing, story, archived, hosts, host, graph, layout, answerable, triples, instances, traps = schemas[: len(kinds)]
    names, rewiring, rewired, reports, questions, log, restore, done, sites, kept_sites, *more = schemas[len(kinds) :]
    start_form, new_crawl, started, exports, wish, named, page_name, page, *orders = more
    crawl = {"name": "key", "in": "path", "required": True, "schema": {"type": "string"}}
    agent = _query("agent", "Ask this agent alone, of several that are at work.")
    paths: dict[str, Any] = {
        "/api/session": _get("Say what the asker may do.", {"type": "object"}),
        "/api/sites": {
            **_get("List the sites of this user, without their keys.", sites),
            **_post("Keep these sites in the place of all others.", kept_sites, sites),
        },
        "/api/sites/open": {
            "get": {
                "summary": "Lead to the dashboard of a site, with its key. This needs the full token.",
                "parameters": [_query("name", "The name of the site.")],
                "responses": {"303": {"description": "the address"}},
            }
        },
        "/api/sites/crawls": _get(
            "Say how the crawls of dashboards elsewhere stand. This needs the full token.",
            {"type": "array", "items": {"type": "object"}},
        ),
        "/api/options": _get("Give the form of a new crawl: folders and options.", start_form),
        "/api/crawls": {
            **_get("List the crawls, and how each stands.", {"type": "array", "items": {"type": "object"}}),
            **_post("Start a crawl.", new_crawl, started),
        },
        "/api/crawls/{key}": _get(
            "Say how a crawl stands, as `gossamer status --json` does.",
            standing,
            crawl,
            _query("units", "Also say what every unit has counted, if it is 1."),
            agent,
        ),
        "/api/crawls/{key}/samples": _get(
            "Give the samples of the last hours by column, as the table `samples` has them.",
            {"type": "object", "properties": {one.name: {"type": "array"} for one in SAMPLES.spec.columns}},
            crawl,
            _query("hours", "Go back this many hours.", "number"),
        ),
        "/api/crawls/{key}/hosts": _get(
            "Give some hosts of the table `hosts`, as of ten seconds ago at most, or say that such a list is being made.",
            hosts,
            crawl,
            _query("search", "Give hosts whose names hold this."),
            _query("sort", f"Sort by {', '.join(COLUMNS)}."),
            _query("descending", "Give the greatest first, if it is 1."),
            _query("offset", "Leave out this many.", "integer"),
            _query("limit", f"Give this many, {MOST} at most.", "integer"),
            _query("live", "Also say how these hosts stand at this moment, if it is 1 and the crawl runs."),
        ),
        "/api/crawls/{key}/host": _get(
            "Say what is known of a host: state, delay, robots.txt with its versions, failed URLs, the head of its queue.",
            host,
            crawl,
            _query("name", "The name of the host."),
        ),
        "/api/crawls/{key}/graph": _get(
            "Give the graph: units with every setting, its value, bounds and text, and connectors with their ends.",
            graph,
            crawl,
            agent,
        ),
        "/api/crawls/{key}/unit": _get(
            "Give every instance of a unit, in all agents, with what it has counted and its settings.",
            instances,
            crawl,
            _query("name", "The name of the unit."),
        ),
        "/api/crawls/{key}/traps": _get("List what was set aside as parts of traps, and why.", traps, crawl),
        "/api/crawls/{key}/layout": {
            **_get("Give the places of units in the picture of the graph, as this user left them.", layout, crawl),
            **_post("Keep them.", layout, layout, crawl),
        },
        "/api/catalog": _get("Give the names that a change of a graph may use.", names),
        "/api/pages": _get(
            "Name the pages that subjects add, those of installed packages among them.",
            {"type": "array", "items": page_name},
        ),
        "/api/crawls/{key}/pages/{name}": _get(
            "Give the page of this title, as its subject makes it of a crawl.", page, crawl, {**crawl, "name": "name"}
        ),
        "/api/crawls/{key}/rewire": _post(
            "Change the graph of a running crawl by names of the catalog, or say what that would change.",
            rewiring,
            rewired,
            crawl,
        ),
        "/api/reports": {
            **_get("Name the reports that ship, and the questions that this user has saved.", reports),
            **_post("Save these questions in the place of all others.", questions, reports),
        },
        "/api/crawls/{key}/tables": _get(
            "Ask the tables of a crawl: a list of tables with columns, types and rows.",
            {"type": "array", "items": {"type": "object"}},
            crawl,
            _query("sql", "A question in DuckDB's SQL."),
            _query("report", "The name of a report, in its place."),
        ),
        "/api/crawls/{key}/answerable": _get(
            "Say whether a crawl keeps triples and an index; a text that is not empty says why it does not.",
            answerable,
            crawl,
        ),
        "/api/crawls/{key}/sparql": _get(
            "Ask the triples of a crawl one question: rows, or a graph as Turtle.",
            triples,
            crawl,
            _query("query", "A question in SPARQL."),
        ),
        "/api/crawls/{key}/search": _get(
            "Search the documents of a crawl, as `gossamer search --json` does; filters can be given several times.",
            {"type": "object"},
            crawl,
            _query("words", "Words, phrases in quotes, AND, OR, NOT; none for every document."),
            _query("host", "Only on this host or below it."),
            _query("language", "Only in this language, as `en`."),
            _query("type", "Only with a thing of this type, as `schema:Product`."),
            _query("start", "Leave out this many.", "integer"),
            _query("limit", "Give so many.", "integer"),
        ),
        "/api/crawls/{key}/log": _get("Give the last visits of the log, and what a resumed crawl said.", log, crawl),
        "/api/crawls/{key}/resume": _post("Let a crawl at rest go on.", {"type": "object"}, done, crawl),
        "/api/crawls/{key}/restore": _post("Let a crawl at rest go back to a checkpoint.", restore, done, crawl),
        "/api/crawls/{key}/exports": {
            **_get("List the exports of a crawl, and the forms in which it can be exported.", exports, crawl),
            **_post("Have an export made.", wish, exports, crawl),
        },
        "/api/crawls/{key}/exports/{name}": {
            "get": {
                "summary": "Download an export.",
                "parameters": [crawl, {**crawl, "name": "name"}],
                "responses": {"200": {"description": "the file", "content": {"application/octet-stream": {}}}},
            }
        },
        "/api/crawls/{key}/remove-export": _post("Remove an export, or give it up.", named, exports, crawl),
        "/api/crawls/{key}/story": _get(
            "Tell the story of a URL, as `gossamer why --json` does.", story, crawl, _query("url", "The URL.")
        ),
        "/api/crawls/{key}/document": _get(
            "Give the archived document of a URL as text, with header fields and record.",
            archived,
            crawl,
            _query("url", "The URL."),
            _query("at", "Give the version that stood at this time, as 20260301 (UTC)."),
        ),
        "/api/crawls/{key}/replay": {
            "get": {
                "summary": "Lead to an address that shows the archived document as it looked, for an hour, without a key.",
                "parameters": [crawl, _query("url", "The URL."), _query("at", "Show the version of this time.")],
                "responses": {"303": {"description": "the address"}},
            }
        },
        REPLAY: {
            "get": {
                "summary": "Show an archived document in a sandbox, by an address that the request above gave out.",
                "security": [],
                "parameters": [_query(name, "As given out.") for name in (*ReplayAsked.__struct_fields__, "sign")],
                "responses": {
                    "200": {"description": "the document"},
                    "403": {"description": "the address is not valid"},
                },
            }
        },
        "/api/crawls/{key}/events": {
            "get": {
                "summary": "Send how a crawl stands whenever it has changed, as server-sent events.",
                "parameters": [crawl],
                "responses": {"200": {"description": "events", "content": {"text/event-stream": {}}}},
            }
        },
        "/metrics": {
            "get": {
                "summary": "Give the figures of all crawls for Prometheus.",
                "responses": {"200": {"description": "figures", "content": {"text/plain": {}}}},
            }
        },
    }
    for (word, kind), schema in zip(ORDERS.items(), orders, strict=True):
        paths[f"/api/crawls/{{key}}/{word}"] = _post((kind.__doc__ or word).partition("\n")[0], schema, done, crawl)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Gossamer dashboard", "version": __version__},
        "paths": paths,
        "components": {"schemas": parts, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
        "security": [{"key": []}],
    }


def _get(summary: str, schema: dict[str, Any], *parameters: dict[str, Any]) -> dict[str, Any]:
    return {"get": {"summary": summary, "parameters": list(parameters), "responses": {"200": _answer(schema)}}}


def _post(summary: str, body: dict[str, Any], schema: dict[str, Any], *parameters: dict[str, Any]) -> dict[str, Any]:
    return {
        "post": {
            "summary": summary,
            "parameters": list(parameters),
            "requestBody": {"content": {"application/json": {"schema": body}}},
            "responses": {"200": _answer(schema)},
        }
    }


def _answer(schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": "the answer", "content": {"application/json": {"schema": schema}}}


def _query(name: str, text: str, kind: str = "string") -> dict[str, Any]:
    return {"name": name, "in": "query", "description": text, "schema": {"type": kind}}
