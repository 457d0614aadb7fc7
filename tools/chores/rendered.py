"""Compare the rule of `--render auto` with what a browser shows: `rendered FOLDER [SITE...]`.

The sites are documentation and applications as packages of Debian, npm and PyPI have them (`rendered.toml`); what is missing in
FOLDER is fetched by `apt-get`, `npm` and `pip`. A page is labelled by rendering it: it needs a browser if a reader has more links
or more words then, unless it leads on to another page. The comparison reads both documents with the parser's tree, which the rule
does not use. Nothing but the files of the site answers a page, so an application whose server is missing may show nothing more;
such a page has no label, and is counted apart. Half of the sites are held out: the rule was never mended by a look at them. Exit
status 1 where the rule is right less often than it has to be.
"""

import argparse
import asyncio
import mimetypes
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import msgspec
from selectolax.lexbor import LexborHTMLParser

from gossamer.browser.chromium import program
from gossamer.browser.needs import seems_to_need
from gossamer.browser.rendering import FetchedPage, Want, WantedAnswer, WantRefused
from gossamer.browser.tabs import Tabs
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Response, Visit

#: Pages of a site of documents, evenly spread.
PAGES = 12

#: Pages at once: the browser is what takes the time.
PLACES = 2

#: A page needs a browser if so many more links are there then, or so large a share of words, and that many.
LINKS, SHARE, WORDS = 3, 1.2, 2

#: The share of right answers, of all sites and of those that are held out.
RIGHT, RIGHT_HELD_OUT = 0.97, 0.95

_PARTIAL = re.compile(rb"<(?:!doctype html|html|body|head|title)\b", re.IGNORECASE)
_LEADS_ON = re.compile(rb"<meta\s[^<>]*http-equiv=[\"']?refresh", re.IGNORECASE)
_HTML = (("content-type", "text/html; charset=utf-8"),)


class Site(msgspec.Struct, forbid_unknown_fields=True):
    """A site of the table."""

    package: str
    """`deb:NAME`, `npm:NAME@VERSION` or `pypi:NAME==VERSION`."""
    kind: str
    """`documents`, `application`, `ajax` (text of the server, and more by scripts) or `hydrated`."""
    folder: str = "."
    """The root of the site in the package."""
    pages: list[str] = []
    """Its pages, as `FILE` or `FILE@PATH`, the path at which it is served; by default, HTML files are taken evenly."""
    framework: str = ""
    held: bool = False
    """The rule was not mended by a look at it."""


class Judged(msgspec.Struct):
    """A page with its label."""

    path: str
    seems: bool
    needs: bool | None
    """By rendering; None where an application shows nothing without its server."""
    before: tuple[int, int]
    """Words and links."""
    after: tuple[int, int]
    how: str


def main(arguments: list[str]) -> int:
    """Label the pages of the table, and compare."""
    parser = argparse.ArgumentParser(prog="gossamer dev rendered", description=__doc__)
    parser.add_argument("folder", type=Path, help="keep packages here")
    parser.add_argument("sites", nargs="*", help="names of the table; by default, all")
    parser.add_argument("--pages", type=int, default=PAGES, help="pages of each site of documents")
    parser.add_argument("--every", action="store_true", help="print every page, not the wrong ones alone")
    given = parser.parse_args(arguments)
    table = msgspec.convert(tomllib.loads(Path(__file__).with_suffix(".toml").read_text()), dict[str, Site])
    table = {name: site for name, site in table.items() if name in given.sites or not given.sites}
    found = asyncio.run(_judged(table, given.folder, given.pages, is_whole=given.every))
    status = 0
    groups = {"all": set(found), "held out": {name for name in found if table[name].held}}
    for kind in sorted({one.kind for one in table.values()}):
        groups[kind] = {name for name in found if table[name].kind == kind}
    for group, names in groups.items():
        pages = [page for name in names for page in found[name] if page.needs is not None]
        if not pages:
            continue
        right = sum(page.seems is page.needs for page in pages) / len(pages)
        errors = Counter("missed" if page.needs else "in vain" for page in pages if page.seems is not page.needs)
        print(f"{group:12} {len(names):3} sites, {len(pages):4} pages, {100 * right:5.1f} % right, {dict(errors)}")
        status |= right < {"all": RIGHT, "held out": RIGHT_HELD_OUT}.get(group, 0.0)
    return status


async def _judged(table: dict[str, Site], folder: Path, most: int, *, is_whole: bool) -> dict[str, list[Judged]]:
    found = {}
    tabs = Tabs(program(), PLACES)
    try:
        for name, site in table.items():
            root = fetched(site.package, folder) / site.folder
            found[name] = await judged(tabs, name, site.kind, root, site.pages or list(spread(root, most)))
            _print(name, site, found[name], is_whole=is_whole)
    finally:
        await tabs.close()
    return found


