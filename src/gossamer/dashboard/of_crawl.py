"""Answers about one crawl: everything at the addresses below `/api/crawls/KEY`.

Place in the flow: :mod:`app` has the other addresses. Work that waits is done in threads (:mod:`crawls`); orders and changes go to
the crawl (:mod:`orders`); answers to questions, pages that subjects add, and exports are made by processes of their own
(:mod:`questions`, :mod:`exporting`).
"""

import contextlib
import functools
import inspect
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse

from gossamer.analysis.hosts import HostPicture, picture_of
from gossamer.analysis.table_answers import TableAnswer
from gossamer.analysis.why import Story, story_of
from gossamer.crawls.control.host_facts import HostNow
from gossamer.crawls.control.instances import UnitInstances
from gossamer.crawls.control.picture import GraphPicture
from gossamer.crawls.control.standing import CrawlStanding
from gossamer.crawls.trap_review import Suspicions, suspicions_of
from gossamer.dashboard.crawls import Crawls, ListedHosts, ShownCrawl, Streams
from gossamer.dashboard.exporting import Exporter, Exports, ExportWish, NamedExport
from gossamer.dashboard.jobs import JobDone, LogTail, Restore, log_tail, restore, resume
from gossamer.dashboard.orders import ORDERS, Rewired, Rewiring, carry_out, graph_of, instances_of, read_order, rewire
from gossamer.dashboard.questions import Questions, Replays, ShownPage, answerable
from gossamer.dashboard.routes import Addresses, CrawlAnswer, number_in
from gossamer.dashboard.sites import Layout, layouts_folder, read_layout, write_layout
from gossamer.query.archived import ArchivedView, view_archived
from gossamer.query.contract import Answerable, TripleAnswer
from gossamer.query.host_list import COLUMNS, MOST
from gossamer.storage.tables.row_tables import SAMPLES, SampleRow
from gossamer.values.errors import GossamerError, UsageError

#: Points of a plot at most: more than a screen has columns for.
POINTS = 1_000

#: Hours of samples that are sent unless asked otherwise, and at most.
HOURS, MOST_HOURS = 1.0, 24.0 * 365


def told_by(work: Callable[..., Any], *asked: str, needs: str = "") -> CrawlAnswer:
    """Answers with what `work` says of the directory of the crawl, and of these words of the query; `needs` is what the first one
    names, where it must not be empty."""

    async def answer(request: Request, shown: ShownCrawl) -> object:
        words = [request.query_params.get(name, "") for name in asked]
        if needs and not words[0]:
            raise UsageError(f"say which {needs}: ?{asked[0]}=...")
        if inspect.iscoroutinefunction(work):
            return await work(shown.directory, *words)
        return await shown.run(work, shown.directory, *words)

    return answer


def done_by(work: Callable[[Path, bytes], Any]) -> CrawlAnswer:
    """Has `work` do what the body says to the directory of the crawl."""

    async def answer(request: Request, shown: ShownCrawl) -> object:
        return await shown.run(work, shown.directory, await request.body())

    return answer


async def _standing(request: Request, shown: ShownCrawl) -> CrawlStanding:
    asked = request.query_params
    return await shown.standing(units=asked.get("units") == "1", agent=asked.get("agent", ""))


