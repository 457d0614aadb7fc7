"""The owner's sheet: what a runtime serves and what it refuses, out of `runtime.toml` and `--serve` options (docs/runtime.md).

Place in the flow: the command line reads a sheet here, :class:`~gossamer.mobile.sources.opened.Runtime` opens its sources, and
:mod:`gossamer.mobile.sources.gate` keeps to it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from gossamer.engine.files import toml_of
from gossamer.engine.sheet import nearest
from gossamer.expressions.compiling import Expression
from gossamer.expressions.syntax import ExpressionError
from gossamer.mobile.crawler import CrawlerRefused
from gossamer.mobile.reading import converted, text_of, with_numbers
from gossamer.values.errors import UnreadableUrl, UsageError
from gossamer.values.url import canonical, endpoint_of, scheme_of, site_of

#: The name in the place of a host under which a stored crawl or WARC files are served, with all the hosts in them.
ARCHIVE = "archive"

#: Bytes of the largest sheet: ten thousand hosts fit.
_MAX_FILE = 1 << 20

_UNITS = {
    "time": "s",
    "cpu": "s",
    "delay": "s",
    "keep": "s",
    "bytes": "bytes",
    "max_page_size": "bytes",
    "memory": "bytes",
    "kept": "bytes",
    "disk": "bytes",
}

SourceKind = Literal["files", "server", "archive"]


class ServedHost(msgspec.Struct, frozen=True):
    """One `--serve`, read and checked."""

    kind: SourceKind
    place: str
    """A path, or the origin of a local server as `http://127.0.0.1:8080`."""
    host: str = ""
    """Name, with the port where URLs have one; empty for an archive, which serves the hosts that it holds."""
    scheme: str = ""
    """The scheme under which the site is known, where the owner says so: URLs of the other one are redirected to it."""

    @property
    def home(self) -> str:
        return f"{self.scheme or 'https'}://{self.host}/"


class OwnerLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much one crawler may take. At a limit of pages, bytes or time it is refused everything else."""

    requests: Annotated[int, Meta(ge=1)] = 1_000_000
    bytes: Annotated[int, Meta(ge=1)] = 100_000_000_000
    """Of all documents that it is given."""
    time: Annotated[float, Meta(gt=0)] = 86_400.0
    """Seconds since its first request."""
    max_page_size: Annotated[int, Meta(ge=1)] = 16 << 20
    """Bytes of one document; a longer one is cut."""
    cpu: Annotated[float, Meta(ge=1, le=1e9)] = 3_600.0
    """Seconds of processor time of its process, which is ended then."""
    memory: Annotated[int, Meta(ge=64 << 20)] = 512 << 20
    """Bytes of its process, beside those that any such process takes, some 100 MB."""
    kept: Annotated[int, Meta(ge=1)] = 256 << 20
    """Bytes of its results that are kept; it waits until its sender has taken some."""


class SenderRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rights of one sender, where they are less than the sheet gives every key."""

    hosts: tuple[str, ...] | None = None
    """Hosts that its crawlers may visit, as `serve` names them without a scheme; all that are served where it is left out."""
    crawlers: Annotated[int, Meta(ge=1)] | None = None
    """How many of its crawlers run at once."""


class OwnerSheet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rights that an owner gives, and the limits."""

    serve: dict[str, str] = {}
    """Host -> folder or URL of a local server; `archive` -> crawl directory, WARC file or folder of them."""
    refuse: tuple[str, ...] = ()
    """Expressions; a URL for which one of them holds is refused."""
    ignore_htaccess: tuple[str, ...] = ()
    """Hosts whose directories are served although they have `.htaccess` files."""
    delay: Annotated[float, Meta(ge=0)] = 1.0
    """Seconds between two requests to a local server; a longer Crawl-delay of its robots.txt is kept."""
    limits: OwnerLimits = OwnerLimits()
    listen: str = ""
    """Address and port at which senders are listened to; empty for the default."""
    allow: tuple[str, ...] = ()
    """Installed processors that crawlers may use."""
    crawlers: Annotated[int, Meta(ge=1, le=256)] = 2
    """How many crawlers run at once, of all senders."""
    waiting: Annotated[int, Meta(ge=1, le=100_000)] = 100
    """How many crawlers of one sender may be here that have not ended, or whose results it has not taken."""
    keep: Annotated[float, Meta(gt=0)] = 86_400.0
    """Seconds after the last word of its sender until a crawler is ended and forgotten, with its results."""
    disk: Annotated[int, Meta(ge=1)] = 4 << 30
    """Bytes of all results that are kept; crawlers wait when there is no room."""
    senders: dict[str, SenderRules] = {}
    """Rules for some senders, by name."""

    def rules(self, sender: str) -> SenderRules:
        return self.senders.get(sender, SenderRules())

    def hosts(self) -> tuple[ServedHost, ...]:
        """The hosts that are served, in order. Raises UsageError: an entry cannot be read."""
        return tuple(_host(name, place) for name, place in self.serve.items())

    def refusals(self) -> tuple[Expression, ...]:
        """The expressions of `refuse`, compiled. Raises UsageError: one cannot be read."""
        found: list[Expression] = []
        for source in self.refuse:
            try:
                found.append(Expression(source, "schedule"))
            except ExpressionError as error:
                raise UsageError(f"refuse {source!r}: {' '.join(str(error).split())}") from None
        return tuple(found)


