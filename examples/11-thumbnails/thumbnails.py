"""Thumbnails of the pictures that a crawl fetches, made in another process: a filter and a consumer. See README.md."""

import hashlib
import io
import sys
from pathlib import Path
from typing import Annotated

import msgspec
from PIL import Image

from gossamer.crawls.compiling import shipped
from gossamer.engine.component import Consumer, Filter
from gossamer.engine.ends import In, Out
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.wiring import changed, to_toml
from gossamer.values.visit import Visit

#: What differs from the shipped wiring; `gossamer rewire` takes it as well.
CHANGE = """
[connectors.pictured]
address = "fused:"

[connectors.pictures]
address = "unix:"
capacity = 16

[components.pictures]
use = "pictures"
workers = 4
ports = { inbox = "checked", outbox = "pictured", pictures = "pictures" }

[components.thumbnails]
use = "thumbnails"
process = "thumbnails"
ports = { inbox = "pictures" }

[components.process]
ports = { inbox = "pictured" }
"""


class Picture(msgspec.Struct, frozen=True):
    """A picture on its way to the other process."""

    url: str
    data: bytes


class PicturesSheet(Sheet, frozen=True):
    """Which pictures are sent."""

    largest: Annotated[int, setting("Leave out pictures of more than this.", unit="bytes", ge=1)] = 4_000_000


class Pictures(Filter[PicturesSheet]):
    """Hands every visit on as it is, and sends a copy of each new picture."""

    inbox: In[Visit]
    outbox: Out[Visit]
    pictures: Out[Picture]

    def filter(self, item: Visit) -> None:
        """One visit; two outputs are emitted by name."""
        response = item.response
        if response.mime.startswith("image/") and response.status == 200 and not item.duplicate_of:
            if len(response.document) <= self.sheet.largest:
                self.pictures.emit(Picture(item.url, response.content))
            else:
                self.metrics.count("left_out")
        self.outbox.emit(item)


class ThumbnailsSheet(Sheet, frozen=True):
    """Where thumbnails go."""

    output: Annotated[str, setting("Write thumbnails to this folder.")] = "thumbnails"
    size: Annotated[int, setting("Make the longer side at most this long.", unit="px", ge=8, le=1024)] = 128
    pixels: Annotated[int, setting("Leave out pictures with more pixels than this.", unit="px", ge=1)] = 50_000_000


class Thumbnails(Consumer[ThumbnailsSheet]):
    """Writes a small PNG image for each picture.

    A picture may come twice, when a process was killed before it was acknowledged; its name is its digest, so that the same file
    is written again.
    """

    inbox: In[Picture]

    def consume(self, item: Picture) -> None:
        """One picture."""
        try:
            with Image.open(io.BytesIO(item.data)) as image:
                if image.width * image.height > self.sheet.pixels:
                    raise ValueError("too many pixels")
                image.thumbnail((self.sheet.size, self.sheet.size))
                small = image.convert("RGBA")
        # What Pillow raises of a broken picture depends on its format.
        except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError):
            self.metrics.count("unusable")
            return
        file = Path(self.sheet.output, f"{hashlib.sha256(item.data).hexdigest()}.png")
        file.parent.mkdir(parents=True, exist_ok=True)
        beside = file.with_suffix(".part")
        small.save(beside, format="PNG")
        beside.replace(file)
        self.metrics.count("thumbnails")


def main() -> None:
    """`python -m thumbnails wiring|change`."""
    if sys.argv[1:] == ["change"]:
        print(CHANGE.strip())
    elif sys.argv[1:] == ["wiring"]:
        print(to_toml(changed(shipped("default"), CHANGE)))
    else:
        sys.exit("usage: thumbnails wiring|change")


if __name__ == "__main__":
    main()
