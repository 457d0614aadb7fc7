"""Options of identity and of single sites and hosts: names, credentials, settings of hosts.

Place in the flow: :mod:`compiling` puts them into the wiring. Commands that fetch without a crawl say the same, and steering
changes settings of hosts in a running crawl.
"""

import base64
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from gossamer._version import __version__
from gossamer.crawls.builder import Builder
from gossamer.crawls.options import CrawlOptions
from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import Sheet, build, setting
from gossamer.fetcher.authentication import REFERENCE, field_of
from gossamer.fetcher.request import EVERY_PORT
from gossamer.values.errors import UnreadableUrl, UsageError
from gossamer.values.hosts import HostTable, given_host
from gossamer.values.patterns import lazy_pattern
from gossamer.values.request_identity import is_secret
from gossamer.values.settings import HostDelay, MaxPerHost, PerHost
from gossamer.values.url import authority_of, canonical, host_of, scheme_of, site_of

# The identity that a crawl states: user agent, contact, and the token that robots.txt knows it by (design question 15).


def user_agent(options: CrawlOptions) -> str:
    """The product token, the version, and whom to complain to (design question 15)."""
    if options.user_agent:
        return options.user_agent
    contact = contact_of(options)
    return f"Gossamer/{__version__} (+{contact})" if contact else f"Gossamer/{__version__}"


#: A contact that a site owner can use: a web page, or a mail address with or without its scheme.
_CONTACT = lazy_pattern(r"https?://[^\s/]+\S*|(?:mailto:)?[^\s@<>,;:]+@[^\s@<>,;:]+\.[^\s@<>,;:]+")


def contact_of(options: CrawlOptions) -> str:
    """From the option, or the environment (design question 15). Raises UsageError: it is neither a URL nor a mail address."""
    contact = options.contact or os.environ.get("GOSSAMER_CONTACT", "")
    if contact and not _CONTACT.fullmatch(contact):
        source = "--contact" if options.contact else "GOSSAMER_CONTACT"
        raise UsageError(f"{source} {contact!r}: give the URL of a page, or a mail address, as me@example.org")
    return contact


def token_of(user_agent: str) -> str:
    """The product token of a user agent: what robots.txt names it by (RFC 9309, 2.2.1)."""
    return re.split(r"[/\s(]", user_agent.strip(), maxsplit=1)[0] or "Gossamer"


# Credentials of sites: `--auth`, and such fields of `--header` as look secret. They become `SITE Name: value` entries of the
# protocol module's sheet, so that no link, redirect or downgrade takes them to another host, scheme or port (faults 30, 100).

#: `HOST=user:password`. Anything else is `user:password`, whose password may hold anything.
_FOR_HOST = lazy_pattern(
    r"(?P<host>(?:https?://)?(?:[^\s:/=@\[]+|\[[0-9a-fA-F:.]+\])(?::[0-9]+)?/?)=(?P<pair>[^:]*:.*)\Z"
)

#: The same with the name of a variable or file in the place of the secret.
_REFERRED = lazy_pattern(r"(?:(?P<host>(?:https?://)?[^\s/=@$]+/?)=)?(?P<where>[$@].+)")


def credentials(
    auth: Sequence[str], header: Sequence[str], seeds: Sequence[str], header_for: Sequence[str] = ()
) -> tuple[str, ...]:
    """The entries of the options `auth`, `header` and `header_for`. Raises UsageError: an entry of `auth` or `header_for`
    cannot be read; says how it is written, and nothing of a password."""
    if not (auth or header or header_for):
        return ()  # as of most crawls, whose seeds may be many
    own = list(dict.fromkeys(site_of(seed) for seed in seeds if scheme_of(seed) in ("http", "https")))
    secret = [field for field in header if _is_secret(field)]
    if header_for and not secret:
        raise UsageError("--header-for names a host for fields of --header that look secret, and there is none; add it")
    found = [f"{site} {field}" for field in secret for site in (*own, *_also(header_for, own))]
    by_auth: dict[str, str] = {}
    # An entry that names a host comes last: it says more of that host than one for all seeds.
    for text in sorted(auth, key=_names_host):
        if (referred := _REFERRED.fullmatch(text)) and REFERENCE.fullmatch(where := referred["where"]):
            where = f"@{Path(where[1:]).absolute()}" if where.startswith("@") else where
            field_of(where)  # what is not there is refused before anything is touched
            by_auth |= dict.fromkeys(_sites(referred["host"], own) if referred["host"] else own, where)
            continue
        for_host = _FOR_HOST.match(text)
        pair = for_host["pair"] if for_host else text
        if ":" not in pair:
            raise UsageError("--auth: write it as HOST=USER:PASSWORD, or USER:PASSWORD for the hosts of the seeds")
        basic = base64.b64encode(pair.encode()).decode()
        by_auth |= dict.fromkeys(_sites(for_host["host"], own) if for_host else own, f"Authorization: Basic {basic}")
    # A request with two of them is refused by most servers.
    doubled = tuple(f"{site} authorization" for site in by_auth)
    found = [entry for entry in found if not doubled or not entry.lower().startswith(doubled)]
    return (*found, *(f"{site} {field}" for site, field in by_auth.items()))


