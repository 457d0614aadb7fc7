"""Conformance suite for sources of pages: run it over a source of your own.

Each check is one promise of `contracts.sourcing`. A broken promise raises an AssertionError that names it.
"""

from collections.abc import Callable

from gossamer.contracts.sourcing import PageSource, Withheld
from gossamer.model.outcome import DOCUMENTS, Outcome
from gossamer.model.visit import Response

#: Paths that a stranger may write into a link, canonical as far as a URL can be. None may raise, and none may lead out.
HOSTILE_PATHS = (
    *(
        "/..",
        "/../",
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "/%2e%2e%2fetc%2fpasswd",
    ),
    *(
        "/..%5c..%5cetc",
        "/a%5c..%5cb",
        "/%00",
        "/index.html%00.png",
        "/%0d%0aX:y",
        "/%ff%fe",
        "/%c0%ae%c0%ae/",
        "/%252e%252e/",
    ),
    *("//", "///etc/passwd", "/a//b", "/./", "/.", "/%2e", "/%2f", "/%", "/%zz", "/" + "a" * 5_000, "/a" * 500),
    *("/~root/", "/?", "/?../..", "/;a=b", "/%e2%80%ae", "/aux.", "/con", "/c:/", "/file:///etc/passwd"),
)


def check_page_source(make: Callable[[int], PageSource], page: str, directory: str, missing: str) -> None:
    """Check that a source keeps the promises of `contracts.sourcing.PageSource`.

    Args:
        make: returns a new source with this limit of bytes for one document.
        page: URL of a document of at least 32 bytes, which the source serves.
        directory: URL that the source redirects.
        missing: URL that the source does not have, on the host of `page`.
    """
    source = make(1 << 20)
    try:
        _check_answers(source, page, directory, missing)
        _check_hostile(source, page)
    finally:
        source.close()
    _check_limit(make, page)


def _check_answers(source: PageSource, page: str, directory: str, missing: str) -> None:
    found = _answered(source, page)
    assert found.outcome is Outcome.OK and found.status == 200, f"{page}: {found.outcome} {found.status}"
    assert len(found.content) >= 32, f"{page} has {len(found.content)} bytes: give the suite a longer one"
    assert found.mime, "promise 3: a document names its media type"
    assert not found.cut, "promise 2: a whole document says that it was cut"
    moved = _answered(source, directory)
    assert moved.outcome is Outcome.REDIRECT and moved.header("location"), "promise 4: a redirect has a location"
    gone = source.answer(missing)
    has_document = isinstance(gone, Response) and gone.outcome in DOCUMENTS
    assert not has_document, f"promise 1: {missing} is not there, and has a document"
    for response in (found, moved):
        assert all(name == name.lower() for name, _ in response.headers), "promise 3: header names are in lower case"
    again = _answered(source, page)
    assert again.content == found.content and again.outcome is found.outcome, (
        "promise 5: equal questions, equal answers"
    )
    assert _answered(source, f"{page}#part").content == found.content, "promise 5: a fragment does not matter"


def _check_hostile(source: PageSource, page: str) -> None:
    origin = "/".join(page.split("/")[:3])
    for path in HOSTILE_PATHS:
        answer = source.answer(origin + path)
        assert isinstance(answer, Response | Withheld), f"promise 1: {path!r} has no answer"
        if isinstance(answer, Withheld):
            assert answer.reason, f"promise 1: {path!r} is refused without a name"
        elif answer.outcome in DOCUMENTS:
            assert b"root:" not in answer.content, f"{path!r} led out of what is served"
    assert _answered(source, page).outcome is Outcome.OK, "promise 5: what was asked before does not matter"


def _check_limit(make: Callable[[int], PageSource], page: str) -> None:
    source = make(16)
    try:
        cut = _answered(source, page)
        assert cut.outcome is Outcome.TRUNCATED and cut.cut == "length", "promise 2: a document that was cut says so"
        assert len(cut.content) <= 16, f"promise 2: {len(cut.content)} bytes where 16 is the limit"
    finally:
        source.close()


def _answered(source: PageSource, url: str) -> Response:
    answer = source.answer(url)
    assert isinstance(answer, Response), f"{url} is refused: {answer}"
    return answer
