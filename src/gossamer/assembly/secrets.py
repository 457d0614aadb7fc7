"""Credentials that a person gave, bound to sites: `--auth`, and such fields of `--header` as prove who asks.

They become `SITE Name: value` entries of the protocol module's sheet, so that no link, redirect or downgrade takes them to
another host, scheme or port (faults 30, 100).
"""

import base64
import re
from collections.abc import Sequence
from pathlib import Path

from gossamer.model.errors import UnreadableUrl, UsageError
from gossamer.model.url import authority_of, canonical, host_of, scheme_of, site_of
from gossamer.stages.fetch.given import REFERENCE, field_of

#: Fields that prove who asks.
_CREDENTIAL = re.compile(r"(?i)(?:authorization|cookie|proxy-authorization)[ \t]*:")

#: The same with the name of a variable or file in the place of the secret.
_REFERRED = re.compile(r"(?:(?P<host>(?:https?://)?[^\s/=@$]+/?)=)?(?P<where>[$@].+)")

#: `HOST=user:password`. What does not look so is `user:password`, whose password may hold anything.
_FOR_HOST = re.compile(
    r"(?P<host>(?:https?://)?[^\s:/=@]+(?::[0-9]+)?/?|\[[0-9a-fA-F:]+\](?::[0-9]+)?)=(?P<pair>[^:]*:.*)\Z"
)


def credentials(auth: Sequence[str], header: Sequence[str], seeds: Sequence[str]) -> tuple[str, ...]:
    """The entries of the options `auth` and `header`.

    Raises:
        UsageError: an entry of `auth` cannot be read; says how it is written, and nothing of a password.
    """
    own = list(dict.fromkeys(site_of(seed) for seed in seeds if scheme_of(seed) in ("http", "https")))
    found = [f"{site} {field}" for field in header if _CREDENTIAL.match(field) for site in own]
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
    return tuple(field for field in header if not _CREDENTIAL.match(field))


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
