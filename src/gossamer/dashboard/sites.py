"""The list of sites: crawls on this machine, and dashboards elsewhere, which a person adds and removes in the browser.

Place in the flow: :mod:`app` reads and writes the list, and :mod:`crawls` shows the crawls of its folders beside those that the
dashboard was started with. :mod:`elsewhere` asks dashboards elsewhere how their crawls stand.
"""

import os
from pathlib import Path
from typing import Annotated
from urllib.parse import parse_qs, quote, urlsplit

import msgspec

from gossamer.dashboard.kept import config_folder, read_kept, write_kept
from gossamer.model.errors import GossamerError, UsageError

#: Sites at most, and characters of a place and of a description.
MOST, LONGEST, DESCRIBED = 100, 4_000, 500


class Site(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One site."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    place: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST)]
    """A folder on this machine, or the address of a dashboard."""
    key: Annotated[str, msgspec.Meta(max_length=LONGEST)] = ""
    """Opens that dashboard."""
    description: Annotated[str, msgspec.Meta(max_length=DESCRIBED)] = ""
    """In a person's words."""

    @property
    def is_address(self) -> bool:
        """It is a dashboard; otherwise its place is a folder."""
        return self.place.startswith(("http://", "https://"))


class KeptSites(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of them."""

    sites: Annotated[list[Site], msgspec.Meta(max_length=MOST)] = []


class ListedSite(msgspec.Struct, frozen=True):
    """A site as the browser is told of it, without its key."""

    name: str
    place: str
    is_address: bool
    has_key: bool
    description: str = ""


class ListedSites(msgspec.Struct, frozen=True):
    """All of them."""

    sites: list[ListedSite]


def sites_file() -> Path:
    """Where the list lies: `$XDG_CONFIG_HOME/gossamer/sites.json`."""
    return config_folder() / "sites.json"


def list_sites(path: Path) -> ListedSites:
    """The sites without their keys.

    Raises:
        UsageError: the list cannot be read.
    """
    kept = read_kept(path, KeptSites).sites
    return ListedSites(
        [ListedSite(one.name, one.place, one.is_address, bool(one.key), one.description) for one in kept]
    )


def save_sites(path: Path, body: bytes) -> ListedSites:
    """Keep these sites, given as JSON, in the place of those that were kept.

    A site that comes without a key keeps the one that its address had. An address may hold a key, as `gossamer dashboard`
    prints it.

    Raises:
        UsageError: they are none, two have one name, a folder is none of this user's, or the list cannot be read or written.
    """
    try:
        given = msgspec.json.decode(body, type=KeptSites).sites
    except msgspec.MsgspecError as error:
        raise UsageError(f"sites: {error}") from None
    before = read_kept(path, KeptSites).sites
    keys = {one.place: one.key for one in before}
    sites = []
    for one in given:
        if one.is_address:
            site = _address(one)
            sites.append(site if site.key else msgspec.structs.replace(site, key=keys.get(site.place, "")))
        else:  # a folder that was kept stays in the list when it is away, as a disk may be
            sites.append(msgspec.structs.replace(one, key="") if one.place in keys else _folder(one))
    if len({one.name for one in sites}) < len(sites):
        raise UsageError("two sites have one name; give each a name of its own")
    write_kept(path, KeptSites(sites))
    return list_sites(path)


def entrance(path: Path, name: str) -> str:
    """The address that opens the dashboard of this name, with its key.

    Raises:
        UsageError: there is none of this name, or the list cannot be read.
    """
    for one in read_kept(path, KeptSites).sites:
        if one.name == name and one.is_address:
            return f"{one.place}?token={quote(one.key, safe='')}" if one.key else one.place
    raise UsageError("the list of sites has no dashboard of this name")


def folders(path: Path) -> dict[Path, str]:
    """The folders among the sites, and their names; none where the list cannot be read, which its page says."""
    try:
        kept = read_kept(path, KeptSites).sites
    except GossamerError:
        return {}
    return {Path(one.place): one.name for one in kept if not one.is_address and is_own(Path(one.place))}


def is_own(folder: Path) -> bool:
    """Whether a folder belongs to this user: nobody else's crawl may be begun by a click, since its file may name code."""
    try:
        return folder.is_dir() and folder.stat().st_uid == os.getuid()
    except OSError:
        return False


def _folder(site: Site) -> Site:
    if "\0" in site.place:
        raise UsageError("the name of a folder cannot hold a NUL character")
    folder = Path(site.place).expanduser()
    if not folder.is_absolute():
        raise UsageError(
            f"{site.place}: give a whole path, as /srv/crawls, or the address of a dashboard, as http://HOST:PORT/"
        )
    if not is_own(folder):
        raise UsageError(f"{folder} is not a folder of yours on this machine")
    return msgspec.structs.replace(site, place=str(folder), key="")


def _address(site: Site) -> Site:
    """The address without anything but scheme, name, port and path; the key in it stands by itself."""
    try:
        parts = urlsplit(site.place)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        raise UsageError(f"{site.place[:200]} is not the address of a dashboard") from None
    name = parts.hostname or ""
    if not name or parts.username is not None or any(sign in name + parts.path for sign in " \"'<>\\^`{|}"):
        raise UsageError(f"{site.place[:200]} is not the address of a dashboard; give one as http://HOST:PORT/")
    key = site.key or parse_qs(parts.query).get("token", [""])[0]
    host = f"[{name}]" if ":" in name else name
    return msgspec.structs.replace(site, place=f"{parts.scheme}://{host}{port}{parts.path or '/'}", key=key)