def fetched(package: str, folder: Path) -> Path:
    """The folder with a package, which is fetched if it is not there."""
    source, _, name = package.partition(":")
    place = folder / source / re.sub(r"(?<!^)@.*|==.*", "", name).replace("/", "_")
    if place.is_dir():
        return place
    commands = {
        "deb": ("apt-get", "download", "-qq", name),
        "npm": ("npm", "pack", "--silent", name),
        "pypi": (sys.executable, "-P", "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", name),
    }
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        Path(scratch).chmod(0o777)  # apt-get downloads as a user of its own
        subprocess.run(commands[source], cwd=scratch, check=True, stdout=subprocess.DEVNULL)
        archive = next(Path(scratch).iterdir())
        unpacked = Path(scratch) / "unpacked"
        if source == "deb":
            subprocess.run(("dpkg-deb", "-x", archive, unpacked), check=True)
        elif source == "npm":
            shutil.unpack_archive(archive, unpacked, "gztar", filter="data")
        else:
            zipfile.ZipFile(archive).extractall(unpacked)
        unpacked.rename(place)
    return place


def spread(root: Path, most: int) -> Iterator[str]:
    """Whole HTML files of a folder, evenly spread."""
    paths = sorted(
        path for kind in ("*.html", "*.htm") for path in root.rglob(kind) if path.is_file() and not path.is_symlink()
    )
    whole = [path for path in paths if _PARTIAL.search(path.read_bytes()[:2_000])]
    for number in range(min(most, len(whole))):
        yield str(whole[number * len(whole) // min(most, len(whole))].relative_to(root))


async def judged(tabs: Tabs, name: str, kind: str, root: Path, paths: list[str]) -> list[Judged]:
    """Render pages of a site, and compare."""
    host = re.sub(r"\W+", "-", name).strip("-") + ".test"
    files = _Files(root, host)

    async def one(path: str) -> Judged:
        file, _, at = path.partition("@")
        url, markup = urljoin(f"http://{host}/", at or file.removesuffix("index.html")), (root / file).read_bytes()
        page = FetchedPage(url, WantedAnswer(200, _HTML, markup), 1.77e9)
        shown = await tabs.render(host, page, files.ask)
        visit = Visit(Task(url, host), Response(Outcome.OK, 200, headers=_HTML, body=markup), mime="text/html")
        before, after = _read(markup.decode("utf-8", "replace"), url), _read(shown.markup, url)
        needs = len(after[1] - before[1]) >= LINKS or after[0] >= max(SHARE * before[0], before[0] + WORDS)
        needs = needs and not _LEADS_ON.search(markup)  # it is another page that the browser shows
        is_blank = not needs and kind == "application"
        counts = (before[0], len(before[1])), (after[0], len(after[1]))
        return Judged(path, seems_to_need(visit), None if is_blank else needs, *counts, shown.how)

    return list(await asyncio.gather(*map(one, paths)))


class _Files:
    """Answers out of the files of a site, wherever it thinks that it is mounted."""

    def __init__(self, root: Path, host: str) -> None:
        self._root, self._host = root.resolve(), host

    async def ask(self, want: Want) -> WantedAnswer:
        """The file of a URL. Raises WantRefused: it is another host's."""
        parts = urlsplit(want.url)
        if parts.hostname != self._host:
            raise WantRefused("elsewhere")
        steps = [step for step in unquote(parts.path).split("/") if step not in ("", ".", "..")]
        for first in range(len(steps)):
            path = self._root.joinpath(*steps[first:])
            path = path / "index.html" if path.is_dir() else path
            if path.is_file() and path.resolve().is_relative_to(self._root):
                kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
                return WantedAnswer(200, (("content-type", kind),), path.read_bytes())
        return WantedAnswer(404, (("content-type", "application/json"),), b'{"error": "not found"}')


def _read(markup: str, url: str) -> tuple[int, set[str]]:
    """The number of words that a reader sees, and the addresses that the page leads to."""
    tree = LexborHTMLParser(re.sub(r"<template(?=[^<>]*\bshadowrootmode=)", "<div", markup))  # its end tag is ignored
    links = set()
    for node in tree.css("a[href]"):
        address = urldefrag(urljoin(url, (node.attributes.get("href") or "").strip()))[0]
        if address.startswith(("http://", "https://")):
            links.add(address)
    for node in tree.css("script,style,noscript,head,svg"):
        node.decompose()
    text = "" if tree.body is None else tree.body.text(separator=" ")
    return len(re.findall(r"\w{2,}", text)), links - {urldefrag(url)[0]}


def _print(name: str, site: Site, pages: list[Judged], *, is_whole: bool) -> None:
    right = sum(page.seems is page.needs for page in pages)
    labelled = sum(page.needs is not None for page in pages)
    needing = sum(page.needs is True for page in pages)
    print(
        f"{name:28} {site.kind:12} {right:3} of {labelled:3} right, {needing:3} need it, {len(pages) - labelled} blank",
        flush=True,
    )
    for page in pages:
        if is_whole or page.needs not in (None, page.seems):
            said = "needs" if page.needs else "nothing" if page.needs is None else "does not need"
            told = f"{page.before[0]} -> {page.after[0]} words, {page.before[1]} -> {page.after[1]} links, {page.how}"
            print(f"    {said}, seems {'to need' if page.seems else 'not to'}: {page.path} ({told})", flush=True)
