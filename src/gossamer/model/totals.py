"""Totals of a crawl: what committed visits add up to. Kept by the committer, which alone knows what was committed."""

from collections import Counter

from gossamer.model.outcome import ANSWERED, TRANSIENT, Outcome
from gossamer.model.visit import Visit


class Totals:
    """Sums over committed visits."""

    def __init__(self) -> None:
        self.outcomes: Counter[Outcome] = Counter()
        self.pages = 0
        self.documents = 0
        """Successful answers with a body that no earlier one had."""
        self.bytes = 0

    def __repr__(self) -> str:
        return f"<Totals {self.pages} pages, {self.fetched} fetched>"

    def add(self, visit: Visit) -> None:
        """One more visit."""
        response = visit.response
        self.outcomes[response.outcome] += 1
        self.bytes += len(response.body)
        self.pages += visit.is_page
        self.documents += response.outcome is Outcome.OK and bool(response.body) and not visit.duplicate_of

    @property
    def fetched(self) -> int:
        """Answered requests, robots.txt apart."""
        return sum(count for outcome, count in self.outcomes.items() if outcome in ANSWERED)

    @property
    def unfinished(self) -> int:
        """Fetches that a later try could turn into a page."""
        return sum(count for outcome, count in self.outcomes.items() if outcome in TRANSIENT)
