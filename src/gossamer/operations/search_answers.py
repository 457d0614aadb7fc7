"""`python -m gossamer.operations.search_answers DIR`: searches the index of a crawl once, in a process that can be killed.

Place in the flow: the dashboard starts one for each search (:mod:`gossamer.dashboard.words`). The question is JSON on standard
input and the answer, a :class:`~gossamer.query.search.asking.SearchAnswer`, is JSON on standard output.
"""

import sys
from pathlib import Path

import msgspec

from gossamer.operations.child_answers import answer_once
from gossamer.operations.word_questions import SearchQuestion
from gossamer.query.search.asking import FACETS, Search, SearchFilters


def main(directory: str) -> int:
    """Answer the question on standard input; the exit status."""

    def answered(question: SearchQuestion) -> bytes:
        filters = SearchFilters(hosts=question.hosts, languages=question.languages, types=question.types)
        found = Search(Path(directory)).ask(
            question.words, filters, most=question.most, start=question.start, facets=tuple(FACETS)
        )
        return msgspec.json.encode(found)

    return answer_once(msgspec.json.Decoder(SearchQuestion).decode, answered, "the search")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