async def _samples(request: Request, shown: ShownCrawl) -> dict[str, list[object]]:
    """The samples by column: a plot wants them so, and the names are sent once."""
    hours = number_in(request.query_params, "hours", HOURS, MOST_HOURS)
    since = (datetime.now(UTC) - timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    rows = await shown.samples(since)
    step = max(1, -(-len(rows) // POINTS))
    rows = rows[::-step][::-1]  # the last row stays
    return {name: [getattr(row, name) for row in rows] for name in SampleRow.__struct_fields__}


async def _hosts(crawls: Crawls, request: Request, shown: ShownCrawl) -> ListedHosts:
    asked = request.query_params
    listed, is_being_made = await crawls.hosts_of(shown)
    page = await shown.run(
        lambda: listed.page(
            search=asked.get("search", "")[:253],
            sort=asked.get("sort", "host"),
            descending=asked.get("descending") == "1",
            offset=int(number_in(asked, "offset", 0, 1e9, least=0)),
            limit=int(number_in(asked, "limit", 100, MOST)),
        )
    )
    now: dict[str, HostNow] = {}
    if asked.get("live") == "1" and page.rows:
        # A crawl that does not answer is told of elsewhere; the list is worth showing without it.
        with contextlib.suppress(GossamerError):
            now = await shown.hosts_now([row["host"] for row in page.rows])
    return ListedHosts(page.made_at, page.total, page.rows, page.left_out, is_being_made, now)


async def _layout(request: Request, shown: ShownCrawl) -> Layout:
    return await shown.run(read_layout, layouts_folder(), shown.key)


async def _keep_layout(request: Request, shown: ShownCrawl) -> Layout:
    return await shown.run(write_layout, layouts_folder(), shown.key, await request.body())


async def _do_order(request: Request, shown: ShownCrawl) -> JobDone:
    order = read_order(request.path_params["order"], await request.body())
    return JobDone(await shown.run(carry_out, shown.directory, order))


def add_of_crawl(at: Addresses, questions: Questions, exporter: Exporter, streams: Streams, replays: Replays) -> None:
    """Add the addresses below that of each crawl."""

    async def events(request: Request, shown: ShownCrawl) -> Response:
        if streams.is_full:
            raise HTTPException(503, "too many browsers watch already")
        return StreamingResponse(streams.of(shown), media_type="text/event-stream")

    async def download(request: Request, shown: ShownCrawl) -> Response:
        path = await shown.run(exporter.file, shown.directory, request.path_params["name"])
        # Never shown by a browser, whatever a web site wrote into it.
        return FileResponse(path, media_type="application/octet-stream", filename=path.name)

    one, agent = at.of_one, "Ask this agent alone, of several that are at work."
    one(
        "",
        _standing,
        "Say how a crawl stands, as `gossamer status --json` does.",
        CrawlStanding,
        units="Also say what every unit has counted, if it is 1.",
        agent=agent,
    )
    one(
        "/samples",
        _samples,
        "Give the samples of the last hours by column, as the table `samples` has them.",
        {"type": "object", "properties": {one.name: {"type": "array"} for one in SAMPLES.spec.columns}},
        hours="Go back this many hours.",
    )
    one(
        "/hosts",
        functools.partial(_hosts, at.crawls),
        "Give some hosts of the table `hosts`, as of ten seconds ago at most, or say that such a list is being made.",
        ListedHosts,
        search="Give hosts whose names hold this.",
        sort=f"Sort by {', '.join(COLUMNS)}.",
        descending="Give the greatest first, if it is 1.",
        offset="Leave out this many.",
        limit=f"Give this many, {MOST} at most.",
        live="Also say how these hosts stand at this moment, if it is 1 and the crawl runs.",
    )
    one(
        "/host",
        told_by(picture_of, "name", needs="host"),
        "Say what is known of a host: state, delay, robots.txt with its versions, failed URLs, the head of its queue.",
        HostPicture,
        name="The name of the host.",
    )
    one(
        "/graph",
        told_by(graph_of, "agent"),
        "Give the graph: units with every setting, its value, bounds and text, and connectors with their ends.",
        GraphPicture,
        agent=agent,
    )
    one(
        "/unit",
        told_by(instances_of, "name", needs="unit"),
        "Give every instance of a unit, in all agents, with what it has counted and its settings.",
        UnitInstances,
        name="The name of the unit.",
    )
    one("/traps", told_by(suspicions_of), "List what was set aside as parts of traps, and why.", Suspicions)
    places = "Give the places of units in the picture of the graph, as this user left them."
    one("/layout", _layout, places, Layout)
    one("/layout", _keep_layout, "Keep them.", Layout, takes=Layout)
    one(
        "/story",
        told_by(story_of, "url", needs="URL"),
        "Tell the story of a URL, as `gossamer why --json` does.",
        Story,
        url="The URL.",
    )
    one(
        "/document",
        told_by(view_archived, "url", "at", needs="URL"),
        "Give the archived document of a URL as text, with header fields and record.",
        ArchivedView,
        url="The URL.",
        at="Give the version that stood at this time, as 20260301 (UTC).",
    )
    one(
        "/replay",
        replays.enter,
        "Lead to an address that shows the archived document as it looked, for an hour, without a key.",
        answers={"303": {"description": "the address"}},
        url="The URL.",
        at="Show the version of this time.",
    )
    one(
        "/tables",
        told_by(questions.tables, "sql", "report"),
        "Ask the tables of a crawl: a list of tables with columns, types and rows.",
        list[TableAnswer],
        sql="A question in DuckDB's SQL.",
        report="The name of a report, in its place.",
    )
    one(
        "/answerable",
        told_by(answerable),
        "Say whether a crawl keeps triples and an index; a text that is not empty says why it does not.",
        Answerable,
    )
    one(
        "/sparql",
        told_by(questions.triples, "query"),
        "Ask the triples of a crawl one question: rows, or a graph as Turtle.",
        TripleAnswer,
        query="A question in SPARQL.",
    )
    one(
        "/search",
        lambda request, shown: questions.words(shown.directory, request.query_params),
        "Search the documents of a crawl, as `gossamer search --json` does; filters can be given several times.",
        words="Words, phrases in quotes, AND, OR, NOT; none for every document.",
        host="Only on this host or below it.",
        language="Only in this language, as `en`.",
        type="Only with a thing of this type, as `schema:Product`.",
        start="Leave out this many.",
        limit="Give so many.",
    )
    one(
        "/pages/{name:path}",
        lambda request, shown: questions.page(shown.directory, request.path_params["name"]),
        "Give the page of this title, as its subject makes it of a crawl.",
        ShownPage,
    )
    one(
        "/rewire",
        done_by(rewire),
        "Change the graph of a running crawl by names of the catalog, or say what that would change.",
        Rewired,
        takes=Rewiring,
    )
    one("/log", told_by(log_tail), "Give the last visits of the log, and what a resumed crawl said.", LogTail)
    one("/resume", told_by(resume), "Let a crawl at rest go on.", JobDone, takes=dict)
    one("/restore", done_by(restore), "Let a crawl at rest go back to a checkpoint.", JobDone, takes=Restore)
    exports = "List the exports of a crawl, and the forms in which it can be exported."
    one("/exports", told_by(exporter.listed), exports, Exports)
    one("/exports", done_by(exporter.begin), "Have an export made.", Exports, takes=ExportWish)
    one("/remove-export", done_by(exporter.remove), "Remove an export, or give it up.", Exports, takes=NamedExport)
    one(
        "/exports/{name}",
        download,
        "Download an export.",
        answers={"200": {"description": "the file", "content": {"application/octet-stream": {}}}},
    )
    one(
        "/events",
        events,
        "Send how a crawl stands whenever it has changed, as server-sent events.",
        answers={"200": {"description": "events", "content": {"text/event-stream": {}}}},
    )
    one("/{order}", _do_order, takes=dict)
    for word, kind in ORDERS.items():
        at.describe(f"/api/crawls/{{key}}/{word}", (kind.__doc__ or word).partition("\n")[0], JobDone, kind)
