"""Who a crawl says it is: user agent, contact, and the token that robots.txt knows it by (design question 15).

Place in the flow: :mod:`~gossamer.assembly.compiling` puts them into the wiring; commands that fetch without a crawl say the same.
"""

import os
import re

from gossamer._version import __version__
from gossamer.assembly.options import CrawlOptions
from gossamer.model.errors import UsageError


def user_agent(options: CrawlOptions) -> str:
    """The product token, the version, and whom to complain to (design question 15)."""
    if options.user_agent:
        return options.user_agent
    contact = contact_of(options)
    return f"Gossamer/{__version__} (+{contact})" if contact else f"Gossamer/{__version__}"


#: A contact that a site owner can use: a web page, or a mail address with or without its scheme.
_CONTACT = re.compile(r"https?://[^\s/]+\S*|(?:mailto:)?[^\s@<>,;:]+@[^\s@<>,;:]+\.[^\s@<>,;:]+")


def contact_of(options: CrawlOptions) -> str:
    """From the option, or the environment (design question 15).

    Raises:
        UsageError: it is neither a URL nor a mail address.
    """
    contact = options.contact or os.environ.get("GOSSAMER_CONTACT", "")
    if contact and not _CONTACT.fullmatch(contact):
        source = "--contact" if options.contact else "GOSSAMER_CONTACT"
        raise UsageError(f"{source} {contact!r}: give the URL of a page, or a mail address, as me@example.org")
    return contact


def token_of(user_agent: str) -> str:
    """The product token of a user agent: what robots.txt names it by (RFC 9309, 2.2.1)."""
    return re.split(r"[/\s(]", user_agent.strip(), maxsplit=1)[0] or "Gossamer"
