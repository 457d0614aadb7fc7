"""The error tree of the crawler, on one page. The machine room has its own in :mod:`gossamer.flow.errors`.

An error says whose fault it is by its class, what happened to what in its text, and what to do in the same line.
The command line turns each into one line on standard error and the exit code that the class carries
(exit status: 2 usage or configuration, 4 incomplete, 5 the directory is in use or damaged).
Bad input *from the web* is never an error here: it ends in an :class:`~gossamer.model.outcome.Outcome`.
"""


class GossamerError(Exception):
    """Root of what a person can be told. `exit_code` is what the process ends with."""

    exit_code: int = 1


class UsageError(GossamerError):
    """The person's fault: an option, key, value or file that cannot be used. Says what would be right."""

    exit_code = 2


class CrawlDirectoryError(GossamerError):
    """The crawl directory is in use, damaged, or was written by a newer version."""

    exit_code = 5


class LedgerDamaged(CrawlDirectoryError):
    """The ledger of a crawl is lost or cannot be read. Its files can: the crawl can begin again beside them."""


class DiskFull(CrawlDirectoryError):
    """There is no room where the crawl writes; what was to be written can be written again when there is."""


class UnreadableUrl(ValueError):
    """A text that the WHATWG URL parser refuses, or that no crawler should ask for. Becomes a counted rejection."""


class UrlTooLong(UnreadableUrl):
    """A URL of more bytes than are kept. Becomes a counted rejection of its own."""


class ResolutionFailed(Exception):
    """A host name that has no address now. The message is the resolver's own word; the outcome is `dns_failed`."""


class NoSuchName(ResolutionFailed):
    """A host name that does not exist (NXDOMAIN): a name server has said so. Links to it are dead."""


class AddressRefused(Exception):
    """A host whose address this crawl must not talk to (design question 8). The outcome is `address_refused`."""


class ParseSkipped(Exception):
    """A page whose markup would cost the parser too much (faults 54, 55). It is kept, and says `parse_skipped`."""
