"""Files of a person's own choices, and the list of sites: folders of crawls on this machine, and dashboards elsewhere.

Place in the flow: :mod:`app` reads and writes the list of sites, and :mod:`crawls` shows the crawls of its folders beside those
that the dashboard was started with. Crawls of dashboards elsewhere are asked for with the key that the list keeps, when a browser
with the full token looks. Places of the topology's units and saved questions (:mod:`questions`) are kept in such files as well.

Promises: only their owner can read the files. A file that cannot be read is an error and not an empty one, since the next save
would lose what it holds. An answer from elsewhere is judged as any stranger's: within a time and a size, as text and numbers.
"""

import asyncio
import contextlib
import http.client
import os
import time
from pathlib import Path
from typing import Annotated, TypeVar
from urllib.parse import parse_qs, quote, urlsplit

import msgspec

from gossamer.engine.errors import refusing
from gossamer.engine.files import NotPrivate, private, replace_private, user_folder
from gossamer.values.errors import GossamerError, UsageError

T = TypeVar("T", bound=msgspec.Struct)

#: Bytes of such a file that are read: more than what is kept can come to.
_MOST = 8 << 20


def read_kept(path: Path, kind: type[T]) -> T:
    """The value in a file; the value without any choice where there is no file.
    Raises UsageError: the file cannot be read, holds something else, or belongs to another user."""
    try:
        with private(path, closed=0) as file:
            return msgspec.json.decode(file.read(_MOST), type=kind)
    except FileNotFoundError:
        return kind()
    except NotPrivate:
        raise UsageError(f"{path} does not belong to you; remove it") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise UsageError(f"{path} is damaged ({error}); mend it or remove it") from None


def read_form(name: str, body: bytes, kind: type[T]) -> T:
    """The value that a browser sends as JSON; `name` is what messages call it. Raises UsageError: it is none."""
    try:
        return msgspec.json.decode(body, type=kind)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from None


def write_kept(path: Path, value: msgspec.Struct) -> None:
    """Put a value in the place of what a file holds, whole or not at all, readable for its owner alone.
    Raises UsageError: it cannot be written."""
    with refusing(UsageError, f"{path} cannot be written"):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_private(path, msgspec.json.format(msgspec.json.encode(value)))


# Places of the units in the picture of a graph: remembered for this user, outside of every crawl.

#: Units of a picture that are remembered, and how far from its middle one may lie.
MOST_UNITS, FAR = 5_000, 1_000_000

#: The folder of layouts, among the user's files of state.
LAYOUTS = "layouts"

#: Layouts that are kept; the one that was not changed for the longest time goes.
KEPT = 500

Place = Annotated[float, msgspec.Meta(ge=-FAR, le=FAR)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=253)]