def _names_host(text: str) -> bool:
    referred = _REFERRED.fullmatch(text)
    return bool(_FOR_HOST.match(text) or (referred and referred["host"]))


def plain(header: Sequence[str]) -> tuple[str, ...]:
    return tuple(field for field in header if not _is_secret(field))


def _is_secret(field: str) -> bool:
    name, _, value = field.partition(":")
    return is_secret(name.strip(), value.strip())


def _also(hosts: Sequence[str], own: Sequence[str]) -> list[str]:
    """The sites that get the secrets too: each port of a host, unless one is named; over plain http where a seed is so."""
    found: list[str] = []
    for host in hosts:
        schemes = ["https", *(["http"] if any(scheme_of(site) == "http" for site in own) else [])]
        named = [host] if "://" in host else [f"{scheme}://{host}" for scheme in schemes]
        try:
            sites = [site_of(canonical(text)) for text in named]
            for site in sites:
                given_host(host_of(f"{site}/"))
        except (UnreadableUrl, UsageError) as error:
            raise UsageError(f"--header-for: {error}") from None
        has_port = re.search(r":[0-9]+/?\Z", host) is not None
        found += sites if has_port else [f"{site}{EVERY_PORT}" for site in sites]
    return [site for site in dict.fromkeys(found) if site not in own]


def _sites(host: str, own: Sequence[str]) -> list[str]:
    """The sites of a host that a person named: over https always, over plain http only where a seed is so."""
    try:
        named = site_of(canonical(host if "://" in host else f"https://{host}"))
        given_host(host_of(f"{named}/"))
    except (UnreadableUrl, UsageError) as error:
        raise UsageError(f"--auth: {error}") from None
    if "://" in host:
        return [named]
    matching = [site for site in own if authority_of(named) in (authority_of(site), host_of(f"{site}/"))]
    return list(dict.fromkeys([named, *matching]))


# Settings of single hosts, as `[hosts."*.example.org"]` in a file of settings and `gossamer set DIR --host` have them.

#: The unit that knows when pages are visited again, where a crawl has one.
SCHEDULE = "revisits"

#: Setting of a single host -> the unit's setting that holds it for all hosts.
HOST_SETTINGS = {
    "delay": ("politeness", "delays"),
    "per_host": ("politeness", "lives"),
    "max_pages": ("commit", "max_by_host"),
    "min_interval": (SCHEDULE, "min_by_host"),
    "max_interval": (SCHEDULE, "max_by_host"),
    "header": ("http", "headers"),
}


class HostOptions(Sheet, frozen=True):
    """The settings of single hosts. The names are those of the options that it takes the place of."""

    delay: HostDelay | None = None
    per_host: PerHost | None = None
    max_pages: MaxPerHost = None
    min_interval: (
        Annotated[float, setting("Wait at least this long between two visits of a page.", unit="s", gt=0)] | None
    ) = None
    max_interval: (
        Annotated[float, setting("Wait at most this long between two visits of a page.", unit="s", gt=0)] | None
    ) = None
    header: Annotated[tuple[str, ...], setting("Send this header field too, as `Name: value`.")] = ()


def put_hosts(builder: Builder) -> None:
    """Set what the options say of single hosts. It comes behind the subjects, which bring some of the units. Raises UsageError:
    a host or a value cannot be read, or a setting means nothing in this crawl; names the host; WiringError: the wiring has no
    such unit."""
    hosts = dict(_read(builder.options))
    for name, (unit, table) in HOST_SETTINGS.items():
        values = {host: value for host, options in hosts.items() if (value := getattr(options, name))}
        if name == "delay":
            values |= {host: 0.0 for host, options in hosts.items() if options.delay == 0}
        if values and unit == SCHEDULE and not builder.has(SCHEDULE):
            raise UsageError(
                f'[hosts."{next(iter(values))}"]: {name.replace("_", "-")} says when known pages are visited again; '
                "give --recrawl as well"
            )
        if values:
            builder.set("hosts", unit, {table: msgspec.to_builtins(values)})


def _read(options: CrawlOptions) -> Iterator[tuple[str, HostOptions]]:
    for host, values in options.hosts.items():
        try:
            HostTable({host: True})
            yield host, build(HostOptions, {name.replace("-", "_"): value for name, value in values.items()})
        except (SettingError, UsageError) as error:
            raise UsageError(f'[hosts."{host}"]: {error}') from None
