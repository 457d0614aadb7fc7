"""The options of a crawl as typed keywords of the Python API: a module that is written out of the table of options."""

from __future__ import annotations

import textwrap

from gossamer.crawls.options import all_options
from gossamer.engine.sheet import Property, properties
from tools.checkout import ROOT

#: The file that is written.
FILE = ROOT / "src" / "gossamer" / "api" / "keywords.py"

_HEAD = '''"""The options of a crawl as typed keywords: `gossamer.crawl(seeds, depth=2)`, `gossamer.Spider(seeds, concurrency=16)`.

Written by `./gossamer dev docs` out of :class:`gossamer.crawls.options.CrawlOptions`: change that, not this. Times, sizes
and rates are numbers (seconds, bytes) or texts with units, as `"10m"` and `"1GB"`.
"""

from collections.abc import Sequence
from typing import Any, Literal, TypedDict


class CrawlKeywords(TypedDict, total=False):
    """The options of a crawl beside its seeds. An option that is left out has its default."""

'''

#: Units whose values people write with a unit of their own.
_MEASURED = ("s", "bytes", "bytes/s", "pages/s")


def text() -> str:
    return _HEAD + "".join(map(_field, properties(all_options(installed=False))))


def _field(prop: Property) -> str:
    doc = prop.doc.replace(" (repeatable)", "")
    lines = textwrap.wrap(f'"""{doc}"""', 120, break_on_hyphens=False, initial_indent="    ", subsequent_indent="    ")
    return f"    {prop.name}: {_type(prop)}\n" + "\n".join(lines) + "\n"


def _type(prop: Property) -> str:
    written = prop.type.replace("tuple[str, ...]", "Sequence[str]").replace("'", '"')
    if prop.unit in _MEASURED:
        first, *rest = written.split(" | ")
        return " | ".join([first, "str", *(one for one in rest if not one.startswith("Literal"))])
    return written
