"""The list of addresses: what answers at each, and its line in the description of the JSON interface, as OpenAPI 3.1 has it. The
description is made from the values that are sent, so that it cannot differ.

Place in the flow: :mod:`app` and :mod:`of_crawl` add the addresses, and :mod:`app` makes an application of them.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import msgspec
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gossamer._version import __version__
from gossamer.crawls.http_server import json_answer
from gossamer.dashboard.crawls import Crawls, ShownCrawl
from gossamer.values.errors import UsageError

CrawlAnswer = Callable[[Request, ShownCrawl], Awaitable[Any]]

#: Words of a query that are no texts.
_NUMBERS = {"hours": "number", "offset": "integer", "limit": "integer", "start": "integer"}


class _Described(NamedTuple):
    path: str
    text: str
    kind: Any
    takes: Any
    asked: Mapping[str, str]
    answers: Mapping[str, Any]
    is_open: bool


class Addresses:
    """The addresses of one dashboard."""

    def __init__(self, crawls: Crawls) -> None:
        self.crawls = crawls
        self.routes: list[Route] = []
        self._described: list[_Described] = []

    def add(
        self,
        path: str,
        answer: Callable[[Request], Any],
        text: str = "",
        kind: Any = dict,
        *,
        takes: Any = None,
        answers: Mapping[str, Any] = {},
        is_open: bool = False,
        **asked: str,
    ) -> None:
        """Answer at an address.

        Args:
            path: as Starlette has it.
            answer: makes the answer, at once or when it is awaited; anything but a response is sent as JSON.
            text: the line of the description; without one, the address is not described.
            kind: the type of the answer, or its JSON schema.
            takes: the type of the body; with it, the method is POST.
            answers: the answers by their status, as OpenAPI has them, where the answer is not JSON.
            is_open: no key is needed.
            asked: the words of the query, and what each says.
        """

        async def answered(request: Request) -> Response:
            found = answer(request)
            if inspect.isawaitable(found):
                found = await found
            return found if isinstance(found, Response) else json_answer(found)

        self.routes.append(Route(path, answered, methods=["GET" if takes is None else "POST"]))
        if text:
            self._described.append(_Described(path, text, kind, takes, asked, answers, is_open))

    def of_one(self, path: str, answer: CrawlAnswer, text: str = "", kind: Any = dict, **more: Any) -> None:
        """Answer at an address below that of each crawl; `more` is as of :meth:`add`."""

        async def answered(request: Request) -> Any:
            return await answer(request, await self.crawls.named(request.path_params["key"]))

        self.add(f"/api/crawls/{{key}}{path}", answered, text, kind, **more)

    def describe(self, path: str, text: str, kind: Any, takes: Any) -> None:
        """Describe an address that another one stands for."""
        self._described.append(_Described(path, text, kind, takes, {}, {}, is_open=False))

    def openapi(self) -> dict[str, Any]:
        named = [one for told in self._described for one in (told.kind, told.takes)]
        kinds = {one: None for one in named if one is not None and not isinstance(one, dict)}
        schemas, parts = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
        known = dict(zip(kinds, schemas, strict=True))
        paths: dict[str, Any] = {}
        for told in self._described:
            path, method = told.path.replace(":path", ""), "get" if told.takes is None else "post"
            paths.setdefault(path, {})[method] = _operation(told, path, known)
        return {
            "openapi": "3.1.0",
            "info": {"title": "Gossamer dashboard", "version": __version__},
            "paths": paths,
            "components": {"schemas": parts, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
            "security": [{"key": []}],
        }


def _operation(told: _Described, path: str, known: Mapping[Any, Any]) -> dict[str, Any]:
    def content(kind: Any) -> dict[str, Any]:
        return {"application/json": {"schema": kind if isinstance(kind, dict) else known[kind]}}

    text = {"type": "string"}
    return {
        "summary": told.text,
        **({"security": []} if told.is_open else {}),
        "parameters": [
            *({"name": name, "in": "path", "required": True, "schema": text} for name in re.findall(r"{(\w+)}", path)),
            *(
                {"name": name, "in": "query", "description": said, "schema": {"type": _NUMBERS.get(name, "string")}}
                for name, said in told.asked.items()
            ),
        ],
        **({} if told.takes is None else {"requestBody": {"content": content(told.takes)}}),
        "responses": told.answers or {"200": {"description": "the answer", "content": content(told.kind)}},
    }


def number_in(asked: QueryParams, name: str, usual: float, most: float, least: float = 1e-9) -> float:
    """A number of the query. Raises UsageError: it is none, or out of bounds."""
    text = asked.get(name, "")
    try:
        number = float(text) if text else usual
    except ValueError:
        number = -1.0
    if not least <= number <= most:
        raise UsageError(f"{name} has to be a number, {'0 or more' if not least else 'above 0'} and up to {most:g}")
    return number
