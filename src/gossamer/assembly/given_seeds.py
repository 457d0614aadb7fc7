"""What a person wrote as seeds: canonical URLs of them, and the directory of a crawl that was given none.

Place in the flow: commands and the API read seeds here before a crawl is compiled (:mod:`~gossamer.assembly.compiling`).
"""

import datetime
from collections.abc import Container, Sequence
from pathlib import Path

from gossamer.model.errors import UnreadableUrl, UsageError
from gossamer.model.url import canonical, host_of, is_machine, plain_host, scheme_of, site_of, user_of


def read_seeds(texts: Sequence[str], hostless: Container[str] = ()) -> tuple[str, ...]:
    """Canonical URLs of seeds, each once, in order.

    Args:
        texts: as a person wrote them.
        hostless: schemes that are served though their URLs name no host, beside `file`.

    Raises:
        UsageError: one of them is not a URL, or names no host where one is needed; says what would be right.
    """
    seeds: dict[str, None] = {}
    for text in texts:
        if plain_host(text):  # there is nothing to read, as of most of many
            seeds[text] = None
            continue
        try:
            url = canonical(text.strip())
        except UnreadableUrl as error:
            raise UsageError(f"seed {text!r}: {error}{_likely(text.strip())}") from None
        if not is_machine(host_of(url)) and scheme_of(url) != "file" and scheme_of(url) not in hostless:
            raise UsageError(f"seed {url!r} names no host; write it as https://example.org/")
        seeds[url] = None
    return tuple(seeds)


def users_of(texts: Sequence[str]) -> tuple[str, ...]:
    """What seeds such as `https://USER:PASSWORD@example.org/` say of who asks, as entries of `--auth`.

    Raises:
        UsageError: a site has two users, or is of a scheme that knows none.
    """
    found: dict[str, str] = {}
    for text in texts:
        user = user_of(text.strip()) if "@" in text else ""
        if not user:
            continue
        site = site_of(canonical(text.strip()))
        if scheme_of(site) not in ("http", "https"):
            raise UsageError(f"seed {site}: only http and https have users; write it without USER:PASSWORD@")
        if found.setdefault(site, user) != user:
            raise UsageError(f"seeds name two users of {site}; leave one out, or make two crawls")
    return tuple(f"{site}={user}" for site, user in found.items())


def _likely(text: str) -> str:
    """What somebody probably meant who wrote this for a URL."""
    if not text or "://" in text:
        return "; write it in full, as https://example.org/"
    path = Path(text)
    meant = path.resolve().as_uri() if path.is_absolute() or path.exists() else f"http://{text}"
    return f"; did you mean {meant}?"


def default_directory(seeds: Sequence[str], today: datetime.date) -> str:
    """`./crawl-HOST-DATE`, after the first seed."""
    host = "none"
    if seeds:
        host = host_of(seeds[0]) if is_machine(host_of(seeds[0])) else scheme_of(seeds[0])
    return f"crawl-{host}-{today.isoformat()}"