def read_sheet(path: Path | None, serve: Sequence[str] = ()) -> OwnerSheet:
    """The sheet of a TOML file, or of options alone, with the entries of `--serve` in the place of its own for the same host.
    Raises UsageError: something cannot be read, or nothing is served; one line."""
    sheet = (
        OwnerSheet()
        if path is None
        else parse_sheet(text_of(path, _MAX_FILE, "serve fewer hosts with one runtime"), str(path))
    )
    given: dict[str, str] = {}
    for entry in serve:
        name, sign, place = entry.partition("=")
        if not sign or not name or not place:
            raise UsageError(f"--serve {entry!r}: write HOST=FOLDER, HOST=http://ADDRESS:PORT or archive=DIR")
        if name in given:
            raise UsageError(f"--serve {name}: given twice; one host has one source")
        given[name] = place
    sheet = msgspec.structs.replace(sheet, serve={**sheet.serve, **given})
    if not sheet.serve:
        raise UsageError("nothing is served; give --serve HOST=FOLDER, HOST=http://ADDRESS:PORT or archive=DIR")
    _check(sheet)
    return sheet


def parse_sheet(text: str, source: str = "runtime.toml") -> OwnerSheet:
    """The sheet that a text in TOML describes; `source` is what messages call the text.
    Raises UsageError: it describes none; one line with the place."""
    plain = toml_of(text, source, UsageError)
    try:
        plain = with_numbers(plain, _UNITS)
        if isinstance(limits := plain.get("limits"), dict):
            plain["limits"] = with_numbers(limits, _UNITS, "limits.")
        sheet: OwnerSheet = converted(plain, OwnerSheet, _TABLES)
    except CrawlerRefused as refusal:
        raise UsageError(f"{source}: {refusal}") from None
    return sheet


_TABLES: dict[str, type[msgspec.Struct]] = {"": OwnerSheet, "limits": OwnerLimits, "senders[]": SenderRules}


def _check(sheet: OwnerSheet) -> None:
    hosts = sheet.hosts()
    names = [one.host for one in hosts]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise UsageError(f"serve {twice}: given twice; one host has one source")
    sheet.refusals()
    files = {one.host for one in hosts if one.kind == "files"}
    for name in sheet.ignore_htaccess:
        if name not in files:
            raise UsageError(f"ignore_htaccess {name!r}: no files are served for it{nearest(name, sorted(files))}")
    for sender, rules in sheet.senders.items():
        for name in rules.hosts or ():
            if name not in names and "" not in names:
                raise UsageError(f"senders.{sender}.hosts {name!r}: it is not served{nearest(name, sorted(names))}")


def _host(name: str, place: str) -> ServedHost:
    if name == ARCHIVE:
        return ServedHost("archive", place)
    scheme, sign, host = name.partition("://")
    if not sign:
        scheme, host = "", name
    try:
        url = canonical(f"{scheme or 'http'}://{host}/")
    except UnreadableUrl:
        url = ""
    wanted = ("http", "https") if sign else ("http",)
    if not url or scheme_of(url) not in wanted or url.count("/") != 3 or not url.endswith("/") or "@" in host:
        raise UsageError(
            f"serve {name!r}: not a host; write it as example.org, example.org:8080 or https://example.org"
        )
    known = site_of(url).partition("://")[2]
    if "://" not in place:
        return ServedHost("files", place, known, scheme)
    return ServedHost("server", _origin(name, place), known, scheme)


def _origin(name: str, place: str) -> str:
    """The local server, as an origin without a path. It may only be on this machine: nothing else is the owner's own."""
    try:
        url = canonical(place)
    except UnreadableUrl:
        url = ""
    if not url or scheme_of(url) != "http" or url != f"{site_of(url)}/":
        raise UsageError(f"serve {name}={place!r}: not a local server; write it as http://127.0.0.1:8080")
    address, _ = endpoint_of(url)
    if address not in ("127.0.0.1", "::1", "localhost"):
        raise UsageError(f"serve {name}={place}: not on this machine; write 127.0.0.1, [::1] or localhost")
    return site_of(url)
