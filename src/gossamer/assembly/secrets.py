"""Credentials that a person gave, bound to sites: `--auth`, and such fields of `--header` as look secret.

They become `SITE Name: value` entries of the protocol module's sheet, so that no link, redirect or downgrade takes them to
another host, scheme or port (faults 30, 100).
"""

import base64
import re
from collections.abc import Sequence
from pathlib import Path

from gossamer.model.errors import UnreadableUrl, UsageError
from gossamer.model.requesting import is_secret
from gossamer.model.url import authority_of, canonical, host_of, scheme_of, site_of
from gossamer.stages.fetch.given import REFERENCE, field_of
from gossamer.stages.fetch.request import EVERY_PORT

#: The same with the name of a variable or file in the place of the secret.
_REFERRED = re.compile(r"(?:(?P<host>(?:https?://)?[^\s/=@$]+/?)=)?(?P<where>[$@].+)")

#: `HOST=user:password`. What does not look so is `user:password`, whose password may hold anything.
_FOR_HOST = re.compile(
    r"(?P<host>(?:https?://)?(?:[^\s:/=@\[]+|\[[0-9a-fA-F:.]+\])(?::[0-9]+)?/?)=(?P<pair>[^:]*:.*)\Z"
)


def credentials(
    auth: Sequence[str], header: Sequence[str], seeds: Sequence[str], header_for: Sequence[str] = ()
) -> tuple[str, ...]:
    """The entries of the options `auth`, `header` and `header_for`.

    Raises:
        UsageError: an entry of `auth` or `header_for` cannot be read; says how it is written, and nothing of a password.
    """
    own = list(dict.fromkeys(site_of(seed) for seed in seeds if scheme_of(seed) in ("http", "https")))
    secret = [field for field in header if _is_secret(field)]
    if header_for and not secret:
        raise UsageError("--header-for names a host for fields of --header that look secret, and there is none; add it")
    found = [f"{site} {field}" for field in secret for site in (*own, *_also(header_for, own))]
    by_auth: dict[str, str] = {}
    # What names a host comes last: it says more of that host than what is for all seeds.
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
    """The fields of the option `header` that every host may see."""
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
        except UnreadableUrl as error:
            raise UsageError(f"--header-for: {error}") from None
        has_port = re.search(r":[0-9]+/?\Z", host) is not None
        found += sites if has_port else [f"{site}{EVERY_PORT}" for site in sites]
    return [site for site in dict.fromkeys(found) if site not in own]


def _sites(host: str, own: Sequence[str]) -> list[str]:
    """The sites of a host that a person named: over https always, over plain http only where a seed is so."""
    try:
        named = site_of(canonical(host if "://" in host else f"https://{host}"))
    except UnreadableUrl as error:
        raise UsageError(f"--auth: {error}") from None
    if "://" in host:
        return [named]
    matching = [site for site in own if authority_of(named) in (authority_of(site), host_of(f"{site}/"))]
    return list(dict.fromkeys([named, *matching]))
