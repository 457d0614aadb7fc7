"""Questions in SPARQL and searches from the browser, each answered in a process that is killed when it takes too long.

Place in the flow: :mod:`app` asks here, as it asks :mod:`tables` for questions in SQL.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec
from starlette.datastructures import QueryParams

from gossamer.dashboard.children import KilledChildren
from gossamer.model.errors import UsageError
from gossamer.operations.word_questions import Answerable, SearchQuestion, TripleQuestion
from gossamer.query.derived import check_index, check_triples

#: Seconds and bytes that an answer from the triples may take, and rows that are shown.
TRIPLE_SECONDS, TRIPLE_MEMORY, ROWS = 30.0, 2 << 30, 1_000

#: Seconds and bytes that a search may take: an index answers within a second, or something is wrong with it.
SEARCH_SECONDS, SEARCH_MEMORY = 10.0, 1 << 30

#: Questions of each kind that are answered at once; others wait. They must not take the machine from the crawl beside it.
AT_ONCE = 2

#: Characters of a question in SPARQL; documents on a page of what was found, and how far a person can page.
LONGEST, HITS, MOST_HITS, FARTHEST = 10_000, 20, 100, 10_000


class TripleConsole:
    """Answers questions in SPARQL from all browsers."""

    def __init__(self, seconds: float = TRIPLE_SECONDS) -> None:
        self._seconds = seconds
        # The child ends by itself in time, so that it removes its copy of the store; the kill is for a child that does not.
        self._children = KilledChildren("gossamer.operations.triple_answers", seconds + 5, AT_ONCE)

    def __repr__(self) -> str:
        return f"<TripleConsole, {self._seconds:g} s each>"

    async def ask(self, directory: Path, query: str) -> msgspec.Raw:
        """The answer as JSON (:class:`~gossamer.operations.triple_answers.TripleAnswer`).

        Raises:
            UsageError: it is no question, cannot be answered, or takes too long.
        """
        if not query.strip() or len(query) > LONGEST:
            raise UsageError(f"give query, of {LONGEST} characters at most")
        question = TripleQuestion(memory=TRIPLE_MEMORY, seconds=int(self._seconds), rows=ROWS, query=query)
        return msgspec.Raw(await self._children.ask(directory, msgspec.json.encode(question)))


class SearchConsole:
    """Answers searches from all browsers."""

    def __init__(self) -> None:
        self._children = KilledChildren("gossamer.operations.search_answers", SEARCH_SECONDS, AT_ONCE)

    def __repr__(self) -> str:
        return f"<SearchConsole, {SEARCH_SECONDS:g} s each>"

    async def ask(self, directory: Path, asked: QueryParams, start: int, most: int) -> msgspec.Raw:
        """The best documents as JSON (:class:`~gossamer.query.search.asking.SearchAnswer`).

        Args:
            directory: of a crawl.
            asked: `words`, and any number of `host`, `language` and `type`, each of which is a filter.
            start: so many documents are left out.
            most: so many are told at most.

        Raises:
            UsageError: it is no question, there is no index, or it takes too long.
        """
        question = SearchQuestion(
            memory=SEARCH_MEMORY,
            seconds=int(SEARCH_SECONDS) + 2,
            words=asked.get("words", ""),
            hosts=_several(asked, "host"),
            languages=_several(asked, "language"),
            types=_several(asked, "type"),
            start=start,
            most=most,
        )
        return msgspec.Raw(await self._children.ask(directory, msgspec.json.encode(question)))


def _several(asked: QueryParams, name: str) -> tuple[str, ...]:
    return tuple(filter(None, asked.getlist(name)))


def answerable(directory: Path) -> Answerable:
    """What can be asked of a crawl; looks at names of files alone."""
    return Answerable(_why_not(check_triples, directory), _why_not(check_index, directory))


def _why_not(check: Callable[[Path], None], directory: Path) -> str:
    try:
        check(directory)
    except UsageError as error:
        return str(error)
    return ""
