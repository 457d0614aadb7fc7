"""A collector of PNG images: two processors, a filter and a wiring for Gossamer. See README.md."""

import hashlib
import struct
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec

from gossamer.crawls.compiling import shipped
from gossamer.documents.document import Document
from gossamer.engine.ends import Uses
from gossamer.engine.sheet import NoSettings, Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.engine.wiring import ProviderPlan, Wiring, to_toml
from gossamer.expressions.contract import UrlFilter
from gossamer.values.task import Task
from gossamer.values.visit import Found, Item, Link

#: How this package's links are found, and how other images end, which need not be fetched.
SHOWN = ("img src", "source srcset")
OTHERS = (".jpg", ".jpeg", ".gif", ".webp", ".avif", ".svg", ".ico", ".bmp")

SIGNATURE = b"\x89PNG\r\n\x1a\n"


class ImageLinks(Provider[NoSettings]):
    """The images that a page shows. Contract: `processing.Processor`."""

    divisible = True

    def process(self, document: Document) -> Iterator[Found]:
        """One link for each `<img src>`, and for the first of each `srcset`."""
        for node in document.css("img[src], source[srcset]"):
            if node.tag == "img":
                yield Found(node.attributes["src"] or "", SHOWN[0])
            else:
                candidates = (node.attributes["srcset"] or "").split()
                yield Found(candidates[0].rstrip(",") if candidates else "", SHOWN[1])


class ImagesAnywhere(Provider[NoSettings]):
    """Images may be on any host; everything else is for the filter behind. Contract: `filtering.UrlFilter`."""

    behind: Uses[UrlFilter]

    def judge(self, links: Sequence[Link], source: Task) -> Sequence[str]:
        """`image:other` for an image that is no PNG by its name."""
        return [
            ("image:other" if _path(link.url).endswith(OTHERS) else "") if link.relation in SHOWN else verdict
            for link, verdict in zip(links, self.behind.judge(links, source), strict=True)
        ]


def _path(url: str) -> str:
    return url.partition("?")[0].lower()


class PngStoreSheet(Sheet, frozen=True):
    """Where images go."""

    output: Annotated[str, setting("The folder.")] = "png"
    smallest: Annotated[
        int, setting("Width and height that an image must have: no tracking dots.", unit="px", ge=1)
    ] = 2


class PngStore(Provider[PngStoreSheet]):
    """Keeps each whole image once. Contract: `processing.Processor`."""

    def process(self, document: Document) -> Iterator[Item]:
        """One item: where the image is kept, or what is wrong with it."""
        data = document.content
        try:
            width, height = size_of(data)
        except ValueError as error:
            yield Item("png", document.url, {"damaged": str(error)})
            return
        if min(width, height) < self.sheet.smallest:
            return
        file = Path(self.sheet.output, f"{hashlib.sha256(data).hexdigest()}.png")
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            beside = file.with_suffix(".part")
            beside.write_bytes(data)
            beside.replace(file)
        self.metrics.count("images")
        yield Item("png", document.url, {"file": str(file), "width": width, "height": height, "bytes": len(data)})


def size_of(data: bytes) -> tuple[int, int]:
    """Width and height of a PNG image that is whole: every chunk is walked over, and its checksum compared.

    Raises:
        ValueError: it is not; says why.
    """
    if not data.startswith(SIGNATURE):
        raise ValueError("no PNG signature")
    at, size = len(SIGNATURE), (0, 0)
    while at + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, at)
        kind = data[at + 4 : at + 8]
        end = at + 8 + length
        if end + 4 > len(data):
            break
        if zlib.crc32(memoryview(data)[at + 4 : end]) != struct.unpack_from(">I", data, end)[0]:
            raise ValueError(f"wrong checksum at byte {at}")
        if kind == b"IHDR" and length == 13:
            size = struct.unpack_from(">II", data, at + 8)
        if kind == b"IEND":
            if 0 in size:
                raise ValueError("no size")
            return size[0], size[1]
        at = end + 4
    raise ValueError("cut off")


def wiring() -> Wiring:
    """The shipped wiring with these parts in their places."""
    plain = shipped("default")
    components = dict(plain.components)
    process, judging = components["process"], components["filter"]
    read = dict(cast("dict[str, Any]", process.providers["processors"]))
    for mime in ("text/html", "application/xhtml+xml"):
        known = read[mime]
        read[mime] = [*([known] if isinstance(known, str) else known), "image-links"]
    read["image/png"] = "png-store"
    gates = cast("dict[str, list[str]]", judging.providers["filters"])
    follow = ["images" if name == "scope" else name for name in gates["follow"]]
    components["process"] = msgspec.structs.replace(process, providers={**process.providers, "processors": read})
    components["filter"] = msgspec.structs.replace(
        judging, providers={**judging.providers, "filters": {**gates, "follow": follow}}
    )
    providers = {
        **plain.providers,
        "image-links": ProviderPlan(use="image-links"),
        "png-store": ProviderPlan(use="png-store"),
        "images": ProviderPlan(use="images-anywhere", providers={"behind": "scope"}),
    }
    return msgspec.structs.replace(plain, description="PNG images", components=components, providers=providers)


def main() -> None:
    """`png-collector wiring`."""
    if sys.argv[1:] != ["wiring"]:
        sys.exit("usage: png-collector wiring")
    print(to_toml(wiring()))


if __name__ == "__main__":
    main()