class Layout(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A picture as a person left it."""

    places: Annotated[dict[Name, tuple[Place, Place]], msgspec.Meta(max_length=MOST_UNITS)] = {}
    """Unit -> x and y."""
    is_still: bool = False
    """The picture does not arrange itself."""


def read_layout(folder: Path, key: str) -> Layout:
    """The layout of a crawl, by its key, which ends with a hash; an empty one where none is kept that can be read."""
    try:
        return msgspec.json.decode((folder / f"{key}.json").read_bytes(), type=Layout)
    except (OSError, ValueError):
        return Layout()


def write_layout(folder: Path, key: str, body: bytes) -> Layout:
    """Keep a layout, given as JSON. Raises UsageError: it is none, or cannot be kept."""
    layout = read_form("layout", body, Layout)
    write_kept(folder / f"{key}.json", layout)
    with contextlib.suppress(OSError):  # another dashboard may do the same now
        for path in sorted(folder.glob("*.json"), key=lambda path: -path.stat().st_mtime)[KEPT:]:
            path.unlink(missing_ok=True)
    return layout


#: Sites at most, and characters of a place and of a description.
MOST_SITES, LONGEST, DESCRIBED = 100, 4_000, 500


class Site(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
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
    sites: Annotated[list[Site], msgspec.Meta(max_length=MOST_SITES)] = []


class ListedSite(msgspec.Struct, frozen=True):
    """A site as the browser is told of it, without its key."""

    name: str
    place: str
    is_address: bool
    has_key: bool
    description: str = ""


class ListedSites(msgspec.Struct, frozen=True):
    sites: list[ListedSite]


def sites_file() -> Path:
    return user_folder("config") / "sites.json"


def list_sites(path: Path) -> ListedSites:
    """The sites without their keys. Raises UsageError: the list cannot be read."""
    kept = read_kept(path, KeptSites).sites
    return ListedSites(
        [ListedSite(one.name, one.place, one.is_address, bool(one.key), one.description) for one in kept]
    )


def save_sites(path: Path, body: bytes) -> ListedSites:
    """Keep these sites, given as JSON, in the place of those that were kept. A site that comes without a key keeps the one that
    its address had. An address may hold a key, as `gossamer dashboard` prints it. Raises UsageError: they are none, two have
    one name, a folder is none of this user's, or the list cannot be read or written."""
    given = read_form("sites", body, KeptSites).sites
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
    Raises UsageError: there is none of this name, or the list cannot be read."""
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
    """Whether a folder belongs to this user. A click begins no crawl of another user, since its file may name code."""
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


# Crawls of dashboards elsewhere.

#: Seconds for one dashboard, and bytes of its answer: some thousand crawls.
PATIENCE, LARGEST = 5.0, 1 << 20

#: Crawls of one site that are shown.
SHOWN = 200

#: Bytes that are read at once.
_PIECE = 1 << 16

Words = Annotated[str, msgspec.Meta(max_length=4_000)]
Count = Annotated[int, msgspec.Meta(ge=0)]


class StandingElsewhere(msgspec.Struct, frozen=True):
    state: Words
    pages: Count = 0
    queued: Count = 0


class CrawlElsewhere(msgspec.Struct, frozen=True):
    """One crawl, as that dashboard lists it."""

    directory: Words
    standing: StandingElsewhere | None = None
    trouble: Words = ""


class SiteElsewhere(msgspec.Struct, frozen=True):
    """A dashboard, and what it tells."""

    name: str
    crawls: list[CrawlElsewhere] = []
    trouble: str = ""
    """Why it tells nothing; empty where it does."""


async def look_elsewhere(path: Path) -> list[SiteElsewhere]:
    """How the crawls of all dashboards stand that the list of sites names.
    Raises UsageError: the list cannot be read."""
    sites = [one for one in read_kept(path, KeptSites).sites if one.is_address]
    return list(await asyncio.gather(*(asyncio.to_thread(_look, site) for site in sites)))


def _look(site: Site) -> SiteElsewhere:
    try:
        crawls = msgspec.json.decode(_answer(site), type=list[CrawlElsewhere])
    except (OSError, http.client.HTTPException) as error:
        return SiteElsewhere(site.name, trouble=f"does not answer: {getattr(error, 'strerror', None) or error}")
    except ValueError:
        return SiteElsewhere(site.name, trouble="does not answer as a dashboard does")
    return SiteElsewhere(site.name, crawls[:SHOWN])


def _answer(site: Site) -> bytes:
    """The answer of `api/crawls` there. Raises OSError, HTTPException."""
    parts, deadline = urlsplit(site.place), time.monotonic() + PATIENCE
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    line = kind(parts.hostname or "", parts.port, timeout=PATIENCE)
    try:
        headers = {"Accept": "application/json", **({"Authorization": f"Bearer {site.key}"} if site.key else {})}
        line.request("GET", f"{parts.path.rstrip('/')}/api/crawls", headers=headers)
        answer = line.getresponse()
        if answer.status in (401, 403):
            raise OSError("its token is not valid; put its address into the list again, as that dashboard prints it")
        if answer.status != 200:
            raise OSError(f"status {answer.status}")
        found = b""
        while piece := answer.read1(_PIECE):
            found += piece
            if len(found) > LARGEST or time.monotonic() > deadline:
                raise OSError("its answer is too long, or comes too slowly")
        return found
    finally:
        line.close()
