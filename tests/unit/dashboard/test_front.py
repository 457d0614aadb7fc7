"""The files of the front end: sent from memory, and once to each browser."""

import asyncio
from pathlib import Path

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from gossamer.dashboard.app import FrontEnd


@pytest.fixture
def front(tmp_path: Path) -> FrontEnd:
    (tmp_path / "index.html").write_text("<title>x</title>")
    (tmp_path / "main.js").write_text("export {};")
    return FrontEnd(tmp_path)


def asked(front: FrontEnd, name: str, tag: str = "") -> Response:
    headers = [(b"if-none-match", tag.encode())] if tag else []
    return asyncio.run(front.file(Request({"type": "http", "headers": headers, "path_params": {"name": name}})))


def test_a_browser_that_has_a_file_is_told_so_and_gets_it_when_it_is_another(front: FrontEnd) -> None:
    first = asked(front, "main.js")
    assert (first.status_code, first.body, first.headers["Cache-Control"]) == (200, b"export {};", "no-cache")
    assert first.headers["Content-Type"].startswith("text/javascript")
    again = asked(front, "main.js", first.headers["ETag"])
    assert (again.status_code, again.body) == (304, b"")
    assert asked(front, "main.js", '"other"').status_code == 200


@pytest.mark.parametrize("name", ["nowhere.js", "../front.py", "/etc/passwd", ""])
def test_nothing_but_the_files_of_the_front_end_is_sent(front: FrontEnd, name: str) -> None:
    with pytest.raises(HTTPException, match="404"):
        asked(front, name)
