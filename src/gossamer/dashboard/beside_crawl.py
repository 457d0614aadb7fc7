"""Answers about one crawl that processes of their own make: to questions, and exports.

Place in the flow: :mod:`app` has the list of addresses; those of :mod:`of_crawl` need no such process.
"""

import msgspec
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from gossamer.dashboard.crawls import Crawls
from gossamer.dashboard.exporting import Exporter, Exports
from gossamer.dashboard.of_crawl import number_in
from gossamer.dashboard.tables import TableConsole
from gossamer.dashboard.words import FARTHEST, HITS, MOST_HITS, SearchConsole, TripleConsole


class QuestionAnswers:
    """Answers to questions in SQL, SPARQL and words."""

    def __init__(self) -> None:
        self._console, self._triples, self._words = TableConsole(), TripleConsole(), SearchConsole()

    def __repr__(self) -> str:
        return "<QuestionAnswers>"

    async def tell_tables(self, request: Request, crawls: Crawls) -> msgspec.Raw:
        """Tables that answer a question in SQL, or those of a report."""
        shown, asked = await crawls.named(request.path_params["key"]), request.query_params
        return await self._console.ask(shown.directory, asked.get("sql", ""), asked.get("report", ""))

    async def tell_triples(self, request: Request, crawls: Crawls) -> msgspec.Raw:
        """The answer to a question in SPARQL."""
        shown = await crawls.named(request.path_params["key"])
        return await self._triples.ask(shown.directory, request.query_params.get("query", ""))

    async def tell_words(self, request: Request, crawls: Crawls) -> msgspec.Raw:
        """Documents that words find."""
        shown, asked = await crawls.named(request.path_params["key"]), request.query_params
        start = int(number_in(request, "start", 0, FARTHEST, least=0))
        most = int(number_in(request, "limit", HITS, MOST_HITS, least=1))
        return await self._words.ask(shown.directory, asked, start, most)


class ExportAnswers:
    """Exports that are made, told of, downloaded and removed."""

    def __init__(self) -> None:
        self.exporter = Exporter()

    def __repr__(self) -> str:
        return f"<ExportAnswers by {self.exporter!r}>"

    async def tell_exports(self, request: Request, crawls: Crawls) -> Exports:
        """Its exports, and what can be made."""
        shown = await crawls.named(request.path_params["key"])
        return await shown.run(self.exporter.listed, shown.directory)

    async def begin_export(self, request: Request, crawls: Crawls) -> Exports:
        """Have one made."""
        shown = await crawls.named(request.path_params["key"])
        return await shown.run(self.exporter.begin, shown.directory, await request.body())

    async def remove_export(self, request: Request, crawls: Crawls) -> Exports:
        """Remove one."""
        shown = await crawls.named(request.path_params["key"])
        return await shown.run(self.exporter.remove, shown.directory, await request.body())

    async def download(self, request: Request, crawls: Crawls) -> Response:
        """The file of an export."""
        shown = await crawls.named(request.path_params["key"])
        path = await shown.run(self.exporter.file, shown.directory, request.path_params["name"])
        # Never shown by a browser, whatever a web site wrote into it.
        return FileResponse(path, media_type="application/octet-stream", filename=path.name)
