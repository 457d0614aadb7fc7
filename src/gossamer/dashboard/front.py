"""The files of the front end: read once, and sent from memory.

Place in the flow: :mod:`app` has their addresses. A browser keeps them and asks whether they are still the same, so that a page
that is loaded again costs a line for each file.
"""

import hashlib
import mimetypes
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

#: Where the files lie.
STATIC = Path(__file__).with_name("static")

#: Kept by a browser, and asked for each time; nothing in them is anybody's secret.
_KEPT = "no-cache"


class _File(NamedTuple):
    content: bytes
    media_type: str
    tag: str


class FrontEnd:
    """All of the files."""

    def __init__(self, folder: Path = STATIC) -> None:
        """Read them."""
        self._files = {path.name: _read(path) for path in folder.iterdir() if path.is_file()}

    def __repr__(self) -> str:
        return f"<FrontEnd: {len(self._files)} files>"

    async def page(self, request: Request) -> Response:
        """The page that all others are shown in."""
        return self._answer(request, "index.html")

    async def file(self, request: Request) -> Response:
        """One file."""
        return self._answer(request, request.path_params["name"])

    def _answer(self, request: Request, name: str) -> Response:
        found = self._files.get(name)
        if found is None:
            raise HTTPException(HTTPStatus.NOT_FOUND, "there is no such file")
        headers = {"ETag": found.tag, "Cache-Control": _KEPT}
        if request.headers.get("if-none-match") == found.tag:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        return Response(found.content, media_type=found.media_type, headers=headers)


def _read(path: Path) -> _File:
    content = path.read_bytes()
    media_type = "text/javascript" if path.suffix == ".js" else mimetypes.guess_type(path.name)[0]
    return _File(content, media_type or "application/octet-stream", f'"{hashlib.sha256(content).hexdigest()[:16]}"')
