"""The error tree of the crawler, on one page. The engine has its own in :mod:`gossamer.engine.errors`.

An error says whose fault it is by its class, what happened to what in its text, and what to do in the same line.
The command line turns each into one line on standard error and the exit code that the class carries
(exit status: 2 usage or configuration, 4 incomplete, 5 the directory is in use or damaged).
Bad input *from the web* is never an error here: it ends in an :class:`~gossamer.values.outcome.Outcome`.
"""


class GossamerError(Exception):
    """Root of all errors that are shown to a person. The process ends with `exit_code`."""

    exit_code: int = 1


class UsageError(GossamerError):
    """The person gave an option, key, value or file that cannot be used. The message says how to mend it."""

    exit_code = 2


class CrawlDirectoryError(GossamerError):
    """The crawl directory is in use, damaged, or was written by a newer version."""

    exit_code = 5


class LedgerDamaged(CrawlDirectoryError):
    """The ledger of a crawl is lost or cannot be read. The other files can be, so the crawl can begin again beside
    them."""


class LogDamaged(LedgerDamaged):
    """The write-ahead log of a ledger has a changed byte. The commits before it can be read, so the crawl can go on from there."""


class DiskFull(CrawlDirectoryError):
    """The disk that the crawl writes to is full. The crawl can repeat the write when there is room."""


class UnreadableUrl(ValueError):
    """The WHATWG URL parser refuses a text, or no crawler should ask for it. The crawler counts it as a rejection."""


class UrlTooLong(UnreadableUrl):
    """A URL is too long to be kept. The crawler counts it as a rejection of its own kind."""


class ResolutionFailed(Exception):
    """A host name has no address now. The message is the resolver's; the outcome is `dns_failed`."""


class NoSuchName(ResolutionFailed):
    """A name server says that the host name does not exist (NXDOMAIN). Links to it are dead."""


class AddressRefused(Exception):
    """This crawl must not connect to the address of the host (design question 8). The outcome is `address_refused`."""


class ParseSkipped(Exception):
    """The markup of a page would cost the parser too much (faults 54, 55). The page is kept and marked
    `parse_skipped`."""


class ReadApart(Exception):
    """A part of a page may hold up everything else while it is read. It is read in a process that can be killed."""
