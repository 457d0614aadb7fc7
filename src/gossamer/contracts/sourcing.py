"""Sources of pages that a runtime of mobile crawlers serves. Suite: `gossamer.testing.check_page_source`.

Place in the flow: a runtime asks a source for one URL at a time, after its own rules
(hosts, refusals, robots.txt) let the URL pass. Files, a local server and a stored crawl are sources.
"""

from typing import Protocol

import msgspec

from gossamer.model.visit import Response


class Withheld(msgspec.Struct, frozen=True, gc=False):
    """A source's decision not to serve a URL."""

    reason: str
    """Name of the reason, such as `dotfile`. The runtime counts refusals by it."""
    told: str = ""
    """The exact reason, which only the owner of the data sees, never a crawler."""


class PageSource(Protocol):
    """Answers one URL at a time, for any URL.

    Promises:
        1. Every URL has an answer: a response with an outcome, or a refusal with a name. No URL raises an exception.
        2. A document is never longer than the source's limit. If a document was cut, `truncated` is set and `cut` is `length`.
        3. A document names its media type, and header names are in lower case.
        4. A redirect is an answer with a `location`; the source does not follow it.
        5. Equal questions have equal answers, as long as the data stay the same. Fragments and the order of questions
           do not matter.
    """

    def answer(self, url: str) -> Response | Withheld:
        """Return the answer for a canonical URL of http or https."""
        ...

    def close(self) -> None:
        """Release the resources of the source. No question follows."""
        ...
